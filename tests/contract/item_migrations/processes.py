"""Processes of old and of new code in one test: each has a model class of its own, and has read the table itself."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from django.db.models import F

from dynamo_single import counters
from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.transactions import atomic


class Process:
    """One process: ``names`` are what its model calls the text, the number and the document."""

    def __init__(self, model: Any, names: tuple[str, str, str]) -> None:
        self.model, self.names = model, names
        self.text, self.number, self.document = names
        self._known: dict[Any, Any] = {}
        self._generation = bindings.Generation({}, {})

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the block as this process, with its state and bindings."""
        before, generation = dict(knowledge._tables), bindings.generation
        self._become(self._known, self._generation)
        try:
            yield
        finally:
            self._known, self._generation = dict(knowledge._tables), bindings.generation
            self._become(before, generation)

    def _become(self, known: dict[Any, Any], generation: bindings.Generation) -> None:
        bindings.generation = generation
        knowledge._tables.clear()
        knowledge._tables.update(known)

    def hear(self) -> None:
        """Expire the cached state, so that the process reads the table again."""
        for known in self._known.values():
            known.renew_at = -math.inf


class World:
    """The intended objects after all writes, and a random history of reads and writes."""

    def __init__(self, chance: random.Random, listed: Callable[[Process], list[str] | None]) -> None:
        self.chance, self.listed = chance, listed
        self.objects: dict[str, dict[str, Any]] = {}
        self.revisions: dict[str, int] = {}
        self.held: list[tuple[Process, Any, int]] = []
        self.done: list[str] = []
        self._turn = Lock()
        self._number = 0

    def act(self, process: Process, times: int = 1) -> None:
        """Let a process act, and check its results against the intended objects."""
        reading = (self.get, self.filter, self.hold)
        counting = (self.add,) if hasattr(process.model, "deleted_objects") else (self.add, self.count)
        ways = (self.create, self.save, self.update, self.together, self.delete, self.release, *counting, *reading)
        for _ in range(times):
            # Only the migration runs in parallel, so each expectation tests one thing.
            if self._turn.acquire(blocking=False):
                try:
                    with process.at_work():
                        way = self.chance.choice(ways)
                        self.done.append(f"{process.text}.{way.__name__}")
                        way(process)
                finally:
                    self._turn.release()

    def _some(self) -> str | None:
        return self.chance.choice(sorted(self.objects)) if self.objects else None

    def _text(self) -> str:
        return self.chance.choice("ABCDEFGH")

    def _note(self, pk: str, **values: Any) -> None:
        self.objects.setdefault(pk, {}).update(values)
        self.revisions[pk] = self.revisions.get(pk, 0) + 1

    def _check(self, process: Process, obj: Any) -> None:
        parts = zip(("text", "number", "document"), process.names, strict=True)
        found = {part: getattr(obj, name) for part, name in parts}
        found["other"] = obj.other
        wanted, twins = self.objects[obj.pk], registry.layout_of(process.model).twins
        assert found == wanted, (
            f"{obj.pk} as read by {process.text} is {found} and not {wanted}; stored {obj._stored}, twins {twins}, "
            f"after {self.done[-12:]}"
        )

    def create(self, process: Process) -> None:
        """A new object."""
        self._number += 1
        pk, values = f"s{self._number}", {"text": self._text(), "number": 1, "document": {"a": 1}, "other": "x"}
        given = dict(zip(process.names, (values["text"], 1, {"a": 1}), strict=True))
        process.model.objects.create(pk=pk, other="x", **given)
        self._note(pk, **values)

    def save(self, process: Process) -> None:
        """An object read, changed and written."""
        pk = self._some()
        if pk is None:
            return
        obj = process.model.objects.get(pk=pk)
        self._check(process, obj)
        self._change(process, obj)

    def _change(self, process: Process, obj: Any) -> None:
        """Change an object and save it; unchanged attributes are not written."""
        part = self.chance.choice(("text", "document", "other", "none"))
        name = {"text": process.text, "document": process.document}.get(part, "other")
        value: Any = {"a": self.chance.randrange(9), "b": 1} if part == "document" else self._text()
        changes = part != "none" and getattr(obj, name) != value
        if changes:
            setattr(obj, name, value)
        obj.save()
        if changes:
            self._note(obj.pk, **{part: value})

    def together(self, process: Process) -> None:
        """Two objects in one transaction."""
        pks = self.chance.sample(sorted(self.objects), min(2, len(self.objects)))
        texts = [self._text() for _ in pks]
        with atomic():
            for pk, text in zip(pks, texts, strict=True):
                obj = process.model.objects.get(pk=pk)
                setattr(obj, process.text, text)
                obj.save()
        for pk, text in zip(pks, texts, strict=True):
            self._note(pk, text=text)

    def update(self, process: Process) -> None:
        """A queryset's update."""
        pk = self._some()
        if pk is not None:
            text = self._text()
            assert process.model.objects.filter(pk=pk).update(**{process.text: text}) == 1
            self._note(pk, text=text)

    def add(self, process: Process) -> None:
        """A number that DynamoDB, or the app, adds to."""
        pk = self._some()
        if pk is not None:
            assert process.model.objects.filter(pk=pk).update(**{process.number: F(process.number) + 2}) == 1
            self._note(pk, number=self.objects[pk]["number"] + 2)

    def count(self, process: Process) -> None:
        """Add to a number with a direct request that bypasses the objects."""
        pk = self._some()
        if pk is not None:
            values = {"text": self._text(), "document": {"a": 7}, "other": "y"}
            given = {process.text: values["text"], process.document: {"a": 7}, process.number: 3, "other": "y"}
            counters.add(process.model(pk=pk, **given), process.number)
            self._note(pk, **values, number=self.objects[pk]["number"] + 3)

    def delete(self, process: Process) -> None:
        """An object deleted, now and then."""
        pk = self._some()
        if pk is not None and len(self.objects) > 4:
            process.model.objects.get(pk=pk).delete()
            del self.objects[pk]
            self._note_gone(pk)

    def _note_gone(self, pk: str) -> None:
        self.revisions[pk] += 1

    def get(self, process: Process) -> None:
        """An object read, whole and in part."""
        pk = self._some()
        if pk is None:
            return
        self._check(process, process.model.objects.get(pk=pk))
        row = process.model.objects.filter(pk=pk).values(process.text, process.number)
        assert [*row] == [{process.text: self.objects[pk]["text"], process.number: self.objects[pk]["number"]}]
        part = process.model.objects.only(process.document).get(pk=pk)
        assert getattr(part, process.document) == self.objects[pk]["document"]
        self._check(process, part)

    def filter(self, process: Process) -> None:
        """Objects by the key and by a condition."""
        found = self.listed(process)
        if found is not None:
            assert found == sorted(each["text"] for each in self.objects.values()), self.done[-12:]
        text = self._text()
        for pk in sorted(self.objects)[:3]:
            is_it = process.model.objects.filter(pk=pk, **{process.text: text}).exists()
            assert is_it == (self.objects[pk]["text"] == text)

    def hold(self, process: Process) -> None:
        """An object read now and written later."""
        pk = self._some()
        if pk is not None:
            self.held.append((process, process.model.objects.get(pk=pk), self.revisions[pk]))

    def release(self, process: Process) -> None:
        """Write an object that was read earlier; unchanged attributes keep other processes' values."""
        mine = [each for each in self.held if each[0] is process]
        if not mine:
            return
        _, obj, revision = one = self.chance.choice(mine)
        self.held = [each for each in self.held if each is not one]  # two of one object are equal
        if obj.pk not in self.objects:
            return
        try:
            self._change(process, obj)
        except StaleObject:
            assert self.revisions[obj.pk] != revision, f"{obj.pk} was not changed since, {self.done[-12:]}"

    def look(self, process: Process) -> None:
        """Check that every object has its intended values."""
        with process.at_work():
            for pk in sorted(self.objects):
                self._check(process, process.model.objects.get(pk=pk))
            found = self.listed(process)
            if found is not None:
                assert found == sorted(each["text"] for each in self.objects.values())
