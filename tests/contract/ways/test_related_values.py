"""Rows and orders by attributes of referenced objects, as on SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single.exceptions import NotSupported, TooManyMatches, UnknownField
from dynamo_single.testing import assert_requests
from tests.contract.ways.asking import mem
from tests.contract.ways.shop import Shop


def of(name: str, how: Callable[[Any], Any]) -> Callable[[Shop], list[Any]]:
    return lambda shop: list(how(mem(shop.all(getattr(shop, name)))))


QUERIES: dict[str, Callable[[Shop], Any]] = {
    "names": of("Order", lambda q: q.order_by("placed").values_list("customer__name", flat=True)),
    "dicts": of("Order", lambda q: q.order_by("placed").values("order_id", "customer__name", "customer__city")),
    "two references": of("Line", lambda q: q.order_by("order", "number").values_list("product__category__name", "qty")),
    "keys": of("Line", lambda q: q.order_by("order", "number").values_list("order__customer__pk", "order__customer")),
    "named": of(
        "Order",
        lambda q: [row.customer__name for row in q.order_by("placed").values_list("customer__name", named=True)],
    ),
    "sliced": of("Order", lambda q: q.order_by("placed").values_list("customer__name")[1:3]),
    "distinct": lambda shop: sorted(mem(shop.all(shop.Order)).order_by().values_list("customer__name").distinct()),
    "distinct in order": of("Order", lambda q: q.order_by("-customer__name").values_list("customer__name").distinct()),
    "number of distinct": lambda shop: mem(shop.all(shop.Order)).order_by().values("customer__city").distinct().count(),
    "number": lambda shop: mem(shop.all(shop.Order)).values("customer__city").count(),
    "in order": of("Order", lambda q: q.order_by("customer__name", "pk").values_list("pk", flat=True)),
    "in order backwards": of("Order", lambda q: q.order_by("-customer__city", "pk").values_list("pk", flat=True)),
    "in order, reversed": of(
        "Order", lambda q: q.order_by("customer__name", "pk").reverse().values_list("pk", flat=True)
    ),
    "in order of two": of(
        "Line",
        lambda q: q.order_by("product__category__name", "-order__placed", "number").values_list("order", "number"),
    ),
    "in a model's order": of("Product", lambda q: q.order_by("category", "pk").values_list("pk", flat=True)),
    "in order of children": of("Customer", lambda q: q.order_by("orders__total", "pk").values_list("pk", flat=True)),
    "objects in order of children": of("Customer", lambda q: [each.pk for each in q.order_by("-orders__total", "pk")]),
    "sliced in order of children": of(
        "Customer", lambda q: [each.pk for each in q.order_by("orders__total", "pk")[1:5]]
    ),
    "number in order of children": lambda shop: mem(shop.all(shop.Customer)).order_by("orders__total").count(),
    "in order of the other side": of("Product", lambda q: [each.pk for each in q.order_by("tags__name", "pk")]),
    "in order of a month": of("Customer", lambda q: [each.pk for each in q.order_by("-created__month", "pk")]),
    "first in order": lambda shop: mem(shop.all(shop.Order)).order_by("-customer__name", "pk").first().pk,
    "related in order": of(
        "Order",
        lambda q: q.filter(customer__city="Rome").order_by("customer__name", "pk").values_list("pk", "customer__name"),
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_attributes_of_references_are_djangos(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert QUERIES[name](ours) == QUERIES[name](theirs)


def test_rows_read_each_reference_once_for_a_page(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with assert_requests(["Query", "BatchGetItem"]):
        assert len(ours.Order.objects.values_list("customer__name", "placed")) == 6


def test_distinct_rows_over_the_limit_are_an_error(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with pytest.raises(TooManyMatches, match="more than 5 objects match"):
        list(ours.Order.objects.allow_in_memory(5).order_by().values("customer__name").distinct())


def test_unknown_attribute_of_a_reference_is_reported(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with pytest.raises(UnknownField, match=r"catalog\.ShopCustomer has no attribute 'colour'"):
        ours.Order.objects.values("customer__colour")


def test_order_of_a_reference_needs_a_limit(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with assert_requests([]), pytest.raises(NotSupported, match=r"allow_in_memory\(limit=1000\)"):
        list(ours.Order.objects.order_by("customer__name"))
