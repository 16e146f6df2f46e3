"""The data of all sides: the orders of a customer, as ``tests.catalog.models.Order`` stores them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
CUSTOMER = "company-3f0d2a54-7d2b-4c1e-9a0e-5b8f6c7d1e22"
ATTRIBUTES = ("customer", "number", "placed_at", "status", "coupon", "total")
STATUS = "open"
#: The number of entries in a document of 300 KB. The change sets a number in one entry.
ENTRIES = 3300
ENTRY, PLACE = "entry 1650", "stock"


def values(customer: str, number: int) -> dict[str, Any]:
    """Return the data of an order as Python values."""
    return {
        "customer": customer,
        "number": number,
        "placed_at": BEGIN + number * timedelta(minutes=1),
        "status": STATUS,
        "coupon": f"coupon-{number % 10}",
        "total": Decimal(number) + Decimal("0.25"),
    }


def key(customer: str, number: int) -> dict[str, str]:
    """Return the primary key of an order; its number is encoded without zeros at the end."""
    return {"pk": f"CUSTOMER#{customer}", "sk": f"ORDER#{_sortable(number)}"}


def item(customer: str, number: int) -> dict[str, Any]:
    """Return the stored item of an order in plain values. Datetimes are numbers of milliseconds."""
    said = values(customer, number)
    moment = said["placed_at"]
    order = _sortable(number)
    return {
        **key(customer, number),
        "itemType": "Order",
        "gs1pk": "ORDER",
        "gs1sk": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z#{customer}#{order}",
        "gs2pk": f"COUPON#{said['coupon']}",
        "gs2sk": f"{customer}#{order}",
        **said,
        "placed_at": (moment - EPOCH) // MILLISECOND,
    }


def wire(customer: str, number: int) -> dict[str, dict[str, str]]:
    """Return the stored item of an order as AttributeValues."""
    plain = item(customer, number)
    return {name: {"S": value} if isinstance(value, str) else {"N": str(value)} for name, value in plain.items()}


def document() -> dict[str, Any]:
    """Return a map of maps with strings, numbers and lists."""
    return {
        f"entry {number}": {
            "name": f"Name of {number}",
            PLACE: number,
            "price": 12 + number % 7,
            "tags": ["new", "set"],
        }
        for number in range(1, ENTRIES + 1)
    }


def attribute_value(value: Any) -> dict[str, Any]:
    """Return the AttributeValue of a part of a document."""
    if isinstance(value, dict):
        return {"M": {name: attribute_value(each) for name, each in value.items()}}
    if isinstance(value, list):
        return {"L": list(map(attribute_value, value))}
    return {"S": value} if isinstance(value, str) else {"N": str(value)}


def said_by(read: Any) -> dict[str, Any]:
    """Return the data of an order from an object, a mapping of plain values or a mapping of AttributeValues."""
    found = read if isinstance(read, Mapping) else {name: getattr(read, name) for name in ATTRIBUTES}
    return {name: _plain(found[name]) for name in ATTRIBUTES}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, value),) = value.items()
        return Decimal(value) if kind == "N" else value
    if isinstance(value, datetime):
        return Decimal((value - EPOCH) // MILLISECOND)
    return Decimal(str(value)) if isinstance(value, int | float | Decimal) else value


def _sortable(number: int) -> str:
    """Return a natural number in the encoding of docs/reference/stored-layout.md."""
    digits = str(number)
    return f"p{499 + len(digits)}{digits.rstrip('0')}" if number else "o"
