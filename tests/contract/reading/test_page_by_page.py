"""Objects and rows of a whole page: their read attributes, memory, writes and signals."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Mapping
from contextvars import Context
from typing import Any

import pytest
from django.db.models.signals import post_init

from dynamo_single.exceptions import InvalidValue, UnexpectedItem
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, capture_requests, intercept
from project.directory.models import Company, Person
from tests.catalog.models import Order
from tests.contract.reading.test_only_defer import projection
from tests.other_names import typed

pytestmark = pytest.mark.usefixtures("orders")


def asked() -> Any:
    """The orders, from the first to the last."""
    return Order.objects.filter(customer="c").order_by("number")


@pytest.fixture
def orders(table: Table) -> None:
    """Five orders of one customer."""
    for number in range(5):
        Order.objects.create(customer="c", number=number, status=f"s{number}")


def change(table: Table, number: int, expression: str, **values: Any) -> None:
    """Let another writer change an order's item."""
    key = {name: {"S": getattr(Order(customer="c", number=number), f"{name}_key")} for name in ("partition", "sort")}
    names = {"#t": "itemType", "#s": "status", "#x": "unknown", "#n": "number"}
    params: dict[str, Any] = {
        "Key": {"pk": key["partition"], "sk": key["sort"]},
        "UpdateExpression": expression,
        "ExpressionAttributeNames": {name: each for name, each in names.items() if name in expression},
    }
    if values:
        params["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
    table.send(Request("UpdateItem", params))


def test_rows_of_a_query_read_what_they_hold_and_the_type() -> None:
    """They read neither keys nor the identity."""
    with assert_requests(["Query"] * 3) as sent:
        assert list(asked().values_list("status", flat=True)) == ["s0", "s1", "s2", "s3", "s4"]
        assert asked().values("pk").first() == {"pk": "c~~0"}
        assert len(asked().values()) == 5
    assert projection(sent[0]) == {"itemType", "status"}
    assert projection(sent[1]) == {"itemType", "customer", "number"}
    assert "ProjectionExpression" not in sent[2].params


def test_rows_that_are_put_in_order_or_looked_at_afterwards_have_their_keys() -> None:
    """This includes rows of several partitions, of individual items, and of pages with cursors."""
    Order.objects.create(customer="d", number=9, status="s9")
    both = Order.objects.filter(customer__in=["c", "d"]).values_list("status", flat=True)
    with capture_requests() as sent:
        assert len(both.order_by("number")) == 6
        assert Order.objects.filter(pk__in=["c~~1", "d~~9"]).values_list("status", flat=True)[0] == "s1"
        assert list(asked().values_list("status", flat=True).page(2)) == ["s0", "s1"]
    assert all(projection(each) >= {"pk", "sk", "customer", "number"} for each in sent)


@typed
def test_a_foreign_item_is_an_error_where_it_comes(table: Table) -> None:
    """Earlier objects are returned, and a slice does not check skipped ones."""
    change(table, 2, "SET #t = :t", t={"S": "Other"})
    objects, rows = iter(asked().iterator()), iter(asked().values_list("number").iterator())
    assert [next(objects).number, next(objects).number, next(rows), next(rows)] == [0, 1, (0,), (1,)]
    with pytest.raises(UnexpectedItem, match="The item pk='CUSTOMER#c', sk='ORDER#p5002' has itemType 'Other'"):
        next(objects)
    with pytest.raises(UnexpectedItem, match=r"An item among the rows has itemType 'Other'.*reading the objects names"):
        next(rows)
    assert [each.number for each in asked()[3:]] == list(asked()[3:].values_list("number", flat=True)) == [3, 4]
    assert [each.number for each in asked()[:2]] == [0, 1]


def test_a_value_of_another_kind_is_an_error_where_it_comes(table: Table) -> None:
    """The error is the same as for a separate read; an attribute outside the projection does not raise it."""
    change(table, 1, "SET #s = :s", s={"N": "1"})
    rows = iter(asked().values_list("status", flat=True).iterator())
    assert next(rows) == "s0"
    with pytest.raises(InvalidValue, match="holds status as N"):
        next(rows)
    with pytest.raises(InvalidValue, match="holds status as N"):
        list(asked())
    assert list(asked().values_list("number", flat=True)) == [0, 1, 2, 3, 4]


def test_null_is_none_for_all_rows_of_a_page(table: Table) -> None:
    """DynamoDB's NULL, which this app does not write, and PynamoDB does."""
    change(table, 1, "SET #s = :s", s={"NULL": True})
    assert list(asked().values_list("status", flat=True)) == ["s0", None, "s2", "s3", "s4"]
    assert [each.status for each in asked()] == ["s0", None, "s2", "s3", "s4"]


@pytest.mark.parametrize("slicing", [slice(0, 2), slice(1, 4), slice(4, 9), slice(9, 12), slice(2, None)], ids=str)
def test_slices_are_cut_across_pages(slicing: slice) -> None:
    """Each page has at most two items."""
    Order.objects.filter(customer="c").update(status="x" * 350_000)
    with assert_requests(["Query"] * 3):
        assert len(asked()) == 5
    assert [each.number for each in asked()[slicing]] == list(range(5))[slicing]
    found = asked().values_list("number", "status")[slicing]
    assert [(number, len(status)) for number, status in found] == [(number, 350_000) for number in range(5)[slicing]]


@pytest.mark.parametrize("read", [asked, lambda: asked().only("number", "status")], ids=["whole", "only"])
def test_an_object_of_a_list_is_written_as_one_that_was_read_alone(table: Table, read: Any) -> None:
    """Unchanged attributes are not written, and attributes outside the model are kept."""
    change(table, 1, "SET #x = :x", x={"B": b"\x00"})
    listed, alone = read()[1], read().get(number=1)
    assert (listed._stored, type(listed._stored)) == (alone._stored, type(alone._stored))
    writes = []
    for number, obj in enumerate((listed, alone)):
        obj.refresh_from_db()
        obj.status = f"new {number}"
        with capture_requests() as sent:
            obj.save()
        writes.append([(each.operation, sorted(each.params)) for each in sent])
    assert writes[0] == writes[1]
    assert Order.objects.get(customer="c", number=1)._stored["unknown"] == {"B": b"\x00"}


def test_an_object_of_a_list_notices_another_writer() -> None:
    """The write requires the loaded values, even if no code has accessed them."""
    obj = list(asked())[1]
    Order.objects.filter(customer="c", number=1).update(coupon="another's")
    obj.status = "mine"
    obj.save()
    assert [Order.objects.get(customer="c", number=1).coupon, obj.status] == ["another's", "mine"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda obj: pickle.loads(pickle.dumps(obj))])
