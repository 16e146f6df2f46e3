"""Live traffic: threads that write objects in their code's form, and remember acknowledged writes."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from dynamo_single.evolution.backfill.claims import required_claims
from dynamo_single.evolution.backfill.rewrite import indexes_of, with_index_keys
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.effects.unique_claims import claim_item
from dynamo_single.orm.requests.actions import Item, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.table import Table
from tests.contract.item_migrations.cases import Case, Code
from tests.contract.item_migrations.things import scanned


class World:
    """The expected state by identifier: the values, and whether the object is in the trash."""

    def __init__(self) -> None:
        self.wanted: dict[str, tuple[dict[str, Any], bool]] = {}
        self.numbers = iter(range(1_000_000))
        self.writes = 0
        self.refused = 0

    def values(self, chance: random.Random) -> dict[str, Any]:
        """Return values to store; addresses are never repeated."""
        return {
            "name": chance.choice(("Anna", "Bert", "C#d")),
            "colour": chance.choice(("red", "blue", None)),
            "email": chance.choice((f"{next(self.numbers)}@x.org", None)),
            "size": chance.choice(("7", "12", None)),
        }


class Writer:
    """A thread of code that creates objects and writes only its own."""

    def __init__(self, world: World, code: Code, name: str, own: Sequence[str]) -> None:
        self.world, self.code, self.name = world, code, name
        self.chance = random.Random(name)
        self.own = list(own)

    def step(self) -> None:
        """Send one write; an error means that nothing has changed."""
        pk = self.chance.choice(self.own) if self.own and self.chance.random() < 0.8 else f"{self.name}{len(self.own)}"
        known = self.world.wanted.get(pk)
        try:
            after = self._create(pk) if known is None else self._write(pk, *known)
        except DynamoSingleError:
            self.world.refused += 1
            return
        self.world.writes += 1
        if after is None:
            self.world.wanted.pop(pk)
            self.own.remove(pk)
            return
        if known is None:
            self.own.append(pk)
        self.world.wanted[pk] = after

    def _create(self, pk: str) -> tuple[dict[str, Any], bool]:
        values = self.world.values(self.chance)
        self.code.model.objects.create(lamp_id=pk, **self.code.arguments(values))
        return values, False

    def _write(self, pk: str, values: dict[str, Any], deleted: bool) -> tuple[dict[str, Any], bool] | None:
        model = self.code.model
        manager = model.deleted_objects if deleted else model.objects
        obj = manager.consistent().get(pk=pk)
        kind = self.chance.choice(("change", "change", "change", "trash", "gone"))
        if kind == "gone" and self.chance.random() < 0.3:
            return None if obj.hard_delete()[0] else (values, deleted)
        if deleted:
            obj.restore()
            return values, False
        if kind == "trash":
            # A deletion of a missing object, such as after a move, is not an error in Django.
            return values, bool(obj.delete()[0])
        changed = {**values, **dict(self.chance.sample(sorted(self.world.values(self.chance).items()), 2))}
        for name, value in self.code.arguments(changed).items():
            setattr(obj, name, value)
        obj.save()
        return changed, False


@contextmanager
def traffic(writers: Sequence[Writer], *, least: int, turns: threading.Semaphore | None = None) -> Iterator[None]:
    """Run the writers during the block, each with a minimum number of writes.

    A write waits for a turn, if there are such; else they write as fast as they can.
    """
    over = threading.Event()
    errors: list[BaseException] = []

    def work(writer: Writer) -> None:
        try:
            steps = 0
            while steps < least or not over.is_set():
                if turns and not over.is_set():
                    turns.acquire()
                writer.step()
                steps += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=copy_context().run, args=(work, each)) for each in writers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if turns and writers:
            turns.release(len(writers))
        for thread in threads:
            thread.join()
    assert errors == []


def seeded(world: World, case: Case, number: int) -> None:
    """Objects that the first code has stored, some of them in the trash."""
    chance = random.Random(0)
    made = []
    for each in range(number):
        values = world.values(chance)
        made.append(case.old.model(lamp_id=f"s{each}", **case.old.arguments(values)))
        world.wanted[f"s{each}"] = values, each % 7 == 0
    case.old.model.objects.bulk_create(made)
    for pk, (_, deleted) in world.wanted.items():
        if deleted:
            case.old.model.objects.get(pk=pk).delete()


def assert_carried_over(table: Table, case: Case, world: World) -> None:
    """Assert that no write is lost, and that every item, key and claim matches the last code."""
    snapshot = case.last.snapshot
    items = scanned(table)
    lamps = {key: item for key, item in items.items() if item["itemType"] != {"S": "UniqueClaim"}}
    assert {item["itemType"]["S"] for item in lamps.values()} <= {snapshot.item_type}
    found = {}
    for key, item in lamps.items():
        values = snapshot.values_of(item)
        assert snapshot.primary_key(values) == key
        assert with_index_keys(snapshot, indexes_of(snapshot), item) == item
        assert case.gone.isdisjoint(item)
        found[values["lamp_id"]] = values
    assert _claims(items.values()) == _expected_claims(snapshot, lamps.values())
    wanted = {pk: (case.last.arguments(values), deleted) for pk, (values, deleted) in world.wanted.items()}
    assert found.keys() == wanted.keys()
    for pk, (values, deleted) in wanted.items():
        assert {name: found[pk][name] for name in values} == values, pk
        assert (found[pk][registry.DELETED_AT] is not None) == deleted, pk


def _claims(items: Any) -> dict[Any, Any]:
    return {key_of(item): item for item in items if item["itemType"] == {"S": "UniqueClaim"}}


def _expected_claims(snapshot: Snapshot, items: Any) -> dict[Any, Any]:
    owned: dict[Any, Item] = {key: item for item in items for key in required_claims(snapshot, snapshot.unique, item)}
    return {key: claim_item(key, item) for key, item in owned.items()}
