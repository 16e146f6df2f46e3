"""Jobs of the admin in real worker processes."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command

from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.contrib.tasks import admin_jobs
from dynamo_single.contrib.tasks.models import due_tasks
from dynamo_single.table import Table
from project.directory.models import Company
from tests.contract.conftest import Pages
from tests.contract.contrib.tasks.test_workers import wait_for, working

LIST = "directory/company/"
COUNT = 150
#: A worker whose clock is past the claims and leases of a killed one.
LATER = """
import django; django.setup()
from datetime import timedelta
from django.core.management import call_command
from dynamo_single.testing import moved_time
with moved_time(timedelta(seconds=61)):
    call_command("dynamo_worker", interval=0.1)
"""


@pytest.fixture
def path(pages: Pages) -> str:
    """The page of a job that would delete the companies."""
    keys = [f"c{number:03}" for number in range(COUNT)]
    Company.objects.bulk_create(Company(company_id=key, name=key) for key in keys)
    answer = pages.post(LIST, {"action": "delete_selected", "_selected_action": keys})
    return str(answer["location"]).removeprefix("/admin/")


def job_of(pages: Pages) -> Any:
    return AdminJob.objects.consistent().get(user_key=str(pages.user.pk))


def test_job_and_task_are_one_transaction(pages: Pages, path: str) -> None:
    pages.post(path, sends=["GetItem", "TransactWriteItems"])
    assert [task.path for task in due_tasks("default", ["default"])] == [admin_jobs.run_admin_job.module_path]


def test_worker_finishes_the_job(pages: Pages, path: str) -> None:
    pages.post(path)
    call_command("dynamo_worker", until_empty=True, verbosity=0)
    assert (job_of(pages).is_done, Company.objects.count()) == (True, 0)


def test_job_of_killed_worker_is_continued(table: Table, pages: Pages, path: str) -> None:
    """No page is open. Each object is deleted and logged once."""
    pages.post(path)
    with working(table) as (first,):
        wait_for(lambda: job_of(pages).position > 0)
        first.kill()
    done = job_of(pages).position
    assert 0 < done < COUNT
    with working(table, command=["-c", LATER]):
        wait_for(lambda: job_of(pages).is_done)
    logged = [entry.object_id for entry in LogEntry.objects.filter(user_id=pages.user.pk)]
    assert (Company.objects.count(), sorted(logged)) == (0, [f"c{number:03}" for number in range(COUNT)])
