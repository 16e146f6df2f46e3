"""Places inside documents in ``values()`` and ``order_by()``: read out of whole items, and put in order in memory."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Count, F, Sum

from dynamo_single import models
from dynamo_single.exceptions import NotSupported, TooManyMatches, UnknownField
from dynamo_single.testing import assert_requests
from tests.catalog.records import Treatise
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture(autouse=True)
def treatises(table: Any) -> None:
    """Create four treatises, one without a price and tags."""
    for title, price, tags in (("a", Decimal("2.5"), ["x", "y"]), ("b", 10, ["z"]), ("c", Decimal("-1"), [])):
        Treatise.objects.create(
            id=title, data={"title": title, "price": price, "tags": tags, "by": {"name": title * 2}}
        )
    Treatise.objects.create(id="d", data={"title": "d"})


def test_values_of_places_are_read_with_the_whole_document() -> None:
    with assert_requests(["Query"]) as sent:
        rows = list(Treatise.objects.order_by("created_at").values("id", "data__by__name", "data__tags__1"))
    assert rows == [
        {"id": "a", "data__by__name": "aa", "data__tags__1": "y"},
        {"id": "b", "data__by__name": "bb", "data__tags__1": None},
        {"id": "c", "data__by__name": "cc", "data__tags__1": None},
        {"id": "d", "data__by__name": None, "data__tags__1": None},
    ]
    assert "data" in sent[0].params["ExpressionAttributeNames"].values()


def test_lists_of_places_have_each_form() -> None:
    found = Treatise.objects.order_by("created_at")
    assert list(found.values_list("data__price", flat=True)) == [Decimal("2.5"), 10, -1, None]
    assert list(found.values_list("data__title", "data"))[3] == ("d", {"title": "d"})
    assert found.values_list("data__title", named=True)[0].data__title == "a"
    assert asyncio.run(_awaited(found.values_list("data__title", flat=True))) == ["a", "b", "c", "d"]


async def _awaited(found: Any) -> list[Any]:
    return [each async for each in found]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (("data__price",), "dcab"),
        (("-data__price",), "bacd"),
        ((F("data__price").asc(nulls_last=True),), "cabd"),
        ((F("data__price").desc(nulls_first=True),), "dbac"),
        (("data__by__name", "id"), "dabc"),
        (("data__title", "data__price"), "abcd"),
    ],
)
def test_an_order_by_a_place_is_made_in_memory(order: tuple[Any, ...], expected: str) -> None:
    with assert_requests(["Query"]):
        found = [each.id for each in Treatise.objects.order_by(*order).allow_in_memory()]
    assert "".join(found) == expected


def test_an_order_by_a_place_is_of_filtered_and_picked_rows_too() -> None:
    found = Treatise.objects.filter(data__price__isnull=False).order_by("-data__price").allow_in_memory()
    assert list(found.values_list("data__title", flat=True)) == ["b", "a", "c"]
    assert [each.id for each in found[:2]] == ["b", "a"]
    assert [each.id for each in found.only("id").reverse()] == ["c", "a", "b"]
    assert found.first().id == "b"
    assert "sorted by -data__price" in str(found.explain())


def test_more_than_was_allowed_is_an_error() -> None:
    with pytest.raises(TooManyMatches):
        list(Treatise.objects.order_by("data__price").allow_in_memory(limit=3))


@pytest.mark.parametrize(
    ("value", "message"),
    [("dear", "finds numbers and texts there, which have no order among each other"), ({"eur": 1}, "have no order")],
)
def test_values_without_an_order_among_each_other_are_refused(value: Any, message: str) -> None:
    with forgotten():
        model = declare(
            "Loose",
            ("LOOSE", "{loose_id}"),
            loose_id=models.IdAttribute(),
            data=models.MapAttribute(default=dict),
        )
        model.objects.create(loose_id="1", data={"price": 1})
        model.objects.create(loose_id="2", data={"price": value})
        with pytest.raises(NotSupported, match=message):
            list(model.objects.order_by("data__price").allow_in_memory())


def test_grouping_by_a_place_is_refused_and_names_the_attribute_that_would_do() -> None:
    with assert_requests(0), pytest.raises(NotSupported, match=r"models\.ExtractedAttribute\('data__title'\)"):
        list(Treatise.objects.values("data__title").annotate(n=Count("pk")).allow_in_memory())


def test_sum_of_a_place_needs_a_limit() -> None:
    with assert_requests(0), pytest.raises(NotSupported, match=r"\.allow_in_memory\(limit=1000\)"):
        Treatise.objects.aggregate(Sum("data__by__price"))


@pytest.mark.parametrize("name", ["author__x", "nothing__x", "data__"])
def test_a_name_that_leads_into_no_document_is_refused(name: str) -> None:
    with assert_requests(0), pytest.raises((NotSupported, UnknownField)):
        list(Treatise.objects.values(name))
