"""E037: objects derived from expiring ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from tests.unit.declaring import declare, forgotten, messages


@pytest.fixture(autouse=True)
def own_models() -> Iterator[None]:
    """Remove the test's models."""
    with forgotten():
        yield


def derived(source: dict[str, Any], **attributes: Any) -> Any:
    """Return a model whose objects are derived from another's, with these attributes."""
    thing = declare("Thing", ("THING#{thing_id}", "#METADATA"), thing_id=models.UnicodeAttribute(), **source)
    return declare(
        "Mark",
        ("MARK#{mark_id}", "#METADATA"),
        mark_id=models.UnicodeAttribute(),
        thing=models.ReferenceAttribute(thing, on_delete=models.DO_NOTHING),
        derived_by="thing",
        **attributes,
    )


def test_derived_model_of_an_expiring_one_needs_a_ttl() -> None:
    ((check, message),) = messages(derived({"expires": models.TTLAttribute(null=True)}))
    assert check == "dynamo_single.E037"
    assert "an expired object is read until DynamoDB deletes its item" in message


def test_derived_model_with_a_ttl_is_accepted() -> None:
    expires = models.TTLAttribute(null=True)
    assert messages(derived({"expires": models.TTLAttribute(null=True)}, expires=expires)) == []


@pytest.mark.parametrize(
    "source", [{}, {"expires": models.TTLAttribute(provisional=True)}], ids=["none", "provisional"]
)
def test_derived_model_of_a_lasting_one_needs_no_ttl(source: dict[str, Any]) -> None:
    """A provisional time to live ends before anything refers to the object."""
    assert messages(derived(source)) == []
