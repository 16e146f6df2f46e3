"""Prefetched objects in an event loop: the requests of Django's function in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Prefetch

from dynamo_single.table import Table
from dynamo_single.testing import capture_requests
from project.directory.models import Company, Office, Person
from tests.catalog.boards import Board, Card, Note, Task
from tests.contract.model.awaiting import awaited


@pytest.fixture(autouse=True)
def stored(table: Table) -> None:
    """Store two companies with people and offices, and two boards with all kinds of entries."""
    for c in "ab":
        Company.objects.create(company_id=c, name=c)
        for number in range(2):
            Person.objects.create(company_id=c, person_id=f"{c}{number}", name=f"{c}{number}")
        Office.objects.create(company_id=c, office_id=f"o{c}", city="Bonn")
        Board.objects.create(board_id=c, name=c)
        Card.objects.create(board_id=c, card_id="1")
        Card.objects.create(board_id=c, card_id="2", status="closed")
        Task.objects.create(board_id=c, number=1)
        Task.objects.create(board_id=c, number=2)
        Note.objects.create(note_id=f"n{c}", board_id=c)
    Note.objects.create(note_id="free")


def companies(*lookups: Any) -> Any:
    """Return both companies with prefetched objects."""
    return Company.objects.filter(pk__in=["a", "b"]).prefetch_related(*lookups)


def boards(*lookups: Any) -> Any:
    """Return both boards with prefetched objects."""
    return Board.objects.filter(pk__in=["a", "b"]).prefetch_related(*lookups)


NATIVE: dict[str, Callable[[], Any]] = {
    "children": lambda: companies("people"),
    "children of several kinds": lambda: companies("people", "offices"),
    "a level further": lambda: companies("people__company__offices"),
    "a queryset": lambda: companies(Prefetch("people", Person.objects.filter(name__startswith="a"))),
    "a queryset with lookups of its own": lambda: companies(
        Prefetch("people", Person.objects.prefetch_related("company__offices"))
    ),
    "a queryset with references of its own": lambda: companies(
        Prefetch("people", Person.objects.select_related("company"))
    ),
    "a sliced queryset": lambda: companies(Prefetch("people", Person.objects.all()[:1])),
    "to a name": lambda: companies(Prefetch("people", Person.objects.all(), to_attr="staff"), "staff__company"),
    "a reference": lambda: Person.objects.filter(company__in=["a", "b"]).select_related("company"),
    "a reference by name": lambda: Person.objects.filter(company__in=["a", "b"]).prefetch_related("company__offices"),
    "a reference that may be empty": lambda: Note.objects.filter(pk__in=["na", "free"]).select_related("board"),
    "children in another order": lambda: boards("tasks"),
    "Django's manager": lambda: boards("notes"),
    "one parent": lambda: Company.objects.filter(pk="a").prefetch_related("people", "offices"),
    "nothing": lambda: Company.objects.filter(pk="none").prefetch_related("people"),
    "rows": lambda: Person.objects.filter(company="a").values_list("name"),
}


def shown(obj: Any, depth: int = 3) -> Any:
    """Return an object with its prefetched objects, some levels deep."""
    if not hasattr(obj, "_meta") or not depth:
        return getattr(obj, "pk", obj)
    cached = getattr(obj, "_prefetched_objects_cache", {})
    many = {name: [shown(each, depth - 1) for each in read] for name, read in cached.items()}
    one = {name: shown(each, depth - 1) for name, each in obj._state.fields_cache.items()}
    lists = {name: [shown(each, depth - 1) for each in value] for name, value in vars(obj).items() if name == "staff"}
    return obj.pk, many, one, lists


def both(queryset: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """Return the sent and the awaited operations; a thread and a loop read the same objects."""
    with capture_requests() as sent:
        expected = [shown(each) for each in queryset()]

    async def ask() -> list[Any]:
        return [each async for each in queryset()]

    with capture_requests() as sent_too, awaited() as found:
        read = asyncio.run(ask())
    with capture_requests() as more:
        assert [shown(each) for each in read] == expected
    assert not more
    operations = [each.operation for each in sent_too]
    assert operations == [each.operation for each in sent]
    return operations, found


@pytest.mark.parametrize("name", NATIVE)
def test_the_loop_reads_along_itself(name: str) -> None:
    """The loop awaits every request, and threads do not send any."""
    operations, found = both(NATIVE[name])
    assert found == operations


def test_a_projects_manager_is_called_in_a_thread() -> None:
    """The manager reads only the children of that kind, with a Query per parent."""
    operations, found = both(lambda: boards("tasks", "cards"))
    assert operations == ["BatchGetItem", *["Query"] * 4]
    assert found == operations[:3]


def test_pages_and_iterators_read_along_themselves() -> None:
    """Chunk by chunk, and for a page at once."""

    async def ask() -> list[Any]:
        found = [each async for each in companies("people").aiterator(chunk_size=1)]
        return [*found, *await Person.objects.filter(company="a").select_related("company").apage(2)]

    with capture_requests() as sent, awaited() as found:
        read = asyncio.run(ask())
    assert [len(each.people.all()) for each in read[:2]] == [2, 2]
    assert found == [each.operation for each in sent] == ["BatchGetItem", "Query", "Query", "Query", "GetItem"]


WRONG: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "unknown": (lambda: companies("nothing"), AttributeError),
    "no relation": (lambda: companies("name"), ValueError),
    "twice": (lambda: companies("people", Prefetch("people", Person.objects.all())), ValueError),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_along_is_the_same_error(name: str) -> None:
    """In Django's words."""
    asked, error = WRONG[name]
    with pytest.raises(error) as raised:
        list(asked())

    async def ask() -> None:
        async for _ in asked():
            pass

    with pytest.raises(error) as awaited_too:
        asyncio.run(ask())
    assert str(awaited_too.value) == str(raised.value)
