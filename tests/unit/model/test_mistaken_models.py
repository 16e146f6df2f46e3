"""Beginners' mistakes: each error contains the intended code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import models as django_models

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from tests.unit.declaring import declare, forgotten, messages


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """Remove the models that a test declares."""
    with forgotten():
        yield


def test_a_key_without_a_sort_key() -> None:
    model = declare("Keyless", ("COMPANY#{company_id}", ""), company_id=models.UnicodeAttribute())
    assert [number for number, _ in messages(model)] == ["dynamo_single.E003"]
    assert "has no sort key, but the table or index has one" in messages(model)[0][1]


def test_a_key_of_an_index_without_its_partition() -> None:
    with pytest.raises(
        ConfigurationError, match=r"takes the name of an index, a partition and a sort key, as in Index"
    ):
        models.IndexKey("gs1")  # type: ignore[call-arg]  # the mistake


@pytest.mark.parametrize("given", [("gs1", "COMPANY"), ("gs1", "COMPANY", "")])
def test_a_key_of_an_index_without_its_sort_key(given: Any) -> None:
    keys = {"by_name": models.IndexKey(*given)}
    model = declare("Keyless", ("COMPANY#{company_id}", "#"), keys, company_id=models.UnicodeAttribute())
    assert [number for number, _ in messages(model)] == ["dynamo_single.E003"]


def test_a_key_with_the_name_of_an_index() -> None:
    """In the past, the third argument was mistaken for the sharding of the key."""
    with pytest.raises(
        ConfigurationError, match=r"A key of an index is an IndexKey, which takes the index's name before"
    ):
        models.Key("gs1", "COMPANY", "{name}")  # type: ignore[arg-type]  # the mistake


def test_a_second_key_that_is_on_no_index() -> None:
    """In the past, it was ignored, and its list failed."""
    name = models.UnicodeAttribute()
    with pytest.raises(ConfigurationError) as caught:
        declare("Mistaken", ("FIRM#{name}", "#M"), {"by_name": models.Key("NAME", "{name}")}, name=name)
    assert str(caught.value) == (
        "Mistaken.Keys.by_name is a Key, which only the primary one is, by the name primary. A further key is on an "
        'index of the table: by_name = models.IndexKey("gs1", ...).'
    )


def test_a_key_of_a_field_of_django() -> None:
    """The message names the field, which E008 of the checks would, and keys come before checks."""
    model = declare("Mistaken", ("FIRM#{name}", "#M"), name=django_models.CharField(max_length=9))
    with pytest.raises(
        ConfigurationError, match=r"names 'name', which is a CharField of Django: declare an attribute of"
    ):
        registry.layout_of(model)


def test_a_key_of_a_model_without_attributes() -> None:
    model = declare("Mistaken", ("FIRM#{name}", "#M"))
    with pytest.raises(ConfigurationError, match=r"which is not an attribute of the model\. It has none\."):
        registry.layout_of(model)


def test_an_on_delete_that_is_a_text() -> None:
    with pytest.raises(ConfigurationError, match=r"on_delete='cascade' cannot be kept\. It can be models\.CASCADE"):
        models.ReferenceAttribute("directory.Company", on_delete="cascade")  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        (models.UnicodeAttribute, r"Mistaken\.note is the class UnicodeAttribute: write UnicodeAttribute\(\.\.\.\)\."),
        ((models.UnicodeAttribute(),), r"Mistaken\.note is a tuple of an attribute: take the comma after it away\."),
    ],
    ids=["no parentheses", "a comma"],
)
def test_a_slip_that_leaves_an_attribute_out(value: Any, way_out: str) -> None:
    """As in Django, the model would silently lack it."""
    with pytest.raises(ConfigurationError, match=way_out):
        declare("Mistaken", ("FIRM#{firm_id}", "#M"), firm_id=models.IdAttribute(), note=value)


def test_a_kind_of_attribute_may_be_declared_within_a_model() -> None:
    class Shouted(models.UnicodeAttribute):
        """A custom choice."""

    declare("Mistaken", ("FIRM#{firm_id}", "#M"), firm_id=models.IdAttribute(), Shouted=Shouted, note=Shouted())
