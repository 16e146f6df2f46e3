"""``intersection()`` and ``difference()`` of querysets: the objects that SQLite gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single.exceptions import NotSupported, TooManyMatches
from dynamo_single.testing import assert_requests
from tests.contract.ways.asking import mem
from tests.contract.ways.shop import Shop


def rome(shop: Shop) -> Any:
    return mem(shop.all(shop.Customer)).filter(city="Rome")


def late(shop: Shop) -> Any:
    return mem(shop.all(shop.Customer)).filter(customer_id__gte="c2")


def everybody(shop: Shop) -> Any:
    return mem(shop.all(shop.Customer))


def some(queryset: Any) -> list[str]:
    return sorted(each.pk for each in queryset)


QUERIES: dict[str, Callable[[Shop], Any]] = {
    "intersection": lambda s: some(rome(s).intersection(late(s))),
    "of three": lambda s: some(everybody(s).intersection(rome(s), late(s))),
    "difference": lambda s: some(everybody(s).difference(rome(s))),
    "of two others": lambda s: some(everybody(s).difference(rome(s), late(s))),
    "nothing": lambda s: some(rome(s).difference(everybody(s))),
    "with none": lambda s: some(rome(s).intersection(everybody(s).none())),
    "of none": lambda s: some(everybody(s).none().difference(rome(s))),
    "without none": lambda s: some(rome(s).difference(everybody(s).none())),
    "ordered": lambda s: [each.pk for each in everybody(s).difference(rome(s)).order_by("-customer_id")],
    "sliced": lambda s: [each.pk for each in everybody(s).difference(rome(s)).order_by("name")[1:3]],
    "counted": lambda s: everybody(s).difference(rome(s)).count(),
    "any": lambda s: rome(s).intersection(late(s)).exists(),
    "rows": lambda s: sorted(everybody(s).difference(rome(s)).values_list("pk", "name")),
    "over relations": lambda s: some(
        everybody(s).filter(orders__status="open").intersection(everybody(s).filter(orders__total__gt=100))
    ),
    "of a union": lambda s: some(everybody(s).difference(rome(s) | late(s))),
    "of references": lambda s: some(
        mem(s.all(s.Order))
        .order_by()
        .filter(customer__city="Rome")
        .difference(mem(s.all(s.Order)).order_by().filter(status="open"))
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_set_operation_gives_djangos_objects(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert QUERIES[name](ours) == QUERIES[name](theirs)


def test_both_sides_count_towards_the_limit(shops: tuple[Shop, Shop]) -> None:
    """Two of Rome and three others."""
    ours, _ = shops
    asked = ours.Customer.objects.difference(ours.Customer.objects.filter(city="Rome"))
    assert len(asked.allow_in_memory(5)) == 3
    with pytest.raises(TooManyMatches, match=r"allow_in_memory\(limit=4\)"):
        list(asked.allow_in_memory(4).order_by("city"))


def test_intersection_reads_the_other_side_by_its_key(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    paid = ours.Order.objects.filter(status="paid")
    with assert_requests(["Query", "BatchGetItem"]):
        assert some(ours.Order.objects.all().intersection(paid)) == ["o1", "o4"]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda s: s.Customer.objects.intersection(s.Order.objects.all()), "compares objects of one model"),
        (lambda s: s.Customer.objects.values("city").difference(s.Customer.objects.values("city")), "in Python"),
        (lambda s: s.Customer.objects.all()[:2].difference(rome(s)), "Slice the result"),
        (lambda s: s.Customer.objects.difference(rome(s)).values("city"), "SQL compares rows"),
    ],
)
def test_rows_that_sql_compares_are_refused(shops: tuple[Shop, Shop], ask: Callable[[Shop], Any], says: str) -> None:
    ours, _ = shops
    with assert_requests([]), pytest.raises(NotSupported, match=says):
        ask(ours)
