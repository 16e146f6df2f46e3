"""Old and new code of a project in real processes that are forgotten, stopped, killed and forked while it migrates."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dynamo_single.table import Request, Table
from tests.contract.item_migrations.stopped_project import (
    CHANGES,
    REFUSED,
    SECOND,
    Migrate,
    Project,
    Worker,
    assert_whole,
    project_for,
)
from tests.deep import IS_DEEP, deep, examples
from tests.strict import IS_STRICT

# Strict servers in front of one another would take each other's Host for a wrong one.
pytestmark = pytest.mark.skipif(IS_STRICT, reason="the engine has a strict server in front of it")

#: All changes in one migration, or one of them; the former in a normal run.
MIGRATIONS = [[*CHANGES], *(pytest.param([each], marks=deep) for each in CHANGES)]
#: The position where a process stops itself, and its writes.
WAYS = ("create", "save", "update", "add", "delete", "bulk", "block")


POINTS = [(way, point) for way in WAYS for point in ("checked", "signed")]
if not IS_DEEP:
    POINTS = POINTS[::3]
#: The number of histories of processes stopped at random instructions, and the number of stops in each.
ROUNDS = examples(1, 100, "CODE_ROUNDS")
STOPS = examples(40, 120, "CODE_STOPS")
WORKERS = examples(4, 8)


@pytest.mark.parametrize("transport", ["direct", pytest.param("botocore", marks=deep)])
@pytest.mark.parametrize("changes", MIGRATIONS, ids="-".join)
def test_old_code_that_is_stopped_before_it_sends(
    tmp_path: Path, table: Table, changes: list[str], transport: str
) -> None:
    """Its write is rejected after ``migrate`` has ended, and is repeated in the new form or raises an error."""
    with project_for(tmp_path, table, changes, transport) as project:
        workers = [project.worker("old", f"{way}.{point}") for way, point in POINTS]
        for worker in workers:
            worker.do("create")
        for worker in workers:
            way, point = worker.name.split(".")
            worker.tell("stop", point, way)
        for worker in workers:
            assert worker.stopped.wait(5), (worker.name, worker.faults, worker.acknowledged, worker.refusals)
            worker.wait_until_stopped()
        status, said = project.migrate().result(leaps=True)
        assert status == 0, said
        rejected = len(project.server.refused)
        for worker in workers:
            worker.go_on()
        for worker in workers:
            worker.wait()
        assert len(project.server.refused) >= rejected + len(workers)
        _assert_followed(project)
        assert_whole(project)


def _assert_followed(project: Project) -> None:
    """Check that old code continues, or raises an error that names the migration."""
    is_refused = bool(REFUSED & {*project.changes})
    for each in project.workers[1:]:
        assert bool(each.refusals) == is_refused, (each.name, each.refusals)
        assert all(SECOND in text for text in each.refusals), each.refusals


def test_processes_that_are_silent_and_come_back(tmp_path: Path, table: Table) -> None:
    """This includes a block longer than a lease, a process without its presence item, and a forked process."""
    with project_for(tmp_path, table, ["rename", "key", "alter"]) as project:
        forgotten, blocking, forking = (project.worker("old", name) for name in ("forgotten", "blocking", "forking"))
        for worker in (forgotten, blocking, forking):
            worker.do("create")
        forgotten.stop()
        blocking.tell("block", 3.1)
        forking.tell("forked", 8)
        assert blocking.stopped.wait(10)
        status, said = project.migrate().result(leaps=True)
        assert status == 0, said
        assert "does not respond: it is forgotten, and its late requests are rejected" in said
        for key in project.presence(forgotten):
            table.send(Request("DeleteItem", {"Key": key}))
        forgotten.go_on()
        for way in ("create", "save"):
            forgotten.do(way)
        assert len(project.presence(forgotten)) == 1
        for worker in (blocking, forking):
            worker.wait()
        _assert_followed(project)
        assert_whole(project)


class Operators:
    """Runs of ``migrate``: some are killed, and then two run in parallel until one succeeds."""

    def __init__(self, project: Project, chance: random.Random) -> None:
        self.project, self.chance = project, chance
        self.kills = chance.randrange(1, 4)
        self.runs: list[Migrate] = []
        self.kill_at = 0.0

    def are_done(self) -> bool:
        """Return whether everything is complete; otherwise, start or kill a run on schedule."""
        if self.kills and self.runs and time.monotonic() > self.kill_at:
            self.kills -= 1
            for each in self.runs:
                each.kill()
            self.runs = []
        if any(each.is_running for each in self.runs):
            return False
        if any(each.result()[0] == 0 for each in self.runs):
            return True
        self.runs = [self.project.migrate("new", "--force") for _ in range(1 if self.kills else 2)]
        self.kill_at = time.monotonic() + self.chance.uniform(0.3, 2.5)
        return False


class Stopping:
    """Processes that are stopped and continued at random; at least one of them runs."""

    def __init__(self, workers: list[Worker], chance: random.Random) -> None:
        self.workers, self.chance = workers, chance
        self.stopped: set[Worker] = set()
        self.stops = 0

    def step(self) -> None:
        """Stop a process, or let it continue."""
        worker = self.chance.choice(self.workers)
        if worker in self.stopped:
            worker.go_on()
            self.stopped.remove(worker)
        elif len(self.stopped) < len(self.workers) - 1:
            worker.stop()
            self.stopped.add(worker)
            self.stops += 1
        time.sleep(self.chance.random() / 20)

    def end(self) -> None:
        """Let all processes continue."""
        for worker in self.stopped:
            worker.go_on()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_processes_that_are_stopped_anywhere(tmp_path: Path, table: Table, number: int) -> None:
    """While ``migrate`` is killed, repeated and run twice, no write is lost, and every list is complete."""
    chance = random.Random(number)
    changes = [*CHANGES] if number % 2 == 0 else [chance.choice([*CHANGES])]
    transport = "botocore" if number % 3 == 2 else "direct"
    with project_for(tmp_path, table, changes, transport) as project:
        workers = [project.worker("old" if each % 4 else "new", f"w{each}") for each in range(1, WORKERS + 1)]
        for worker in workers:
            worker.tell("run")
        operators, stopping = Operators(project, chance), Stopping(workers, chance)
        leapt = time.monotonic()
        while not operators.are_done() or stopping.stops < STOPS:
            stopping.step()
            if time.monotonic() > leapt + 0.4:
                project.leap()
                leapt = time.monotonic()
        stopping.end()
        for worker in workers:
            worker.process.tell('["rest"]')
        for worker in workers:
            worker.wait()
        _count(stopping.stops)
        assert all(SECOND in text for each in workers if each.code == "old" for text in each.refusals)
        assert sum(each.acknowledged for each in workers)
        assert_whole(project)


def _count(stops: int) -> None:
    """Add to the number of stops of a deep run, for reports."""
    if IS_DEEP and (path := os.environ.get("CODE_STOPS_COUNTED")):
        with suppress(OSError), Path(path).open("a") as counted:
            counted.write(f"{stops}\n")
