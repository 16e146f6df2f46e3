"""Several calls of each asynchronous method overlap, with the results and requests of the synchronous one."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db.models import Count, Max, Model, Prefetch

from dynamo_single.orm.results.pages import Page
from dynamo_single.table import Table
from dynamo_single.test_tables import contents
from dynamo_single.testing import capture_requests
from project.directory.models import Company, Office, Person
from tests.catalog.boards import Board, Note
from tests.contract.model.awaiting import awaited, gathering, result
from tests.deep import examples
from tests.ready import table_ready

CALLS = examples(8, 20)


@dataclass(frozen=True)
class Call:
    """A method: its object, its arguments for a numbered call; ``list`` reads a queryset."""

    name: str
    on: Callable[[int], Any]
    given: Callable[[int], tuple[Any, ...]] = lambda number: ()
    options: Callable[[int], dict[str, Any]] = lambda number: {}

    def make(self, number: int) -> Any:
        """The synchronous call's result."""
        owner = self.on(number)
        if self.name == "list":
            return shown(list(owner))
        found = getattr(owner, self.name)(*self.given(number), **self.options(number))
        return shown(list(found) if inspect.isgenerator(found) else found)

    async def amake(self, number: int) -> Any:
        """The twin's result."""
        owner = self.on(number)
        if self.name == "list":
            return shown(await result(owner))
        return shown(await result(getattr(owner, f"a{self.name}")(*self.given(number), **self.options(number))))


