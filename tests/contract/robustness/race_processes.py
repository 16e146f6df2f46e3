"""Processes that run a part of ``race_worker`` on a test's engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynamo_single.table import Table

ROOT = Path(__file__).resolve().parents[3]


def started(table: Table, number: int) -> subprocess.Popen[str]:
    """A process that waits for the names of races."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1",
    }
    return subprocess.Popen(  # noqa: S603 - a module of ours
        [sys.executable, "-m", "tests.contract.robustness.race_worker", str(number)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def tell(process: subprocess.Popen[str], race: str) -> None:
    """Name a race to a process."""
    assert process.stdin is not None
    process.stdin.write(f"{race}\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    """The next line that a process writes."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "A process ended by an error that no race may end in: see its standard error."
    return line


@contextmanager
def processes(table: Table, race: str, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Some processes that run one race; they are killed behind the block, whatever they do."""
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
            process.communicate(timeout=30)
