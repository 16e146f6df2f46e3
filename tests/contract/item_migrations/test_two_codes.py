"""Random histories of old and new code while a change is open, and after it.

No write is lost, and every read is current: processes with the last bump run next to processes with the previous one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any

import pytest
from django.db.models import F

from dynamo_single import models
from dynamo_single.evolution import drive
from dynamo_single.evolution.backfill import Options
from dynamo_single.evolution.migrate_run import Run, use_run
from dynamo_single.exceptions import KeyNotFilled
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Table
from dynamo_single.testing import intercept
from tests.contract.item_migrations.processes import Process, World
from tests.contract.item_migrations.things import scanned
from tests.deep import examples
from tests.histories.app import History, history

SEEDS = range(examples(1, 25, "MIGRATION_HISTORIES"))
#: Events before the change and while it is open.
BEFORE, MEANWHILE = examples(8, 12), examples(24, 40)
OLD = ("name", "size", "notes")
NEW = ("title", "width", "remarks")

KEY = {"by_name": models.IndexKey("gs1", "SHOP", "{name}#{shop_id}")}
CHANGES: dict[str, tuple[tuple[str, str, str], Any]] = {
    "names": (NEW, {"by_name": models.IndexKey("gs1", "SHOP", "{title}#{shop_id}")}),
    "names and key": (NEW, {"by_name": models.IndexKey("gs1", "SHOPS", "{title}")}),
    "key": (OLD, {"by_name": models.IndexKey("gs1", "SHOPS", "{name}")}),
    "no key": (OLD, None),
}


def declared(app: History, names: tuple[str, str, str], keys: Any, base: Any = models.Model) -> Any:
    """The model of a code."""
    text, number, document = names
    attributes = {
        text: models.UnicodeAttribute(),
        number: models.IntegerAttribute(default=0),
        document: models.JSONAttribute(default=dict),
        "other": models.UnicodeAttribute(),
    }
    return app.model(keys=keys, bases=(base,), **attributes)


def listed(process: Process) -> list[str] | None:
    """Return the strings that the key lists; ``None`` if the process has no such key."""
    if not process.model._options.index_keys:
        return None
    try:
        return sorted(getattr(each, process.text) for each in process.model.objects.all())
    except KeyNotFilled:
        return None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("change", CHANGES)
def test_old_and_new_code_lose_nothing(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch, change: str, seed: int
) -> None:
    """From before ``migrate`` until after it, one process sees each bump before the others."""
    names, keys = CHANGES[change]
    with history(tmp_path) as app:
        base = (models.Model, models.SoftDeleteModel)[seed % 2]
        old = Process(declared(app, OLD, KEY, base), OLD)
        app.make()
        app.migrate()
        world = World(random.Random(f"{change} {seed}"), listed)
        world.act(old, BEFORE)
        new = [Process(declared(app, names, keys, base), names) for _ in range(2)]
        everybody = [old, *new]
        app.make(answers=["y"] * len(set(OLD).difference(names)))

        def settled(*_: object) -> bool:
            world.chance.choice(everybody).hear()
            for _ in range(MEANWHILE // 3):
                world.act(world.chance.choice(everybody))
            for process in everybody:
                process.hear()
            return True

        monkeypatch.setattr(drive, "_is_settled", settled)
        with meanwhile(world, everybody):
            app.migrate()
        for process in everybody:
            process.hear()
            world.act(process, 10)
            world.look(process)
        assert_clean(table, names)


@contextmanager
def meanwhile(world: World, processes: list[Process]) -> Iterator[None]:
    """Within the block, processes act before some requests of another one."""

    def tell(operation: str, params: Mapping[str, Any]) -> None:
        if operation in ("Scan", "UpdateItem", "BatchGetItem"):
            world.act(world.chance.choice(processes), world.chance.randrange(3))

    with intercept(tell):
        yield


def assert_clean(table: Table, names: tuple[str, str, str]) -> None:
    """Assert that no item contains removed attributes."""
    gone = set(OLD).difference(names)
    for (partition, _), item in scanned(table).items():
        if partition.startswith("SHOP#"):
            assert not gone.intersection(item)


@pytest.fixture
def renaming(tmp_path: Path, table: Table) -> Iterator[tuple[History, Any]]:
    """New code, while three names are becoming others."""
    with history(tmp_path) as app:
        old = declared(app, OLD, KEY)
        app.make()
        app.migrate()
        old.objects.bulk_create([old(pk=f"s{n}", name="A", size=0, notes={}, other="x") for n in range(4)])
        new = declared(app, NEW, CHANGES["names"][1])
        app.make(answers=["y"] * 3)
        app.migrate(until=0)
        yield app, new


class Worker(Thread):
    """A thread that counts in objects of its own, and looks whether all of it is there."""

    def __init__(self, model: Any, share: int) -> None:
        super().__init__(daemon=True)
        self.model = model
        self.wanted = {f"s{number}": 0 for number in range(share, 4, 2)}
        self.rounds, self.told = 0, Condition()
        self.error: BaseException | None = None
        self.is_over = Event()

    def run(self) -> None:
        """Run until the end, or until a read differs from the writes."""
        try:
            while not self.is_over.is_set():
                self._go_round()
                with self.told:
                    self.rounds += 1
                    self.told.notify_all()
        except BaseException as error:
            self.error = error
            with self.told:
                self.told.notify_all()

    def _go_round(self) -> None:
        for pk, count in self.wanted.items():
            one = self.model.objects.get(pk=pk)
            assert (one.width, one.remarks.get("count", 0)) == (count, count), pk
            self.model.objects.filter(pk=pk).update(width=F("width") + 1)
            one.title, one.remarks = f"{count}", {"count": count + 1}
            one.save(update_fields=["title", "remarks"])
            self.wanted[pk] = count + 1

    def wait_for(self, rounds: int) -> None:
        """Let it do so much more."""
        with self.told:
            until = self.rounds + rounds
            self.told.wait_for(lambda: self.rounds >= until or self.error is not None, timeout=60)


def test_threads_of_new_code_go_on_while_a_rename_is_carried_out(
    renaming: tuple[History, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names change during their requests: no write is lost, and no error occurs."""
    _, model = renaming
    workers = [Worker(model, share) for share in range(2)]

    def settled(*_: object) -> bool:
        knowledge.stale()
        for worker in workers:
            worker.wait_for(2)
        return True

    monkeypatch.setattr(drive, "_is_settled", settled)
    for worker in workers:
        worker.start()
    try:
        with use_run(Run(options=Options(segments=2, page=2))) as this:
            assert drive.drive("default", this)
        settled()
    finally:
        for worker in workers:
            worker.is_over.set()
            worker.join()
    assert [worker.error for worker in workers] == [None] * 2
