"""Asynchronous methods on the real engine: same results and requests as the synchronous ones, and a free event loop."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db.models import Count
from django.template import Context, Template

from dynamo_single import models
from dynamo_single.orm.query.queryset import REFUSED
from dynamo_single.table import SentRequest, Table, transport
from dynamo_single.table.flow import is_run
from dynamo_single.testing import assert_requests, capture_requests, setup_table
from project.directory.models import Company, Person
from tests.catalog.boards import Board, Note
from tests.catalog.models import Order

#: Public methods without requests, which need no asynchronous variant.
LAZY = {
    "alias",
    "all",
    "allow_in_memory",
    "allow_reads",
    "allow_scan",
    "annotate",
    "as_manager",
    "complex_filter",
    "consistent",
    "cursor_for",
    "dates",
    "datetimes",
    "db",
    "defer",
    "difference",
    "distinct",
    "exclude",
    "extra",
    "filter",
    "in_transactions",
    "intersection",
    "none",
    "on_progress",
    "only",
    "order_by",
    "ordered",
    "fetch_mode",
    "totally_ordered",
    "prefetch_related",
    "query",
    "raw",
    "resolve_expression",
    "reverse",
    "select_for_update",
    "select_related",
    "union",
    "using",
    "using_index",
    "values",
    "values_list",
    "with_visibility",
    "without_index",
    "without_secrets",
}


@dataclass(frozen=True)
class Call:
    """A call of an asynchronous method: its object, its arguments, and the compared part of its result."""

    name: str
    on: Callable[[], Any]
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    result: Callable[[Any], Any] = lambda result: result


def person() -> Person:
    """Return a loaded person."""
    return Person.all_objects.get(company="c1", person_id="mike")


def trashed() -> Person:
    """A person in the trash."""
    return Person.deleted_objects.get(person_id="zoe")


def board() -> Any:
    """The notes of a board, which may be on none."""
    return Board.objects.get(pk="b").notes


def of_company() -> Any:
    """Two live people."""
    return Person.objects.filter(company="c1")


def shown(obj: Any) -> Any:
    """Return an object's values without the time of the save."""
    return type(obj), obj.pk, obj.name


QUERYSET = [
    *([] if "aggregate" in REFUSED else [Call("aaggregate", of_company, (), {"n": Count("pk")})]),
    Call("abulk_create", Company.objects.all, ([Company(company_id="c9", name="New")],), {}, lambda made: len(made)),
    Call("abulk_update", of_company, ([], ["role"])),
    Call("acontains", of_company, (Person(company_id="c1", person_id="mike"),)),
    Call("acount", of_company),
    Call("acreate", Company.objects.all, (), {"company_id": "c9", "name": "New"}, shown),
    Call("adelete", of_company),
    Call("aearliest", lambda: Person.objects.all(), ("name",)),
    Call("aexists", of_company),
    Call("aexplain", of_company),
    Call("afirst", of_company),
    Call("aget", of_company, (), {"name": "Mike"}),
    Call("aget_or_create", Company.objects.all, (), {"company_id": "c1", "defaults": {"name": "New"}}),
    Call("aget_or_create", Company.objects.all, (), {"company_id": "c8", "defaults": {"name": "New"}}),
    Call("ahard_delete", of_company),
    Call("ain_bulk", Company.objects.all, (["c1", "c2"],)),
    Call("aiterator", of_company),
    Call("aiterator", of_company, (), {"chunk_size": 1}),
    Call("aiterator", lambda: Company.objects.prefetch_related("people"), (), {"chunk_size": 1}),
    Call("alast", of_company),
    Call("alatest", lambda: Person.objects.all(), ("name",)),
    Call("apage", of_company, (1,), {}, lambda page: (list(page), page.next_cursor is None)),
    Call("arestore", lambda: Person.deleted_objects.all()),
    Call("aupdate", of_company, (), {"role": "manager"}),
    Call("aupdate_or_create", Company.objects.all, (), {"company_id": "c1", "defaults": {"name": "New"}}),
]
MODEL = [
    Call("adelete", person),
    Call("ahard_delete", person),
    Call("amove", person, (), {"person_id": "other"}),
    Call("amove_tree", person, (), {"person_id": "other"}),
    Call("arefresh_from_db", person),
    Call("arestore", trashed),
    Call("asave", lambda: Person(company_id="c1", person_id="new", name="New")),
    Call("asave", person, (), {"update_fields": ["name"]}),
    Call("asave", person, (), {"force_update": True}),
]
RELATED = [
    Call("aadd", board, (Note(note_id="n2", text="other"),), {"bulk": False}),
    Call("aclear", board),
    Call("acreate", board, (), {"note_id": "n9"}),
    Call("aget_or_create", board, (), {"note_id": "n9"}),
    Call("aremove", board, (Note(note_id="n1", board_id="b"),)),
    Call("aset", board, ([],)),
    Call("aupdate_or_create", board, (), {"note_id": "n1", "defaults": {"text": "new"}}),
]
CALLS = [
    *(pytest.param(call, id=f"queryset-{call.name}-{number}") for number, call in enumerate(QUERYSET)),
    *(pytest.param(call, id=f"model-{call.name}-{number}") for number, call in enumerate(MODEL)),
    *(pytest.param(call, id=f"related-{call.name}-{number}") for number, call in enumerate(RELATED)),
]


