"""Subqueries in memory have SQLite's results: the inner objects are read once for all outer rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import (
    Avg,
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Upper

from dynamo_single.exceptions import InvalidValue, NotSupported, TooManyMatches
from dynamo_single.testing import assert_requests
from tests.contract.ways.asking import mem
from tests.contract.ways.month import days
from tests.contract.ways.shop import Shop


def of_customer(shop: Shop) -> Any:
    """The orders of the outer customer."""
    return shop.all(shop.Order).filter(customer=OuterRef("pk"))


def newest(shop: Shop, name: str) -> Any:
    return Subquery(of_customer(shop).order_by("-placed").values(name)[:1])


def number(shop: Shop) -> Any:
    """Return the number of the outer customer's orders."""
    grouped = of_customer(shop).order_by().values("customer").annotate(n=Count("pk")).values("n")
    return Subquery(grouped, output_field=IntegerField())


def customers(shop: Shop) -> Any:
    return mem(shop.all(shop.Customer))


def products(shop: Shop) -> Any:
    return mem(shop.all(shop.Product))


#: Conditions of customers.
CONDITIONS: dict[str, Callable[[Shop], Any]] = {
    "exists": lambda s: Exists(of_customer(s)),
    "exists with a condition": lambda s: Exists(of_customer(s).filter(status="open")),
    "not exists": lambda s: ~Exists(of_customer(s).filter(status="open")),
    "or": lambda s: Q(Exists(of_customer(s).filter(status="paid"))) | Q(city="Oslo"),
    "and": lambda s: Q(Exists(of_customer(s)), city="Rome"),
    "both": lambda s: Exists(of_customer(s).filter(status="paid")) & Exists(of_customer(s).filter(total__gt=100)),
    "xor": lambda s: Q(Exists(of_customer(s))) ^ Q(city="Oslo"),
    "negated with another": lambda s: ~Q(Exists(of_customer(s)), city="Rome"),
    "computed inside": lambda s: Exists(of_customer(s).filter(note__endswith="p")),
    "negated inside": lambda s: Exists(of_customer(s).exclude(status="open")),
    "compared inside": lambda s: Exists(of_customer(s).filter(placed__gt=OuterRef("created"))),
    "not equal inside": lambda s: Exists(s.all(s.Order).exclude(customer=OuterRef("pk")).filter(status="sent")),
    "ordered inside": lambda s: Exists(s.all(s.Order).filter(placed__lt=OuterRef("created"))),
    "or inside": lambda s: Exists(s.all(s.Order).filter(Q(customer=OuterRef("pk")) | Q(note=OuterRef("name")))),
    "a relation inside": lambda s: Exists(of_customer(s).filter(lines__qty__gt=4)),
    "a relation to the outer": lambda s: Exists(s.all(s.Line).filter(order__customer=OuterRef("pk"), qty__gt=4)),
    "a slice inside": lambda s: Exists(of_customer(s)[1:2]),
    "groups inside": lambda s: Exists(
        of_customer(s).order_by().values("status").annotate(n=Count("pk")).filter(n__gt=1)
    ),
    "nested": lambda s: Exists(of_customer(s).filter(Exists(s.all(s.Line).filter(order=OuterRef("pk"), qty__gt=4)))),
    "nested twice out": lambda s: Exists(
        s.all(s.Line).filter(Exists(s.all(s.Order).filter(pk=OuterRef("order"), customer=OuterRef(OuterRef("pk")))))
    ),
    "the same model": lambda s: Exists(s.all(s.Customer).filter(city=OuterRef("city")).exclude(pk=OuterRef("pk"))),
    "nothing": lambda s: Exists(s.all(s.Order).none()),
    "alone": lambda s: Exists(s.all(s.Order).filter(status="open")),
    "alone, no match": lambda s: Exists(s.all(s.Order).filter(status="lost")),
    "a value": lambda s: Q(pk=Subquery(s.all(s.Order).order_by("-placed").values("customer")[:1])),
    "a smaller value": lambda s: Q(created__lt=newest(s, "placed")),
    "a list": lambda s: Q(pk__in=Subquery(s.all(s.Order).filter(status="open").values("customer"))),
    "a list of the outer": lambda s: Q(pk__in=Subquery(of_customer(s).filter(status="paid").values("customer"))),
    "a queryset of the outer": lambda s: Q(pk__in=of_customer(s).filter(status="paid").values("customer")),
    "a slice's list": lambda s: Q(pk__in=Subquery(s.all(s.Order).order_by("placed").values("customer")[:2])),
    "a computed value": lambda s: Q(name__lt=Subquery(s.all(s.Customer).filter(pk="c1").values(x=Upper("name")))),
}
QUERIES: dict[str, Callable[[Shop], Any]] = {
    "annotation": lambda s: rows(customers(s).annotate(x=Exists(of_customer(s).filter(status="open")))),
    "negated annotation": lambda s: rows(customers(s).annotate(x=~Exists(of_customer(s).filter(status="open")))),
    "newest": lambda s: rows(customers(s).annotate(x=newest(s, "status"))),
    "newest key": lambda s: rows(customers(s).annotate(x=newest(s, "pk"))),
    "newest date": lambda s: rows(customers(s).annotate(x=newest(s, "placed"))),
    "number": lambda s: rows(customers(s).annotate(x=number(s))),
    "number or none": lambda s: rows(customers(s).annotate(x=Coalesce(number(s), 0))),
    "sum": lambda s: rows(
        customers(s).annotate(
            x=Subquery(of_customer(s).order_by().values("customer").annotate(t=Sum("total")).values("t"))
        )
    ),
    "average of some": lambda s: rows(
        customers(s).annotate(
            x=Subquery(
                of_customer(s)
                .filter(status="open")
                .order_by()
                .values("customer")
                .annotate(t=Avg("total"))
                .values_list("t")
            )
        )
    ),
    "filtered": lambda s: rows(customers(s).annotate(x=number(s)).filter(x__gt=1)),
    "filtered by exists": lambda s: rows(customers(s).annotate(x=Exists(of_customer(s))).filter(x=False)),
    "excluded": lambda s: rows(customers(s).annotate(x=number(s)).exclude(x=2)),
    "alias": lambda s: rows(customers(s).alias(y=number(s)).filter(y=2).annotate(x=F("name"))),
    "computed": lambda s: rows(customers(s).annotate(y=Coalesce(number(s), 0)).annotate(x=F("y") * 2)),
    "case": lambda s: rows(
        customers(s).annotate(x=Case(When(Exists(of_customer(s)), then=Value("buys")), default=Value("looks")))
    ),
    "ordered": lambda s: [each.pk for each in customers(s).annotate(x=Coalesce(number(s), 0)).order_by("-x", "pk")],
    "ordered by a subquery": lambda s: [each.pk for each in customers(s).order_by(newest(s, "status"), "pk")],
    "ordered by exists": lambda s: [each.pk for each in customers(s).order_by(Exists(of_customer(s)).desc(), "-pk")],
    "sliced": lambda s: list(customers(s).annotate(x=newest(s, "status")).order_by("name").values_list("pk", "x")[1:4]),
    "values": lambda s: sorted(customers(s).values_list("pk", newest(s, "status")), key=str),
    "counted": lambda s: customers(s).filter(Exists(of_customer(s))).count(),
    "any": lambda s: customers(s).filter(Exists(of_customer(s).filter(status="lost"))).exists(),
    "aggregate": lambda s: customers(s).annotate(x=number(s)).aggregate(m=Max("x"), s=Sum("x")),
    "grouped by": lambda s: sorted(
        customers(s)
        .order_by()
        .annotate(x=Exists(of_customer(s)))
        .values("x")
        .annotate(n=Count("pk"))
        .values_list("x", "n")
    ),
    "beside an aggregate": lambda s: rows(customers(s).annotate(n=Count("orders"), x=newest(s, "status"))),
    "annotation of the outer": lambda s: rows(
        customers(s).annotate(least=Value(100)).annotate(x=Exists(of_customer(s).filter(total__gt=OuterRef("least"))))
    ),
    "reference of the outer": lambda s: rows(
        mem(s.all(s.Order)).annotate(x=Exists(s.all(s.Customer).filter(city=OuterRef("customer__city"), is_vip=True)))
    ),
    "windows": lambda s: rows(
        products(s).annotate(
            x=Subquery(s.all(s.Product).filter(category=OuterRef("category")).order_by("-price").values("name")[:1])
        )
    ),
    "of the same model": lambda s: rows(
        products(s).annotate(
            x=Subquery(
                s.all(s.Product)
                .filter(category=OuterRef("category"))
                .exclude(pk=OuterRef("pk"))
                .order_by("price")
                .values("name")[:1]
            )
        )
    ),
    "through": lambda s: rows(
        products(s).annotate(x=Exists(s.all(s.Tag).filter(products=OuterRef("pk"), name="sale")))
    ),
    "reference's name": lambda s: rows(
        mem(s.all(s.Category)).annotate(
            x=Subquery(
                s.all(s.Line)
                .filter(product__category=OuterRef("pk"))
                .order_by("-qty", "order_id")
                .values("order__status")[:1]
            )
        )
    ),
    "a date": lambda s: rows(customers(s).filter(created__lt=days(25)).annotate(x=newest(s, "total"))),
}


