"""Every way to write a map validates it against the schema, and keeps other processes' values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.core import serializers
from django.db.models import F
from django.forms import modelform_factory

from dynamo_single.exceptions import InvalidValue, MissingValue, UnknownField
from dynamo_single.models import REMOVE, Append
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.records import Bundle

pytestmark = pytest.mark.usefixtures("table")

DATA = {"title": "T", "receiver": {"name": "Ann"}, "price": Decimal("1.5"), "stock": 3}


@pytest.fixture
def bundle(table: Table) -> Any:
    """Return a valid bundle."""
    return Bundle.objects.create(data=DATA)


def changed(bundle: Any, **data: Any) -> Any:
    """The object with other data."""
    bundle.data = {**bundle.data, **data}
    return bundle


def by_fixture(bundle: Any) -> None:
    """A fixture with a wrong price."""
    (row,) = json.loads(serializers.serialize("json", [bundle]))
    row["fields"]["data"]["price"] = "cheap"
    for found in serializers.deserialize("json", json.dumps([row])):
        found.save()


WRITERS: dict[str, Callable[[Any], Any]] = {
    "create": lambda bundle: Bundle.objects.create(data={**DATA, "price": "cheap"}),
    "acreate": lambda bundle: asyncio.run(Bundle.objects.acreate(data={**DATA, "price": "cheap"})),
    "bulk_create": lambda bundle: Bundle.objects.bulk_create([Bundle(data={**DATA, "price": "cheap"})]),
    "save": lambda bundle: changed(bundle, price="cheap").save(),
    "update": lambda bundle: Bundle.objects.filter(pk=bundle.pk).update(data={**DATA, "price": "cheap"}),
    "update of a place": lambda bundle: Bundle.objects.filter(pk=bundle.pk).update(data__price="cheap"),
    "bulk_update": lambda bundle: Bundle.objects.bulk_update([changed(bundle, price="cheap")], ["data"]),
    "move": lambda bundle: changed(bundle, price="cheap").move(id="bundle-2"),
    "fixture": by_fixture,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_way_to_write_is_held_to_the_schema(write: Callable[[Any], Any], bundle: Any) -> None:
    with pytest.raises(InvalidValue, match="data__price must be a decimal number, not str 'cheap'"):
        write(bundle)
    assert Bundle.objects.get().data == DATA


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"data__receiver__name": REMOVE}, MissingValue, "data__receiver__name is missing"),
        ({"data__receiver": REMOVE}, MissingValue, "data__receiver__name is missing"),
        ({"data__receiver": {"street": "S"}}, MissingValue, "data__receiver__name is missing"),
        ({"data__price__eur": 5}, InvalidValue, "does not have elements"),
        ({"data__kind": "huge"}, InvalidValue, "is not a valid choice"),
        ({"data__sent": "yesterday"}, InvalidValue, "data__sent must be"),
    ],
)
def test_a_place_is_checked_before_anything_is_sent(
    given: dict[str, Any], error: type[Exception], message: str, bundle: Any
) -> None:
    with assert_requests(0), pytest.raises(error, match=message):
        Bundle.objects.filter(pk=bundle.pk).update(**given)


def test_a_place_that_fits_is_written_in_its_place_by_one_request(bundle: Any) -> None:
    with assert_requests(["UpdateItem"]):
        Bundle.objects.filter(pk=bundle.pk).update(data__price=Decimal("2.25"), data__sent="2024-05-01", data__x=[1])
    assert Bundle.objects.get().data == {**DATA, "price": Decimal("2.25"), "sent": "2024-05-01", "x": [1]}


def test_a_sum_is_left_to_dynamodb_where_any_number_fits_and_computed_where_not(bundle: Any) -> None:
    found = Bundle.objects.filter(pk=bundle.pk)
    with assert_requests(["UpdateItem"]):
        found.update(data__stock=F("data__stock") - 5)
    with assert_requests(["GetItem", "UpdateItem"]):
        found.update(data__price=F("data__price") + Decimal("0.25"))
    with assert_requests(["GetItem"]), pytest.raises(InvalidValue, match="greater than or equal to 0"):
        found.update(data__price=F("data__price") - 5)
    assert Bundle.objects.get().data == {**DATA, "stock": -2, "price": Decimal("1.75")}


def test_a_list_where_a_text_belongs_is_refused(bundle: Any) -> None:
    with pytest.raises(InvalidValue):
        Bundle.objects.filter(pk=bundle.pk).update(data__kind=Append(["a"]))


def test_what_is_stored_already_is_read_and_other_attributes_are_saved(bundle: Any, table: Table) -> None:
    key = {"pk": {"S": bundle.id}, "sk": {"S": "#BUNDLE"}}
    change = {"UpdateExpression": "SET #d.price = :v", "ExpressionAttributeNames": {"#d": "data"}}
    table.send(Request("UpdateItem", {"Key": key, **change, "ExpressionAttributeValues": {":v": {"S": "cheap"}}}))
    found = Bundle.objects.get()
    assert found.data["price"] == "cheap"
    found.delete()
    found.restore()
    found.data["title"] = "U"
    with pytest.raises(InvalidValue, match="data__price"):
        found.save()


def test_a_form_shows_what_is_wrong_at_the_document() -> None:
    form_class = modelform_factory(Bundle, fields=("data",))
    form = form_class({"data": '{"title": "T", "price": 1.25}'})
    assert "data__receiver__name: This field must have a value." in str(form.errors["data"])
    assert form_class({"data": '{"title": "T", "receiver": {"name": "A"}, "price": 1.25}'}).is_valid()


def test_an_unknown_attribute_is_one_still() -> None:
    with pytest.raises(UnknownField):
        Bundle.objects.filter(pk="x").update(dta__price=5)