def shown(found: Any) -> Any:
    """Return the comparable part of a result: the ``pk`` of objects, values, and loaded related objects."""
    if isinstance(found, Model):
        values = {name: value for name, value in vars(found).items() if name in ("name", "text", "n", "stock")}
        many = getattr(found, "_prefetched_objects_cache", {})
        one = {name: each and each.pk for name, each in found._state.fields_cache.items()}
        return (
            found._meta.label,
            found.pk,
            values,
            {name: [each.pk for each in kept] for name, kept in many.items()},
            one,
        )
    if isinstance(found, dict):
        return {key: shown(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return list(map(shown, found))
    if isinstance(found, Page):
        return list(map(shown, found)), found.requests, found.next_cursor is None
    return found


#: The stored objects as they were created, by model and ``pk``.
KEPT: dict[tuple[Any, str], Any] = {}


@dataclass(frozen=True)
class Filled:
    """The table's contents before each call, and the objects that they were built from."""

    table: Table
    items: contents.Contents
    objects: bytes

    def put_back(self) -> None:
        """Restore the table and the objects to their state before any call."""
        contents.restore(self.table, self.items)
        KEPT.clear()
        KEPT.update(pickle.loads(self.objects))


def kept(model: Any, pk: str) -> Any:
    """Return an object as it is stored, without a request."""
    return KEPT[model, pk]


@pytest.fixture(scope="module")
def filled(engine: Table) -> Filled:
    """For each call a company with two people and an office, one in the trash, one alone, and a board with a note."""
    table = table_ready()
    made: list[Any] = []
    for n in range(CALLS):
        made += [Company(company_id=f"{kind}{n}", name=f"{kind} {n}") for kind in ("c", "e", "t")]
        made += [Person(company_id=f"c{n}", person_id=f"{name}{n}", name=name) for name in ("anna", "mike")]
        made += [Office(company_id=f"c{n}", office_id=f"o{n}", city="Bonn")]
        made += [Board(board_id=f"b{n}", name=f"b {n}"), Note(note_id=f"n{n}", board_id=f"b{n}", text="some")]
        made += [Note(note_id=f"k{n}", text="free")]
    for model in (Company, Person, Office, Board, Note):
        model.objects.in_transactions().bulk_create([obj for obj in made if type(obj) is model])
    objects = pickle.dumps({(type(obj), obj.pk): obj for obj in made})
    Company.objects.filter(pk__in=[f"t{n}" for n in range(CALLS)]).delete()
    return Filled(table, contents.read(table), objects)


def people(number: int) -> Any:
    """The people of one company."""
    return Person.objects.filter(company=f"c{number}").using_index("primary")


def company(number: int) -> Any:
    """Return a company as a queryset."""
    return Company.objects.filter(pk=f"c{number}")


def notes(number: int) -> Any:
    """The notes of a board, by Django's manager of the other side of a reference."""
    return kept(Board, f"b{number}").notes


def new(number: int) -> tuple[list[Company]]:
    """Return unsaved companies."""
    return ([Company(company_id=f"n{number}{each}", name="New") for each in "ab"],)


def renamed(number: int) -> tuple[list[Company], list[str]]:
    """Return companies with new names, and their changes."""
    found = [kept(Company, f"{kind}{number}") for kind in "ce"]
    for each in found:
        each.name = f"other {each.pk}"
    return found, ["name"]


def boards(number: int) -> tuple[list[Board]]:
    """Return a stored board."""
    return ([kept(Board, f"b{number}")],)


def of_role(number: int) -> Any:
    """Return the number of people with a role."""
    return people(number).allow_in_memory().values("role").annotate(n=Count("pk"))


CALLS_OF: dict[str, Call] = {
    "aggregate, by key": Call("aggregate", people, options=lambda n: {"n": Count("pk")}),
    "aggregate, of all": Call("aggregate", lambda n: people(n).allow_in_memory(), options=lambda n: {"n": Max("role")}),
    "annotate, children": Call("list", lambda n: company(n).annotate(n=Count("people"))),
    "annotate, groups": Call("list", of_role),
    "bulk_create": Call("bulk_create", lambda n: Company.objects, new),
    "bulk_create, in transactions": Call(
        "bulk_create", lambda n: Company.objects, new, lambda n: {"in_transactions": True}
    ),
    "bulk_create, ignoring": Call("bulk_create", lambda n: Company.objects, new, lambda n: {"ignore_conflicts": True}),
    "bulk_create, over": Call(
        "bulk_create",
        lambda n: Board.objects,
        lambda n: ([kept(Board, f"b{n}")],),
        lambda n: {"update_conflicts": True},
    ),
    "bulk_update": Call("bulk_update", lambda n: Company.objects, renamed),
    "contains": Call("contains", company, lambda n: (kept(Company, f"c{n}"),)),
    "count, groups": Call("count", of_role),
    "dates": Call("list", lambda n: people(n).allow_in_memory().dates("created_at", "year")),
    "delete, queryset": Call("delete", company),
    "delete, object with children": Call("delete", lambda n: kept(Company, f"c{n}")),
    "earliest": Call("earliest", people, lambda n: ("person_id",)),
    "exists, groups": Call("exists", of_role),
    "first, of a queryset inside": Call("first", lambda n: Office.objects.filter(company__in=company(n))),
    "get_or_create": Call("get_or_create", lambda n: Company.objects, options=lambda n: {"pk": f"c{n}"}),
    "get_or_create, created": Call(
        "get_or_create", lambda n: Company.objects, options=lambda n: {"company_id": f"n{n}", "name": "New"}
    ),
    "hard_delete, queryset": Call("hard_delete", company),
    "hard_delete, object with children": Call("hard_delete", lambda n: kept(Company, f"c{n}")),
    "in_bulk, of all": Call("in_bulk", people),
    "in_bulk, narrowed": Call("in_bulk", people, lambda n: ([f"c{n}~~mike{n}", f"c{n}~~anna{n}"],)),
    "iterator, with others": Call(
        "iterator", lambda n: company(n).prefetch_related("people", "offices"), options=lambda n: {"chunk_size": 1}
    ),
    "iterator, annotated": Call("iterator", lambda n: company(n).annotate(n=Count("people"))),
    "latest": Call("latest", people, lambda n: ("person_id",)),
    "move": Call("move", lambda n: kept(Company, f"e{n}"), options=lambda n: {"company_id": f"m{n}"}),
    "page, with others": Call("page", lambda n: people(n).select_related("company"), lambda n: (1,)),
    "prefetch_related": Call(
        "list", lambda n: Company.objects.filter(pk__in=[f"c{n}", f"e{n}"]).prefetch_related("people__company")
    ),
    "prefetch_related, to a name": Call(
        "list",
        lambda n: Company.objects.filter(pk__in=[f"c{n}", f"e{n}"]).prefetch_related(
            Prefetch("people", Person.objects.filter(name="anna"), to_attr="annas"), "annas__company"
        ),
    ),
    "refresh_from_db, by a queryset": Call(
        "refresh_from_db", lambda n: kept(Company, f"c{n}"), options=lambda n: {"from_queryset": Company.objects.all()}
    ),
    "related add": Call("add", notes, lambda n: (kept(Note, f"k{n}"),)),
    "related clear": Call("clear", notes),
    "children create": Call(
        "create", lambda n: kept(Company, f"c{n}").people, options=lambda n: {"person_id": f"x{n}", "name": "New"}
    ),
    "related create": Call("create", notes, options=lambda n: {"note_id": f"r{n}"}),
    "related get_or_create": Call("get_or_create", notes, options=lambda n: {"note_id": f"r{n}"}),
    "related remove": Call("remove", notes, lambda n: (kept(Note, f"n{n}"),)),
    "related set": Call("set", notes, lambda n: ([kept(Note, f"k{n}")],)),
    "related update_or_create": Call(
        "update_or_create", notes, options=lambda n: {"note_id": f"n{n}", "defaults": {"text": "more"}}
    ),
    "restore, queryset": Call("restore", lambda n: Company.deleted_objects.filter(pk=f"t{n}")),
    "select_related": Call("list", lambda n: people(n).select_related("company")),
    "update": Call("update", people, options=lambda n: {"role": "manager"}),
    "update, in transactions": Call(
        "update", lambda n: people(n).in_transactions(), options=lambda n: {"role": "manager"}
    ),
    "update, one by its key": Call("update", company, options=lambda n: {"stock": "X"}),
    "update_or_create": Call(
        "update_or_create", lambda n: Company.objects, options=lambda n: {"pk": f"c{n}", "defaults": {"stock": "X"}}
    ),
    "update_or_create, created": Call(
        "update_or_create",
        lambda n: Company.objects,
        options=lambda n: {"company_id": f"n{n}", "defaults": {"name": lambda: "New"}},
    ),
}


@pytest.mark.parametrize("name", CALLS_OF)
def test_calls_overlap_and_do_the_same(filled: Filled, name: str) -> None:
    """Each call starts a request before any gets its response, and threads do not send any."""
    call = CALLS_OF[name]
    filled.put_back()
    with capture_requests() as sent:
        expected = [call.make(number) for number in range(CALLS)]
    filled.put_back()

    async def ask() -> list[Any]:
        with gathering(CALLS):
            return list(await asyncio.gather(*map(call.amake, range(CALLS))))

    with capture_requests() as sent_too, awaited() as found:
        assert asyncio.run(ask()) == expected
    assert Counter(each.operation for each in sent_too) == Counter(each.operation for each in sent)
    assert len(found) == len(sent_too)
