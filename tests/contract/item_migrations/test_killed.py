"""The operating system kills processes at any instruction, while several threads work."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from threading import Semaphore

import pytest

from dynamo_single.table import Table
from dynamo_single.test_tables import contents
from tests import children
from tests.contract.item_migrations.cases import CASES
from tests.contract.item_migrations.test_operations import at_work, run
from tests.contract.item_migrations.things import scanned
from tests.contract.item_migrations.writers import World, assert_carried_over, seeded
from tests.deep import IS_DEEP, deep, examples

ROOT = Path(__file__).resolve().parents[3]
#: The number of killed processes before the last one, and their cases.
KILLS = examples(1, 6, "MIGRATION_KILLS")
#: The cases of a normal run: one with transactions over several items, and one with claims.
USUAL = {"move", "add_unique"}
#: The case of a normal run with parallel writers.
BESIDE = {"rename_unique"}
ITEMS = examples(60, 500, "MIGRATION_ITEMS")
#: The number of writes per request of a process. A deep run has as many as the time allows.
BESIDE_EACH = 4
#: The range of requests in which a process is killed while others write.
WITHIN = int(os.environ.get("MIGRATION_KILLED_WITHIN", ITEMS))


def operator(table: Table, name: str, *phases: int) -> children.Dialogue:
    """A process that carries a case out, or one phase of it."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1&read_timeout={table.settings.read_timeout}"
        f"&total_timeout={table.settings.total_timeout}",
    }
    arguments = ["-m", "tests.contract.item_migrations.operating", name, *map(str, phases)]
    return children.Dialogue(arguments, cwd=ROOT, env=environment, stderr=sys.__stderr__)


def requests(process: children.Dialogue, most: int | None = None, turns: Semaphore | None = None) -> list[str]:
    """Return the output of a process up to its end or a limit; each request allows turns of writers."""
    said: list[str] = []
    while (most is None or len(said) < most) and (line := process.answer()):
        said.append(line.strip())
        if turns:
            turns.release(BESIDE_EACH)
    return said


@pytest.mark.parametrize("name", [each if each in USUAL else pytest.param(each, marks=deep) for each in CASES])
def test_processes_that_are_killed(table: Table, name: str) -> None:
    """The last process has the same result as an undisturbed one."""
    case, world, chance = CASES[name](), World(), random.Random(name)
    seeded(world, case, ITEMS)
    stored = scanned(table)
    run(table, case)
    wanted = scanned(table)
    contents.restore(table, stored)
    for _ in range(KILLS):
        process = operator(table, name)
        requests(process, most=chance.randrange(1, ITEMS))
        process.kill()
        process.close()
    process = operator(table, name)
    assert requests(process)[-1] == "done"
    assert process.close() == 0
    assert scanned(table) == wanted
    assert_carried_over(table, case, world)


@pytest.mark.parametrize("name", [each if each in BESIDE else pytest.param(each, marks=deep) for each in CASES])
def test_processes_that_are_killed_while_old_and_new_code_writes(table: Table, name: str) -> None:
    """Acknowledged writes are kept, and every item, key and claim matches the last code."""
    case, world, chance = CASES[name](), World(), random.Random(name)
    seeded(world, case, ITEMS)
    for number, phase in enumerate(case.phases):
        turns = None if IS_DEEP else Semaphore()
        with at_work(world, case, number, turns):
            for _ in range(KILLS if phase.tasks else 0):
                process = operator(table, name, number)
                requests(process, most=chance.randrange(1, WITHIN), turns=turns)
                process.kill()
                process.close()
            process = operator(table, name, number)
            assert requests(process, turns=turns)[-1] == "done"
            assert process.close() == 0
    assert_carried_over(table, case, world)
    assert world.writes
