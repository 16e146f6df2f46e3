"""Shared helpers for rows about results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Count

from dynamo_single import models
from tests.contract.ways.rows import redeclared
from tests.contract.ways.shop import Shop, customers, notes, orders

Ask = Callable[[Shop], Any]
#: Python functions that replace a computation.
EACH = "[... for each in queryset]"
FILTER = "[each for each in queryset if ...]"
SORT = "sorted(queryset, key=...)"
LIMIT = ".allow_in_memory(limit=1000)"
EXTRACTED = "models.ExtractedAttribute('data__price', output=models.DecimalAttribute())"


def mem(queryset: Any) -> Any:
    """The queryset that works in memory; SQLite's as it is."""
    return queryset.allow_in_memory(limit=1000) if hasattr(queryset, "allow_in_memory") else queryset


def all_of(name: str, how: Callable[[Any], Any] = lambda queryset: queryset) -> Ask:
    """A query of one model's objects."""
    return lambda shop: how(shop.all(getattr(shop, name)))


def pks(how: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the keys of a queryset's results in order."""
    return lambda queryset: [each.pk for each in how(queryset)]


def grouped(queryset: Any) -> Any:
    return mem(queryset).order_by().values("city").annotate(n=Count("pk"))


def copied(shop: Shop, code: str) -> Any:
    """Orders with a copy of their customer's name, in an order that a key has."""
    copy = eval(code, {"models": models})  # noqa: S307 - the message's own
    made = redeclared(
        shop.Order, lambda name, **more: orders(shop.Customer, name, "copies", **more), "ShopCopied", customer_name=copy
    )
    return sorted(made.objects.values_list("customer_name", flat=True))


def extracted(name: str, read: Callable[[Any], Any]) -> Callable[[Shop, str], Any]:
    """Notes with the attribute that the message declares."""

    def do(shop: Shop, code: str) -> Any:
        found = eval(code, {"models": models})  # noqa: S307 - the message's own
        return read(redeclared(shop.Note, notes, name, price=found).objects.all())

    return do


def counted(queryset: Any) -> Any:
    """The number of orders; ours are children."""
    return Count("bought" if hasattr(queryset, "allow_in_memory") else "orders")


def named(rows: Any) -> dict[str, int]:
    return {each["city"]: each["n"] for each in rows}


def keyed(shop: Shop, code: str, how: Callable[[Any], Any]) -> Any:
    """Customers with the key that the message declares."""
    name, _, key = code.partition(" = ")
    made = redeclared(
        shop.Customer,
        customers,
        "ShopKeyed",
        keys={name: eval(key.replace("SHOPCUSTOMER", "SHOPKEYED"), {"models": models})},  # noqa: S307
    )
    return [each.pk for each in how(made.objects.all())]
