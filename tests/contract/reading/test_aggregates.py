"""``aggregate()``: results, requests and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Avg, Count, F, Func, Max, Min, Q, Sum, Value
from django.utils import timezone

from dynamo_single import models
from dynamo_single.exceptions import (
    InvalidValue,
    NoAccessPattern,
    NotSupported,
    TooManyMatches,
    UnexpectedItem,
    UnknownField,
)
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Entry, Order, Sample, Ticket
from tests.other_names import typed
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("orders")


def day(number: int) -> datetime:
    """A day in January."""
    return datetime(2024, 1, number, tzinfo=UTC)


@pytest.fixture
def orders(table: Any) -> None:
    """Return five orders of two customers; two have no total, and one has no datetime."""
    for customer, number, status, total, placed in [
        ("a", 1, "open", "10.10", 5),
        ("a", 2, "paid", None, 4),
        ("a", 3, "open", "0.20", 3),
        ("b", 1, "open", "-2", 2),
        ("b", 2, "lost", None, None),
    ]:
        Order.objects.create(
            customer=customer,
            number=number,
            status=status,
            total=total and Decimal(total),
            placed_at=placed and day(placed),
        )


def of_a() -> Any:
    """The three orders of one customer, with nothing allowed."""
    return Order.objects.filter(customer="a")


def of_both() -> Any:
    """All orders: two partitions."""
    return Order.objects.filter(customer__in=["a", "b"])


DIRECT: list[tuple[str, Callable[[], Any], Any, list[str]]] = [
    ("a count", lambda: of_a().aggregate(n=Count("*")), {"n": 3}, ["Query"]),
    ("a count of keys", lambda: of_a().aggregate(Count("pk")), {"pk__count": 3}, ["Query"]),
    ("of an attribute of the key", lambda: of_a().aggregate(n=Count("number")), {"n": 3}, ["Query"]),
    ("distinct ones are all", lambda: of_a().aggregate(n=Count("pk", distinct=True)), {"n": 3}, ["Query"]),
    ("of what is there", lambda: of_a().aggregate(n=Count("total")), {"n": 2}, ["Query"]),
    ("of some", lambda: of_a().aggregate(n=Count("pk", filter=Q(status="open"))), {"n": 2}, ["Query"]),
    (
        "a filter that brings the key",
        lambda: Order.objects.aggregate(n=Count("pk", filter=Q(customer="b"))),
        {"n": 2},
        ["Query"],
    ),
    ("over partitions", lambda: of_both().aggregate(n=Count("pk")), {"n": 5}, ["Query", "Query"]),
    ("the least", lambda: of_a().aggregate(Min("number")), {"number__min": 1}, ["Query"]),
    ("the greatest", lambda: of_a().aggregate(Max("number")), {"number__max": 3}, ["Query"]),
    (
        "both ends of an index and a count",
        lambda: Order.objects.filter(placed_at__isnull=False).aggregate(
            first=Min("placed_at"), last=Max("placed_at"), n=Count("*")
        ),
        {"first": day(2), "last": day(5), "n": 4},
        ["Query", "Query", "Query"],
    ),
    (
        "missing values are not asked for",
        lambda: Order.objects.aggregate(first=Min("placed_at")),
        {"first": day(2)},
        ["Query"],
    ),
    (
        "the end of some",
        lambda: of_a().aggregate(last=Max("number", filter=Q(status="paid"))),
        {"last": 2},
        # The page grows until one matches, as with first().
        ["Query", "Query"],
    ),
    ("a range of a key", lambda: of_a().filter(number__lt=3).aggregate(n=Max("number")), {"n": 2}, ["Query", "Query"]),
    ("nothing there", lambda: Order.objects.filter(customer="z").aggregate(n=Max("number")), {"n": None}, ["Query"]),
    (
        "nothing there, with a default",
        lambda: Order.objects.filter(customer="z").aggregate(n=Max("number", default=7)),
        {"n": 7},
        ["Query"],
    ),
    ("a slice's count", lambda: of_a()[:2].aggregate(n=Count("pk")), {"n": 2}, ["Query"]),
    (
        "whole keys",
        lambda: Order.objects.filter(pk="a~~1").aggregate(t=Sum("total")),
        {"t": Decimal("10.10")},
        ["GetItem"],
    ),
    (
        "several whole keys",
        lambda: Order.objects.filter(pk__in=["a~~1", "b~~1", "c~~9"]).aggregate(t=Sum("total")),
        {"t": Decimal("8.10")},
        ["BatchGetItem"],
    ),
    (
        "none()",
        lambda: Order.objects.none().aggregate(n=Count("pk"), t=Sum("total"), d=Sum("total", default=0)),
        {"n": 0, "t": None, "d": Decimal(0)},
        [],
    ),
    ("nothing asked", lambda: of_a().aggregate(), {}, []),
]


@pytest.mark.parametrize(("call", "expected", "requests"), [row[1:] for row in DIRECT], ids=[row[0] for row in DIRECT])
def test_what_keys_answer_needs_no_permission(call: Callable[[], Any], expected: Any, requests: list[str]) -> None:
    """DynamoDB itself counts, and returns the ends of keys; a key list has a known length."""
    with assert_requests(requests):
        assert call() == expected


def test_the_end_of_a_key_is_one_item(sent: list[SentRequest]) -> None:
    """A read with ``Limit`` 1 finds the minimum, and a count does not return items."""
    of_a().aggregate(Min("number"))
    of_a().aggregate(n=Count("*"))
    assert [(request.params.get("Limit"), request.params.get("Select")) for request in sent] == [
        (1, None),
        (None, "COUNT"),
    ]


ALLOWED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("positional", {}, {"total__sum": Decimal("10.30"), "number__avg": 2.0}),
    ("sums are exact", {"t": Sum("total")}, {"t": Decimal("10.30")}),
    ("averages of decimals", {"t": Avg("total")}, {"t": Decimal("5.15")}),
    ("averages of whole numbers are floats", {"n": Avg("number")}, {"n": 2.0}),
    ("sums of whole numbers are whole", {"n": Sum("number")}, {"n": 6}),
    ("missing values count for nothing", {"n": Count("total"), "low": Min("total")}, {"n": 2, "low": Decimal("0.20")}),
    ("different values", {"n": Count("status", distinct=True)}, {"n": 2}),
    ("sums of different values", {"n": Sum("number", distinct=True, filter=Q(number__gt=1))}, {"n": 5}),
    ("text", {"low": Min("status"), "high": Max("status")}, {"low": "open", "high": "paid"}),
    ("nothing to add", {"t": Sum("total", filter=Q(status="lost"))}, {"t": None}),
    ("a default", {"t": Sum("total", filter=Q(status="lost"), default=0)}, {"t": Decimal(0)}),
    ("a default as a Value", {"t": Avg("number", filter=Q(status="lost"), default=Value(3))}, {"t": 3.0}),
    ("a default that is not needed", {"t": Sum("total", default=99)}, {"t": Decimal("10.30")}),
    (
        "facets",
        {"0__c": Count("pk", filter=Q(status="open")), "1__c": Count("pk", filter=~Q(status="open"))},
        {"0__c": 2, "1__c": 1},
    ),
    (
        "several conditions",
        {"n": Count("total", filter=Q(status="open") | Q(number__in=[2])), "m": Count("pk", filter=Q(pk="a~~1"))},
        {"n": 2, "m": 1},
    ),
    ("no condition at all", {"n": Count("pk", filter=Q(pk__in=[])), "m": Count("pk", filter=Q())}, {"n": 0, "m": 3}),
]


@pytest.mark.parametrize(("asked", "expected"), [row[1:] for row in ALLOWED], ids=[row[0] for row in ALLOWED])
def test_anything_else_is_added_up_over_one_reading(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """All measures together are one reading of every match, after ``allow_in_memory()`` or of a slice."""
    positional = () if asked else (Sum("total"), Avg("number"))
    for bounded in (of_a().allow_in_memory(3), of_a()[:100]):
        with assert_requests(["Query"]):
            found = bounded.aggregate(*positional, **asked)
        assert found == expected
        assert list(found) == list(expected)
        assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


def test_only_what_is_measured_is_read(sent: list[SentRequest]) -> None:
    """The projection has the attributes of the measures and of their conditions."""
    of_a().allow_in_memory().aggregate(t=Sum("total"), n=Count("pk", filter=Q(coupon="x")))
    read = set(sent[0].params["ExpressionAttributeNames"].values())
    assert {"total", "coupon"} <= read
    assert not {"status", "placed_at"} & read


def test_without_permission_it_is_refused_with_both_ways_out() -> None:
    """An error before any request names the measures, a slice and ``allow_in_memory()``."""
    with assert_requests([]), pytest.raises(NotSupported) as raised:
        of_a().aggregate(t=Sum("total", filter=Q(status="open")), n=Count("status", distinct=True))
    assert str(raised.value) == (
        "catalog.Order: aggregate(t=Sum(total, where status='open'), n=Count(status, distinct)): DynamoDB does not "
        "compute that, so the app would read every match, without a limit. Set a "
        "limit: .allow_in_memory(limit=1000), or slice: queryset[:100]."
    )
    with assert_requests([]), pytest.raises(NotSupported, match="allow_in_memory"):
        of_a()[1:].aggregate(Sum("total"))
    with assert_requests([]), pytest.raises(NotSupported, match="allow_in_memory"):
        of_a().aggregate(n=Count("pk"), m=Count("total"))


def test_a_question_that_no_key_answers_is_refused_as_such() -> None:
    """Only a scan can aggregate objects that no key lists, whatever else is allowed."""
    with assert_requests([]), pytest.raises(NoAccessPattern):
        Order.objects.filter(status="open").allow_in_memory().aggregate(Sum("total"))
    with assert_requests(["Scan"]):
        found = Order.objects.filter(status="open").allow_scan().allow_in_memory().aggregate(Sum("total"))
    assert found == {"total__sum": Decimal("8.30")}


def test_one_match_too_many_is_an_error() -> None:
    """An error is raised instead of a partial result; the limit also applies to a slice."""
    assert of_a().allow_in_memory(3).aggregate(Sum("number")) == {"number__sum": 6}
    for too_many in (of_a().allow_in_memory(2), of_a().allow_in_memory(2)[:3]):
        with pytest.raises(TooManyMatches, match="more than 2 objects match"):
            too_many.aggregate(Sum("number"))


def test_a_slice_is_one_of_the_order_asked_for() -> None:
    """The slice has the order of the key, or of the sort in memory."""
    assert of_a().order_by("-number")[:2].aggregate(t=Sum("number")) == {"t": 5}
    assert of_a()[1:3].aggregate(t=Sum("number")) == {"t": 5}
    assert of_a().allow_in_memory().order_by("total")[:2].aggregate(t=Sum("number")) == {"t": 5}
    with assert_requests([]):
        assert of_a()[2:2].aggregate(t=Sum("number")) == {"t": None}


def test_what_is_hidden_counts_for_nothing() -> None:
    """Aggregates omit deleted and expired items, unless the queryset includes them."""
    for slot, state in [(1, ""), (2, "deleted"), (4, "expired")]:
        expires_at = timezone.now() - timedelta(days=1) if state == "expired" else None
        entry = Entry.objects.create(shelf="s", slot=slot, score=Decimal(slot), expires_at=expires_at)
        if state == "deleted":
            entry.delete()
    of_shelf = {"shelf": "s"}
    assert Entry.objects.filter(**of_shelf).allow_in_memory().aggregate(n=Count("pk"), t=Sum("slot")) == {
        "n": 1,
        "t": 1,
    }
    assert Entry.objects.filter(**of_shelf).aggregate(high=Max("slot")) == {"high": 1}
    assert Entry.all_objects.filter(**of_shelf).allow_in_memory().aggregate(t=Sum("slot")) == {"t": 3}
    assert Entry.deleted_objects.allow_in_memory().aggregate(t=Sum("slot")) == {"t": 2}


def test_an_index_that_may_lack_items_is_not_the_end_of_anything() -> None:
    """Text may be empty and is then in no index: the least of it is not the index's first."""
    with assert_requests([]), pytest.raises(NotSupported, match="allow_in_memory"):
        Entry.objects.filter(title__isnull=False).filter(shelf="s").aggregate(Min("title"))


