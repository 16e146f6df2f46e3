"""Any sequence of writes of objects with a version: what is not as it was read is never written over."""

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
    """An object with a version, as it is to be stored."""

    number: int
    title: str
    isbn: str | None = None
    loans: int = 0
    deleted: bool = False


class Versions(RuleBasedStateMachine):
    """Objects with a version: what is not as it was read is never written over."""

    def __init__(self) -> None:
        super().__init__()
        table_ready()
        self.world: dict[int, Counted] = {}
        self.objects: list[Any] = []

    @initialize(title=TITLES, isbn=ISBNS)
    def begin(self, title: str, isbn: str | None) -> None:
        """Two objects are there, and somebody has read them."""
        for number, value in ((1, isbn), (2, None)):
            self.objects.append(Ledgered.objects.create(number=number, title=title, isbn=value))
            self.world[number] = Counted(number, title, value)

    def obj(self, choice: int, *, fresh: bool) -> Any:
        """An object as it is stored, or as it was when it was kept."""
        if not fresh and self.objects:
            return self.objects[choice % len(self.objects)]
        keys = sorted(self.world)
        return Ledgered.all_objects.get(number=keys[choice % len(keys)]) if keys else None

    def stale(self, obj: Any) -> tuple[Errors, Errors]:
        """The reasons that a write of an object must fail for, and may: versions begin again where keys are used again.

        An object that is gone is none that is written over.
        """
        record = self.world.get(obj.number)
        other = record is not None and Ledgered.all_objects.get(number=obj.number).version != obj.version
        return ({StaleObject} if other else set()), ({StaleObject} if is_stale(obj) else set())

    def is_taken(self, isbn: str | None, number: int) -> bool:
        """Whether another live object has a value."""
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
        """Read an object, to be written by later."""
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
        # Only what differs from what the object was read with is written: of a key that is used again, its versions may
        # be equal by chance.
        changed = {name: new for name, new in (("title", title), ("isbn", isbn)) if getattr(obj, name) != new}
        obj.title, obj.isbn = title, isbn
        if lend:
            obj.loans = F("loans") + 1
        after = None if record is None else replace(record, loans=record.loans + lend, **changed)
        self.written(obj, outcome(obj.save), after, must=must, may=may)

    @rule(choice=CHOICES, fresh=FRESH, restore=st.booleans())
    def to_trash_or_back(self, choice: int, fresh: bool, restore: bool) -> None:
        """Move an object to the trash, or bring it back; one that is there already is left alone."""
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
            # An object that says that there is nothing to do is read again before.
            must |= {StaleObject} if changed and obj.is_deleted == restore else set()
            must |= {UniqueViolation} if restore and self.is_taken(record.isbn, obj.number) else set()
        after = None if record is None else replace(record, deleted=not restore)
        self.written(obj, outcome(obj.restore if restore else obj.delete), after, must=must, may=may)

    @rule(choice=CHOICES, fresh=FRESH)
    def hard_delete(self, choice: int, fresh: bool) -> None:
        """Delete an object for good."""
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
        """Every object is as it is to be, and nothing else is there."""
        found = {
            each.number: Counted(each.number, each.title, each.isbn, each.loans, each.is_deleted)
            for each in Ledgered.all_objects.allow_scan()
        }
        assert found == self.world
        assert [str(finding) for finding in verify()] == []


def test_any_sequence_of_writes_with_versions(table: Table) -> None:
    """An object that is not as it was read is refused, every time, and nothing else is."""
    run_state_machine_as_test(Versions, settings=BUDGET)
