"""Any sequence of writes, by objects that are fresh and by objects that are not, against a model in memory.

After every step, the table equals the model, and the checker does not find a problem. A write either changes the model,
or raises an error for a reason in the model. ``MACHINE_EXAMPLES`` sets the number of sequences (8 in a normal run, 25
in a deep one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db.models import F
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from dynamo_single import transactions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import AlreadyExists, DynamoSingleError, ObjectMissing, StaleObject, UniqueViolation
from dynamo_single.table import Table
from tests.catalog.library import Aisle, Volume
from tests.contract.robustness.machine_volumes import VolumeSteps
from tests.contract.robustness.machine_world import (
    BUDGET,
    CHOICES,
    FRESH,
    NAMES,
    NEW,
    VALUES,
    Errors,
    Kept,
    Shelf,
    World,
    is_done,
    is_stale,
    outcome,
)


class Boom(Exception):
    """Somebody's exception within a block."""


class Volumes(VolumeSteps):
    """Volumes in two aisles, which go to the trash with them, and blocks of several writes."""

    # aisles

    @rule(name=NAMES)
    def build(self, name: str) -> None:
        """Create the second aisle."""
        must: Errors = {AlreadyExists} if "B" in self.world.aisles else set()
        must |= {UniqueViolation} if self._is_named(name) else set()
        if is_done(outcome(lambda: Aisle.objects.create(aisle_id="B", name=name)), must=must):
            self.world.aisles["B"] = Shelf(name)

    def _is_named(self, name: str, *, apart_from: str = "") -> bool:
        return any(each.name == name and not each.batch for pk, each in self.world.aisles.items() if pk != apart_from)

    @rule(choice=CHOICES, fresh=FRESH, name=NAMES)
    def rename(self, choice: int, fresh: bool, name: str) -> None:
        """Change a name that all volumes of the aisle copy."""
        obj = self.aisle(choice, fresh=fresh)
        if obj is None:
            return
        record, stale, changed = self.world.aisles.get(obj.pk), is_stale(obj), obj.name != name
        must: Errors = set()
        if changed and (record is None or bool(record.batch) != obj.is_deleted):
            must = {StaleObject}
        elif changed and record is not None and not record.batch and self._is_named(name, apart_from=obj.pk):
            must = {UniqueViolation}
        obj.name = name
        if not is_done(outcome(obj.save), must=must, may={StaleObject} if stale else set()):
            self.forget(obj)
        elif changed and record is not None:
            record.name = name

    @rule(choice=CHOICES, fresh=FRESH)
    def close(self, choice: int, fresh: bool) -> None:
        """Move an aisle to the trash with its volumes."""
        obj = self.aisle(choice, fresh=fresh)
        if obj is None:
            return
        record = self.world.aisles.get(obj.pk)
        obj.delete()
        if record is None:
            return
        record.batch = record.batch or self.batch(obj.pk)
        for each in list(self.world.volumes.values()):
            if each.aisle_id == obj.pk and not each.batch:
                self.world.put(replace(each, batch=record.batch))

    @rule(choice=CHOICES, fresh=FRESH)
    def open(self, choice: int, fresh: bool) -> None:
        """Restore an aisle with its cascaded volumes."""
        obj = self.aisle(choice, fresh=fresh)
        if obj is None:
            return
        record = self.world.aisles.get(obj.pk)
        must: Errors = {ObjectMissing} if record is None else set()
        back: list[Kept] = []
        if record is not None and record.batch:
            along = (each for each in self.world.volumes.values() if each.batch == record.batch)
            back = [replace(each, batch=None) for each in along if each.aisle_id == obj.pk]
            claims = [claim for each in back for claim in each.claims]
            must |= {UniqueViolation} if self._is_named(record.name) or len(claims) > len({*claims}) else set()
            must |= {UniqueViolation} if any(self.world.is_taken(each) for each in back) else set()
        if is_done(outcome(obj.restore), must=must) and record is not None:
            record.batch = None
            for each in back:
                self.world.put(each)

    @rule(choice=CHOICES, fresh=FRESH)
    def tear_down(self, choice: int, fresh: bool) -> None:
        """Permanently delete an aisle with its volumes."""
        obj = self.aisle(choice, fresh=fresh)
        if obj is None:
            return
        pk, record = obj.pk, self.world.aisles.get(obj.pk)
        may: Errors = {StaleObject} if is_stale(obj) and record is not None else set()
        if is_done(outcome(obj.hard_delete), must=set(), may=may) and record is not None:
            del self.world.aisles[pk]
            self.world.volumes = {key: each for key, each in self.world.volumes.items() if each.aisle_id != pk}
        self.forget(obj)

    # blocks

    @rule(
        choices=st.lists(CHOICES, min_size=1, max_size=3),
        values=VALUES,
        kinds=st.lists(st.sampled_from(["save", "lend", "delete", "hard delete"]), min_size=3, max_size=3),
        new=st.none() | NEW,
        fails=st.booleans(),
    )
    def block(
        self, choices: list[int], values: dict[str, Any], kinds: list[str], new: dict[str, Any] | None, fails: bool
    ) -> None:
        """Several writes as one; an exception within discards them all."""
        objects = {}
        for choice in choices:
            obj = self.volume(choice, fresh=True)
            if obj is not None:
                objects[obj.pk] = obj
        world = World(self.world.aisles, dict(self.world.volumes))
        must: Errors = set()
        may: Errors = set()
        writes: list[Callable[[], Any]] = []
        for kind, obj in zip(kinds, objects.values(), strict=False):
            record = world.volumes.pop((obj.aisle_id, obj.number))
            after = self._planned(kind, obj, record, values, writes)
            if after is not None:
                world.put(after)
        if new is not None and (aisle := world.aisles.get(new["aisle_id"])) is not None and not aisle.batch:
            created = Kept(**new)
            if f"{created.aisle_id}~~{created.number}" not in objects:
                must |= {AlreadyExists} if created.key in world.volumes else set()
                may |= {UniqueViolation} if world.is_taken(created) else set()
                writes.append(Volume(**new).save)
                world.put(created)
        # Within a block, one object can take what another releases, in any order.
        claims = [claim for each in world.volumes.values() for claim in each.claims]
        must |= {UniqueViolation} if len(claims) > len({*claims}) else set()
        as_they_were = {pk: obj._stored for pk, obj in objects.items()}
        if fails:
            self._fail(writes, may={*must, *may})
            assert {pk: obj._stored for pk, obj in objects.items()} == as_they_were
        elif is_done(outcome(lambda: self._carry_out(writes)), must=must, may=may):
            self.world.volumes = world.volumes
        else:
            assert {pk: obj._stored for pk, obj in objects.items()} == as_they_were

    def _planned(
        self, kind: str, obj: Any, record: Kept, values: dict[str, Any], writes: list[Callable[[], Any]]
    ) -> Kept | None:
        """Add a write of an object; what is to be of its volume then."""
        if kind == "save":
            for name, value in values.items():
                setattr(obj, name, value)
            writes.append(obj.save)
            return replace(record, **values)
        if kind == "lend":
            obj.loans = F("loans") + 1
            writes.append(obj.save)
            return replace(record, loans=record.loans + 1)
        writes.append(obj.delete if kind == "delete" else obj.hard_delete)
        return None if kind == "hard delete" else replace(record, batch=record.batch or self.batch("own"))

    @staticmethod
    def _carry_out(writes: list[Callable[[], Any]]) -> None:
        with transactions.atomic():
            for write in writes:
                write()

    @staticmethod
    def _fail(writes: list[Callable[[], Any]], *, may: Errors) -> None:
        try:
            with transactions.atomic():
                for write in writes:
                    write()
                raise Boom
        except Boom:
            pass
        except DynamoSingleError as error:
            assert isinstance(error, tuple(may)), repr(error)

    # what holds

    @invariant()
    def the_table_is_the_model(self) -> None:
        """Every volume and aisle has its expected state, and is in the right lists."""
        found = {(each.aisle_id, each.number): each for each in Volume.all_objects.allow_scan()}
        assert found.keys() == self.world.volumes.keys()
        for key, record in self.world.volumes.items():
            obj = found[key]
            for name in ("title", "isbn", "slot", "mark", "loans"):
                assert getattr(obj, name) == getattr(record, name)
            assert obj.is_deleted == bool(record.batch)
            assert obj.aisle_name == self.world.aisles[record.aisle_id].name
            assert obj.folded == record.title.lower()
        live = {key for key, each in self.world.volumes.items() if not each.batch}
        assert {(each.aisle_id, each.number) for each in Volume.objects.all()} == live
        aisles = {each.pk: each for each in Aisle.all_objects.allow_scan()}
        assert {pk: (each.name, each.is_deleted) for pk, each in aisles.items()} == {
            pk: (each.name, bool(each.batch)) for pk, each in self.world.aisles.items()
        }
        for pk, aisle in aisles.items():
            assert aisle.volume_count == sum(key[0] == pk for key in live)

    @invariant()
    def the_checker_finds_nothing(self) -> None:
        """Claims, keys, copies and counters all fit."""
        assert [str(finding) for finding in verify()] == []


def test_any_sequence_of_writes(table: Table) -> None:
    """Creating, saving, renaming, moving, deleting, restoring and blocks leave what the model has."""
    run_state_machine_as_test(Volumes, settings=BUDGET)
