"""Changes that DynamoDB makes by itself: sums, lists, sets and nested places, on objects and through querysets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F, Q, Value
from django.db.models.functions import Lower, Now
from django.db.models.signals import post_save, pre_save

from dynamo_single import models, transactions
from dynamo_single.exceptions import BulkError, InvalidValue, NotSupported, PendingWrite, StaleObject, UnknownField
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, frozen_time, intercept
from tests.catalog.models import Product
from tests.catalog.stocks import Stock
from tests.contract.tables import claims, stored

pytestmark = pytest.mark.usefixtures("table")

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPARE: dict[str, Any] = {
    "qty": 7,
    "spare": 2,
    "price": Decimal("1.10"),
    "weight": 0.1,
    "due": MOMENT,
    "note": "a",
    "tags": ["b"],
    "labels": {"x", "y"},
    "levels": {1, 2},
    "data": {"price": Decimal("9.99"), "count": 1, "tags": ["p", "q"], "deep": {"er": {"a": 1}}},
}


@pytest.fixture
def stock() -> Stock:
    """A stored object with everything in it."""
    return Stock.objects.create(code="s", rank=5, **SPARE)


def fresh() -> Stock:
    """Return the stored object."""
    return Stock.objects.consistent().get(code="s")


CASES = [
    ("qty", F("qty") + 1, 8),
    ("qty", F("qty") - 10, -3),
    ("qty", 10 - F("qty"), 3),
    ("qty", F("qty") + F("spare"), 9),
    ("qty", F("spare") - F("qty"), -5),
    ("qty", F("qty") + 1 + 2 - 4, 6),
    ("qty", F("spare"), 2),
    ("qty", Value(3), 3),
    ("price", F("price") + Decimal("0.20"), Decimal("1.30")),
    ("price", F("price") + 0.1, Decimal("1.20")),
    ("price", F("qty"), Decimal(7)),
    ("price", F("qty") - F("price"), Decimal("5.90")),
    ("weight", F("weight") + 0.2, 0.3),
    ("weight", F("weight") + F("qty"), 7.1),
    ("due", F("due") + timedelta(hours=1), MOMENT + timedelta(hours=1)),
    ("due", F("due") - timedelta(milliseconds=1, microseconds=1), MOMENT - timedelta(milliseconds=2)),
    ("note", F("code"), "s"),
    ("tags", models.Append(["c", 1]), ["b", "c", 1]),
    ("tags", models.Prepend(["a"]), ["a", "b"]),
    ("labels", models.AddToSet({"z", "x"}), {"x", "y", "z"}),
    ("labels", models.RemoveFromSet({"y", "nothing"}), {"x"}),
    ("labels", models.RemoveFromSet({"x", "y"}), None),
    ("levels", models.AddToSet([Decimal("2.0"), 3]), {1, 2, 3}),
    ("note", models.REMOVE, None),
]
#: Each process writes sets in a different order, so test names do not contain their values.
CASE_NAMES = [f"{name}-{number}" for number, (name, *_) in enumerate(CASES)]


@pytest.mark.parametrize(("name", "change", "expected"), CASES, ids=CASE_NAMES)
def test_a_saved_change_is_one_update_and_its_result_is_on_the_object(
    stock: Stock, name: str, change: Any, expected: Any
) -> None:
    """One UpdateItem changes the stored value rather than the loaded one, and returns the new value."""
    setattr(stock, name, change)
    with assert_requests(["UpdateItem"]):
        stock.save()
    assert getattr(stock, name) == expected
    assert getattr(fresh(), name) == expected
    with assert_requests(0):
        stock.save()


@pytest.mark.parametrize(("name", "change", "expected"), CASES, ids=CASE_NAMES)
def test_a_queryset_changes_one_object_without_reading_it(stock: Stock, name: str, change: Any, expected: Any) -> None:
    """A complete primary key takes one UpdateItem, which also sets the update time."""
    with assert_requests(["UpdateItem"]):
        assert Stock.objects.filter(code="s", qty=7).update(**{name: change}) == 1
    found = fresh()
    assert getattr(found, name) == expected
    assert found.updated_at >= stock.updated_at


NESTED = [
    ("data__price", Decimal("3.50"), "price", Decimal("3.50")),
    ("data__new", {"a": [1]}, "new", {"a": [1]}),
    ("data__price", None, "price", None),
    ("data__count", F("data__count") + 1, "count", 2),
    ("data__count", F("qty") - F("data__count"), "count", 6),
    ("data__copy", F("data__deep__er"), "copy", {"a": 1}),
    ("data__copy", F("qty"), "copy", 7),
    ("data__tags__0", "first", "tags", ["first", "q"]),
    ("data__tags", models.Append(["r"]), "tags", ["p", "q", "r"]),
    ("data__others", models.Prepend(["r"]), "others", ["r"]),
    ("data__marks", models.AddToSet({"m"}), "marks", {"m"}),
    ("data__deep__er__a", 2, "deep", {"er": {"a": 2}}),
    ("data__deep__er", models.REMOVE, "deep", {}),
    ("data__tags__1", models.REMOVE, "tags", ["p"]),
    ("data__tags__9", models.REMOVE, "tags", ["p", "q"]),
    ("data__nothing", models.REMOVE, "count", 1),
]


@pytest.mark.parametrize("query", [{"code": "s"}, {"rank": 5}], ids=["unread", "read"])
@pytest.mark.parametrize(("name", "change", "key", "expected"), NESTED, ids=lambda case: repr(case))
def test_a_nested_place_is_changed_where_it_is(
    stock: Stock, name: str, change: Any, key: str, expected: Any, query: dict[str, Any]
) -> None:
    """The request contains only this element of the map, even if the object was read first."""
    operations = ["UpdateItem"] if "code" in query else ["Query", "UpdateItem"]
    with assert_requests(operations) as sent:
        assert Stock.objects.filter(**query).update(**{name: change}) == 1
    assert "deep" not in str(sent[-1].params.get("ExpressionAttributeValues"))
    data = fresh().data
    assert data.get(key) == expected
    assert {k: v for k, v in data.items() if k not in (key, name[6:])} == {
        k: v for k, v in SPARE["data"].items() if k not in (key, name[6:])
    }


def test_a_record_is_changed_in_place_under_a_condition() -> None:
    """``SET data.price`` by one request, for the live object that meets the condition; its time follows."""
    with frozen_time(MOMENT):
        book = Product.objects.create(data={"price": Decimal("456.67"), "owner": "me"})
    with assert_requests(["UpdateItem", "UpdateItem"]):
        mine = Product.objects.filter(pk=book.pk, data__owner="me").update(data__price=Decimal("399.90"))
        others = Product.objects.filter(pk=book.pk, data__owner="you").update(data__price=Decimal(0))
    assert (mine, others) == (1, 0)
    found = Product.objects.get(pk=book.pk)
    assert found.data == {"price": Decimal("399.90"), "owner": "me"}
    assert found.created_at == MOMENT < found.updated_at
    found.delete()
    assert Product.objects.filter(pk=book.pk).update(data__price=1) == 0


def test_several_changes_are_one_update(stock: Stock) -> None:
    """One request contains all values and changes of a ``save()`` or an ``update()``."""
    stock.qty, stock.tags, stock.note = F("qty") + 1, models.Append(["c"]), "b"
    with assert_requests(["UpdateItem"]):
        stock.save()
    with assert_requests(["UpdateItem"]):
        Stock.objects.filter(pk="s").update(qty=F("qty") + 1, data__price=1, data__count=2, note=None)
    found = fresh()
    assert (found.qty, found.tags, found.note) == (9, ["b", "c"], None)
    assert (found.data["price"], found.data["count"]) == (1, 2)


def test_what_another_writer_changed_is_added_to(stock: Stock) -> None:
    """The sum uses the stored value, and the save does not write other loaded values back."""
    Stock.objects.filter(pk="s").update(qty=100, note="theirs")
    stock.qty = F("qty") + 1
    stock.save()
    assert stock.qty == 101
    stock.spare = 9
    stock.save()
    assert (fresh().qty, fresh().note) == (101, "theirs")


def test_update_fields_keeps_other_expressions(stock: Stock) -> None:
    """The save writes only the named attributes; the other change waits for its own save."""
    stock.qty, stock.spare = F("qty") + 1, F("spare") + 1
    stock.save(update_fields=["qty"])
    assert (fresh().qty, fresh().spare) == (8, 2)
    stock.save()
    assert (stock.qty, stock.spare) == (8, 3)


def test_missing_lists_and_sets_begin_empty() -> None:
    """A change adds elements to a list or a set that does not exist yet."""
    Stock.objects.create(code="s")
    Stock.objects.filter(pk="s").update(tags=models.Append([1]), labels=models.AddToSet({"x"}))
    assert (fresh().tags, fresh().labels) == ([1], {"x"})


@pytest.mark.parametrize("query", [{"code": "s"}, {"rank": 0}, None], ids=["unread", "read", "saved"])
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("spare", F("spare") + 1, "catalog.Stock with pk 's' has no spare, which spare=F(spare) + Value(1) needs."),
        ("qty", F("spare"), "has no spare, which qty=F(spare) needs. Nothing was written. Set it to a value first."),
        ("data__a__b", 1, "has no data__a, which data__a__b=1 needs"),
        ("data__a", F("data__x") + 1, "has no data__x, which data__a=F(data__x) + Value(1) needs"),
        ("data__list__2", 1, "has no data__list__2, which data__list__2=1 needs"),
        ("data__map__2", 1, "holds data__map as M, and data__map__2=1 needs L"),
        (
            "data__text",
            models.Append([1]),
            "holds data__text as S, and data__text=Append([1]) needs L; nothing was written.",
        ),
        ("data__text", F("data__text") + 1, "holds data__text as S, and data__text=F(data__text) + Value(1) needs N"),
    ],
)
def test_what_a_change_needs_has_to_be_there(
    table: Table, name: str, change: Any, message: str, query: dict[str, Any] | None
) -> None:
    """The error names the attribute, the object and the missing element, and the table does not change."""
    made = Stock.objects.create(code="s", data={"list": [1, 2], "map": {"2": 1}, "text": "t"})
    before = stored(table)
    if query is None and "__" in name:
        pytest.skip("a place is set through querysets only")
    with pytest.raises(InvalidValue) as raised:
        if query is None:
            setattr(made, name, change)
            made.save()
        else:
            Stock.objects.filter(**query).update(**{name: change})
    assert message in str(raised.value)
    assert stored(table) == before


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        (
            "qty",
            F("qty") * 2,
            NotSupported,
            "DynamoDB adds and subtracts numbers, and does not support *. Read the object",
        ),
        ("qty", F("qty") / 2, NotSupported, "does not support /"),
        ("qty", -F("qty"), NotSupported, "does not support *"),
        ("note", Lower("note"), NotSupported, "does not support Lower()"),
        ("qty", F("qty") + F("spare") + 1, NotSupported, "a sum of more than 2 parts"),
        ("qty", 1 - F("qty") - F("spare"), NotSupported, "a sum of more than 2 parts"),
        ("qty", F("qty") + 0.5, InvalidValue, "qty must be a whole number"),
        ("qty", F("qty") + "x", InvalidValue, "'x' is not a number"),
        ("qty", F("qty") + Value(None), InvalidValue, "None is not a number"),
        ("qty", F("note") + 1, NotSupported, "from note, a UnicodeAttribute"),
        ("qty", F("price"), NotSupported, "a DecimalAttribute may not have the stored form of a IntegerAttribute"),
        ("qty", F("data__count"), NotSupported, "may not have the stored form of"),
        ("note", F("note") + "x", NotSupported, "Cannot compute catalog.Stock.note from note"),
        ("note", F("due"), NotSupported, "a TimestampAttribute may not have the stored form"),
        ("due", F("due") + 1, NotSupported, "add a timedelta to it"),
        ("due", F("due") - F("due"), NotSupported, "add a timedelta to it"),
        ("qty", F("nothing"), UnknownField, "F('nothing') in qty: catalog.Stock has no attribute 'nothing'"),
        ("qty", F("note__x"), UnknownField, "only maps and lists have elements"),
        ("qty", models.Append([1]), NotSupported, "is a IntegerAttribute: Append() changes lists"),
        ("tags", models.AddToSet([1]), NotSupported, "is a ListAttribute: AddToSet() changes sets"),
        ("labels", models.AddToSet([]), InvalidValue, "has no members"),
        ("labels", models.AddToSet([1]), InvalidValue, "labels must be a set of strings"),
        ("levels", Now(), InvalidValue, "levels must be a set of numbers"),
        ("qty", models.REMOVE, InvalidValue, "qty is missing"),
    ],
)
def test_what_dynamodb_cannot_compute_is_refused_by_name(
    stock: Stock, name: str, change: Any, error: type[Exception], message: str
) -> None:
    """The error explains the problem before any request is sent."""
    setattr(stock, name, change)
    with assert_requests(0), pytest.raises(error) as raised:
        stock.save()
    assert message in str(raised.value)
    with assert_requests(0), pytest.raises(error) as raised:
        Stock.objects.filter(code="s").update(**{name: change})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"data": {}, "data__price": 1}, InvalidValue, "cannot set both data and data__price"),
        ({"data__a__b": 1, "data__a": 1}, InvalidValue, "cannot set both data__a__b and data__a"),
        ({"note__x": 1}, UnknownField, "only maps and lists have elements"),
        ({"tags__x": 1}, UnknownField, "whose elements have numbers"),
        ({"code__x": 1}, NotSupported, "is part of the primary key"),
        ({"data__x": object()}, InvalidValue, "cannot be stored in a document"),
    ],
)
def test_wrong_places_are_refused(stock: Stock, changes: dict[str, Any], error: type[Exception], message: str) -> None:
    """Names and values are validated before any request is sent."""
    with assert_requests(0), pytest.raises(error) as raised:
        Stock.objects.filter(code="s").update(**changes)
    assert message in str(raised.value)


def test_a_new_object_has_nothing_to_change() -> None:
    """A new object rejects expressions, except those with a known value."""
    with assert_requests(0), pytest.raises(InvalidValue, match=r"qty=F\(qty\) \+ Value\(1\) changes a stored value"):
        Stock.objects.create(code="s", qty=F("qty") + 1)
    with frozen_time(MOMENT):
        made = Stock.objects.create(code="s", due=Now() + timedelta(days=1), qty=Value(4))
    assert (made.due, made.qty) == (MOMENT + timedelta(days=1), 4)


# what something depends on


def other_first(change: Callable[[], Any]) -> Any:
    """Another writer, who is faster than the first write."""
    done: list[bool] = []

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked in ("UpdateItem", "TransactWriteItems") and not done:
            done.append(True)
            change()

    return intercept(interceptor)


def test_a_key_follows_a_computed_value(stock: Stock, table: Table) -> None:
    """If a key depends on the value, the app computes the sum and writes it on condition that the item is unchanged."""
    stock.rank = F("rank") + 1
    with assert_requests(["UpdateItem"]):
        stock.save()
    assert stock.rank == 6
    assert stored(table)["STOCK#s"]["gs1sk"]["S"] == Stock(code="s", rank=6).serialize()["gs1sk"]["S"]


def test_a_computed_value_is_computed_again_if_another_writer_was_faster(stock: Stock) -> None:
    """The app adds to the value that DynamoDB returned, without another read."""
    stock.rank = F("rank") + 1
    with (
        other_first(lambda: Stock.objects.filter(code="s").update(rank=10)),
        assert_requests(["GetItem", "UpdateItem", "UpdateItem", "UpdateItem"]),
    ):
        stock.save()
    assert (stock.rank, fresh().rank) == (11, 11)
    assert [each.code for each in Stock.objects.filter(rank=11)] == ["s"]


def test_the_same_sum_of_another_writer_counts_twice(stock: Stock) -> None:
    """Two writers who add one to the same number have added two."""

    def add() -> None:
        theirs = Stock.objects.get(code="s")
        theirs.rank = F("rank") + 1
        theirs.save()

    stock.rank = F("rank") + 1
    with other_first(add):
        stock.save()
    assert (stock.rank, fresh().rank) == (7, 7)


def test_a_unique_value_is_computed_with_its_claim(stock: Stock, table: Table) -> None:
    """The claim follows in the same transaction."""
    Stock.objects.filter(code="s").update(serial=1)
    with assert_requests(["GetItem", "TransactWriteItems"]):
        Stock.objects.filter(code="s").update(serial=F("serial") + 1)
    assert fresh().serial == 2
    assert len(claims(table)) == 1


def test_another_change_is_not_made_of_an_object_that_is_gone(stock: Stock) -> None:
    """A computed change of a deleted object raises an error, and the object keeps its expression."""
    stock.rank = F("rank") + 1
    Stock.objects.get(code="s").delete()
    with pytest.raises(StaleObject, match="was deleted since"):
        stock.save()
    assert repr(stock.rank) == "<CombinedExpression: F(rank) + Value(1)>"


def test_a_fraction_does_not_become_a_whole_number(stock: Stock) -> None:
    """DynamoDB would add a fraction without a check, so the app computes the sum and rejects it."""
    stock.qty = F("qty") + F("price")
    with assert_requests(0), pytest.raises(InvalidValue, match="qty must be a whole number"):
        stock.save()
    Stock.objects.filter(code="s").update(price=3)
    stock.refresh_from_db()
    stock.qty = F("qty") + F("price")
    stock.save()
    assert fresh().qty == 10


@pytest.mark.parametrize("name", ["qty", "rank"])
def test_concurrent_additions_are_exact(stock: Stock, name: str) -> None:
    """Additions of several threads are not lost, whether DynamoDB or the app computes them."""
    done: list[bool] = []
    before = getattr(stock, name)

    def add() -> None:
        for _ in range(10):
            mine = Stock.objects.consistent().get(code="s")
            setattr(mine, name, F(name) + 1)
            try:
                mine.save()
            except StaleObject:
                continue
            done.append(True)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert getattr(fresh(), name) == before + len(done)
    assert done if name == "rank" else len(done) == 40


# querysets


def test_an_update_sends_no_signals(stock: Stock) -> None:
    """As in Django, ``update()`` skips ``save()`` and its signals, with and without a read."""
    seen: list[Any] = []

    def listener(**kwargs: Any) -> None:
        seen.append(kwargs)

    for signal in (pre_save, post_save):
        signal.connect(listener, sender=Stock)
    try:
        Stock.objects.filter(code="s").update(qty=F("qty") + 1)
        Stock.objects.filter(rank=5).update(qty=1, rank=6)
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(listener, sender=Stock)
    assert seen == []


def test_a_condition_that_does_not_hold_is_not_counted(stock: Stock) -> None:
    """``filter(qty__gte=n).update(qty=F("qty") - n)`` never goes below zero, in one request."""
    with assert_requests(["UpdateItem", "UpdateItem", "UpdateItem"]):
        taken = [Stock.objects.filter(code="s", qty__gte=3).update(qty=F("qty") - 3) for _ in range(3)]
    assert (taken, fresh().qty) == ([1, 1, 0], 1)
    with assert_requests(["UpdateItem"]):
        assert Stock.objects.filter(code="nobody").update(spare=F("spare") + 1) == 0


def test_each_object_of_a_query_is_changed(stock: Stock) -> None:
    """The queryset reads several objects and changes each separately; the error names the ``pk`` of a failed one."""
    Stock.objects.create(code="t", qty=1)
    assert Stock.objects.filter(rank__in=[0, 5]).update(qty=F("qty") + 1) == 2
    assert sorted(Stock.objects.values_list("qty", flat=True)) == [2, 8]
    with pytest.raises((BulkError, InvalidValue), match=r"pk 't' has no spare"):
        Stock.objects.filter(rank__in=[0, 5]).update(spare=F("spare") + 1)


# atomic blocks


def test_a_change_within_a_block_is_made_at_its_end(stock: Stock) -> None:
    """DynamoDB adds within the transaction, and the object loads the new value on access."""
    other = Stock.objects.create(code="t", qty=1)
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        stock.qty = F("qty") - 2
        stock.save()
        other.qty = F("qty") + 2
        other.save()
        with pytest.raises(PendingWrite):
            stock.qty  # noqa: B018
    with assert_requests(["GetItem", "GetItem"]):
        assert (stock.qty, other.qty) == (5, 3)
    stock.note = "later"
    stock.save()
    assert (fresh().qty, fresh().note) == (5, "later")


def test_a_block_that_fails_leaves_the_expression(stock: Stock) -> None:
    """The table does not change, and you can save the object again."""
    with pytest.raises(RuntimeError), transactions.atomic():
        stock.qty = F("qty") + 1
        stock.save()
        raise RuntimeError
    stock.save()
    assert (stock.qty, fresh().qty) == (8, 8)


def test_a_block_whose_change_cannot_be_made_says_so(stock: Stock) -> None:
    """The missing element raises the same error as outside a block, and the block is not written."""
    stock.spare = None
    stock.save()
    with pytest.raises(InvalidValue, match="has no spare, which"), transactions.atomic():
        Stock.objects.create(code="t")
        stock.spare = F("spare") + 1
        stock.save()
    assert not Stock.objects.filter(code="t").exists()


def test_a_queryset_in_a_block_reads_and_collects(stock: Stock) -> None:
    """The number of updates must be known, so the block reads the object and writes it conditionally at its end."""
    with assert_requests(["GetItem", "TransactWriteItems"]), transactions.atomic():
        assert Stock.objects.filter(code="s", qty__gte=3).update(qty=F("qty") - 3, data__price=1) == 1
    assert (fresh().qty, fresh().data["price"]) == (4, 1)


def test_a_condition_and_a_change_together(stock: Stock) -> None:
    """A save combines a sum with the caller's condition."""
    stock.qty = F("qty") - 7
    stock.save(condition=Q(qty__gte=7))
    assert stock.qty == 0