def test_copies_of_an_object_of_a_list_can_be_saved(duplicate: Any) -> None:
    """This works before and after the stored values are accessed."""
    for number, obj in enumerate(asked()):
        if number % 2:
            assert obj._stored is not None
        other = duplicate(obj)
        other.status = "changed"
        with assert_requests(["UpdateItem"]):
            other.save()


@typed
def test_those_who_listen_hear_the_items() -> None:
    """Listeners get dicts, as for any other request."""
    with capture_requests() as sent:
        list(asked().values_list("status", flat=True)[:1])
    response = sent[0].response
    assert response is not None
    assert response["Items"] == [{"itemType": {"S": "Order"}, "status": {"S": "s0"}}]
    assert (response["Count"], len(response), "Items" in response) == (1, len(dict(response)), True)


def test_what_a_test_answers_is_read() -> None:
    """Dicts, as an interceptor gives them."""
    answer = {"Items": [{"itemType": {"S": "Order"}, "status": {"S": "made up"}}], "Count": 1}
    with intercept(lambda operation, params: answer):
        assert list(asked().values_list("status", flat=True)) == ["made up"]
        assert [each.status for each in asked()] == ["made up"]


def test_those_who_listen_to_objects_are_told_of_each_as_it_is_made() -> None:
    """Objects are created one at a time, on demand."""
    made: list[int] = []

    def receive(instance: Any, **_: Any) -> None:
        made.append(instance.number)

    post_init.connect(receive, sender=Order)
    try:
        found = iter(asked().iterator())
        assert [next(found).number, next(found).number] == made == [0, 1]
    finally:
        post_init.disconnect(receive, sender=Order)


