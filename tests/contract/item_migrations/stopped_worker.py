"""A process of a small project that writes given or random values, and prints acknowledged writes.

Read a command as JSON from each line, and print the results the same way: see ``stopped_project.Worker``.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import django

django.setup()

from django.db.models import F  # noqa: E402
from msgspec.structs import replace  # noqa: E402
from shop.models import Note  # type: ignore[import-not-found]  # noqa: E402

from dynamo_single.exceptions import BulkError, Conflict, FormNotApplied, KeyNotFilled, OutcomeUnknown  # noqa: E402
from dynamo_single.orm.rollout import knowledge  # noqa: E402
from dynamo_single.orm.rollout.tolerance import accepted_ages, tolerance_of  # noqa: E402
from dynamo_single.table import get_table  # noqa: E402
from dynamo_single.testing import intercept  # noqa: E402
from dynamo_single.transactions import atomic  # noqa: E402
from tests.contract.stops import Stops  # noqa: E402

TEXT = "text" if any(field.name == "text" for field in Note._meta.get_fields()) else "body"
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem", "BatchExecuteStatement")


def say(*words: Any) -> None:
    """Write a line."""
    print(json.dumps(words), flush=True)


def repeated(write: Callable[[], object]) -> None:
    """Write, and retry a block as its error says: the server's clock may leap during each attempt."""
    for left in reversed(range(10)):
        try:
            write()
        except Conflict as error:
            if "do the block again" not in str(error) or not left:
                raise
        else:
            return


