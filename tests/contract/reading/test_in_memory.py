"""Orders that no key has are sorted in memory: results, requests and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F, Q

from dynamo_single.exceptions import InvalidValue, NoAccessPattern, NotSupported, TooManyMatches, UnknownField
from dynamo_single.table import SentRequest
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Order, Sample

pytestmark = pytest.mark.usefixtures("orders")


@pytest.fixture
def orders(table: Any) -> None:
    """Return five orders of two customers; two have no total, and one has no datetime."""
    for customer, number, status, total, day in [
        ("a", 1, "open", "10", 5),
        ("a", 2, "paid", None, 4),
        ("a", 3, "Open", "9.5", 3),
        ("b", 1, "open", "-2", 2),
        ("b", 2, "é", None, None),
    ]:
        placed_at = day and datetime(2024, 1, day, tzinfo=UTC)
        Order.objects.create(
            customer=customer, number=number, status=status, total=total and Decimal(total), placed_at=placed_at
        )


def of_a() -> Any:
    """The three orders of one customer: one partition."""
    return Order.objects.filter(customer="a").allow_in_memory()


def everything() -> Any:
    """All orders: two partitions."""
    return Order.objects.filter(customer__in=["a", "b"]).allow_in_memory(5)


def pks(found: Any) -> list[str]:
    """The identities, in order."""
    return [each.pk for each in found]


READS: list[tuple[str, Callable[[], Any], Any, list[str]]] = [
    ("missing values are the least", lambda: pks(of_a().order_by("total")), ["a~~2", "a~~3", "a~~1"], ["Query"]),
    ("and so the last backwards", lambda: pks(of_a().order_by("-total")), ["a~~1", "a~~3", "a~~2"], ["Query"]),
    (
        "where the caller wants them",
        lambda: pks(of_a().order_by(F("total").asc(nulls_last=True))),
        ["a~~3", "a~~1", "a~~2"],
        ["Query"],
    ),
    (
        "first, backwards",
        lambda: pks(of_a().order_by(F("total").desc(nulls_first=True))),
        ["a~~2", "a~~1", "a~~3"],
        ["Query"],
    ),
    (
        "turned round with them",
        lambda: pks(of_a().order_by(F("total").desc(nulls_first=True)).reverse()),
        ["a~~3", "a~~1", "a~~2"],
        ["Query"],
    ),
    ("text by code points", lambda: pks(of_a().order_by("status")), ["a~~3", "a~~1", "a~~2"], ["Query"]),
    (
        "both directions, several partitions",
        lambda: pks(everything().order_by("-status", "customer", "-number")),
        ["b~~2", "a~~2", "a~~1", "b~~1", "a~~3"],
        ["Query", "Query"],
    ),
    (
        "equal ones in the order of reading",
        lambda: pks(everything().order_by(F("total").asc(nulls_last=True)))[-2:],
        ["a~~2", "b~~2"],
        ["Query", "Query"],
    ),
    ("by the primary key", lambda: pks(everything().order_by("status", "-pk"))[1:3], ["b~~1", "a~~1"], ["Query"] * 2),
    ("a slice", lambda: pks(of_a().order_by("total")[1:2]), ["a~~3"], ["Query"]),
    ("first", lambda: of_a().order_by("-total").first().pk, "a~~1", ["Query"]),
    ("last", lambda: of_a().order_by("-total").last().pk, "a~~2", ["Query"]),
    ("latest", lambda: of_a().latest("total").pk, "a~~1", ["Query"]),
    ("earliest", lambda: of_a().filter(total__gt=0).earliest("total").pk, "a~~3", ["Query"]),
    ("get", lambda: of_a().order_by("total").get(number=2).pk, "a~~2", ["GetItem"]),
    (
        "single items",
        lambda: pks(Order.objects.filter(customer="a", number__in=[1, 2, 3]).allow_in_memory().order_by("-total")),
        ["a~~1", "a~~3", "a~~2"],
        ["BatchGetItem"],
    ),
    (
        "alternatives",
        lambda: pks(
            Order.objects.filter(Q(customer="b") | Q(customer="a", number__gt=1)).allow_in_memory().order_by("status")
        ),
        ["a~~3", "b~~1", "a~~2", "b~~2"],
        ["Query", "Query"],
    ),
    (
        "a scan",
        lambda: pks(Order.objects.allow_scan().allow_in_memory().filter(status="open").order_by("-total")),
        ["a~~1", "b~~1"],
        ["Scan"],
    ),
    ("count needs no order", lambda: of_a().order_by("total").count(), 3, ["Query"]),
    ("exists neither", lambda: of_a().order_by("total").exists(), True, ["Query"]),
    ("rows", lambda: list(of_a().order_by("-total").values_list("number", flat=True)), [1, 3, 2], ["Query"]),
    ("objects in part", lambda: pks(of_a().only("status").order_by("total")), ["a~~2", "a~~3", "a~~1"], ["Query"]),
    ("iterator", lambda: pks(of_a().order_by("total").iterator()), ["a~~2", "a~~3", "a~~1"], ["Query"]),
    ("none", lambda: pks(of_a().order_by("total").none()), [], []),
]


@pytest.mark.parametrize(("call", "expected", "requests"), [row[1:] for row in READS], ids=[row[0] for row in READS])
def test_an_order_that_no_key_has(call: Callable[[], Any], expected: Any, requests: list[str]) -> None:
    """Any order works in memory, with the requests of an unordered query."""
    with assert_requests(requests):
        assert call() == expected


def test_a_key_that_serves_the_order_is_used_as_ever() -> None:
    """If a key has the order, the plan is unchanged, and a slice reads only its own items."""
    ordered = Order.objects.filter(customer="a").order_by("-number")
    assert ordered.allow_in_memory(1).explain() == ordered.explain()
    assert pks(ordered.allow_in_memory(1)) == ["a~~3", "a~~2", "a~~1"]
    with assert_requests(["Query"]) as sent:
        assert pks(ordered.allow_in_memory(1)[:1]) == ["a~~3"]
    assert sent[0].params["Limit"] == 1


def test_where_missing_values_go_matters_only_where_there_can_be_any() -> None:
    """A required attribute uses the order of its key, whatever the position of missing values."""
    plain = Order.objects.filter(customer="a").order_by("number")
    said = Order.objects.filter(customer="a").order_by(F("number").asc(nulls_last=True))
    assert said.explain() == said.allow_in_memory().explain() == plain.explain()


def test_without_permission_the_order_is_refused_with_the_way_out() -> None:
    """``NoAccessPattern`` is raised before any request and names ``allow_in_memory()``."""
    with assert_requests([]), pytest.raises(NoAccessPattern) as raised:
        list(Order.objects.filter(customer="a").order_by("total"))
    assert "call .allow_in_memory(limit=1000): primary supports it, and the app sorts up to 1000 matches" in str(
        raised.value
    )
    with assert_requests([]), pytest.raises(NoAccessPattern, match=r"allow_in_memory\(limit=1000\)"):
        list(Order.objects.filter(customer="a").order_by(F("total").asc(nulls_last=True)))


def test_a_question_that_no_key_answers_is_refused_all_the_same() -> None:
    """The permission is one to sort; it is no permission to scan."""
    with assert_requests([]), pytest.raises(NoAccessPattern, match="no key supports"):
        list(Order.objects.filter(status="open").allow_in_memory().order_by("total"))


@pytest.mark.parametrize("query", [{}, {"status__in": ["open", "paid", "Open"]}], ids=["all", "filtered"])
def test_one_match_too_many_is_an_error(sent: list[SentRequest], query: dict[str, Any]) -> None:
    """There is no result at all, not a first part of one; a limit that is just enough is enough."""
    found = Order.objects.filter(customer="a", **query).order_by("total")
    assert len(found.allow_in_memory(3)) == 3
    sent.clear()
    with pytest.raises(TooManyMatches) as raised:
        list(found.allow_in_memory(2)[:1])
    assert raised.value.limit == 2
    assert str(raised.value) == (
        "catalog.Order: more than 2 objects match, the limit of allow_in_memory(limit=2). The result would be "
        "incomplete, so the app returns none. Raise the limit: .allow_in_memory(limit=...)."
    )
    # Without a filter, the read stops as soon as there are too many items; with one, a Limit only adds requests.
    assert [request.params.get("Limit") for request in sent] == ([None] if query else [3])


@pytest.mark.parametrize("limit", [0, -1, True, 2.5, None, "10"])
def test_a_limit_is_a_number_of_matches(limit: Any) -> None:
    """Any other value raises an error immediately."""
    with pytest.raises(InvalidValue, match=r"allow_in_memory\(limit=...\)"):
        Order.objects.allow_in_memory(limit)


@pytest.mark.parametrize("name", ["json", "data", "things", "words", "numbers", "blobs"])
def test_documents_and_sets_have_no_order(name: str) -> None:
    """The error names the attribute before anything is read."""
    with assert_requests([]), pytest.raises(NotSupported, match=f"order_by\\(\\) cannot take {name}, a "):
        list(Sample.objects.allow_in_memory().order_by(name))


@pytest.mark.parametrize("order", ["?", F("total") + 1, (F("total") + 1).desc()], ids=["random", "sum", "desc"])
def test_order_by_an_expression_needs_a_limit(order: Any) -> None:
    """A random order and computed ones need a limit."""
    with assert_requests([]), pytest.raises(NotSupported, match=r"Set a limit: \.allow_in_memory\(limit=1000\)"):
        list(Order.objects.filter(customer="a").order_by(order))
    assert len(of_a().order_by(order)) == 3


def test_an_unknown_name_is_told_as_such() -> None:
    """The error is the same with any permission."""
    with pytest.raises(UnknownField, match="Cannot resolve keyword 'totl'"):
        of_a().order_by("totl")


def test_explain_says_what_is_sorted_and_how_much() -> None:
    """The explanation contains the order, its limit, and the ``Limit`` of the request."""
    with assert_requests([]):
        text = of_a().order_by("status", F("total").desc(nulls_last=True)).reverse().explain()
    assert "order     sorted by status, -total (missing values last) in memory, at most 1000 matches, reversed" in text
    assert "Limit: 1001" in text
    alternatives = Order.objects.filter(Q(customer="a") | Q(customer="b", number=1)).allow_in_memory(7)
    assert "order     sorted by total in memory, at most 7 matches" in alternatives.order_by("total").explain()


def test_only_what_is_needed_is_read() -> None:
    """The projection contains the attributes of the order, even if the rows omit them."""
    with assert_requests(["Query"]) as sent:
        assert list(of_a().order_by("-total", "status").values_list("coupon")) == [(None,)] * 3
    read = set(sent[0].params["ExpressionAttributeNames"].values())
    assert {"total", "status", "coupon"} <= read
    assert "placed_at" not in read


def test_the_default_order_of_a_model_counts_too() -> None:
    """``Meta.ordering`` is sorted in memory if no usable key has it."""
    from tests.catalog.boards import Board, Label

    board = Board.objects.create(name="Work")
    for text in ("b", "c", "a"):
        Label.objects.create(board=board, label_id=text * 2, text=text)
    labels = Label.objects.filter(board=board).using_index("primary")
    with pytest.raises(NoAccessPattern):
        list(labels)
    assert [label.text for label in labels.allow_in_memory()] == ["a", "b", "c"]
    assert [label.text for label in labels.order_by()] == ["a", "b", "c"]


def test_children_are_sorted_too() -> None:
    """The manager of the other side gives the same queryset, with its objects' parent known."""
    acme = Company.objects.create(company_id="c1", name="Acme")
    for name, role in [("Anna", "member"), ("Mike", "founder"), ("Zoe", "manager")]:
        Person.objects.create(company=acme, person_id=name.lower(), name=name, role=role)
    with assert_requests(["Query"]):
        people = list(acme.people.allow_in_memory(10).order_by("role"))
        assert [person.name for person in people] == ["Mike", "Zoe", "Anna"]
        assert {person.company.name for person in people} == {"Acme"}
    Person.objects.get(person_id="zoe").delete()
    assert [each.name for each in Person.deleted_objects.allow_in_memory().order_by("role")] == ["Zoe"]


def test_pages_are_refused() -> None:
    """A page that needs a complete read would be a slice in disguise."""
    with assert_requests([]), pytest.raises(NotSupported, match=r"page\(\) is not supported after allow_in_memory"):
        of_a().order_by("total").page(2)


def test_it_is_sorted_without_blocking_an_event_loop() -> None:
    """Asynchronous iteration and methods give the same."""

    async def read() -> tuple[list[str], str]:
        found = of_a().order_by("total")
        return [each.pk async for each in found], (await found.afirst()).pk

    assert asyncio.run(read()) == (["a~~2", "a~~3", "a~~1"], "a~~2")
