"""``annotate()``, groups, distinct rows, ``dates()`` and ``datetimes()``: results, requests and refusals."""

from __future__ import annotations

import asyncio
import pickle
import zoneinfo
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Count, F, Func, Max, Min, Q, Sum
from django.test import RequestFactory
from django.utils import timezone
from django.views.generic import ArchiveIndexView

from dynamo_single.exceptions import InvalidValue, NoAccessPattern, NotSupported, TooManyMatches, UnknownField
from dynamo_single.table import SentRequest
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Order, Sample

pytestmark = pytest.mark.usefixtures("orders")


@pytest.fixture
def orders(table: Any) -> None:
    """Return five orders of two customers; two have no total, and one has no datetime."""
    for customer, number, status, total, placed in [
        ("a", 1, "open", "10", datetime(2024, 3, 5, 12, tzinfo=UTC)),
        ("a", 2, "paid", None, datetime(2024, 3, 4, 13, 30, 15, 250000, tzinfo=UTC)),
        ("a", 3, "open", "9.5", datetime(2023, 12, 31, 23, 30, tzinfo=UTC)),
        ("b", 1, "open", "-2", datetime(2024, 3, 4, 13, 45, tzinfo=UTC)),
        ("b", 2, "lost", None, None),
    ]:
        Order.objects.create(
            customer=customer, number=number, status=status, total=total and Decimal(total), placed_at=placed
        )


@pytest.fixture
def companies(table: Any) -> None:
    """Three companies, with two people, none and one."""
    for key, people in [("c1", "ab"), ("c2", ""), ("c3", "c")]:
        Company.objects.create(company_id=key, name=f"Company {key}")
        for name in people:
            Person.objects.create(company_id=key, person_id=name, name=name.upper())


def of_both(limit: int = 100) -> Any:
    """All orders: two partitions."""
    return Order.objects.filter(customer__in=["a", "b"]).allow_in_memory(limit)


def by_status() -> Any:
    """Each status has one row with a count and a sum."""
    return of_both().values("status").annotate(n=Count("pk"), t=Sum("total"))


OPEN = {"status": "open", "n": 3, "t": Decimal("17.5")}
PAID = {"status": "paid", "n": 1, "t": None}
LOST = {"status": "lost", "n": 1, "t": None}

