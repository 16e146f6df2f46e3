"""``F()`` in conditions: DynamoDB and Python compare two attributes of an item with the same result."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F, Q
from django.db.models.lookups import GreaterThan
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import ConditionNotMet, NotSupported, UnknownField
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import And, Condition, Not, Or, StoredPair
from dynamo_single.orm.requests.expressions import ExpressionBuilder, compile_condition
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, frozen_time
from project.directory.models import Person
from tests.catalog.models import Member, Order, Product, Sample
from tests.deep import examples

KEY = {"pk": {"S": "ITEM"}, "sk": {"S": "1"}}


@pytest.fixture
def orders(table: Any) -> Any:
    """Orders whose coupon is above, equal to, and below the status, and one without a coupon."""
    for number, (coupon, total) in enumerate([("zzz", 5), ("open", 2), (None, 1), ("a", None)], start=1):
        value = None if total is None else Decimal(total)
        Order.objects.create(customer="ann", number=number, status="open", coupon=coupon, total=value)
    return Order.objects.filter(customer="ann")


ASKED: list[tuple[Callable[[Any], Any], list[int]]] = [
    (lambda found: found.filter(coupon__lt=F("status")), [4]),
    (lambda found: found.filter(coupon__lte=F("status")), [2, 4]),
    (lambda found: found.filter(coupon__gt=F("status")), [1]),
    (lambda found: found.filter(coupon__gte=F("status")), [1, 2]),
    (lambda found: found.filter(coupon=F("status")), [2]),
    (lambda found: found.filter(status=F("coupon")), [2]),
    (lambda found: found.exclude(coupon=F("status")), [1, 3, 4]),
    (lambda found: found.exclude(coupon__lt=F("status")), [1, 2, 3]),
    (lambda found: found.filter(~Q(coupon__gt=F("status"))), [2, 3, 4]),
    (lambda found: found.filter(Q(coupon=F("status")) | Q(coupon=None)), [2, 3]),
    (lambda found: found.filter(total__gt=F("number")), [1]),
    (lambda found: found.filter(GreaterThan(F("total"), F("number"))), [1]),
    (lambda found: found.filter(number__range=(2, F("total"))), [2]),
    (lambda found: found.filter(status__in=[F("coupon"), "closed"]), [2]),
    (lambda found: found.filter(coupon=F("coupon")), [1, 2, 4]),
    (lambda found: found.exclude(coupon=F("coupon")), [3]),
]


@pytest.mark.parametrize(("ask", "numbers"), ASKED)
def test_two_attributes_are_compared_as_django_compares_them(orders: Any, ask: Any, numbers: list[int]) -> None:
    with assert_requests(["Query"]):
        found = [order.number for order in ask(orders)]

    assert found == numbers


@pytest.mark.parametrize(("ask", "numbers"), ASKED)
def test_single_items_are_compared_in_memory_alike(orders: Any, ask: Any, numbers: list[int]) -> None:
    keys = Order.objects.filter(pk__in=["ann~~1", "ann~~2", "ann~~3", "ann~~4"])

    with assert_requests(["BatchGetItem"]):
        found = [order.number for order in ask(keys)]

    assert found == numbers


def test_nothing_is_less_than_itself(orders: Any) -> None:
    with assert_requests([]):
        assert list(orders.filter(coupon__lt=F("coupon"))) == []


def test_what_is_compared_is_read_although_only_other_attributes_are_wanted(orders: Any) -> None:
    found = Order.objects.filter(pk__in=["ann~~1", "ann~~2"], coupon=F("status")).values_list("number", flat=True)

    assert list(found) == [2]


def test_explain_shows_the_comparison(orders: Any) -> None:
    assert "filter    coupon__lt=F('status')" in orders.filter(coupon__lt=F("status")).explain()


def test_an_update_is_held_to_the_comparison(orders: Any) -> None:
    assert orders.filter(coupon__gt=F("status")).update(status="done") == 1


def test_a_delete_is_held_to_the_comparison(orders: Any) -> None:
    assert orders.filter(coupon=F("status")).delete() == (1, {"catalog.Order": 1})


@pytest.mark.parametrize("condition", [Q(coupon__lt=F("status")), Order.coupon < Order.status], ids=["Q", "PynamoDB"])
def test_a_save_is_held_to_the_comparison(orders: Any, condition: Any) -> None:
    Order.objects.get(pk="ann~~4").save(condition=condition)

    with pytest.raises(ConditionNotMet, match="coupon < status"):
        Order.objects.get(pk="ann~~1").save(condition=condition)


def test_an_unequal_pair_of_pynamodb_is_the_opposite_of_an_equal_one(orders: Any) -> None:
    with pytest.raises(ConditionNotMet):
        Order.objects.get(pk="ann~~2").save(condition=Order.coupon != Order.status)


def test_moments_are_compared(table: Any) -> None:
    """Both datetimes of a new object are the same within a millisecond."""
    with frozen_time(timezone.now()):
        Product.objects.create(product_id="p")
    changed = Product.objects.filter(pk="p", updated_at__gt=F("created_at"))

    assert changed.count() == 0
    assert Product.objects.filter(pk="p", updated_at__gte=F("created_at")).count() == 1


IN_DOCUMENTS: list[tuple[dict[str, Any], int]] = [
    ({"data__a__lt": F("data__b")}, 1),
    ({"data__a__gt": F("data__b")}, 0),
    ({"data__list__0": F("data__a")}, 1),
    ({"data__name": F("product_id")}, 1),
    ({"product_id": F("data__name")}, 1),
    ({"product_id__lt": F("data__a")}, 0),
    ({"data__nobody": F("data__nothing")}, 0),
]


@pytest.mark.parametrize(("condition", "count"), IN_DOCUMENTS, ids=lambda each: str(each))
@pytest.mark.parametrize("read", ["GetItem", "Scan"])
def test_places_in_documents_are_compared(table: Any, condition: dict[str, Any], count: int, read: str) -> None:
    Product.objects.create(product_id="p", data={"a": 1, "b": 2, "list": [1], "name": "p"})
    products = Product.objects.filter(pk="p") if read == "GetItem" else Product.objects.allow_scan()

    with assert_requests([read]):
        assert len(products.filter(**condition)) == count


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Order.objects.filter(coupon__lt=F("number")), "stored types differ"),
    (lambda: Order.objects.filter(placed_at__lt=F("coupon")), "stored types differ"),
    (lambda: Sample.objects.filter(day=F("moment")), "day is a DateAttribute and moment is a TimestampAttribute"),
    (lambda: Sample.objects.filter(json=F("text")), "stored types differ"),
    (lambda: Sample.objects.filter(words=F("numbers")), "stored types differ"),
    (lambda: Sample.objects.filter(flag__lt=F("flag")), "orders text, numbers and binary only"),
    (lambda: Product.objects.filter(created_at__lt=F("data__a")), "data__a is in a document"),
    (lambda: Order.objects.filter(coupon__startswith=F("status")), "compare two attributes by exact, lt"),
    (lambda: Order.objects.filter(number__lt=F("total") + 1), "does not compute"),
    (lambda: Member.objects.filter(name__size=F("badge")), "a size"),
    (lambda: Order.objects.filter(coupon=F("pk")), "a pk of several values"),
    (lambda: Person.objects.filter(name=F("company__name")), "no joins"),
    (lambda: Sample.objects.filter(text=F("parent__text")), "no joins"),
]


@pytest.mark.parametrize(("ask", "text"), REFUSED)
def test_what_dynamodb_would_compare_otherwise_is_refused(table: Any, ask: Any, text: str) -> None:
    with assert_requests([]), pytest.raises(NotSupported, match=text):
        list(ask())


def test_a_name_of_nobody_is_an_unknown_field(table: Any) -> None:
    with pytest.raises(UnknownField, match="nobody"):
        list(Order.objects.filter(coupon=F("nobody")))


VALUES = st.one_of(
    st.none(),
    st.sampled_from([{"NULL": True}, {"BOOL": True}, {"BOOL": False}, {"SS": ["a", "b"]}, {"L": [{"N": "1"}]}]),
    st.sampled_from(["", "a", "A", "b", "é", "1"]).map(lambda text: {"S": text}),
    st.sampled_from(["-1", "0", "1", "1.0", "10", "2"]).map(lambda number: {"N": number}),
    st.sampled_from([b"a", b"\xff"]).map(lambda content: {"B": content}),
)
PLACES = st.sampled_from([("a", ()), ("b", ()), ("m", ("x",)), ("m", ("y",)), ("m", ("gone",))])
PAIRS = st.tuples(PLACES, st.sampled_from(["=", "<", "<=", ">", ">="]), PLACES).filter(lambda pair: pair[0] != pair[2])


def _pair(pair: Any) -> Condition:
    (name, path), operator, (other, other_path) = pair
    return StoredPair(name, operator, other, path, other_path)


CONDITIONS = st.recursive(
    PAIRS.map(_pair),
    lambda inner: st.one_of(
        inner.map(Not),
        st.tuples(inner, inner).map(And),
        st.tuples(inner, inner).map(Or),
    ),
    max_leaves=4,
)


@settings(max_examples=examples(15, 150))
@given(values=st.tuples(VALUES, VALUES, VALUES, VALUES), condition=CONDITIONS)
def test_python_and_the_engine_agree_on_every_pair(table: Table, values: Any, condition: Condition) -> None:
    a, b, x, y = values
    inner = {name: value for name, value in (("x", x), ("y", y)) if value is not None}
    item = {**KEY, "m": {"M": inner}, **{name: value for name, value in (("a", a), ("b", b)) if value is not None}}
    table.send(Request("PutItem", {"Item": item}))
    builder = ExpressionBuilder()
    text = compile_condition(condition, None, builder)

    found = table.send(Request("Scan", {"FilterExpression": text, **builder.params()}))["Count"]

    assert bool(found) == matches(condition, item)
