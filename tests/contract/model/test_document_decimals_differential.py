"""Decimals inside documents are rounded, read and rejected like decimal attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db.models import Value
from hypothesis import example, given, settings

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.models import Append
from tests.contract.model.test_decimals_differential import BOUNDS, NUMBERS
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

EXAMPLES = examples(5, 300)


class Line:
    price = models.DecimalAttribute(**BOUNDS, null=True)


class Sheet:
    price = models.DecimalAttribute(**BOUNDS, null=True)
    lines = models.ListAttribute(null=True, schema=Line)

    class deep:
        price = models.DecimalAttribute(**BOUNDS, null=True)


@pytest.fixture(scope="module")
def rows() -> Iterator[Any]:
    """The objects of a model with a decimal number by itself, in a list and in a map."""
    with forgotten():
        model = declare(
            "PricedSheet",
            ("SHEET#{sheet_id}", "#METADATA"),
            sheet_id=models.UnicodeAttribute(),
            price=models.DecimalAttribute(**BOUNDS, null=True),
            prices=models.ListAttribute(null=True, of=models.DecimalAttribute(**BOUNDS, null=True)),
            data=models.MapAttribute(null=True, schema=Sheet),
        )
        yield model.objects


def _save(rows: Any, name: str, value: Any) -> None:
    row = rows.get(pk="r")
    setattr(row, name, value)
    row.save()


def _bulk_update(rows: Any, name: str, value: Any) -> None:
    row = rows.get(pk="r")
    setattr(row, name, value)
    rows.bulk_update([row], [name])


#: Each way to write an attribute.
WAYS: dict[str, Callable[[Any, str, Any], object]] = {
    "create": lambda rows, name, value: (rows.get(pk="r").delete(), rows.create(sheet_id="r", **{name: value})),
    "save": _save,
    "update": lambda rows, name, value: rows.filter(pk="r").update(**{name: value}),
    "bulk_create": lambda rows, name, value: (
        rows.get(pk="r").delete(),
        rows.bulk_create([rows.model(sheet_id="r", **{name: value})]),
    ),
    "bulk_update": _bulk_update,
    "update_or_create": lambda rows, name, value: rows.update_or_create(sheet_id="r", defaults={name: value}),
}
#: Each document that holds a number: its attribute, the value around the number, and the number in it.
AROUND: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "list": ("prices", lambda value: [value], lambda row: row.prices[0]),
    "map": ("data", lambda value: {"price": value}, lambda row: row.data["price"]),
    "nested map": ("data", lambda value: {"deep": {"price": value}}, lambda row: row.data["deep"]["price"]),
    "list of maps": (
        "data",
        lambda value: {"lines": [{}, {"price": value}]},
        lambda row: row.data["lines"][1]["price"],
    ),
}


def outcome(rows: Any, write: Callable[[], object], read: Callable[[Any], Any]) -> str:
    """Return the stored value as shown, or the fact that it was rejected."""
    rows.all().filter(pk="r").delete()
    empty: dict[str, Any] = {"lines": [{}], "deep": {}}
    rows.create(sheet_id="r", price=Decimal(1), prices=[Decimal(1)], data=empty)
    try:
        write()
        return str(read(rows.get(pk="r")))
    except InvalidValue:
        return "refused"


def scalar(rows: Any, value: Any) -> str:
    """The outcome of a number that is an attribute."""
    return outcome(rows, lambda: _save(rows, "price", value), lambda row: row.price)


# A string in a document is not converted to a number.
PLAIN = NUMBERS.filter(lambda value: not isinstance(value, str))


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=EXAMPLES)
@given(value=PLAIN)
@example(value=1e-200)
def test_number_in_document_is_stored_as_attribute(rows: Any, way: str, around: str, value: Any) -> None:
    name, wrapped, read = AROUND[around]
    assert outcome(rows, lambda: WAYS[way](rows, name, wrapped(value)), read) == scalar(rows, value)


#: Each way to write one place of a document.
PLACES: dict[str, tuple[Callable[[Any, Any], object], Callable[[Any], Any]]] = {
    "element": (lambda rows, value: rows.update(prices__0=value), lambda row: row.prices[0]),
    "place": (lambda rows, value: rows.update(data__price=value), lambda row: row.data["price"]),
    "value": (lambda rows, value: rows.update(data__price=Value(value)), lambda row: row.data["price"]),
    "place of a place": (
        lambda rows, value: rows.update(data__deep={"price": value}),
        lambda row: row.data["deep"]["price"],
    ),
    "append": (lambda rows, value: rows.update(prices=Append([value])), lambda row: row.prices[1]),
    "append within": (
        lambda rows, value: rows.update(data__lines=Append([{"price": value}])),
        lambda row: row.data["lines"][1]["price"],
    ),
}


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=EXAMPLES)
@given(value=PLAIN.filter(lambda value: value is not None))
@example(value=1e-200)
def test_number_of_one_place_is_stored_as_attribute(rows: Any, place: str, value: Any) -> None:
    write, read = PLACES[place]
    assert outcome(rows, lambda: write(rows.filter(pk="r"), value), read) == scalar(rows, value)


def test_written_object_has_the_places(rows: Any) -> None:
    """The object has the places of ``refresh_from_db()``, which DynamoDB does not store."""
    rows.filter(pk="r").delete()
    made = rows.create(sheet_id="r", prices=[Decimal(1), Decimal("2.5"), 1.005])
    made.refresh_from_db()
    assert str(made.prices) == "[Decimal('1.00'), Decimal('2.50'), Decimal('1.00')]"


def test_columns_of_a_document_have_the_places(rows: Any) -> None:
    rows.filter(pk="r").delete()
    rows.create(sheet_id="r", prices=[1], data={"price": 2})
    found = rows.filter(pk="r").values_list("prices", "data", "data__price")
    assert str(list(found)) == "[([Decimal('1.00')], {'price': Decimal('2.00')}, Decimal('2.00'))]"


def test_validation_refuses_what_a_write_rounds(rows: Any) -> None:
    """A decimal attribute behaves the same way."""
    for name, value in (("price", Decimal("1.005")), ("prices", [Decimal("1.005")])):
        with pytest.raises(ValidationError, match="no more than 2 decimal places"):
            rows.model(sheet_id="r", **{name: value}).full_clean()