def test_a_default_that_stands_for_a_missing_value_is_counted(table: Table) -> None:
    """An item that is older than an attribute has its default, in aggregates as on the object."""
    change = {"Key": {"pk": {"S": "CUSTOMER#a"}, "sk": {"S": "ORDER#p5001"}}, "UpdateExpression": "REMOVE #s"}
    names = {"ExpressionAttributeNames": {"#s": "status"}}
    assert "Attributes" in table.send(Request("UpdateItem", {**change, **names, "ReturnValues": "ALL_OLD"}))
    assert Order.objects.get(pk="a~~1").status == "open"
    assert of_a().aggregate(n=Count("status")) == {"n": 3}
    assert of_a().allow_in_memory().aggregate(n=Count("status"), low=Min("status")) == {"n": 3, "low": "open"}


@typed
def test_an_item_of_another_model_is_an_error(table: Table) -> None:
    """Aggregates do not include another program's items in the model's keys."""
    table.send(
        Request("PutItem", {"Item": {"pk": {"S": "CUSTOMER#a"}, "sk": {"S": "ORDER#x"}, "itemType": {"S": "x"}}})
    )
    with pytest.raises(UnexpectedItem):
        of_a().allow_in_memory().aggregate(Sum("number"))


def test_numbers_are_exact() -> None:
    """Numbers from one end of DynamoDB's range to the other lose no digit in a sum."""
    low, high = Decimal("1E-130"), Decimal("9.99E+125")
    numbers = [high, low, -high, Decimal("0.1"), Decimal("0.2"), Decimal("12345678901234567890123456789012345678")]
    with forgotten():
        extreme = declare(
            "Extreme",
            ("EXTREME", "{extreme_id}"),
            extreme_id=models.UnicodeAttribute(),
            decimal=models.DecimalAttribute(),
        )
        for number, decimal in enumerate(numbers):
            Sample.objects.create(sample_id=f"s{number}", integer=10**37 + number, number=0.1)
            extreme.objects.create(extreme_id=f"e{number}", decimal=decimal)
        total = extreme.objects.allow_in_memory().aggregate(Sum("decimal"))
    found = Sample.objects.allow_in_memory().aggregate(Sum("integer"), Sum("number"), Avg("integer"))
    assert str(total["decimal__sum"]) == f"12345678901234567890123456789012345678.3{'0' * 128}1"
    assert found["integer__sum"] == 6 * 10**37 + 15
    assert found["number__sum"] == 0.6
    assert found["integer__avg"] == float(10**37)


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"n": F("number")}, TypeError, "n is not an aggregate expression"),
        (
            {"n": Max(Func("status", function="SOUNDEX"))},
            NotSupported,
            "accepts only the name",
        ),
        ({"n": Sum("status")}, NotSupported, r"Sum\(\) adds numbers, and status is a UnicodeAttribute"),
        ({"n": Avg("placed_at")}, NotSupported, r"Avg\(\) adds numbers, and placed_at is a TimestampAttribute"),
        ({"n": Min("pk")}, NotSupported, "The primary key consists of customer, number: name one of these"),
        ({"n": Sum("nmber")}, UnknownField, "Cannot resolve keyword 'nmber'"),
        ({"n": Count("pk", filter=Q(nmber=1))}, UnknownField, "Cannot resolve keyword 'nmber'"),
        ({"n": Count("pk", filter=Q(number="x"))}, (InvalidValue, ValueError), "number"),
        ({"n": Count("pk", filter=Q(status__search="x"))}, UnknownField, "search"),
        ({"n": Sum("number", default="x")}, InvalidValue, "number must be a whole number, not str 'x'"),
        ({"n": 3}, TypeError, r"QuerySet.aggregate\(\) received non-expression\(s\): 3"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(asked: dict[str, Any], error: Any, said: str) -> None:
    """Each error is raised before any request, whatever is allowed, and names the unsupported part."""
    with assert_requests([]), pytest.raises(error, match=said):
        of_a().allow_in_memory().aggregate(**asked)


@pytest.mark.parametrize("name", ["json", "data", "things", "words", "numbers", "blobs"])
def test_documents_and_sets_are_counted_and_not_compared(name: str) -> None:
    """``Count`` takes any attribute; ``Min`` needs an order."""
    with pytest.raises(NotSupported, match=f"cannot take {name}"):
        Sample.objects.allow_in_memory().aggregate(Min(name))
    for number, value in enumerate([{"words": {"a"}, "json": {"b": [1]}, "data": {"c": 1}}, {"words": {"a"}}, {}]):
        Sample.objects.create(sample_id=f"s{number}", **value)
    counts = {"json": 1, "data": 1, "words": 2}
    found = Sample.objects.allow_in_memory().aggregate(n=Count(name), d=Count(name, distinct=True))
    assert found == {"n": counts.get(name, 0), "d": min(counts.get(name, 0), 1)}


@pytest.mark.parametrize("asked", [Count("company__name"), Count("person")])
def test_paths_and_joins_are_refused(asked: Any) -> None:
    """Another model's attribute is no attribute of the model."""
    model = Person if "company" in str(asked) else Company
    with assert_requests([]), pytest.raises(NotSupported, match="no joins"):
        model.objects.aggregate(n=asked)


def test_positional_ones_need_a_name_of_their_own() -> None:
    """Django's rules of aliases hold."""
    with pytest.raises(TypeError, match="require an alias"):
        of_a().aggregate(Sum(F("number") + 1))
    with pytest.raises(ValueError, match="conflicts with the default name"):
        of_a().aggregate(Sum("number"), number__sum=Sum("number"))


def test_shapes_of_results_do_not_change_aggregates() -> None:
    for same in (of_a().values("status"), of_a().only("status"), of_a().annotate(n=Sum("total")), of_a().distinct()):
        assert same.allow_in_memory().aggregate(t=Sum("number")) == {"t": 6}
    expected = of_a().allow_in_memory().aggregate(t=Sum("total"))
    assert of_a().annotate(n=Sum("total")).allow_in_memory().aggregate(t=Sum("n")) == expected


def test_items_that_expire_are_counted_while_they_live() -> None:
    """A TTL in the model is a filter of every aggregate."""
    now = timezone.now()
    for code, seconds in [("x", 60), ("y", -60)]:
        Ticket.objects.create(code=code, expires_at=now + timedelta(seconds=seconds))
    assert Ticket.objects.aggregate(n=Count("pk")) == {"n": 1}
    assert Ticket.objects.aggregate(last=Max("code")) == {"last": "x"}


def test_the_async_twin_does_not_block_the_loop() -> None:
    """``aaggregate()`` gives the same."""

    async def read() -> Any:
        return await of_a().allow_in_memory().aaggregate(Sum("total"), n=Count("pk"))

    assert asyncio.run(read()) == {"total__sum": Decimal("10.30"), "n": 3}


def test_distinct_values_of_a_part_of_the_primary_key_are_counted_apart(table: Table) -> None:
    """Every object has one, and several objects have the same."""
    for customer, number in (("x", 901), ("x", 902), ("y", 901)):
        Order.objects.create(customer=customer, number=number)
    orders = Order.objects.filter(customer__in=["x", "y"]).allow_in_memory(limit=10)
    assert orders.aggregate(
        customers=Count("customer", distinct=True),
        numbers=Count("number", distinct=True),
        all=Count("customer"),
        objects=Count("pk", distinct=True),
    ) == {"customers": 2, "numbers": 2, "all": 3, "objects": 3}
