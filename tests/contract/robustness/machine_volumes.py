"""Steps with volumes: each does to the table and to the model in memory the same, or raises for a reason it has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import F
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from dynamo_single.exceptions import AlreadyExists, ObjectMissing, ParentInTrash, StaleObject, UniqueViolation
from tests.catalog.library import Aisle, Volume
from tests.contract.robustness.machine_world import (
    AISLES,
    CHOICES,
    FRESH,
    NAMES,
    NEW,
    NUMBERS,
    TITLES,
    VALUES,
    Errors,
    Kept,
    Shelf,
    World,
    is_done,
    is_stale,
    outcome,
)
from tests.ready import table_ready


class VolumeSteps(RuleBasedStateMachine):
    """Write volumes with new and with kept objects."""

    def __init__(self) -> None:
        super().__init__()
        table_ready()
        self.world = World()
        self.objects: list[Any] = []
        self.deletions = 0

    @initialize(first=NAMES, several=st.lists(NEW, min_size=1, max_size=3))
    def begin(self, first: str, several: list[dict[str, Any]]) -> None:
        """Create an aisle and some volumes."""
        Aisle.objects.create(aisle_id="A", name=first)
        self.world.aisles["A"] = Shelf(first)
        for values in several:
            new = Kept(**{**values, "aisle_id": "A"})
            if new.key not in self.world.volumes and not self.world.is_taken(new):
                self.objects.append(Volume.objects.create(**{**values, "aisle_id": "A"}))
                self.world.put(new)

    # objects to write with

    def volume(self, choice: int, *, fresh: bool) -> Any:
        """Return a volume as stored or as kept; ``None`` if it is missing."""
        held = [each for each in self.objects if isinstance(each, Volume)]
        if not fresh and held:
            return held[choice % len(held)]
        keys = sorted(self.world.volumes)
        return Volume.all_objects.get(pk="~~".join(map(str, keys[choice % len(keys)]))) if keys else None

    def aisle(self, choice: int, *, fresh: bool) -> Any:
        """Return an aisle as stored or as kept."""
        held = [each for each in self.objects if isinstance(each, Aisle)]
        if not fresh and held:
            return held[choice % len(held)]
        keys = sorted(self.world.aisles)
        return Aisle.all_objects.get(pk=keys[choice % len(keys)]) if keys else None

    def forget(self, obj: Any) -> None:
        """Discard a kept object with unsaved values."""
        self.objects = [each for each in self.objects if each is not obj]

    def record_of(self, volume: Any) -> Kept | None:
        """Return the expected volume for a key."""
        return self.world.volumes.get((volume.aisle_id, volume.number))

    def batch(self, mark: str) -> tuple[str, int]:
        """A new deletion."""
        self.deletions += 1
        return mark, self.deletions

    @rule(choice=CHOICES, aisle=st.booleans())
    def keep(self, choice: int, aisle: bool) -> None:
        """Load an object for a later write."""
        obj = self.aisle(choice, fresh=True) if aisle else self.volume(choice, fresh=True)
        if obj is not None:
            self.objects.append(obj)

    # volumes

    @rule(values=NEW)
    def create(self, values: dict[str, Any]) -> None:
        """Create a volume."""
        new = Kept(**values)
        aisle = self.world.aisles.get(new.aisle_id)
        if aisle is None or aisle.batch:
            return
        must: Errors = {AlreadyExists} if new.key in self.world.volumes else set()
        must |= {UniqueViolation} if self.world.is_taken(new) else set()
        obj = Volume(**values)
        if is_done(outcome(obj.save), must=must):
            self.world.put(new)
            self.objects.append(obj)

    @rule(choice=CHOICES, fresh=FRESH, values=VALUES)
    def save(self, choice: int, fresh: bool, values: dict[str, Any]) -> None:
        """Change a volume."""
        obj = self.volume(choice, fresh=fresh)
        if obj is not None:
            self._save(obj, values)

    @rule(choice=CHOICES, first=VALUES, second=VALUES)
    def two_writers(self, choice: int, first: dict[str, Any], second: dict[str, Any]) -> None:
        """Two read a volume, and both change it."""
        objects = [self.volume(choice, fresh=True) for _ in range(2)]
        for obj, values in zip(objects, (first, second), strict=True):
            if obj is not None:
                self._save(obj, values)

    def _save(self, obj: Any, values: dict[str, Any]) -> None:
        record, stale = self.record_of(obj), is_stale(obj)
        changed = {name: value for name, value in values.items() if getattr(obj, name) != value}
        after = None if record is None else replace(record, **changed)
        must: Errors = set()
        if changed and (record is None or bool(record.batch) != obj.is_deleted):
            must = {StaleObject}
        elif after is not None and changed and self.world.is_taken(after, apart_from=[after.key]):
            must = {UniqueViolation}
        for name, value in values.items():
            setattr(obj, name, value)
        if not is_done(outcome(obj.save), must=must, may={StaleObject} if stale else set()):
            self.forget(obj)
        elif after is not None and changed:
            self.world.put(after)

    @rule(choice=CHOICES, fresh=FRESH)
    def lend(self, choice: int, fresh: bool) -> None:
        """Add one to a volume's current number."""
        obj = self.volume(choice, fresh=fresh)
        if obj is None:
            return
        record, stale = self.record_of(obj), is_stale(obj)
        must: Errors = {StaleObject} if record is None or bool(record.batch) != obj.is_deleted else set()
        obj.loans = F("loans") + 1
        if not is_done(outcome(obj.save), must=must, may={StaleObject} if stale else set()):
            self.forget(obj)
        elif record is not None:
            self.world.put(replace(record, loans=record.loans + 1))
            assert obj.loans == record.loans + 1

    @rule(choice=CHOICES)
    def lend_by_queryset(self, choice: int) -> None:
        """Add one to the number without a read."""
        keys = sorted(self.world.volumes)
        if keys:
            record = self.world.volumes[keys[choice % len(keys)]]
            found = Volume.objects.filter(aisle=record.aisle_id, number=record.number).update(loans=F("loans") + 1)
            assert found == (0 if record.batch else 1)
            self.world.put(replace(record, loans=record.loans + found))

    @rule(choice=CHOICES)
    def next_slot(self, choice: int) -> None:
        """Add one to a unique number that is part of a key."""
        keys = sorted(key for key, each in self.world.volumes.items() if each.slot is not None and not each.batch)
        if not keys:
            return
        record = self.world.volumes[keys[choice % len(keys)]]
        after = replace(record, slot=(record.slot or 0) + 1)
        found = Volume.objects.filter(aisle=record.aisle_id, number=record.number)
        must: Errors = {UniqueViolation} if self.world.is_taken(after, apart_from=[after.key]) else set()
        if is_done(outcome(lambda: found.update(slot=F("slot") + 1)), must=must):
            self.world.put(after)

    @rule(choice=CHOICES, fresh=FRESH)
    def delete(self, choice: int, fresh: bool) -> None:
        """Move a volume to the trash; skip a deleted or missing one."""
        obj = self.volume(choice, fresh=fresh)
        if obj is None:
            return
        record = self.record_of(obj)
        count, _ = obj.delete()
        assert count == int(record is not None and not record.batch)
        if record is not None and not record.batch:
            self.world.put(replace(record, batch=self.batch("own")))

    @rule(choice=CHOICES, fresh=FRESH)
    def restore(self, choice: int, fresh: bool) -> None:
        """Bring a volume back."""
        obj = self.volume(choice, fresh=fresh)
        if obj is None:
            return
        record = self.record_of(obj)
        live = None if record is None else replace(record, batch=None)
        must: Errors = {ObjectMissing} if record is None else set()
        if record is not None and live is not None and record.batch:
            must |= {UniqueViolation} if self.world.is_taken(live) else set()
            must |= {ParentInTrash} if self.world.aisles[record.aisle_id].batch else set()
        if not is_done(outcome(obj.restore), must=must):
            self.forget(obj)
        elif live is not None:
            self.world.put(live)

    @rule(choice=CHOICES, fresh=FRESH)
    def hard_delete(self, choice: int, fresh: bool) -> None:
        """Permanently delete a volume."""
        obj = self.volume(choice, fresh=fresh)
        if obj is None:
            return
        record, stale = self.record_of(obj), is_stale(obj)
        key = (obj.aisle_id, obj.number)
        may: Errors = {StaleObject} if stale and record is not None else set()
        if is_done(outcome(obj.hard_delete), must=set(), may=may):
            self.world.volumes.pop(key, None)
        self.forget(obj)

    @rule(choice=CHOICES, fresh=FRESH, aisle=AISLES, number=NUMBERS, values=VALUES)
    def move(self, choice: int, fresh: bool, aisle: str, number: int, values: dict[str, Any]) -> None:
        """Move a volume to another place, with changes."""
        obj = self.volume(choice, fresh=fresh)
        to = self.world.aisles.get(aisle)
        if obj is None or to is None or to.batch or (obj.aisle_id, obj.number) == (aisle, number):
            return
        record = self.record_of(obj)
        must: Errors = {StaleObject} if is_stale(obj) else set()
        must |= {AlreadyExists} if (aisle, number) in self.world.volumes else set()
        after = None if record is None else replace(record, aisle_id=aisle, number=number, **values)
        if record is not None and after is not None and self.world.is_taken(after, apart_from=[record.key]):
            must |= {UniqueViolation}
        if not is_done(outcome(lambda: obj.move(aisle_id=aisle, number=number, **values)), must=must):
            assert is_stale(obj) or (obj.aisle_id, obj.number) != (aisle, number)
        elif record is not None and after is not None:
            del self.world.volumes[record.key]
            # In the trash it no longer belongs to the deletion of the former aisle.
            is_left = record.batch is not None and record.aisle_id != aisle
            self.world.put(replace(after, batch=self.batch("own")) if is_left else after)

    @rule(aisle=AISLES, title=TITLES)
    def retitle(self, aisle: str, title: str) -> None:
        """Change all volumes of an aisle."""
        found = [each for each in self.world.volumes.values() if each.aisle_id == aisle and not each.batch]
        assert Volume.objects.filter(aisle=aisle).update(title=title) == len(found)
        for each in found:
            self.world.put(replace(each, title=title))

    @rule(aisle=AISLES)
    def clear(self, aisle: str) -> None:
        """Move all volumes of an aisle to the trash, each by itself."""
        found = [each for each in self.world.volumes.values() if each.aisle_id == aisle and not each.batch]
        assert Volume.objects.filter(aisle=aisle).delete()[0] == len(found)
        for each in found:
            self.world.put(replace(each, batch=self.batch("own")))

    @rule(several=st.lists(NEW, min_size=1, max_size=4))
    def create_several(self, several: list[dict[str, Any]]) -> None:
        """Create what there is not."""
        if any(not (aisle := self.world.aisles.get(each["aisle_id"])) or aisle.batch for each in several):
            return
        owned: set[Any] = set()
        wanted = []
        for each in (Kept(**values) for values in several):
            if not {each.key, *each.claims} & owned:
                owned |= {each.key, *each.claims}
                wanted.append(each)
        created = [each for each in wanted if each.key not in self.world.volumes and not self.world.is_taken(each)]
        result = Volume.objects.bulk_create([Volume(**each) for each in several], ignore_conflicts=True)
        assert len(result.skipped) == len(several) - len(created)
        for each in created:
            self.world.put(each)
