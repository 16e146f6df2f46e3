"""Every way to write a list validates its elements against the schema."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F
from django.forms import modelform_factory

from dynamo_single.exceptions import InvalidValue, MissingValue
from dynamo_single.models import REMOVE, Append, Prepend
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.records import Receipt

pytestmark = pytest.mark.usefixtures("table")

LINES = [{"name": "Tea", "price": Decimal("1.5")}, {"name": "Jam", "colour": "red"}]
WRONG = [{"name": "Tea", "price": "cheap"}]


@pytest.fixture
def receipt(table: Table) -> Any:
    """Return a valid receipt."""
    return Receipt.objects.create(receipt_id="r", lines=LINES, points=[1, 2], data={"steps": LINES})


def changed(receipt: Any) -> Any:
    """The object with a wrong line."""
    receipt.lines[0]["price"] = "cheap"
    return receipt


WRITERS: dict[str, Callable[[Any], Any]] = {
    "create": lambda receipt: Receipt.objects.create(receipt_id="s", lines=WRONG),
    "bulk_create": lambda receipt: Receipt.objects.bulk_create([Receipt(receipt_id="s", lines=WRONG)]),
    "save": lambda receipt: changed(receipt).save(),
    "update": lambda receipt: Receipt.objects.filter(pk="r").update(lines=WRONG),
    "update of a place": lambda receipt: Receipt.objects.filter(pk="r").update(lines__0__price="cheap"),
    "bulk_update": lambda receipt: Receipt.objects.bulk_update([changed(receipt)], ["lines"]),
    "move": lambda receipt: changed(receipt).move(receipt_id="s"),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_way_to_write_is_held_to_the_schema(write: Callable[[Any], Any], receipt: Any) -> None:
    with pytest.raises(InvalidValue, match="lines__0__price must be a decimal number, not str 'cheap'"):
        write(receipt)
    assert [each.lines for each in Receipt.objects.filter(pk__in=["r", "s"])] == [LINES]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"lines__0": {"price": 1}}, MissingValue, "lines__0__name is missing"),
        ({"lines__0": None}, InvalidValue, "lines__0 is a map, and cannot be NoneType"),
        ({"lines__1__name": REMOVE}, MissingValue, "lines__1__name is missing"),
        ({"lines__1__marks__0": 5}, InvalidValue, "lines__1__marks__0 must be a string"),
        ({"lines": Append([{"price": 1}])}, MissingValue, "lines__0__name is missing"),
        ({"lines": Prepend(["Tea"])}, InvalidValue, "lines__0 is a map"),
        ({"points": Append([-1])}, InvalidValue, "points__0: Ensure this value is greater"),
        ({"points__1": "two"}, InvalidValue, "points__1 must be a number"),
        ({"data__steps__0__price": "cheap"}, InvalidValue, "data__steps__0__price must be a decimal number"),
        ({"data__steps": [{"name": 5}]}, InvalidValue, "data__steps__0__name must be a string"),
        ({"data__steps__name": "x"}, InvalidValue, "the places of a list are numbers from 0 up, not 'name'"),
    ],
)
def test_a_place_is_checked_before_anything_is_sent(
    given: dict[str, Any], error: type[Exception], message: str, receipt: Any
) -> None:
    with assert_requests(0), pytest.raises(error, match=message):
        Receipt.objects.filter(pk="r").update(**given)


def test_elements_that_fit_are_written_in_their_places_by_one_request(receipt: Any) -> None:
    with assert_requests(["UpdateItem"]):
        Receipt.objects.filter(pk="r").update(
            lines__0__price=Decimal("2.25"), lines__1__pages=7, points=Append([3]), data__steps__0={"name": "New"}
        )
    found = Receipt.objects.get(pk="r")
    assert found.lines == [{"name": "Tea", "price": Decimal("2.25")}, {"name": "Jam", "colour": "red", "pages": 7}]
    assert (found.points, found.data["steps"][0]) == ([1, 2, 3], {"name": "New"})


def test_an_element_is_removed_though_it_may_not_be_missing(receipt: Any) -> None:
    with assert_requests(["UpdateItem"]):
        Receipt.objects.filter(pk="r").update(lines__0=REMOVE, data__steps__1=REMOVE)
    found = Receipt.objects.get(pk="r")
    assert (found.lines, found.data["steps"]) == (LINES[1:], LINES[:1])


def test_a_list_within_a_map_is_appended_to_after_it_is_read(receipt: Any) -> None:
    found = Receipt.objects.filter(pk="r")
    with assert_requests(["GetItem"]), pytest.raises(InvalidValue, match="data__steps__2__name must be a string"):
        found.update(data__steps=Append([{"name": 5}]))
    with assert_requests(["GetItem", "UpdateItem"]):
        found.update(data__steps=Append([{"name": "Five"}]))
    assert Receipt.objects.get(pk="r").data["steps"] == [*LINES, {"name": "Five"}]


def test_a_sum_in_an_element_is_computed_where_not_every_number_fits(receipt: Any) -> None:
    with assert_requests(["GetItem"]), pytest.raises(InvalidValue, match="greater than or equal to 0"):
        Receipt.objects.filter(pk="r").update(lines__0__price=F("lines__0__price") - 5)


def test_what_another_attribute_holds_is_looked_at_before_it_is_copied(receipt: Any) -> None:
    Receipt.objects.filter(pk="r").update(other=["Tea"])
    with assert_requests(["GetItem"]), pytest.raises(InvalidValue, match="lines__0 is a map"):
        Receipt.objects.filter(pk="r").update(lines=F("other"))


def test_what_is_stored_already_is_read_and_other_attributes_are_saved(receipt: Any, table: Table) -> None:
    key = {"pk": {"S": "RECEIPT#r"}, "sk": {"S": "#METADATA"}}
    change = {"UpdateExpression": "SET #l = :v", "ExpressionAttributeNames": {"#l": "lines"}}
    table.send(
        Request("UpdateItem", {"Key": key, **change, "ExpressionAttributeValues": {":v": {"L": [{"S": "old"}]}}})
    )
    found = Receipt.objects.get(pk="r")
    assert found.lines == ["old"]
    found.points = [5]
    found.save()
    assert Receipt.objects.get(pk="r").points == [5]


def test_a_form_shows_what_is_wrong_by_the_element() -> None:
    form = modelform_factory(Receipt, fields=("lines",))({"lines": '[{"name": "Tea"}, {"price": 1}]'})
    assert "lines__1__name: This field must have a value." in str(form.errors["lines"])
