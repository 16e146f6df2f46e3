"""Jobs of a site that has a worker: the page only starts and follows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils.translation import override

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.admin.batch_actions import actions, jobs
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.testing import intercept, moved_time
from project.directory.admin import CompanyAdmin
from project.directory.models import Company
from tests.contract.conftest import Pages, Registering, text_of
from tests.deep import examples

LIST = "directory/company/"
DELETE = ("directory.view_company", "directory.delete_company", "directory.delete_person")
#: After this, a batch can be repeated, and a page offers to resume the job.
LAPSED, LATE = timedelta(seconds=61), timedelta(seconds=121)


class Queue:
    """A worker's queue, as a project writes one for another program than ``dynamo_worker``."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Any, dict[str, str], float]] = []

    def run_next(self, seconds: float = 0) -> None:
        """Run the next task: one batch, unless seconds are given."""
        site, arguments, _delay = self.waiting.pop(0)
        site.run_job(arguments, seconds)

    def run_all(self) -> int:
        """Run all tasks without their delays, and return how many there were."""
        count = 0
        while self.waiting:
            self.run_next()
            count += 1
        return count


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """Few objects are many, and each task runs one batch."""
    monkeypatch.setattr(actions, "MAX_IMMEDIATE", 2)
    monkeypatch.setattr(jobs, "BATCH_SIZE", 2)
    queue = Queue()

    def enqueue(self: Any, arguments: dict[str, str], delay: float = 0) -> bool:
        queue.waiting.append((self, arguments, delay))
        return True

    monkeypatch.setattr(DynamoAdminSite, "enqueue_job", enqueue)
    yield queue


def started(pages: Pages, count: int = 5, action: str = "delete_selected", query: str = "") -> str:
    """Start a job for as many companies, and return its path."""
    keys = [f"c{number}" for number in range(count)]
    if not query:
        Company.objects.bulk_create(Company(company_id=key, name=key.upper()) for key in keys)
    answer = pages.post(f"{LIST}{query}", {"action": action, "_selected_action": keys})
    path = str(answer["location"]).removeprefix("/admin/")
    assert pages.post(path).status_code == 302
    return path


def job_of(pages: Pages) -> Any:
    """The user's only job."""
    return AdminJob.objects.get(user_key=str(pages.user.pk))


def test_start_queues_the_job(pages: Pages, queue: Queue) -> None:
    path = started(pages)
    assert (len(queue.waiting), Company.objects.count()) == (1, 5)
    assert "A worker runs this job. You can close this page." in text_of(pages.get(path))


def test_worker_finishes_without_a_page(pages: Pages, queue: Queue) -> None:
    """With an entry in the owner's log for each object."""
    started(pages)
    assert queue.run_all() == 3
    assert (job_of(pages).is_done, Company.objects.count(), Company.deleted_objects.count()) == (True, 0, 5)
    assert Counter(entry.object_id for entry in LogEntry.objects.filter(user_id=pages.user.pk)) == dict.fromkeys(
        (f"c{number}" for number in range(5)), 1
    )


def test_one_task_runs_batches_for_its_seconds(pages: Pages, queue: Queue) -> None:
    started(pages)
    queue.run_next(seconds=60)
    assert (queue.waiting, Company.objects.count()) == ([], 0)


def test_messages_of_the_end_are_on_the_page(pages: Pages, queue: Queue) -> None:
    path = started(pages)
    queue.run_all()
    assert "Moved 5 companies to the trash." in text_of(pages.get(path))


def test_polling_reads_one_item(pages: Pages, queue: Queue) -> None:
    path = started(pages)
    queue.run_next()
    state = pages.client.get(f"/admin/{path}", headers={"accept": "application/json"}).json()
    assert state == {"done": 2, "total": 5, "failed": 0, "stopped": False, "claimed": False, "queued": True}


def test_second_post_queues_nothing(pages: Pages, queue: Queue) -> None:
    pages.post(started(pages))
    assert (len(queue.waiting), Company.objects.count()) == (1, 5)


def test_undo_is_queued(pages: Pages, queue: Queue) -> None:
    path = started(pages)
    queue.run_all()
    pages.post(path, {"undo": "yes"})
    assert Company.objects.count() == 0
    queue.run_all()
    assert Company.objects.count() == 5


def withdraw(user: Any) -> None:
    user.permissions = {"directory.view_company"}


def deactivate(user: Any) -> None:
    user.is_active = False


def dismiss(user: Any) -> None:
    user.is_staff = False


@pytest.mark.parametrize("change", [withdraw, deactivate, dismiss])
def test_lost_rights_stop_the_job(
    staff: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None]
) -> None:
    """The job stops before the next batch, even within a task. It does not queue a task, or count refused objects."""
    pages = staff(*DELETE)
    started(pages)

    def delete_queryset(self: Any, request: Any, queryset: Any) -> None:
        change(pages.user)
        pages.user.save()
        DynamoModelAdmin.delete_queryset(self, request, queryset)

    monkeypatch.setattr(CompanyAdmin, "delete_queryset", delete_queryset)
    queue.run_next(seconds=60)
    job = job_of(pages)
    assert (job.position, job.stopped, job.failed) == (2, "You do not have permission to do this.", 0)
    assert (Company.objects.count(), queue.waiting) == (3, [])


def test_stopped_job_is_queued_again(staff: Any, queue: Queue) -> None:
    pages = staff(*DELETE)
    path = started(pages)
    pages.user.permissions, before = {"directory.view_company"}, pages.user.permissions
    pages.user.save()
    queue.run_all()
    pages.user.permissions = before
    pages.user.save()
    assert "The job stopped at an error." in text_of(pages.get(path))
    pages.post(path)
    queue.run_all()
    assert Company.objects.count() == 0


