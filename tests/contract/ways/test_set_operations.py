"""``intersection()``, ``difference()`` and ``union()`` of querysets: the objects and rows that SQLite gives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import NotSupportedError
from django.db.models import Count, F, Value

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


def test_exclusive_or_of_slices_has_the_objects_of_one(shops: tuple[Shop, Shop]) -> None:
    """Django reads slices for it from the default database, which SQLite is not here."""
    ours, _ = shops
    by_key = everybody(ours).order_by("customer_id")
    assert some(by_key[1:4] ^ by_key.reverse()[:3]) == ["c1", "c4"]


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


def cities(shop: Shop) -> Any:
    return everybody(shop).values_list("city", "name")


def statuses(shop: Shop) -> Any:
    return mem(shop.all(shop.Order)).order_by().values_list("status", "customer__name")


def marked(shop: Shop, mark: int) -> Any:
    return everybody(shop).annotate(mark=Value(mark))


ROWS: dict[str, Callable[[Shop], Any]] = {
    "rows of two models": lambda s: sorted(cities(s).union(statuses(s))),
    "dicts have the names of the first": lambda s: sorted(
        everybody(s).values("city").union(statuses(s).values("status")), key=lambda row: row["city"]
    ),
    "each row once": lambda s: sorted(everybody(s).values_list("city", flat=True).union(rome(s).values_list("city"))),
    "the order of columns": lambda s: sorted(cities(s).union(everybody(s).values_list("name", "city"))),
    "all": lambda s: sorted(each.pk for each in everybody(s).union(rome(s), rome(s), all=True)),
    "all rows": lambda s: sorted(
        everybody(s).values_list("city", flat=True).union(statuses(s).values_list("status"), all=True)
    ),
    "annotated objects": lambda s: sorted((each.pk, each.mark) for each in marked(s, 1).union(marked(s, 2))),
    "ordered": lambda s: list(cities(s).union(statuses(s)).order_by("-name", "city")),
    "reversed": lambda s: list(cities(s).union(statuses(s)).order_by("name", "city").reverse()),
    "sliced": lambda s: list(cities(s).union(statuses(s)).order_by("name", "city")[1:3]),
    "ordered by an expression": lambda s: list(
        marked(s, 1).union(marked(s, -1)).order_by(F("mark").desc(), "name").values_list("name", "mark")
    ),
    "columns afterwards": lambda s: sorted(rome(s).union(marked(s, 1)).values_list("name", flat=True)),
    "a column of rows that were compared": lambda s: sorted(
        row[0] for row in cities(s).union(everybody(s).values_list("city", "email")).values_list("city")
    ),
    "counted": lambda s: cities(s).union(statuses(s)).count(),
    "any": lambda s: cities(s).union(statuses(s)).exists(),
    "first": lambda s: cities(s).union(statuses(s)).order_by("name", "city").first(),
    "of a union": lambda s: sorted(cities(s).union(statuses(s)).union(rome(s).values_list("email", "name"))),
    "inside": lambda s: some(
        everybody(s).filter(name__in=rome(s).values("name").union(statuses(s).values("customer__name")))
    ),
    "rows of both": lambda s: sorted(everybody(s).values_list("city").intersection(rome(s).values_list("city"))),
    "rows of the first alone": lambda s: sorted(
        everybody(s).values_list("city").difference(rome(s).values_list("city"))
    ),
    "with none": lambda s: sorted(cities(s).union(statuses(s).none())),
}


@pytest.mark.parametrize("name", ROWS)
def test_set_operation_gives_djangos_rows(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert ROWS[name](ours) == ROWS[name](theirs)


def test_rows_of_all_querysets_count_towards_the_limit(shops: tuple[Shop, Shop]) -> None:
    """Five customers and two of Rome."""
    ours, _ = shops
    asked = ours.Customer.objects.union(ours.Customer.objects.filter(city="Rome"), all=True)
    assert len(asked.allow_in_memory(7)) == 7
    with pytest.raises(TooManyMatches, match="The limit for all steps is 6"):
        list(asked.allow_in_memory(6))


def test_a_union_of_rows_counts_bytes_of_all_querysets(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    one = marked(ours, 1)
    alone = next(size for size in range(100, 10_000, 100) if fits(one.allow_in_memory(max_bytes=size)))
    assert not fits(one.union(marked(ours, 2)).allow_in_memory(max_bytes=alone))


def fits(queryset: Any) -> bool:
    try:
        list(queryset.order_by("mark"))
    except TooManyMatches:
        return False
    return True


def test_union_of_live_and_deleted_objects(shops: tuple[Shop, Shop]) -> None:
    """The objects of both, which have other options."""
    ours, _ = shops
    live = ours.Customer.objects.filter(city="Rome").allow_in_memory()
    assert some(live.union(ours.Customer.objects.with_visibility("deleted").order_by()[:9])) == ["c0", "c2"]


def test_union_of_rows_is_awaited(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops

    async def found() -> Any:
        asked = cities(ours).union(statuses(ours)).order_by("name", "city")
        return [row async for row in asked], await asked.acount(), await asked.aexists()

    rows = list(cities(ours).union(statuses(ours)).order_by("name", "city"))
    assert asyncio.run(found()) == (rows, len(rows), True)


def test_union_of_rows_explains_each_queryset(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    text = cities(ours).union(statuses(ours)).explain()
    assert text.startswith("union() of 2 querysets, compared in memory\n")


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda s: list(s.Customer.objects.union(rome(s), all=True)), r"allow_in_memory\(limit=1000\)"),
        (lambda s: list(everybody(s).intersection(mem(s.Order.objects.all()))), r"Call \.values_list\("),
        (lambda s: list(cities(s).union(s.Order.objects.values_list("status"))), "as many names"),
        (lambda s: list(cities(s).union(statuses(s)).values("email")), "does not return email"),
        (lambda s: cities(s).union(statuses(s)).filter(city="Rome"), r"QuerySet.filter\(\) after union\(\)"),
        (lambda s: cities(s).union(statuses(s)).annotate(n=Count("pk")), r"QuerySet.annotate\(\) after union\(\)"),
        (lambda s: cities(s).union(statuses(s)).aggregate(n=Count("pk")), r"QuerySet.aggregate\(\) after"),
        (lambda s: marked(s, 1).union(marked(s, 2)).update(name="x"), r"after union\(\)"),
        (lambda s: marked(s, 1).union(marked(s, 2)).delete(), r"after union\(\)"),
        (lambda s: marked(s, 1).union(marked(s, 2)).page(2), r"in memory"),
        (lambda s: s.Customer.objects.difference(rome(s)).values("city"), "SQL compares rows"),
    ],
)
def test_rows_that_cannot_be_compared_are_refused(
    shops: tuple[Shop, Shop], ask: Callable[[Shop], Any], says: str
) -> None:
    ours, _ = shops
    with assert_requests([]), pytest.raises(NotSupportedError, match=says):
        ask(ours)


def test_union_of_rows_refuses_an_unknown_order(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    asked = cities(ours).union(statuses(ours)).order_by("email")
    with assert_requests([]), pytest.raises(NotSupported, match="does not return email"):
        list(asked)
