"""Real worker processes that are killed and stopped."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.tasks import TaskResultStatus

from dynamo_single.table import Table
from project.directory.models import Company
from tests import children
from tests.contract.contrib.tasks import jobs
from tests.deep import examples

#: How many tasks the workers share.
TASKS = examples(12, 60)


@contextmanager
def working(
    table: Table, count: int = 1, command: Sequence[str] = ("manage.py", "dynamo_worker", "--interval", "0.1")
) -> Iterator[list[children.Child]]:
    """Run workers, and kill them at the end of the block."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1&indexes=gs1,gs2,gs3",
    }
    with tempfile.TemporaryFile() as output:
        streams: dict[str, Any] = {"stdin": output.fileno(), "stdout": output.fileno(), "stderr": sys.stderr.fileno()}
        running = [children.Child(command, cwd=children.ROOT, env=environment, **streams) for _ in range(count)]
        try:
            yield running
        finally:
            for each in running:
                each.kill()


def names() -> list[str]:
    return sorted(company.name for company in Company.objects.all())


def wait_for(found: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end, names()
        time.sleep(0.05)


def test_workers_share_tasks(table: Table) -> None:
    results = [jobs.add.enqueue(f"{number:02d}") for number in range(TASKS)]
    with working(table, 3):
        wait_for(lambda: len(names()) == TASKS)
        wait_for(lambda: all(jobs.add.get_result(result.id).is_finished for result in results))
    assert [len(jobs.add.get_result(result.id).worker_ids) for result in results] == [1] * TASKS


def test_task_of_killed_worker_is_continued(table: Table) -> None:
    result = jobs.hang.enqueue("attempt", 1)
    with working(table) as (first,):
        wait_for(lambda: names() == ["attempt 1"])
        first.kill()
    with working(table):
        wait_for(lambda: jobs.hang.get_result(result.id).is_finished)
    found = jobs.hang.get_result(result.id)
    assert (found.status, names()) == (TaskResultStatus.SUCCESSFUL, ["attempt 1", "attempt 2"])


def test_lease_is_extended_while_the_task_runs(table: Table) -> None:
    result = jobs.hang.enqueue("attempt", 1, 2.5)
    with working(table, 2):
        wait_for(lambda: jobs.hang.get_result(result.id).is_finished)
    assert names() == ["attempt 1"]


def test_task_that_kills_its_worker_fails_in_the_end(table: Table) -> None:
    result = jobs.end_process.enqueue()
    for _ in range(3):
        with working(table) as (worker,):
            assert worker.wait() == -signal.SIGKILL
    with working(table):
        wait_for(lambda: jobs.end_process.get_result(result.id).is_finished)
    found = jobs.end_process.get_result(result.id)
    assert (found.status, found.attempts) == (TaskResultStatus.FAILED, 3)


def test_sigterm_finishes_the_current_task(table: Table) -> None:
    result = jobs.hang.enqueue("attempt", 1, 1)
    jobs.add.enqueue("next")
    with working(table) as (worker,):
        wait_for(lambda: names() == ["attempt 1"])
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait() == 0
    assert (jobs.hang.get_result(result.id).status, names()) == (TaskResultStatus.SUCCESSFUL, ["attempt 1"])


def test_second_signal_puts_the_task_back(table: Table) -> None:
    result = jobs.hang.enqueue("attempt", 1)
    with working(table) as (worker,):
        wait_for(lambda: names() == ["attempt 1"])
        os.kill(worker.pid, signal.SIGTERM)
        time.sleep(0.2)
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait() != 0
    assert jobs.hang.get_result(result.id).status == TaskResultStatus.READY


@pytest.mark.deep
@pytest.mark.parametrize("moment", range(20))
def test_worker_killed_at_any_moment_loses_no_task(table: Table, moment: int) -> None:
    results = [jobs.add.enqueue(f"{number:02d}") for number in range(TASKS)]
    with working(table, 2) as (first, _):
        time.sleep(0.05 * moment)
        first.kill()
        wait_for(lambda: all(jobs.add.get_result(result.id).is_finished for result in results))
    assert {*names()} == {f"{number:02d}" for number in range(TASKS)}
