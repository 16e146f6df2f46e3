"""Processes that are killed by the system, at any instruction, while several threads are at work."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dynamo_single.table import Table
from tests.contract.item_migrations.cases import CASES
from tests.contract.item_migrations.test_operations import empty, run
from tests.contract.item_migrations.things import put, scanned
from tests.contract.item_migrations.writers import World, assert_carried_over, seeded

ROOT = Path(__file__).resolve().parents[3]
#: How many processes are killed before one is left alone, and of which cases.
KILLS = int(os.environ.get("MIGRATION_KILLS", "1"))
ITEMS = int(os.environ.get("MIGRATION_ITEMS", "60"))
NAMES = [*CASES] if "MIGRATION_KILLS" in os.environ else ["move"]


def operator(table: Table, name: str) -> subprocess.Popen[str]:
    """A process that carries a case out."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1",
    }
    return subprocess.Popen(  # noqa: S603 - a module of ours
        [sys.executable, "-m", "tests.contract.item_migrations.operating", name],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def requests(process: subprocess.Popen[str], most: int | None = None) -> list[str]:
    """What a process says until it ends, or until it has said so much."""
    said: list[str] = []
    assert process.stdout is not None
    while most is None or len(said) < most:
        line = process.stdout.readline()
        if not line:
            break
        said.append(line.strip())
    return said


@pytest.mark.parametrize("name", NAMES)
def test_processes_that_are_killed(table: Table, name: str) -> None:
    """However many are killed, the last one leaves what one that was not disturbed leaves."""
    case, world, chance = CASES[name](), World(), random.Random(name)
    seeded(world, case, ITEMS)
    stored = scanned(table)
    run(table, case)
    wanted = scanned(table)
    empty(table)
    put(table, *stored.values())
    for _ in range(KILLS):
        with operator(table, name) as process:
            requests(process, most=chance.randrange(1, ITEMS))
            process.send_signal(signal.SIGKILL)
    with operator(table, name) as process:
        assert requests(process)[-1] == "done"
    assert scanned(table) == wanted
    assert_carried_over(table, case, world)
