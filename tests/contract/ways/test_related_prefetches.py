"""``Prefetch(queryset=...)`` over references in both directions and many-to-many relations, as on SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Prefetch

from tests.contract.ways.asking import mem
from tests.contract.ways.shop import Shop


def opened(shop: Shop, queryset: Any, relation: str = "orders", of: str = "Customer") -> Any:
    """The keys that a prefetch with a queryset reads for each object, in their order."""
    objects = mem(shop.all(getattr(shop, of))).prefetch_related(Prefetch(relation, queryset=queryset, to_attr="found"))
    return sorted((each.pk, [one.pk for one in each.found]) for each in objects)


def in_lines(shop: Shop) -> Any:
    lines = shop.all(shop.Line).select_related("product").order_by("-qty")
    orders = shop.all(shop.Order).prefetch_related(Prefetch("lines", queryset=lines))
    found = mem(shop.all(shop.Customer)).prefetch_related(Prefetch("orders", queryset=orders))
    return sorted(
        (each.pk, [(order.pk, [line.product.name for line in order.lines.all()]) for order in each.orders.all()])
        for each in found
    )


PREFETCHES: dict[str, Callable[[Shop], Any]] = {
    "filtered": lambda shop: opened(shop, shop.all(shop.Order).filter(status="open")),
    "ordered by a key": lambda shop: opened(shop, shop.all(shop.Order).order_by("-placed")),
    "ordered in memory": lambda shop: opened(shop, shop.all(shop.Order).order_by("-total")),
    "filtered and ordered in memory": lambda shop: opened(
        shop, shop.all(shop.Order).exclude(note="x").order_by("total")
    ),
    "sliced for each": lambda shop: opened(shop, shop.all(shop.Order).order_by("-placed")[:1]),
    "over a relation": lambda shop: opened(shop, shop.all(shop.Order).filter(customer__city="Rome")),
    "references by a computed condition": lambda shop: sorted(
        (each.pk, each.found and each.found.pk)
        for each in mem(shop.all(shop.Order)).prefetch_related(
            Prefetch("customer", queryset=mem(shop.all(shop.Customer)).filter(email__endswith=".org"), to_attr="found")
        )
    ),
    "of three levels": in_lines,
    "tags": lambda shop: opened(shop, shop.all(shop.Tag).filter(name="sale"), "tags", "Product"),
    "tags in order": lambda shop: opened(shop, shop.all(shop.Tag).order_by("-name"), "tags", "Product"),
    "tags sliced for each": lambda shop: opened(shop, shop.all(shop.Tag).order_by("-name")[:1], "tags", "Product"),
    "later tags for each": lambda shop: opened(shop, shop.all(shop.Tag).order_by("name")[1:], "tags", "Product"),
    "products sliced for each": lambda shop: opened(
        shop, shop.all(shop.Product).order_by("-price")[1:3], "products", "Tag"
    ),
    "products of tags": lambda shop: opened(shop, shop.all(shop.Product).order_by("-price"), "products", "Tag"),
}


@pytest.mark.parametrize("name", PREFETCHES)
def test_prefetch_with_a_queryset_reads_djangos_objects(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert PREFETCHES[name](ours) == PREFETCHES[name](theirs)


def test_prefetched_queryset_keeps_its_own_limit(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    orders = ours.Order.objects.order_by("-total").allow_in_memory(7)
    lookup = Prefetch("orders", queryset=orders)
    queryset = ours.Customer.objects.allow_in_memory(100).prefetch_related(lookup)
    assert len(queryset) == 5
    assert lookup.queryset._asked.in_memory == 7
