"""Any sequence of writes of versioned objects never overwrites a changed object."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import F
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import AlreadyExists, ObjectMissing, StaleObject, UniqueViolation
from dynamo_single.table import Table
from tests.catalog.library import Ledgered
from tests.contract.robustness.machine_world import (
    BUDGET,
    CHOICES,
    FRESH,
    ISBNS,
    NUMBERS,
    TITLES,
    Errors,
    is_done,
    is_stale,
    outcome,
)
from tests.ready import table_ready


@dataclass(frozen=True)
class Counted:
    """The expected state of a versioned object."""

    number: int
    title: str
    isbn: str | None = None
    loans: int = 0
    deleted: bool = False


class Versions(RuleBasedStateMachine):
    """Versioned objects, whose changed items are never overwritten."""

    def __init__(self) -> None:
        super().__init__()
        table_ready()
        self.world: dict[int, Counted] = {}
        self.objects: list[Any] = []

    @initialize(title=TITLES, isbn=ISBNS)
    def begin(self, title: str, isbn: str | None) -> None:
        """Create two objects and load them."""
        for number, value in ((1, isbn), (2, None)):
            self.objects.append(Ledgered.objects.create(number=number, title=title, isbn=value))
            self.world[number] = Counted(number, title, value)

    def obj(self, choice: int, *, fresh: bool) -> Any:
        """Return an object as stored or as kept."""
        if not fresh and self.objects:
            return self.objects[choice % len(self.objects)]
        keys = sorted(self.world)
        return Ledgered.all_objects.get(number=keys[choice % len(keys)]) if keys else None

    def stale(self, obj: Any) -> tuple[Errors, Errors]:
        """Return the reasons for which a write must and may fail: versions restart if keys are reused.

        A missing object cannot be overwritten.
        """
        record = self.world.get(obj.number)
        other = record is not None and Ledgered.all_objects.get(number=obj.number).version != obj.version
        return ({StaleObject} if other else set()), ({StaleObject} if is_stale(obj) else set())

    def is_taken(self, isbn: str | None, number: int) -> bool:
        """Return whether another live object has a value."""
        others = (each for key, each in self.world.items() if key != number and not each.deleted)
        return isbn is not None and any(each.isbn == isbn for each in others)

    def written(self, obj: Any, error: Exception | None, after: Counted | None, *, must: Errors, may: Errors) -> None:
        """Judge a write, and take it over."""
        number = obj.number
        if not is_done(error, must=must, may=may):
            self.objects = [each for each in self.objects if each is not obj]
        elif after is None:
            self.world.pop(number, None)
        else:
            self.world[number] = after

    @rule(number=NUMBERS, title=TITLES, isbn=ISBNS)
    def create(self, number: int, title: str, isbn: str | None) -> None:
        """Create an object."""
        must: Errors = {AlreadyExists} if number in self.world else set()
        must |= {UniqueViolation} if self.is_taken(isbn, -1) else set()
        obj = Ledgered(number=number, title=title, isbn=isbn)
        if is_done(outcome(obj.save), must=must):
            self.world[number] = Counted(number, title, isbn)
            self.objects.append(obj)

    @rule(choice=CHOICES)
    def keep(self, choice: int) -> None:
        """Load an object for a later write."""
        obj = self.obj(choice, fresh=True)
        self.objects += [] if obj is None else [obj]

    @rule(choice=CHOICES, fresh=FRESH, title=TITLES, isbn=ISBNS, lend=st.booleans())
    def save(self, choice: int, fresh: bool, title: str, isbn: str | None, lend: bool) -> None:
        """Change an object, and add to its number."""
        obj = self.obj(choice, fresh=fresh)
        if obj is None or ((obj.title, obj.isbn) == (title, isbn) and not lend):
            return
        record = self.world.get(obj.number)
        must, may = self.stale(obj)
        must |= {StaleObject} if record is None or record.deleted != obj.is_deleted else set()
        must |= {UniqueViolation} if not obj.is_deleted and self.is_taken(isbn, obj.number) else set()
        # A save writes only differences from the loaded object: with a reused key, the versions may be equal by chance.
        changed = {name: new for name, new in (("title", title), ("isbn", isbn)) if getattr(obj, name) != new}
        obj.title, obj.isbn = title, isbn
        if lend:
            obj.loans = F("loans") + 1
        after = None if record is None else replace(record, loans=record.loans + lend, **changed)
        self.written(obj, outcome(obj.save), after, must=must, may=may)

    @rule(choice=CHOICES, fresh=FRESH, restore=st.booleans())
    def to_trash_or_back(self, choice: int, fresh: bool, restore: bool) -> None:
        """Move an object to the trash or back; skip one that is there already."""
        obj = self.obj(choice, fresh=fresh)
        if obj is None:
            return
        record, stale = self.world.get(obj.number), is_stale(obj)
        must: Errors = set()
        may: Errors = {StaleObject} if stale and record is not None and record.deleted == restore else set()
        if restore and record is None:
            must = {ObjectMissing}
        elif record is not None and record.deleted == restore:
            changed = obj.version != Ledgered.all_objects.get(number=obj.number).version
            # An object without anything to do is read again first.
            must |= {StaleObject} if changed and obj.is_deleted == restore else set()
            must |= {UniqueViolation} if restore and self.is_taken(record.isbn, obj.number) else set()
        after = None if record is None else replace(record, deleted=not restore)
        self.written(obj, outcome(obj.restore if restore else obj.delete), after, must=must, may=may)

    @rule(choice=CHOICES, fresh=FRESH)
    def hard_delete(self, choice: int, fresh: bool) -> None:
        """Permanently delete an object."""
        obj = self.obj(choice, fresh=fresh)
        if obj is None:
            return
        must, may = self.stale(obj)
        self.written(obj, outcome(obj.hard_delete), None, must=must, may=may if obj.number in self.world else set())
        self.objects = [each for each in self.objects if each is not obj]

    @rule(choice=CHOICES, isbn=ISBNS)
    def update(self, choice: int, isbn: str | None) -> None:
        """Change an object by a queryset, which reads it first; the version counts that too."""
        keys = sorted(self.world)
        if not keys:
            return
        record = self.world[keys[choice % len(keys)]]
        matching = Ledgered.objects.filter(number=record.number)
        must: Errors = {UniqueViolation} if not record.deleted and self.is_taken(isbn, record.number) else set()
        if is_done(outcome(lambda: matching.update(isbn=isbn, loans=F("loans") + 1)), must=must) and not record.deleted:
            self.world[record.number] = replace(record, isbn=isbn, loans=record.loans + 1)

    @invariant()
    def the_table_is_the_model(self) -> None:
        """Every object has its expected state, and no others exist."""
        found = {
            each.number: Counted(each.number, each.title, each.isbn, each.loans, each.is_deleted)
            for each in Ledgered.all_objects.allow_scan()
        }
        assert found == self.world
        assert [str(finding) for finding in verify()] == []


def test_any_sequence_of_writes_with_versions(table: Table) -> None:
    """Every write of a changed object fails, and no other write does."""
    run_state_machine_as_test(Versions, settings=BUDGET)