def rows(queryset: Any) -> list[Any]:
    return sorted(((each.pk, each.x) for each in queryset), key=str)


@pytest.mark.parametrize("excludes", [False, True], ids=["filter", "exclude"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_condition_with_a_subquery_finds_djangos_objects(shops: tuple[Shop, Shop], name: str, excludes: bool) -> None:
    def found(shop: Shop) -> Any:
        objects, condition = customers(shop), CONDITIONS[name](shop)
        return sorted(each.pk for each in (objects.exclude(condition) if excludes else objects.filter(condition)))

    ours, theirs = shops
    assert found(ours) == found(theirs)


@pytest.mark.parametrize("name", QUERIES)
def test_query_with_a_subquery_is_djangos(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert QUERIES[name](ours) == QUERIES[name](theirs)


def test_inner_objects_are_read_once_for_all_outer_rows(shops: tuple[Shop, Shop]) -> None:
    """No key has the city of a customer, so that one Query lists the inner objects of all five."""
    ours, _ = shops
    others = ours.Customer.objects.filter(city=OuterRef("city")).exclude(pk=OuterRef("pk"))
    with assert_requests(["Query", "Query"]):
        assert len(customers(ours).filter(Exists(others))) == 4


def test_equality_reads_by_the_key_of_the_outer_values(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    found = customers(ours).filter(pk__in=["c0", "c1"]).annotate(x=newest(ours, "pk"))
    with assert_requests(["BatchGetItem", "Query", "Query"]):
        assert sorted(each.x for each in found) == ["o3", "o4"]


def test_list_without_outer_values_is_read_first(shops: tuple[Shop, Shop]) -> None:
    """Like a queryset after ``__in``, it does not need a limit."""
    ours, _ = shops
    buyers = Subquery(ours.Order.objects.filter(status="sent").values("customer"))
    with assert_requests(["Query", "GetItem"]):
        assert [each.pk for each in ours.Customer.objects.filter(pk__in=buyers)] == ["c2"]


def test_subquery_that_names_no_outer_row_is_computed_once(shops: tuple[Shop, Shop]) -> None:
    """As in SQL, even a random choice is the same for each customer."""
    ours, _ = shops
    lines = ours.Line.objects.order_by("?").values("pk")[:1]
    assert len({each.x for each in customers(ours).annotate(x=Subquery(lines))}) == 1


def test_slice_bounds_annotated_subqueries(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    found = ours.Customer.objects.annotate(x=newest(ours, "status")).order_by("name")[:2]
    assert [each.x for each in found] == ["open", "open"]


def test_slice_bounds_conditions_with_subqueries(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    found = ours.Customer.objects.filter(Exists(of_customer(ours).filter(status="paid"))).order_by("name")[:2]
    assert [each.pk for each in found] == ["c1"]


def test_counting_annotated_objects_reads_no_subquery(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with assert_requests(["Query"]):
        assert customers(ours).annotate(x=newest(ours, "status")).count() == 5


def test_coroutine_reads_subqueries(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops

    async def found() -> list[str]:
        return [each.pk async for each in customers(ours).filter(Exists(of_customer(ours).filter(status="paid")))]

    assert asyncio.run(found()) == ["c1"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s.Customer.objects.filter(Exists(of_customer(s))),
        lambda s: s.Customer.objects.exclude(Exists(of_customer(s))),
        lambda s: s.Customer.objects.filter(city=newest(s, "status")),
        lambda s: s.Customer.objects.annotate(x=newest(s, "status")),
        lambda s: s.Customer.objects.order_by(newest(s, "status")),
    ],
)
def test_subquery_without_a_bound_names_the_way_out(shops: tuple[Shop, Shop], ask: Callable[[Shop], Any]) -> None:
    ours, _ = shops
    with assert_requests([]), pytest.raises(NotSupported, match=r"\.allow_in_memory\(limit=1000\)"):
        list(ask(ours))


def test_inner_objects_count_towards_the_limit(shops: tuple[Shop, Shop]) -> None:
    """Five customers and six orders."""
    ours, _ = shops
    found = ours.Customer.objects.filter(Exists(of_customer(ours)))
    assert len(found.allow_in_memory(11)) == 3
    with pytest.raises(TooManyMatches, match=r"\.allow_in_memory\(limit=\.\.\.\)"):
        list(found.allow_in_memory(10))


def test_value_of_several_rows_is_an_error(shops: tuple[Shop, Shop]) -> None:
    """SQLite takes the first one; other databases raise an error, as Django documents."""
    ours, _ = shops
    with pytest.raises(InvalidValue, match=r"returns 2 rows for one object.*\[:1\]"):
        list(customers(ours).annotate(x=Subquery(of_customer(ours).values("pk"))))


def test_outer_reference_outside_of_a_subquery_is_an_error(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with assert_requests([]), pytest.raises(ValueError, match=r"Use this queryset in Subquery\(\) or Exists\(\)"):
        list(customers(ours).filter(name=OuterRef("name")))


def test_excluded_relation_with_an_outer_reference_names_the_way_out(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with assert_requests([]), pytest.raises(NotSupported, match=r"~Exists\(\.\.\.\)"):
        ours.Customer.objects.exclude(orders__status=OuterRef("name"))


def test_objects_chosen_by_a_subquery_are_updated(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    assert customers(ours).filter(~Exists(of_customer(ours))).update(city="none") == 2
    assert [each.pk for each in customers(ours).filter(city="none").order_by("pk")] == ["c3", "c4"]


def test_update_writes_values_of_subqueries(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    assert customers(ours).filter(pk="c1").update(city=newest(ours, "status")) == 1
    assert ours.Customer.objects.get(pk="c1").city == "paid"


def test_explain_describes_joins_and_subqueries(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    open_ones = Exists(of_customer(ours).filter(status="open"))
    text = customers(ours).annotate(x=open_ones, n=Count("orders"), m=number(ours)).explain()
    joins, exists, counted, limit = [line.strip() for line in text.splitlines() if line[:6] in ("  then", "  limi")]
    assert joins.startswith("then      joins catalog.ShopOrder by customer in the values of all matches: Query on by_c")
    assert "Exists of catalog.ShopOrder by customer in the values of all matches: Query on" in f"{exists}{counted}"
    assert limit == "limit     the matches and all further steps together hold at most 1000 items and 33554432 bytes"


def test_explain_sends_no_request_for_subqueries(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with assert_requests([]):
        text = customers(ours).filter(Exists(ours.Customer.objects.filter(city=OuterRef("city")))).explain()
    assert "Exists of catalog.ShopCustomer by city in the values of all matches: Query on listed" in text


@pytest.mark.parametrize(
    "ask",
    [
        lambda q, s: q.order_by("city"),
        lambda q, s: q.filter(name__endswith="e"),
        lambda q, s: q.order_by().values("city").annotate(n=Count("pk")),
        lambda q, s: q.annotate(n=Max("orders__placed")),
        lambda q, s: q.filter(Exists(of_customer(s))),
    ],
)
def test_bytes_over_the_limit_are_an_error(shops: tuple[Shop, Shop], ask: Callable[[Any, Shop], Any]) -> None:
    ours, _ = shops
    with pytest.raises(TooManyMatches, match=r"bytes.*\.allow_in_memory\(limit=\.\.\., max_bytes=\.\.\.\)"):
        list(ask(ours.Customer.objects.allow_in_memory(100, max_bytes=300), ours))


def test_bytes_of_inner_objects_count(shops: tuple[Shop, Shop]) -> None:
    """The customers alone have fewer bytes."""
    ours, _ = shops
    few = ours.Customer.objects.allow_in_memory(100, max_bytes=1500)
    assert len(few.order_by("city")) == 5
    with pytest.raises(TooManyMatches, match="with the objects of other steps"):
        list(few.filter(Exists(of_customer(ours))))


def test_subquery_without_matches_is_explained(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    inner = ours.Order.objects.filter(customer=OuterRef("pk"), customer__customer_id="c1", pk__in=[])
    assert "Exists of catalog.ShopOrder" in mem(ours.Customer.objects.filter(Exists(inner))).explain()


def test_step_with_a_computed_condition_is_explained(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    said = mem(ours.Customer.objects.all()).filter(orders__note__endswith="t").explain()
    assert "order     filtered in memory, at most 1000 matches" in said