class Work:
    """This process's knowledge of its own notes, which no other process writes."""

    def __init__(self, name: str) -> None:
        self.name, self.chance, self.number = name, random.Random(name), 0
        self.own: dict[str, dict[str, Any]] = {}
        self.unclear: set[str] = set()

    def values(self) -> dict[str, Any]:
        """Return values to store."""
        self.number += 1
        board, title = self.chance.choice("ABC"), self.chance.choice("XYZ")
        code = f"{self.name}-{self.number}"
        return {"body": f"text {self.number}", "board": board, "title": title, "code": code, "rank": 0}

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values under this code's names."""
        return {TEXT if name == "body" else name: value for name, value in values.items()}

    def acknowledge(self, changes: dict[str, Any], write: Callable[[], object], added: int = 0) -> None:
        """Write, and print the outcome."""
        try:
            repeated(write)
        except OutcomeUnknown:
            self.unclear |= changes.keys()
            say("unknown", changes, added)
        except BulkError as error:
            if not isinstance(error.__cause__, FormNotApplied):
                raise
            self.unclear |= changes.keys()  # the first may be written
            say("unknown", changes, added)
            say("refused", str(error))
        except (FormNotApplied, KeyNotFilled) as error:
            say("refused", str(error))
        else:
            for pk, values in changes.items():
                if values is None:
                    del self.own[pk]
                else:
                    self.own[pk] = values
            say("ok", changes, added)

    def some(self) -> str:
        """Return a random note."""
        known = sorted(self.own.keys() - self.unclear)
        return self.chance.choice(known) if known else ""

    def new(self) -> tuple[str, dict[str, Any]]:
        """Return a new unsaved note."""
        values = self.values()
        return f"{self.name}-{self.number}", values

    def create(self) -> None:
        """A new note."""
        pk, values = self.new()
        self.acknowledge({pk: values}, lambda: Note.objects.create(note_id=pk, **self.arguments(values)))

    def save(self) -> None:
        """Read, change and save a note."""
        if not (pk := self.some()):
            return
        values = {**self.values(), "rank": self.own[pk]["rank"]}

        def write() -> None:
            note = Note.objects.consistent().get(pk=pk)
            found = {name: getattr(note, TEXT if name == "body" else name) for name in self.own[pk]}
            assert found == self.own[pk], f"read {found}, wrote {self.own[pk]}"
            for name, value in self.arguments(values).items():
                setattr(note, name, value)
            note.save()

        self.acknowledge({pk: values}, write)

    def update(self) -> None:
        """A queryset's update."""
        if not (pk := self.some()):
            return
        body = self.values()["body"]
        values = {**self.own[pk], "body": body}

        def write() -> None:
            assert Note.objects.filter(pk=pk).update(**{TEXT: body}) == 1

        self.acknowledge({pk: values}, write)

    def add(self) -> None:
        """A number that DynamoDB adds to, of a note that all processes add to."""

        def write() -> None:
            assert Note.objects.filter(pk="sum").update(rank=F("rank") + 1) == 1

        self.acknowledge({}, write, added=1)

    def delete(self) -> None:
        """Delete a note."""
        if pk := self.some():
            self.acknowledge({pk: None}, lambda: Note.objects.consistent().get(pk=pk).delete())

    def bulk(self) -> None:
        """Two new notes at once."""
        new = dict(self.new() for _ in range(2))
        made = [Note(note_id=pk, **self.arguments(values)) for pk, values in new.items()]
        self.acknowledge(new, lambda: Note.objects.bulk_create(made))

    def block(self, seconds: float = 0) -> None:
        """A new note and a changed one in a block, which is open for some time."""
        pk, values = self.new()
        other = self.some()
        changes = {pk: values}
        if other:
            changes[other] = {**self.own[other], **{name: self.values()[name] for name in ("body", "code")}}

        def write() -> None:
            with atomic():
                Note.objects.create(note_id=pk, **self.arguments(values))
                if other:
                    note = Note.objects.get(pk=other)
                    setattr(note, TEXT, changes[other]["body"])
                    note.code = changes[other]["code"]
                    note.save()
                if seconds:
                    say("stops")
                    time.sleep(seconds)

        self.acknowledge(changes, write)

    def forked(self, times: int) -> None:
        """A forked child writes, and this process after it."""
        sys.stdout.flush()
        if child := os.fork():
            _, status = os.waitpid(child, 0)
            assert status == 0
            self.create()
            return
        try:
            self.name, self.own = f"{self.name}f", {}
            for _ in range(times):
                self.create()
                time.sleep(0.2)
        except BaseException:
            say("fault", traceback.format_exc())
            os._exit(1)
        os._exit(0)

    def seed(self, number: int) -> None:
        """Measure the endpoint like ``migrate``, and create notes and the shared counter."""
        table = get_table()
        tolerance = tolerance_of(accepted_ages(table)) or 0.0
        knowledge.change(table, lambda state: replace(state, fences={table.settings.place: tolerance}))
        for _ in range(number):
            self.create()
        values = {"board": "A", "title": "X", "code": "sum", TEXT: "sum", "rank": 0}
        Note.objects.create(note_id="sum", **values)

    def run(self) -> None:
        """Write at random until there is something to read."""
        while not select.select([sys.stdin], [], [], 0)[0]:
            ways = (self.create, self.create, self.save, self.save, self.update, self.add, self.add, self.delete)
            self.chance.choice((*ways, self.bulk, self.block))()

    def check(self, pks: list[str]) -> None:
        """Each list has exactly these notes."""
        assert sorted(Note.objects.consistent().get(pk=pk).pk for pk in pks) == pks
        for name, choices in (("board", "ABC"), ("title", "XYZ")):
            if name == "board" or hasattr(Note.Keys, "by_title"):
                found = [each.pk for value in choices for each in Note.objects.filter(**{name: value})]
                assert sorted(found) == pks, f"by {name}: {set(found) ^ set(pks)}"


def main(name: str) -> None:
    """Execute each line."""
    work = Work(name)
    stops = Stops(partial(say, "stops"), lambda operation, text: operation in WRITES and "PROCESS#" not in text)
    with intercept(stops.checked):
        while line := os.read(0, 1 << 20).decode():
            for words in map(json.loads, line.splitlines()):
                try:
                    what, *values = words
                    if what == "stop":
                        work.some() and Note.objects.consistent().get(pk=work.some())
                        stops.point = values.pop(0)
                        what = values.pop(0)
                    if what != "rest":
                        getattr(work, what)(*values)
                    say("idle")
                except BaseException:
                    say("fault", traceback.format_exc())


if __name__ == "__main__":
    main(sys.argv[1])