GROUPS: list[tuple[str, Callable[[], Any], Any]] = [
    ("as their first objects come", lambda: list(by_status()), [OPEN, PAID, LOST]),
    ("by what they have", lambda: list(by_status().order_by("status")), [LOST, OPEN, PAID]),
    ("by a measure", lambda: list(by_status().order_by("-n", "-status")), [OPEN, PAID, LOST]),
    ("missing ones first", lambda: list(by_status().order_by("t", "status")), [LOST, PAID, OPEN]),
    (
        "missing ones last",
        lambda: list(by_status().order_by(F("t").asc(nulls_last=True), "status")),
        [OPEN, LOST, PAID],
    ),
    ("the other way round", lambda: list(by_status().reverse()), [LOST, PAID, OPEN]),
    ("a slice of groups", lambda: list(by_status().order_by("status")[1:2]), [OPEN]),
    ("first", lambda: by_status().order_by("status").first(), LOST),
    ("last", lambda: by_status().order_by("status").last(), PAID),
    ("get", lambda: by_status().get(status="paid"), PAID),
    ("filtered afterwards", lambda: list(by_status().filter(total__gt=0)), [OPEN | {"n": 2, "t": Decimal("19.5")}]),
    ("count", lambda: by_status().count(), 3),
    ("count of a slice", lambda: by_status()[1:].count(), 2),
    ("exists", lambda: (by_status().exists(), by_status()[3:].exists()), (True, False)),
    ("iterator", lambda: list(by_status().iterator()), [OPEN, PAID, LOST]),
    (
        "tuples",
        lambda: list(of_both().values_list("status").annotate(Count("pk"))),
        [("open", 3), ("paid", 1), ("lost", 1)],
    ),
    (
        "named tuples",
        lambda: [(row.status, row.n) for row in of_both().values_list("status", named=True).annotate(n=Count("*"))],
        [("open", 3), ("paid", 1), ("lost", 1)],
    ),
    ("one column", lambda: list(by_status().values_list("n", flat=True)), [3, 1, 1]),
    ("another order of columns", lambda: next(iter(by_status().values_list("n", "status"))), (3, "open")),
    ("other columns", lambda: next(iter(by_status().values("t"))), {"t": Decimal("17.5")}),
    (
        "two names, one more measure",
        lambda: list(
            of_both().values("customer", "status").annotate(n=Count("pk")).annotate(m=Max("number")).order_by("m", "n")
        )[-1],
        {"customer": "a", "status": "open", "n": 2, "m": 3},
    ),
    (
        "a part of each group",
        lambda: list(of_both().values("customer").annotate(n=Count("pk", filter=Q(status="open")))),
        [{"customer": "a", "n": 2}, {"customer": "b", "n": 1}],
    ),
    (
        "a name that an attribute has",
        lambda: list(of_both().values("customer").annotate(total=Sum("total")).order_by("total")),
        [{"customer": "b", "total": Decimal(-2)}, {"customer": "a", "total": Decimal("19.5")}],
    ),
    ("by primary key", lambda: len(of_both().values("pk").annotate(n=Count("*"))), 5),
    (
        "distinct",
        lambda: list(of_both().values("status").distinct()),
        [{"status": s} for s in ("open", "paid", "lost")],
    ),
    ("said before", lambda: list(of_both().distinct().values_list("status", flat=True)), ["open", "paid", "lost"]),
    (
        "distinct in order",
        lambda: list(of_both().values_list("status", flat=True).distinct().order_by("-status")[:2]),
        ["paid", "open"],
    ),
    ("distinct, counted", lambda: of_both().values("customer", "status").distinct().count(), 4),
    (
        "distinct, and grouped",
        lambda: next(iter(of_both().values("status").distinct().annotate(n=Count("pk"))))["n"],
        3,
    ),
    ("missing values are a value", lambda: list(of_both().values_list("total", flat=True).distinct())[1], None),
]


@pytest.mark.parametrize(("call", "expected"), [row[1:] for row in GROUPS], ids=[row[0] for row in GROUPS])
def test_groups(call: Callable[[], Any], expected: Any) -> None:
    """A Query per partition reads every match, and the app groups them."""
    with assert_requests(["Query"] * (4 if expected == (True, False) else 2)):
        assert call() == expected


def test_groups_by_a_reference_and_by_documents(companies: None) -> None:
    """A reference is grouped by the other object's ``pk``, and documents and sets by their contents."""
    people = Person.objects.allow_in_memory().values("company").annotate(n=Count("pk")).order_by("-company")
    assert list(people) == [{"company": "c3", "n": 1}, {"company": "c1", "n": 2}]
    for number, words in enumerate([{"b", "a"}, {"a", "b"}, None]):
        Sample.objects.create(sample_id=f"s{number}", words=words, data={"x": [number % 2]}, json={"y": 1})
    samples = Sample.objects.allow_in_memory()
    assert list(samples.values_list("words").annotate(n=Count("pk"))) == [({"a", "b"}, 2), (None, 1)]
    assert list(samples.values_list("data", "json").annotate(n=Count("pk"))) == [
        ({"x": [0]}, {"y": 1}, 2),
        ({"x": [1]}, {"y": 1}, 1),
    ]
    with pytest.raises(NotSupported, match=r"order_by\(\) cannot take words"):
        list(samples.values("words").distinct().order_by("words"))


