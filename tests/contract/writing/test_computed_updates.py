"""``update()`` with expressions that DynamoDB does not compute: read, computed, and written if nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Case, F, Value, When
from django.db.models.functions import Concat, Length, Upper

from dynamo_single.exceptions import NotSupported, StaleObject
from dynamo_single.orm.query import interpreted
from dynamo_single.testing import assert_requests
from tests.catalog.models import Sample


@pytest.fixture(autouse=True)
def samples(table: Any) -> None:
    for number, text in enumerate(["a", "bb", None]):
        Sample.objects.create(sample_id=f"s{number}", text=text, integer=number)


def texts() -> list[Any]:
    return list(Sample.objects.order_by("sample_id").values_list("text", flat=True))


def test_update_computes_from_the_objects() -> None:
    assert Sample.objects.allow_in_memory().update(text=Concat(Upper("text"), Value("!"))) == 3
    assert texts() == ["A!", "BB!", "!"]


def test_update_sets_plain_values_beside() -> None:
    level = Case(When(integer__gt=0, then=Value("more")), default=Value("none"))
    assert Sample.objects.allow_in_memory().update(text=level, flag=True) == 3
    assert texts() == ["none", "more", "more"]
    assert Sample.objects.allow_in_memory().filter(flag=True).count() == 3


def test_update_of_a_product_keeps_the_type() -> None:
    assert Sample.objects.filter(pk="s2").allow_in_memory(1).update(integer=F("integer") * F("integer") + 1) == 1
    assert Sample.objects.get(pk="s2").integer == 5


def test_update_under_a_computed_condition() -> None:
    found = Sample.objects.allow_in_memory().annotate(n=Length("text")).filter(n=2)
    assert found.update(text="two") == 1
    assert texts() == ["a", "two", None]


def test_update_needs_a_limit() -> None:
    with assert_requests([]), pytest.raises(NotSupported, match="DynamoDB adds"):
        Sample.objects.update(text=Upper("text"))
    assert texts() == ["a", "bb", None]


def raced(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Change the object between the read and the write."""
    compare, left = interpreted._unchanged, [times]

    def unchanged(*args: Any) -> Any:
        condition = compare(*args)
        if left[0]:
            left[0] -= 1
            Sample.objects.filter(pk="s0").update(text=f"new{left[0]}")
        return condition

    monkeypatch.setattr(interpreted, "_unchanged", unchanged)


def test_update_reads_again_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    raced(monkeypatch, 1)
    assert Sample.objects.filter(pk="s0").allow_in_memory(1).update(text=Upper("text")) == 1
    assert texts()[0] == "NEW0"


def test_update_gives_up_after_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    raced(monkeypatch, 100)
    with pytest.raises(StaleObject, match="Call update\\(\\) again"):
        Sample.objects.filter(pk="s0").allow_in_memory(1).update(text=Upper("text"))
    assert texts()[0].startswith("new")
