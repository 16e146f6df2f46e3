"""Aggregates of related objects, joined in memory, as on SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Avg, Count, F, Max, Q, Sum

from dynamo_single.exceptions import NotSupported, TooManyMatches
from tests.contract.ways.asking import mem
from tests.contract.ways.month import days
from tests.contract.ways.shop import Shop


def of(name: str, how: Callable[[Any], Any]) -> Callable[[Shop], list[Any]]:
    return lambda shop: sorted(how(mem(shop.all(getattr(shop, name)))), key=str)


QUERIES: dict[str, Callable[[Shop], Any]] = {
    "children": of("Customer", lambda q: q.annotate(n=Count("orders")).values_list("pk", "n")),
    "objects": of("Customer", lambda q: [(each.pk, each.n) for each in q.annotate(n=Count("orders"))]),
    "latest": of("Customer", lambda q: q.annotate(n=Max("orders__placed")).values_list("pk", "n")),
    "sum": of(
        "Customer", lambda q: q.annotate(n=Sum("orders__total"), a=Avg("orders__total")).values_list("pk", "n", "a")
    ),
    "filtered": of(
        "Customer", lambda q: q.annotate(n=Count("orders", filter=Q(orders__status="open"))).values_list("pk", "n")
    ),
    "two relations, distinct": of(
        "Customer",
        lambda q: q.annotate(n=Count("orders", distinct=True), m=Count("orders__lines")).values_list("pk", "n", "m"),
    ),
    "tags": of("Product", lambda q: q.annotate(n=Count("tags")).values_list("pk", "n")),
    "computed": of(
        "Order", lambda q: q.annotate(n=Sum(F("lines__qty") * F("lines__unit_price"))).values_list("pk", "n")
    ),
    "condition": of("Customer", lambda q: q.annotate(n=Count("orders")).filter(n__gt=1).values_list("pk", "n")),
    "sleeping": of(
        "Customer", lambda q: q.annotate(n=Max("orders__placed")).filter(n__lt=days(90)).values_list("pk", flat=True)
    ),
    "order": lambda shop: list(
        mem(shop.all(shop.Product)).annotate(n=Count("tags")).order_by("-n", "pk").values_list("pk", "n")
    ),
    "of a filtered reference": of(
        "Order", lambda q: q.filter(customer__city="Rome").annotate(n=Count("lines")).values_list("pk", "n")
    ),
    "of all, related": lambda shop: mem(shop.all(shop.Customer)).aggregate(
        n=Sum("orders__total"), m=Count("orders__lines", distinct=True), a=Max("orders__placed", filter=Q(city="Rome"))
    ),
    "of all, a reference": lambda shop: mem(shop.all(shop.Line)).aggregate(n=Avg(F("product__price") * F("qty"))),
    "of all, computed": lambda shop: (
        mem(shop.all(shop.Customer)).annotate(n=Count("orders")).aggregate(most=Max("n"), all=Sum("n"))
    ),
    "dates": lambda shop: list(
        mem(shop.all(shop.Customer)).annotate(n=Count("orders")).filter(n__gt=1).dates("created", "day", "DESC")
    ),
    "dates of a reference": lambda shop: list(
        mem(shop.all(shop.Order)).filter(status="open").dates("customer__created", "month", "DESC")
    ),
    "dates of a reference of a reference": lambda shop: list(
        mem(shop.all(shop.Line)).dates("order__customer__created", "day")
    ),
    "datetimes": lambda shop: list(
        mem(shop.all(shop.Customer)).annotate(n=Count("orders")).datetimes("created", "hour")
    ),
    "keys of groups": lambda shop: sorted(
        each.pk
        for each in shop.all(shop.Customer).filter(
            pk__in=mem(shop.all(shop.Customer)).annotate(n=Count("orders")).filter(n__gt=1).values("pk")
        )
    ),
    "number": lambda shop: mem(shop.all(shop.Customer)).annotate(n=Count("orders")).filter(n__gt=0).count(),
}


@pytest.mark.parametrize("name", QUERIES)
def test_aggregate_of_related_objects_is_djangos(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert QUERIES[name](ours) == QUERIES[name](theirs)


def test_related_objects_count_towards_the_limit(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with pytest.raises(TooManyMatches, match="more than 5 keys"):
        list(ours.Customer.objects.allow_in_memory(10).annotate(n=Max("orders__placed")))


def test_aggregate_after_a_filter_of_several_is_refused(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    queryset = mem(ours.Customer.objects.filter(orders__status="open"))
    with pytest.raises(NotSupported, match=r"Count\(\.\.\., filter=Q\(\.\.\.\)\)"):
        list(queryset.annotate(n=Max("orders__placed")))


def test_aggregate_of_related_objects_of_groups_is_refused(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with pytest.raises(NotSupported, match="Annotate with these values first"):
        mem(ours.all(ours.Customer)).annotate(n=Count("orders")).aggregate(m=Max("orders__total"))