def test_groups_need_permission() -> None:
    """A slice of groups does not limit the read; a key list has a known length."""
    grouped = Order.objects.filter(customer="a").values("status")
    for rows in (grouped.annotate(n=Count("pk")), grouped.annotate(n=Count("pk"))[:1], grouped.distinct()):
        with assert_requests([]), pytest.raises(NotSupported) as raised:
            list(rows)
        assert str(raised.value).endswith("Set a limit: .allow_in_memory(limit=1000).")
        with assert_requests([]), pytest.raises(NotSupported, match="allow_in_memory"):
            rows.count()
    listed = Order.objects.filter(pk__in=["a~~1", "a~~3", "b~~9"])
    with assert_requests(["BatchGetItem"]):
        assert list(listed.values("status").annotate(n=Count("pk"))) == [{"status": "open", "n": 2}]


def test_the_limit_is_one_of_matches() -> None:
    """Five objects in three groups need a limit of five."""
    assert len(of_both(5).values("status").distinct()) == 3
    with pytest.raises(TooManyMatches, match="more than 4 objects match"):
        list(of_both(4).values("status").distinct())


def test_rows_that_are_distinct_anyway_are_read_as_ever() -> None:
    """Rows with the primary key are always distinct, and do not need permission."""
    with assert_requests(["Query"]) as sent:
        rows = Order.objects.filter(customer="a").values_list("number", "customer").distinct()[:2]
        assert list(rows) == [(1, "a"), (2, "a")]
    assert sent[0].params["Limit"] == 2
    assert Order.objects.filter(customer="a").distinct().count() == 3
    assert Order.objects.filter(customer="a").values("pk").distinct().page(2).next_cursor


def test_only_what_is_grouped_is_read(sent: list[SentRequest]) -> None:
    """The projection contains the attributes of the groups and measures."""
    list(Order.objects.filter(customer="a").allow_in_memory().values("status").annotate(t=Sum("total")))
    read = set(sent[0].params["ExpressionAttributeNames"].values())
    assert {"status", "total"} <= read
    assert not {"placedAt", "placed_at", "coupon"} & read


def test_what_groups_refuse() -> None:
    """An order that would divide groups, a slice before them, and unknown names."""
    grouped = of_both().values("status").annotate(n=Count("pk"))
    with assert_requests([]):
        with pytest.raises(NotSupported, match=r"order_by\('total'\) would divide the rows .* order by status, n"):
            list(grouped.order_by("total"))
        with pytest.raises(NotSupported, match="would divide"):
            list(of_both().values("status").distinct().order_by("total"))
        with pytest.raises(NotSupported, match="Annotate first"):
            of_both()[:2].values("status").annotate(n=Count("pk"))
        with pytest.raises(TypeError, match="once a slice has been taken"):
            of_both().values("status")[:2].distinct()
        with pytest.raises(UnknownField, match=r"have no 'total'\. They have status, n"):
            grouped.values("total")
        with pytest.raises(ValueError, match="'status' conflicts with a field"):
            of_both().values("status").annotate(status=Count("pk"))
        with pytest.raises(NotSupported, match="Cannot write rows that are grouped by status with n=Count"):
            grouped.update(status="x")
        with pytest.raises(TypeError, match=r"Cannot call delete\(\) after .values\(\)"):
            grouped.delete()
        with pytest.raises(NotSupported, match="Cannot combine querysets"):
            grouped | grouped
        with pytest.raises(NotSupported, match="is not supported for computed results"):
            grouped.page(2)
        with pytest.raises(NotSupported, match=r"distinct\(\) over fields"):
            of_both().distinct("status")
        with pytest.raises(NoAccessPattern):
            list(Order.objects.filter(status="open").allow_in_memory().values("status").distinct())


def test_explain_says_what_is_computed() -> None:
    """The plan shows the matches, and its order line shows the groups."""
    with assert_requests([]):
        groups = by_status().order_by("-n").explain()
        distinct = of_both(9).values("status").distinct().explain()
        dates = of_both(9).dates("placed_at", "month").explain()
        objects = Order.objects.filter(customer="a").annotate(m=Sum("total")).explain()
    assert (
        "order     grouped by status with n=Count(*), t=Sum(total) and sorted by -n in memory, at most 100 matches"
        in groups
    )
    assert "order     distinct status in memory, at most 9 matches" in distinct
    assert "order     cut off to the month of placed_at and sorted by placed_at in memory, at most 9 matches" in dates
    assert "order     none requested" in objects
    with pytest.raises(NotSupported, match="allow_in_memory"):
        Order.objects.filter(customer="a").dates("placed_at", "month").explain()


