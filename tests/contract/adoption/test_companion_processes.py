"""Processes that write to an adopted table and its companion: killed at any request, and racing for values."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from dynamo_single.table import Table
from tests import children
from tests.deep import examples

ROOT = Path(__file__).resolve().parents[3]
KILLS = examples(1, 40)
PROCESSES = examples(3, 6)
VALUES = examples(8, 100)
#: The number of requests before a process is killed.
WITHIN = 60


@pytest.fixture
def environment(engine: Table) -> dict[str, str]:
    """Return the environment of processes with an empty adopted default table."""
    found = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.adopted_project.settings",
        "DYNAMO_PLACE": str(engine.settings.endpoint_url).removeprefix("http://"),
        "PYTHONPATH": str(ROOT),
    }
    done(found, "setup")
    return found


def done(environment: dict[str, str], *arguments: str) -> list[str]:
    """Return the output of a process that ends by itself."""
    found = children.run(["-m", "tests.adopted_project.work", *arguments], env=environment)
    assert found.returncode == 0, found.stderr
    return [*found.stdout.splitlines()]


def begun(environment: dict[str, str], *arguments: str) -> children.Dialogue:
    """A process to talk to."""
    command = ["-m", "tests.adopted_project.work", *arguments]
    return children.Dialogue(command, cwd=ROOT, env=environment, stderr=sys.__stderr__)


def test_killed_writers_leave_consistent_tables(environment: dict[str, str]) -> None:
    chance = random.Random(KILLS)
    for number in range(KILLS):
        process = begun(environment, "write", f"w{number}")
        for _ in range(chance.randrange(5, WITHIN)):
            assert process.answer()
        process.kill()
        process.close()

    *findings, users = done(environment, "check")
    assert (findings, int(users) > 0) == ([], True)


def test_each_raced_value_has_one_owner(environment: dict[str, str]) -> None:
    processes = [begun(environment, "race", str(VALUES)) for _ in range(PROCESSES)]
    for process in processes:
        assert process.answer() == "ready\n"
    for process in processes:
        process.tell("go\n")
    won = [int(process.answer()) for process in processes]
    for process in processes:
        process.close(30)

    assert sum(won) == VALUES
    assert done(environment, "check") == [str(VALUES)]
