"""Reads of complete primary keys bypass the planner with the same results and requests as ``filter()``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db.models import F
from django.utils.safestring import mark_safe

from dynamo_single import clock, models, transactions
from dynamo_single.exceptions import PendingWrite, UnexpectedItem
from dynamo_single.table import Table
from dynamo_single.table.request import Request
from dynamo_single.testing import assert_requests, capture_requests, moved_time
from tests.catalog.models import Employee, Entry, Firm, Member, Order, Product, Sample, Ticket
from tests.other_names import typed

pytestmark = pytest.mark.usefixtures("stored")

Read = Callable[[], Any]


@pytest.fixture
def stored(table: Table) -> None:
    """Store objects of each kind: with one and several key values, deleted ones, and an expiring one."""
    Order.objects.create(customer="anna", number=1)
    Order.objects.create(customer="anna b", number=-20)
    Firm.objects.create(firm_id="f1", name="One", stock="X")
    Employee.objects.create(firm_id="f1", employee_id="e1")
    Member.objects.create(member_id="m1", email="a@example.com")
    Member.objects.create(member_id="m2", email="b@example.com").delete()
    Ticket.objects.create(code="t1", expires_at=clock.now() + timedelta(hours=1))
    Ticket.objects.create(code="t2", expires_at=clock.now() + timedelta(days=9))
    Sample.objects.create(sample_id="s1", text="a")


def outcome(read: Read) -> Any:
    """Return the attributes of the results or the class of the error, and the requests."""
    with capture_requests() as sent:
        try:
            found = read()
        except Exception as error:
            given: Any = type(error)
        else:
            given = found.pk, found._stored, {name: value for name, value in vars(found).items() if name != "_state"}
    return given, [(each.operation, each.params) for each in sent]


PKS = [
    *("anna~~1", "anna~~01", "anna~~1.0", "anna~~+1", "anna~~x", "anna", "anna~~2", "anna~20b~~-20", "anna b~~-20"),
    *("f1", "f2", "f1~~e1", "m1", "m2", "m9", "M1", "t1", "t2", "s1", "", "~~", "\ud800", "x" * 3000, mark_safe("m1")),
    *(None, 1, True, 1.5, Decimal(1), b"m1", ["m1"], object()),
]
MANAGERS = [
    *(Order.objects, Firm.objects, Employee.objects, Sample.objects, Ticket.objects, Product.objects),
    *(Member.objects, Member.all_objects, Member.deleted_objects, Entry.objects, Entry.deleted_objects),
]


@pytest.mark.parametrize("manager", MANAGERS, ids=lambda manager: f"{manager.model.__name__}.{manager.name}")
def test_get_by_pk_is_what_filter_finds(manager: Any) -> None:
    for pk in PKS:
        assert outcome(lambda pk=pk: manager.get(pk=pk)) == outcome(lambda pk=pk: manager.filter(pk=pk).get())


@pytest.mark.parametrize(
    "given",
    [
        {"customer": "anna", "number": 1},
        {"customer": "anna", "number": 1.0},
        {"customer": "anna", "number": 1.5},
        {"customer": "anna", "number": Decimal(1)},
        {"customer": "anna", "number": "1"},
        {"customer": "anna", "number": True},
        {"customer": "anna", "number": None},
        {"customer": "", "number": 1},
        {"customer": 1, "number": 1},
        {"customer": "anna", "number": 10**200},
        {"customer": "anna", "number": F("number")},
        {"customer": "anna"},
        {"customer": "anna", "number": 1, "status": "open"},
        {"customer": "anna", "number": 1, "status": "closed"},
        {"customer": "anna", "number__gte": 1},
        {"identity": "anna~~1"},
        {"customer": "anna", "numbr": 1},
    ],
    ids=str,
)
def test_get_by_the_attributes_of_the_key_is_what_filter_finds(given: dict[str, Any]) -> None:
    assert outcome(lambda: Order.objects.get(**given)) == outcome(lambda: Order.objects.filter(**given).get())


@pytest.mark.parametrize("name", ["consistent", "reverse", "allow_scan", "allow_in_memory", "distinct", "none"])
def test_what_is_asked_besides_counts(name: str) -> None:
    def asked() -> Any:
        return getattr(Order.objects.all(), name)()

    assert outcome(lambda: asked().get(pk="anna~~1")) == outcome(lambda: asked().filter(pk="anna~~1").get())


def test_a_time_to_live_counts() -> None:
    """The item still exists."""
    with moved_time(timedelta(days=1)):
        assert Ticket.objects.get(code="t2").code == "t2"
        with assert_requests(["GetItem"]), pytest.raises(Ticket.DoesNotExist, match="code='t1'"):
            Ticket.objects.get(code="t1")
        assert list(Ticket.objects.in_bulk(["t1", "t2"])) == ["t2"]


def test_what_a_block_has_put_is_given() -> None:
    with transactions.atomic():
        Firm.objects.create(firm_id="f2", name="Two", stock="Y")
        with assert_requests([]):
            assert Firm.objects.get(pk="f2").name == "Two"
        with pytest.raises(PendingWrite):
            Firm.objects.in_bulk(["f1", "f2"])


@typed
def test_another_models_item_is_unexpected_or_not_there(table: Table) -> None:
    """The result is the same as with the planner, and depends on the possible models of the key."""
    for key in ({"pk": "TICKET#t3", "sk": "#METADATA"}, {"pk": "f1", "sk": "people_e2"}):
        item = {name: {"S": text} for name, text in {**key, "itemType": "Other"}.items()}
        table.send(Request("PutItem", {"Item": item}))
    with pytest.raises(UnexpectedItem):
        Ticket.objects.get(pk="t3")
    for manager, pk in ((Ticket.objects, "t3"), (Employee.objects, "f1~~e2")):
        assert outcome(lambda m=manager, k=pk: m.get(pk=k)) == outcome(lambda m=manager, k=pk: m.filter(pk=k).get())


def test_in_bulk_is_what_filter_finds() -> None:
    keys = ["m2", "m9", "m1", "m1"]
    for manager in (Member.objects, Member.all_objects, Member.deleted_objects):
        with capture_requests() as sent:
            found = manager.in_bulk(keys)
            expected = {each.pk: each for each in manager.filter(pk__in=keys).order_by()}
        assert list(found) == list(expected)
        assert [found[pk]._stored for pk in found] == [expected[pk]._stored for pk in expected]
        assert sent[0].params == sent[1].params


def test_in_bulk_beyond_a_hundred_keys() -> None:
    with assert_requests(["BatchGetItem", "BatchGetItem"]):
        assert list(Order.objects.in_bulk([f"anna~~{number}" for number in range(150)])) == ["anna~~1"]


@pytest.mark.parametrize("wrong", ["anna", "anna~~01", "", None, 1, True])
def test_in_bulk_with_what_no_key_is_made_of(wrong: Any) -> None:
    """``filter()`` finds, omits or rejects the same values."""

    def first(read: Callable[[Any], Any]) -> Read:
        return lambda: next(iter(read(["anna~~1", wrong])))

    bulk = first(lambda keys: Order.objects.in_bulk(keys).values())
    assert outcome(bulk) == outcome(first(lambda keys: Order.objects.filter(pk__in=keys)))


@pytest.mark.parametrize("name", ["filter", "_clone", "_fetch_all", "_chain", "__iter__"])
@pytest.mark.parametrize("read", [lambda found: found.get(pk="anna~~1"), lambda found: found.in_bulk(["anna~~1"])])
def test_a_method_of_a_projects_queryset_is_asked(name: str, read: Callable[[Any], Any]) -> None:
    """A custom queryset method that changes the evaluation is called."""
    called = []

    def own(self: Any, *args: Any, **kwargs: Any) -> Any:
        called.append(name)
        return getattr(super(Own, self), name)(*args, **kwargs)

    Own: Any = type("Own", (models.QuerySet,), {name: own, "__module__": "tests.own"})
    read(Own(Order))

    assert called


def test_a_managers_own_condition_counts() -> None:
    class Open(models.Manager[Order]):
        def get_queryset(self) -> Any:
            return super().get_queryset().filter(status="open")

    manager: Any = Open()
    manager.model = Order
    Order.objects.filter(pk="anna~~1").update(status="closed")

    with pytest.raises(Order.DoesNotExist):
        manager.get(pk="anna~~1")
    assert manager.in_bulk(["anna~~1"]) == {}


def test_an_event_loop_is_not_held_up() -> None:
    async def read() -> None:
        with pytest.raises(SynchronousOnlyOperation):
            Order.objects.get(pk="anna~~1")
        assert (await Order.objects.aget(pk="anna~~1")).number == 1
        assert list(await Order.objects.ain_bulk(["anna~~1"])) == ["anna~~1"]

    asyncio.run(read())
