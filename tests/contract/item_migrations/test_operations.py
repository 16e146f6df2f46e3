"""Each operation runs while old and new code writes, and after a kill at any point."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Semaphore

import pytest

from dynamo_single.evolution.backfill import Options, Work, run_work
from dynamo_single.table import Table
from dynamo_single.test_tables import contents
from dynamo_single.testing import moved_time
from tests.contract.item_migrations.cases import CASES, Case, Phase
from tests.contract.item_migrations.things import scanned
from tests.contract.item_migrations.writers import World, Writer, assert_carried_over, seeded, traffic
from tests.contract.robustness.crashing import Crash, crash_behind
from tests.deep import examples

#: The number of items of each operation, and the minimum number of writes of each writer per phase.
ITEMS = examples(30, 2000, "MIGRATION_ITEMS")
WRITES = examples(20, 300, "MIGRATION_WRITES")
#: The steps between kills in requests, and the maximum number of kills.
STRIDE = examples(7, 1, "MIGRATION_STRIDE")
KILLED = examples(8, 10_000, "MIGRATION_KILLED")


def works(case: Case, number: int) -> list[Work]:
    """The passes of a phase."""
    tasks = enumerate(case.phases[number].tasks)
    return [Work("shop", "0002", number, "open", f"Phase {number}", task, step=step) for step, task in tasks]


@contextmanager
def at_work(world: World, case: Case, number: int, turns: Semaphore | None = None) -> Iterator[None]:
    """The code of a phase, each with a share of the objects of its own."""
    phase: Phase = case.phases[number]
    own = sorted(pk for pk in world.wanted if pk.startswith("s"))
    shares = [own[share :: len(phase.writers) + 1] for share in range(len(phase.writers))]
    writers = [
        Writer(world, code, f"w{number}{chr(97 + share)}", shares[share]) for share, code in enumerate(phase.writers)
    ]
    with traffic(writers, least=WRITES, turns=turns):
        yield


@pytest.mark.parametrize("name", CASES)
def test_an_operation_while_old_and_new_code_writes(table: Table, name: str) -> None:
    """Acknowledged writes are kept, and every item, key and claim matches the last code."""
    case, world = CASES[name](), World()
    seeded(world, case, ITEMS)
    for phase in range(len(case.phases)):
        with at_work(world, case, phase):
            for work in works(case, phase):
                run_work(work, table, Options(segments=3, page=10))
    assert_carried_over(table, case, world)
    assert world.writes


@pytest.mark.parametrize("name", CASES)
def test_an_operation_that_is_killed_anywhere(table: Table, name: str) -> None:
    """The next process has the same result as an undisturbed one, to the byte."""
    case, world = CASES[name](), World()
    seeded(world, case, 7)
    stored = scanned(table)
    with crash_behind(None) as asked:
        run(table, case)
    wanted = scanned(table)
    assert_carried_over(table, case, world)
    for killed_after in range(1, len(asked), max(STRIDE, -(-len(asked) // KILLED))):
        contents.restore(table, stored)
        with crash_behind(killed_after), pytest.raises(Crash):
            run(table, case)
        time.sleep(0.02)  # the lease of the killed operator
        run(table, case)
        assert scanned(table) == wanted, f"killed after {killed_after} requests"


#: The number of starts.
_RUNS = itertools.count(1)


def run(table: Table, case: Case) -> None:
    """Run all phases of a case, including partly executed ones."""
    for phase in range(len(case.phases)):
        for work in works(case, phase):
            # A killed operator does not hold its lease.
            with moved_time(timedelta(minutes=2 * next(_RUNS))):
                run_work(work, table, Options(segments=1, page=3))