ANNOTATED: list[tuple[str, Callable[[], Any], Any, list[str]]] = [
    (
        "own attributes",
        lambda: [
            (o.pk, o.t, o.n) for o in Order.objects.filter(customer="b").annotate(t=Sum("total"), n=Count("total"))
        ],
        [("b~~1", Decimal(-2), 1), ("b~~2", None, 0)],
        ["Query"],
    ),
    (
        "with a condition",
        lambda: [o.n for o in Order.objects.filter(customer="a").annotate(n=Count("pk", filter=Q(status="open")))],
        [1, 0, 1],
        ["Query"],
    ),
    (
        "as rows",
        lambda: list(Order.objects.filter(customer="b").annotate(t=Sum("total", default=0)).values("number", "t")),
        [{"number": 1, "t": Decimal(-2)}, {"number": 2, "t": Decimal(0)}],
        ["Query"],
    ),
    (
        "as rows of all",
        lambda: next(iter(Order.objects.filter(customer="b").annotate(t=Sum("number")).values()))["t"],
        1,
        ["Query"],
    ),
    (
        "as rows of what was computed",
        lambda: list(Order.objects.filter(customer="b").annotate(t=Sum("number")).values_list("t", flat=True)),
        [1, 2],
        ["Query"],
    ),
    (
        "of objects in part",
        lambda: [
            (o.t, o.get_deferred_fields() >= {"coupon", "placed_at"})
            for o in Order.objects.filter(customer="b").only("status").annotate(t=Sum("total"))
        ],
        [(Decimal(-2), True), (None, True)],
        ["Query"],
    ),
    (
        "in an order of theirs",
        lambda: [o.pk for o in of_both().annotate(t=Sum("total")).order_by("-t", "-number")],
        ["a~~1", "a~~3", "b~~1", "a~~2", "b~~2"],
        ["Query", "Query"],
    ),
    (
        "missing ones where they are wanted",
        lambda: [o.pk for o in of_both().annotate(t=Sum("total")).order_by(F("t").asc(nulls_last=True), "-pk")[:4]],
        ["b~~1", "a~~3", "a~~1", "b~~2"],
        ["Query", "Query"],
    ),
    (
        "in an order of a key",
        lambda: [o.t for o in Order.objects.filter(customer="a").order_by("-number").annotate(t=Sum("number"))[:2]],
        [3, 2],
        ["Query"],
    ),
    (
        "in an order in memory",
        lambda: [o.t for o in of_both().order_by("status", "pk").annotate(t=Sum("number"))],
        [2, 1, 3, 1, 2],
        ["Query", "Query"],
    ),
    ("count", lambda: Order.objects.filter(customer="a").annotate(t=Sum("total")).count(), 3, ["Query"]),
    ("exists", lambda: Order.objects.filter(customer="a").annotate(t=Sum("total")).exists(), True, ["Query"]),
    ("get", lambda: Order.objects.annotate(t=Sum("total")).get(pk="a~~1").t, Decimal(10), ["GetItem"]),
    ("first", lambda: Order.objects.filter(customer="a").annotate(t=Sum("total")).first().t, Decimal(10), ["Query"]),
    ("none", lambda: list(Order.objects.annotate(t=Sum("total")).none()), [], []),
    (
        "in bulk",
        lambda: {k: o.t for k, o in Order.objects.annotate(t=Sum("total")).in_bulk(["a~~1", "b~~1"]).items()},
        {"a~~1": Decimal(10), "b~~1": Decimal(-2)},
        ["BatchGetItem"],
    ),
]


@pytest.mark.parametrize(
    ("call", "expected", "requests"), [row[1:] for row in ANNOTATED], ids=[row[0] for row in ANNOTATED]
)
def test_annotated_objects(call: Callable[[], Any], expected: Any, requests: list[str]) -> None:
    """Each object has its measures as attributes; measures of its own attributes need no permission."""
    with assert_requests(requests):
        assert call() == expected