def test_objects_of_a_parent_know_it() -> None:
    """They do not send a request for it."""
    company = Company.objects.create(company_id="c1", name="Acme")
    Person.objects.create(company_id="c1", person_id="p1", name="Anna")
    with assert_requests(["Query"]):
        (person,) = company.people.all()
        assert person.company is company


def test_an_object_of_a_list_holds_less_than_three_thousand_bytes() -> None:
    """Its values, and its item as it came: not the page that it came in."""
    Order.objects.bulk_create(Order(customer="many", number=number, status="open") for number in range(300))
    many = Order.objects.filter(customer="many")
    list(many.all())
    tracemalloc.start()
    try:
        found = list(many)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / len(found) < 2800


def test_objects_by_their_keys_are_held_and_written_like_others(table: Table) -> None:
    """In the order of the keys, of as many as are there."""
    change(table, 3, "SET #x = :x", x={"S": "kept"})
    pks = ["c~~3", "c~~9", "c~~1", "c~~0"]
    for found in (
        Order.objects.in_bulk(pks).values(),
        Order.objects.filter(pk__in=pks),
        asked().only("status"),
    ):
        obj = next(iter(found))
        assert type(vars(obj)["_stored"]) is not dict
        assert (obj._stored, type(obj._stored)) == (obj._stored, type(obj._stored))
        obj.status = f"{obj.status}!"
        obj.save()
    assert Order.objects.get(pk="c~~3")._stored["unknown"] == {"S": "kept"}
    assert [each.status for each in asked()] == ["s0!", "s1", "s2", "s3!!", "s4"]
    found = Order.objects.filter(pk__in=pks)
    assert [each.number for each in found] == [3, 1, 0]
    assert [each.number for each in found.all()[1:]] == [each.number for each in found.all()[1:3]] == [1, 0]


@typed
def test_a_foreign_item_among_several_is_an_error_where_it_comes(table: Table) -> None:
    """The error is the same as in a list."""
    change(table, 1, "SET #t = :t", t={"S": "Other"})
    found = iter(Order.objects.filter(pk__in=["c~~0", "c~~1"]).iterator())
    assert next(found).number == 0
    with pytest.raises(UnexpectedItem, match="The item pk='CUSTOMER#c', sk='ORDER#p5001'"):
        next(found)
    with pytest.raises(UnexpectedItem):
        Order.objects.in_bulk(["c~~0", "c~~1"])
    assert list(Order.objects.in_bulk(["c~~0", "c~~2"])) == ["c~~0", "c~~2"]


def test_what_is_left_out_of_a_batch_is_asked_for_again(table: Table) -> None:
    """Unprocessed keys are read until all are found; each part may be decoded differently."""
    asked_for: list[Any] = []

    def half(operation: str, params: Mapping[str, Any]) -> Any:
        keys = params["RequestItems"][table.name]["Keys"]
        asked_for.append(keys)
        if len(asked_for) > 1:
            return None
        items = Context().run(table.call, operation, {"RequestItems": {table.name: {"Keys": keys[:1]}}})
        return {**items, "UnprocessedKeys": {table.name: {"Keys": keys[1:]}}}

    with intercept(half):
        assert list(Order.objects.in_bulk(["c~~0", "c~~1", "c~~2"])) == ["c~~0", "c~~1", "c~~2"]
    assert [len(keys) for keys in asked_for] == [3, 2]


def test_in_bulk_says_the_pk_of_an_item_that_does_not_fit_its_key(table: Table) -> None:
    """For another program's item, the error contains the object's own ``pk``."""
    change(table, 1, "SET #n = :n", n={"N": "7"})
    assert list(Order.objects.in_bulk(["c~~0", "c~~1"])) == ["c~~0", "c~~7"]


def test_those_who_listen_hear_the_items_of_a_batch(table: Table) -> None:
    """Listeners get them by table, as in DynamoDB's response."""
    with capture_requests() as sent:
        Order.objects.in_bulk(["c~~0", "c~~1"])
    response = sent[0].response
    assert response is not None
    assert {item["status"]["S"] for item in response["Responses"][table.name]} == {"s0", "s1"}
