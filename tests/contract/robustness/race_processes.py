"""Processes that run a part of ``race_worker`` on a test's engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynamo_single.table import Table
from tests import children
from tests.deep import examples

ROOT = Path(__file__).resolve().parents[3]
#: How often each process adds to a number, and how many addresses, and accounts elsewhere, all of them want.
SUMS, WANTED = examples(30, 60), examples(6, 12)
#: How many edges all of them change.
FANS = examples(20, 120)


def started(table: Table, number: int) -> children.Dialogue:
    """A process that waits for the names of races."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1",
    }
    worker = ["-m", "tests.contract.robustness.race_worker", str(number)]
    return children.Dialogue(worker, cwd=ROOT, env=environment, stderr=sys.__stderr__)


def tell(process: children.Dialogue, race: str) -> None:
    """Name a race to a process."""
    process.tell(race)


def answer(process: children.Dialogue) -> str:
    """The next line that a process writes."""
    line = process.answer()
    assert line, "A process ended by an error that no race may end in: see its standard error."
    return line


@contextmanager
def processes(table: Table, race: str, count: int) -> Iterator[list[children.Dialogue]]:
    """Start processes for one race, and kill them after the block."""
    running = [started(table, number) for number in range(count)]
    try:
        for process in running:
            assert answer(process) == "ready\n"
        for process in running:
            tell(process, race)
        yield running
    finally:
        for process in running:
            process.kill()
            process.close()