def test_children_are_counted_by_one_query_for_each_object(companies: None) -> None:
    """``Count`` of ``Children`` takes one counting Query for each object of a slice, a key list or an allowed read."""
    counted = Company.objects.annotate(n=Count("people"))
    with assert_requests(["Query"] * 4) as sent:
        assert [(each.pk, each.n) for each in counted[:10]] == [("c1", 2), ("c2", 0), ("c3", 1)]
    assert [request.params.get("Select") for request in sent] == [None, "COUNT", "COUNT", "COUNT"]
    with assert_requests(["GetItem", "Query"]):
        assert counted.get(pk="c1").n == 2
    with assert_requests(["BatchGetItem", "Query", "Query"]):
        assert {key: each.n for key, each in counted.in_bulk(["c1", "c3"]).items()} == {"c1": 2, "c3": 1}
    with assert_requests(["Query"] * 4):
        assert list(counted.allow_in_memory(3).order_by("-n").values_list("pk", "n")) == [
            ("c1", 2),
            ("c3", 1),
            ("c2", 0),
        ]
    with assert_requests(["Query"]):
        assert counted.count() == 3
    assert "then      n=Count(people): one Query with Select=COUNT for each object" in counted[:10].explain()
    assert "4 requests (4 Query)" in counted[:10].explain(execute=True)
    Person.objects.get(person_id="a").delete()
    assert counted.get(pk="c1").n == 1


def test_children_are_not_counted_without_a_bound(companies: None) -> None:
    """The error contains the cost, and too many matches raise it before any count is sent."""
    counted = Company.objects.annotate(n=Count("people"))
    with assert_requests([]), pytest.raises(NotSupported, match="by one Query for each object"):
        list(counted)
    with assert_requests([]), pytest.raises(NotSupported, match="an order of objects annotated with n=Count"):
        list(counted.order_by("n")[:10])
    for too_many in (counted.allow_in_memory(2), counted.allow_in_memory(2).order_by("n")):
        with assert_requests(["Query"]), pytest.raises(TooManyMatches):
            list(too_many)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"n": Count("people", distinct=True)}, "of children there is Count"),
        ({"n": Count("people", filter=Q(name="x"))}, "of children there is Count"),
        ({"n": Max("people")}, "of children there is Count"),
        ({"n": Count("person")}, "no joins"),
        ({"n": Func("name", function="SOUNDEX")}, "Use Count, Min, Max, Sum, Avg"),
    ],
)
def test_what_objects_cannot_be_annotated_with(asked: dict[str, Any], said: str) -> None:
    """Other functions than the five aggregates, and other values of children than their number, raise an error."""
    with assert_requests([]), pytest.raises(NotSupported, match=said):
        Company.objects.annotate(**asked)


def test_what_annotated_objects_refuse(companies: None) -> None:
    """Names that the model has, groups of annotated rows, conditions on measures."""
    annotated = Company.objects.annotate(n=Count("name"))
    for name in ("stock", "people", "pk"):
        with pytest.raises(ValueError, match="conflicts with a field"):
            Company.objects.annotate(**{name: Count("pk")})
    with pytest.raises(NotSupported, match="of children there is Count"):
        Company.objects.values("stock").annotate(n=Count("people"))
    with assert_requests([]), pytest.raises(NotSupported, match="allow_in_memory"):
        list(annotated.filter(n=1))
    with pytest.raises(NotSupported, match="for computed results"):
        annotated.page(2)
    with pytest.raises(UnknownField):
        annotated.values("nme")


def test_annotated_objects_can_be_written(companies: None) -> None:
    """An annotation is not an attribute: it is not stored, and does not prevent a write."""
    company = Company.objects.annotate(n=Count("people")).get(pk="c1")
    company.stock = "ACM"
    company.save()
    assert Company.objects.get(pk="c1").stock == "ACM"
    assert not hasattr(Company.objects.get(pk="c1"), "n")
    assert pickle.loads(pickle.dumps(company)).n == 2
    assert Company.objects.annotate(n=Count("name")).filter(name="Company c2").update(stock="X") == 1
    assert Company.objects.annotate(n=Count("name")).filter(name="Company c2").delete()[0] == 1
    assert Company.objects.count() == 2