@pytest.fixture(autouse=True)
def stored(table: Table) -> None:
    """Two companies, three people, one of them in the trash, and a board with a note."""
    fill()


def fill() -> None:
    """Store what the calls are about."""
    Company.objects.create(company_id="c1", name="Acme")
    Company.objects.create(company_id="c2", name="Beta")
    for name in ("Anna", "Mike", "Zoe"):
        Person.objects.create(company_id="c1", person_id=name.lower(), name=name)
    Person.objects.get(person_id="zoe").delete()
    Note.objects.create(note_id="n1", board=Board.objects.create(board_id="b", name="B"))


async def awaited(found: Any) -> Any:
    """The result of a coroutine, or all that an asynchronous generator gives."""
    return [each async for each in found] if inspect.isasyncgen(found) else await found


@contextmanager
def waiting() -> Iterator[set[int]]:
    """Return the threads that wait within the block for a response or a pause."""
    found: set[int] = set()

    def noting(wait: Callable[..., Any], waits: Callable[[], bool] = lambda: True) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            if waits():
                found.add(threading.get_ident())
            return wait(*args, **kwargs)

        return noted

    with (
        mock.patch("dynamo_single.table.transport.send", noting(transport.send, is_run)),
        mock.patch("time.sleep", noting(time.sleep)),
    ):
        yield found


def operations(sent: list[SentRequest]) -> list[str]:
    """Return the operations sent, in order."""
    return [request.operation for request in sent]


@pytest.mark.parametrize("call", CALLS)
def test_a_twin_does_the_same_without_blocking(call: Call) -> None:
    """The result and the requests are the same, and the event loop's thread does not wait."""
    arguments = copy.deepcopy(call.arguments)  # some are changed
    owner = call.on()
    with capture_requests() as sent:
        result = getattr(owner, call.name[1:])(*arguments, **call.options)
        expected = call.result(list(result) if inspect.isgenerator(result) else result)
    setup_table()
    fill()
    owner = call.on()
    with capture_requests() as sent_too, waiting() as threads:
        found = call.result(asyncio.run(awaited(getattr(owner, call.name)(*call.arguments, **call.options))))
    assert found == expected
    assert operations(sent_too) == operations(sent)
    assert threading.get_ident() not in threads


def test_managers_have_the_twins() -> None:
    """A manager has the queryset's asynchronous methods, except deletions."""
    assert twins(Person.objects) == twins(models.QuerySet) - {"adelete", "ahard_delete"}

    async def ask() -> Person:
        return await Person.objects.aget(pk="c1~~mike")

    assert asyncio.run(ask()).name == "Mike"


def twins(owner: Any) -> set[str]:
    """The public names with an ``a`` before the name of a method."""
    public = {name for name in dir(owner) if not name.startswith("_")}
    return {name for name in public if name[0] == "a" and name[1:] in public}


def names(calls: list[Call]) -> set[str]:
    """Return the names called in a table."""
    return {call.name for call in calls}


def test_every_twin_is_called_above() -> None:
    """Every asynchronous method of a queryset, a model or a related manager has a call."""
    assert twins(models.QuerySet) == names(QUERYSET)
    assert twins(models.SoftDeleteModel) == names(MODEL)
    assert twins(Board(board_id="b").notes) == (names(QUERYSET) | names(RELATED)) - {
        "adelete",
        "ahard_delete",
    }


def test_every_method_that_sends_has_a_twin() -> None:
    """Methods without an asynchronous variant do not send requests."""
    public = {name for name in dir(models.QuerySet) if not name.startswith("_")}
    having = {name[1:] for name in twins(models.QuerySet)}
    assert public - twins(models.QuerySet) - having == LAZY


@pytest.mark.parametrize("name", sorted(names(QUERYSET) | names(MODEL)))
def test_twins_are_asynchronous(name: str) -> None:
    """Each is a coroutine function or an asynchronous generator."""
    found = [getattr(owner, name) for owner in (models.QuerySet, models.SoftDeleteModel) if hasattr(owner, name)]
    assert found
    for method in found:
        assert inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def test_async_for_gives_what_for_gives() -> None:
    """A queryset is evaluated once, as by ``for``, and caches its results."""
    queryset = Person.objects.select_related("company").filter(company="c1")

    async def ask() -> list[Any]:
        first = [(each.name, each.company.name) async for each in queryset]
        second = [(each.name, each.company.name) async for each in queryset]
        return [first, second]

    with assert_requests(["Query", "GetItem"]), waiting() as threads:
        assert asyncio.run(ask()) == [[("Anna", "Acme"), ("Mike", "Acme")]] * 2
    assert threading.get_ident() not in threads