def test_removed_login_method_stops_the_job(pages: Pages, queue: Queue, settings: Any) -> None:
    started(pages)
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.BaseBackend"]
    queue.run_all()
    assert (job_of(pages).stopped, Company.objects.count()) == ("You do not have permission to do this.", 5)


def test_claimed_batch_delays_the_task(pages: Pages, queue: Queue) -> None:
    """The page or a killed worker has it."""
    started(pages)
    job = job_of(pages)
    job.claimed_at = job.queued_at
    job.save()
    queue.run_next()
    (_, _, delay), *others = queue.waiting
    assert (59 <= delay <= 61, others, Company.objects.count()) == (True, [], 5)


class Killed(BaseException):
    """Ends a task as the end of its process does."""


@pytest.mark.parametrize("number", range(1, 40, examples(6, 1)))
def test_killed_task_is_repeated_for_what_is_left(pages: Pages, queue: Queue, number: int) -> None:
    """Killed before one of its requests: each object is deleted, and logged once."""
    started(pages)
    site, arguments, _ = queue.waiting[0]
    left = number

    def count(operation: str, params: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    with suppress(Killed), intercept(count):
        site.run_job(arguments, 60)
    queue.waiting[:] = [(site, arguments, 0)]
    with moved_time(LAPSED):
        queue.run_all()
    assert Company.objects.count() == 0
    assert Counter(entry.object_id for entry in LogEntry.objects.filter(user_id=pages.user.pk)) == dict.fromkeys(
        (f"c{number}" for number in range(5)), 1
    )


def test_late_job_can_be_resumed_on_its_page(pages: Pages, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs: the page offers to run the job itself, and a late worker does not repeat it."""
    monkeypatch.setattr(jobs, "MAX_SECONDS", 0.0)
    path = started(pages)
    with moved_time(LATE):
        assert "No worker has continued this job for two minutes." in text_of(pages.get(path))
        pages.post(path, {"here": "yes"})
    assert (queue.run_all(), Company.objects.count()) == (1, 3)


def test_page_and_worker_run_no_batch_twice(
    registered: Registering, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tab that resumes the job, and two workers that have the same task."""
    monkeypatch.setattr(jobs, "MAX_SECONDS", 0.0)
    deleted: list[str] = []

    def delete_model(self: Any, request: Any, obj: Any) -> None:
        deleted.append(obj.pk)
        DynamoModelAdmin.delete_model(self, request, obj)

    pages = registered(Company, delete_model=delete_model)
    path = started(pages, count=24)

    def work() -> None:
        for _ in range(100):
            site, arguments, _ = queue.waiting[-1]
            site.run_job(arguments, 0.05)

    def tab() -> bool:
        client = Client(headers={"accept": "application/json"})
        client.cookies = pages.client.cookies
        states = (client.post(f"/admin/{path}", {"here": "yes"}).json() for _ in range(1000))
        return any(state["done"] == 24 for state in states)

    with ThreadPoolExecutor(3) as threads:
        *_, last = [threads.submit(call) for call in (work, work, tab)]
        assert last.result()
    assert Counter(deleted) == dict.fromkeys((f"c{number}" for number in range(24)), 1)


def by_session(request: Any) -> object:
    return request.session["tenant"]


def by_header(request: Any) -> object:
    return request.headers.get("x-tenant")


def by_address(request: Any) -> object:
    return request.META.get("REMOTE_ADDR")


def by_middleware(request: Any) -> object:
    return getattr(request, "tenant", None)


@pytest.mark.parametrize(
    ("used", "name"),
    [(by_session, "session"), (by_header, "META"), (by_address, "META"), (by_middleware, "tenant")],
)
def test_missing_part_of_the_request_stops_the_job(
    pages: Pages, queue: Queue, monkeypatch: pytest.MonkeyPatch, used: Callable[[Any], object], name: str
) -> None:
    """By its name; then the job continues on its page."""
    path = started(pages)

    def delete_queryset(self: Any, request: Any, queryset: Any) -> None:
        with suppress(KeyError):
            used(request)
        DynamoModelAdmin.delete_queryset(self, request, queryset)

    monkeypatch.setattr(CompanyAdmin, "delete_queryset", delete_queryset)
    queue.run_all()
    assert f"it lacks request.{name}. Resume the job on this page." in text_of(pages.get(path))
    assert Company.objects.count() == 5
    pages.post(path)
    assert (Company.objects.count(), queue.waiting) == (0, [])


def test_queryset_that_needs_a_session_stops_the_job(
    pages: Pages, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = started(pages)

    def get_queryset(self: Any, request: Any) -> Any:
        request.session.get("tenant")
        return DynamoModelAdmin.get_queryset(self, request)

    monkeypatch.setattr(CompanyAdmin, "get_queryset", get_queryset)
    queue.run_all()
    assert (job_of(pages).needs_page, job_of(pages).position) == (True, 0)
    pages.post(path)
    assert Company.objects.count() == 0


def test_declared_need_keeps_the_job_on_its_page(pages: Pages, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompanyAdmin, "jobs_need_request", True)
    started(pages)
    assert (queue.waiting, Company.objects.count()) == ([], 0)


def test_reasons_are_in_the_users_language(staff: Any, queue: Queue) -> None:
    pages = staff(*DELETE)
    with override("de"):
        started(pages)
    pages.user.is_active = False
    pages.user.save()
    queue.run_all()
    assert "Berechtigung" in str(job_of(pages).stopped)


def test_expired_job_is_not_run(pages: Pages, queue: Queue) -> None:
    started(pages)
    with moved_time(timedelta(days=2)):
        queue.run_all()
    assert Company.objects.count() == 5