def test_references_and_children_are_read_along(companies: None) -> None:
    """``select_related`` and ``prefetch_related`` work on annotated objects."""
    people = Person.objects.filter(company="c1").select_related("company").annotate(n=Count("email"))
    with assert_requests(["Query", "GetItem"]):
        assert [(each.company.name, each.n) for each in people] == [("Company c1", 0), ("Company c1", 0)]
    company = Company.objects.prefetch_related("people").annotate(n=Count("stock")).get(pk="c1")
    with assert_requests([]):
        assert [each.name for each in company.people.all()] == ["A", "B"]
        assert company.n == 0
    acme = Company.objects.get(pk="c1")
    with assert_requests(["Query"]):
        assert [(each.company.name, each.n) for each in acme.people.annotate(n=Count("name"))] == [
            ("Company c1", 1)
        ] * 2


DATES: list[tuple[str, Callable[[], Any], Any]] = [
    ("years", lambda: list(of_both().dates("placed_at", "year")), [date(2023, 1, 1), date(2024, 1, 1)]),
    (
        "the latest first",
        lambda: list(of_both().dates("placed_at", "month", "DESC")),
        [date(2024, 3, 1), date(2023, 12, 1)],
    ),
    ("turned round", lambda: next(iter(of_both().dates("placed_at", "month", "DESC").reverse())), date(2023, 12, 1)),
    (
        "weeks begin on Monday",
        lambda: list(of_both().dates("placed_at", "week")),
        [date(2023, 12, 25), date(2024, 3, 4)],
    ),
    ("a slice", lambda: list(of_both().dates("placed_at", "day")[1:2]), [date(2024, 3, 4)]),
    ("first", lambda: of_both().dates("placed_at", "day").first(), date(2023, 12, 31)),
    ("last", lambda: of_both().dates("placed_at", "day").last(), date(2024, 3, 5)),
    ("count", lambda: of_both().dates("placed_at", "day").count(), 3),
    ("exists", lambda: of_both().filter(status="lost").dates("placed_at", "day").exists(), False),
    (
        "filtered afterwards",
        lambda: list(of_both().dates("placed_at", "year").filter(number__gt=2)),
        [date(2023, 1, 1)],
    ),
    (
        "hours",
        lambda: list(of_both().datetimes("placed_at", "hour"))[1:],
        [datetime(2024, 3, 4, 13, tzinfo=UTC), datetime(2024, 3, 5, 12, tzinfo=UTC)],
    ),
    (
        "seconds",
        lambda: list(of_both().datetimes("placed_at", "second"))[1],
        datetime(2024, 3, 4, 13, 30, 15, tzinfo=UTC),
    ),
]


@pytest.mark.parametrize(("call", "expected"), [row[1:] for row in DATES], ids=[row[0] for row in DATES])
def test_dates(call: Callable[[], Any], expected: Any) -> None:
    """Each period comes once, from one reading of every match that has a value."""
    with assert_requests(["Query", "Query"]):
        assert call() == expected


def test_dates_are_by_the_clocks_of_a_time_zone() -> None:
    """The current time zone, or the given one, determines the day and the year of a datetime."""
    rome = zoneinfo.ZoneInfo("Europe/Rome")
    with timezone.override(rome):
        assert list(of_both().dates("placed_at", "year")) == [date(2024, 1, 1)]
        assert list(of_both().datetimes("placed_at", "year")) == [datetime(2024, 1, 1, tzinfo=rome)]
    assert list(of_both().datetimes("placed_at", "year", tzinfo=rome)) == [datetime(2024, 1, 1, tzinfo=rome)]