def test_requests_in_the_event_loop_are_refused() -> None:
    """A synchronous call in asynchronous code raises Django's error without a request or a wait."""

    async def ask(call: Callable[[], Any]) -> None:
        with pytest.raises(SynchronousOnlyOperation, match="asynchronous variant"):
            call()

    mike = person()
    many = [f"c{number}" for number in range(300)]
    with assert_requests(0):
        asyncio.run(ask(lambda: Person.objects.get(pk="c1~~mike")))
        asyncio.run(ask(lambda: list(of_company())))
        asyncio.run(ask(lambda: list(Company.objects.filter(pk__in=many))))
        asyncio.run(ask(lambda: mike.save(force_update=True)))
        asyncio.run(ask(lambda: mike.company))


def test_sync_to_async_is_allowed() -> None:
    """Synchronous code works in a thread, and its requests are captured."""

    async def ask() -> str:
        return str(await sync_to_async(lambda: person().company.name)())

    with assert_requests(["GetItem", "GetItem"]):
        assert asyncio.run(ask()) == "Acme"


BIG = 300_000


@pytest.fixture
def pages() -> None:
    """Twelve items of which a page holds three."""
    for number in range(12):
        Order.objects.create(customer="c", number=number, status="x" * BIG)


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 100, 2000])
def test_aiterator_asks_for_pages_when_they_are_needed(chunk_size: int) -> None:
    """At most one page is read in advance, whatever the size of a chunk is."""
    ahead: list[int] = []

    async def ask() -> list[int]:
        found = []
        with capture_requests() as sent:
            async for order in Order.objects.filter(customer="c").aiterator(chunk_size=chunk_size):
                found.append(order.number)
                ahead.append(len(sent) - (len(found) + 2) // 3)
        return found

    with assert_requests(["Query"] * 4):
        assert asyncio.run(ask()) == list(range(12))
    assert max(ahead) <= 1


@pytest.mark.usefixtures("pages")
def test_a_loop_that_is_left_reads_no_further() -> None:
    """Breaking out of ``aiterator()`` sends no more requests."""

    async def ask() -> int:
        found = Order.objects.filter(customer="c").aiterator(chunk_size=2)
        async for order in found:
            await found.aclose()
            return int(order.number)
        return -1

    with assert_requests(["Query"]):
        assert asyncio.run(ask()) == 0


@pytest.mark.usefixtures("pages")
def test_iterator_asks_for_pages_when_they_are_needed() -> None:
    """The synchronous iterator requests a page with its first item, and does not cache anything."""
    with capture_requests() as sent:
        queryset = Order.objects.filter(customer="c")
        for taken, order in enumerate(queryset.iterator()):
            assert order.number == taken
            assert len(sent) == taken // 3 + 1
    assert queryset._result_cache is None


def test_iterators_read_related_objects_by_chunks() -> None:
    """``prefetch_related`` and ``select_related`` read objects for ``chunk_size`` objects at a time."""
    for company_id in ("c3", "c4", "c5"):
        Company.objects.create(company_id=company_id, name=company_id)
        Person.objects.create(company_id=company_id, person_id=company_id, name=company_id)
    with assert_requests(["Query", "Query", "Query", "Query", "Query", "Query"]):
        found = list(Company.objects.prefetch_related("people").iterator(chunk_size=2))
        assert [len(each.people.all()) for each in found] == [2, 0, 1, 1, 1]
    with assert_requests(["Query", "GetItem", "BatchGetItem", "GetItem"]):
        people = Person.objects.select_related("company").iterator(chunk_size=2)
        assert [each.company.name for each in people] == ["Acme", "Acme", "c3", "c4", "c5"]
    with assert_requests(["Query", "BatchGetItem"]):
        assert [each.company.name for each in Person.objects.select_related("company").iterator()][-1] == "c5"


def test_iterators_refuse_what_djangos_refuse() -> None:
    """``prefetch_related()`` needs a ``chunk_size``, which must be positive."""

    async def ask() -> None:
        async for _ in Company.objects.aiterator(chunk_size=0):
            pass

    with assert_requests(0):
        with pytest.raises(ValueError, match="chunk_size must be provided"):
            Company.objects.prefetch_related("people").iterator()
        with pytest.raises(ValueError, match="strictly positive"):
            Company.objects.iterator(chunk_size=0)
        with pytest.raises(ValueError, match="strictly positive"):
            asyncio.run(ask())


def test_templates_call_nothing_that_writes() -> None:
    """A template that names a writing method shows nothing, and does not send a request."""
    obj = trashed()
    with assert_requests(0):
        for name in ("save", "delete", "hard_delete", "restore", "asave", "adelete", "ahard_delete", "arestore"):
            assert Template(f"{{{{ obj.{name} }}}}").render(Context({"obj": obj})) == "", name
        for name in ("hard_delete", "restore", "ahard_delete", "arestore", "delete", "update"):
            assert Template(f"{{{{ obj.{name} }}}}").render(Context({"obj": of_company()})) == "", name