def test_dates_use_the_index_of_their_attribute() -> None:
    """Objects without a value are excluded, so an index without them supports the query."""
    with assert_requests(["Query"]) as sent:
        assert len(Order.objects.allow_in_memory().dates("placed_at", "day")) == 3
    assert sent[0].params["IndexName"] == "gs1"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda found: found.dates("placed_at", "hour"),
            InvalidValue,
            "'kind' is one of 'year', 'month', 'week', 'day'",
        ),
        (lambda found: found.datetimes("placed_at", "century"), InvalidValue, "'kind' is one of"),
        (lambda found: found.dates("placed_at", "day", "UP"), InvalidValue, "'order' is one of 'ASC', 'DESC'"),
        (lambda found: found.dates("status", "day"), InvalidValue, "status is a UnicodeAttribute; this takes a Date"),
        (lambda found: found.dates("placed", "day"), UnknownField, "no attribute 'placed'"),
        (lambda found: found[:2].dates("placed_at", "day"), TypeError, "allow_in_memory"),
        (lambda found: list(found.dates("placed_at", "day").order_by("number")), NotSupported, "order='DESC'"),
        (lambda found: found.dates("placed_at", "day").values("number"), NotSupported, "after dates"),
        (lambda found: found.dates("placed_at", "day").annotate(n=Count("pk")), NotSupported, "after dates"),
        (lambda found: found.values("status").distinct().dates("placed_at", "day"), NotSupported, "call them alone"),
        (lambda found: list(Order.objects.dates("placed_at", "day")), NotSupported, "allow_in_memory"),
    ],
)
def test_what_dates_refuse(call: Callable[[Any], Any], error: type[Exception], said: str) -> None:
    """Wrong types, names and attributes, earlier slices, and unsupported combinations raise an error."""
    with assert_requests([]), pytest.raises(error, match=said):
        call(of_both())


def test_archive_views_work_where_that_is_allowed() -> None:
    """Django's archive views request the periods of a limited queryset."""
    view = ArchiveIndexView.as_view(
        queryset=Order.objects.filter(placed_at__isnull=False).allow_in_memory(10),
        date_field="placed_at",
        template_name="admin/base.html",
        allow_future=True,
    )
    with assert_requests(["Query", "Query"]):
        context = view(RequestFactory().get("/")).context_data
        assert [each.year for each in context["date_list"]] == [2024, 2023]
        assert [each.pk for each in context["latest"]] == ["a~~1", "b~~1", "a~~2", "a~~3"]


def test_a_day_has_no_time() -> None:
    """``datetimes()`` of a date attribute raises an error, as in Django."""
    with pytest.raises(InvalidValue, match="founded is a DateAttribute; this takes a TimestampAttribute"):
        Company.objects.allow_in_memory().datetimes("founded", "hour")


def test_results_that_were_read_are_kept() -> None:
    """An evaluated queryset counts and checks without another read."""
    rows = by_status()
    assert len(rows) == 3
    with assert_requests([]):
        assert rows.count() == 3
        assert rows.exists()
        assert rows[0] == OPEN


def test_asynchronous_iteration_does_not_block_the_loop(companies: None) -> None:
    """Rows, annotated objects and dates come the same from asynchronous code."""

    async def read() -> Any:
        rows = [row async for row in by_status()]
        objects = [each.n async for each in Company.objects.annotate(n=Count("people"))[:5]]
        days = [day async for day in of_both().dates("placed_at", "year").aiterator()]
        return rows, objects, days, await by_status().acount()

    assert asyncio.run(read()) == ([OPEN, PAID, LOST], [2, 0, 1], [date(2023, 1, 1), date(2024, 1, 1)], 3)


def test_min_and_max_of_each_group() -> None:
    """Strings, datetimes and numbers have a minimum and a maximum in each group."""
    found = of_both().values("customer").annotate(Min("status"), Max("placed_at"), low=Min("total"))
    assert list(found)[1] == {
        "customer": "b",
        "status__min": "lost",
        "placed_at__max": datetime(2024, 3, 4, 13, 45, tzinfo=UTC),
        "low": Decimal(-2),
    }
