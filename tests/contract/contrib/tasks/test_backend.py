"""Tasks in the table: enqueued in a transaction, claimed in order, read by their id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.core.management.base import CommandError
from django.tasks import TaskResultStatus, task_backends
from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
from django.tasks.signals import task_enqueued, task_finished

from dynamo_single.contrib.tasks.backend import DynamoTaskBackend
from dynamo_single.contrib.tasks.models import MAX_ARGUMENTS, MAX_TRACEBACK, PAGE, StoredTask, due_tasks
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.testing import assert_requests, moved_time
from dynamo_single.transactions import atomic
from project.directory.models import Company
from tests.contract.contrib.tasks import jobs

pytestmark = pytest.mark.usefixtures("table")


def work(**options: Any) -> None:
    """Run what can be run."""
    call_command("dynamo_worker", until_empty=True, verbosity=0, **options)


def names() -> set[str]:
    return {company.name for company in Company.objects.all()}


def test_task_runs_with_its_arguments() -> None:
    result = jobs.add.enqueue("Acme", number=0.5)
    work()
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, ["Acme", 0.5])


def test_result_is_read_by_id() -> None:
    result = jobs.add.enqueue("Acme")
    with assert_requests(["GetItem"]):
        found = jobs.add.get_result(result.id)
    assert (found.status, found.args, found.attempts) == (TaskResultStatus.READY, ["Acme"], 0)


def test_unknown_id_does_not_exist() -> None:
    with pytest.raises(TaskResultDoesNotExist):
        jobs.add.get_result("none")


def test_coroutine_runs() -> None:
    jobs.add_async.enqueue("Acme")
    work()
    assert names() == {"Acme"}


async def _enqueue_async() -> Any:
    result = await jobs.add.aenqueue("Acme")
    return await jobs.add.aget_result(result.id)


def test_asynchronous_methods() -> None:
    assert async_to_sync(_enqueue_async)().status == TaskResultStatus.READY


def test_block_stores_task_with_its_objects() -> None:
    with assert_requests(["TransactWriteItems"]), atomic():
        Company.objects.create(name="Acme")
        jobs.add.enqueue("of the task")
    work()
    assert names() == {"Acme", "of the task"}


def test_failed_block_stores_no_task() -> None:
    sent: list[Any] = []
    receiver: Any = lambda **given: sent.append(given)  # noqa: E731
    task_enqueued.connect(receiver)
    try:
        with pytest.raises(ValueError, match="stop"), atomic():
            jobs.add.enqueue("of the task")
            raise ValueError("stop")
    finally:
        task_enqueued.disconnect(receiver)
    assert (due_tasks("default", ["default"]), sent) == ([], [])


def test_idle_worker_sends_one_query_for_each_queue() -> None:
    with assert_requests(["Query", "Query"]):
        work()


def test_task_takes_a_write_to_enqueue_and_two_to_run() -> None:
    with assert_requests(["PutItem", "Query", "UpdateItem", "UpdateItem", "Query"]):
        jobs.fail.enqueue(0)
        work(queue=["default"])


def test_priority_decides_before_time() -> None:
    order: list[str] = []
    receiver: Any = lambda task_result, **given: order.append(task_result.args[0])  # noqa: E731
    for name, priority in [("low", -100), ("first", 0), ("second", 0), ("high", 100)]:
        jobs.add.using(priority=priority).enqueue(name)
    task_finished.connect(receiver)
    try:
        work()
    finally:
        task_finished.disconnect(receiver)
    assert order == ["high", "first", "second", "low"]


def test_delayed_task_is_found_behind_a_full_page() -> None:
    jobs.add.using(run_after=datetime.now(UTC) + timedelta(hours=1), priority=5).enqueue("later")
    for number in range(PAGE):
        jobs.add.enqueue(str(number))
    with moved_time(timedelta(hours=2)):
        first = due_tasks("default", ["default"])[0]
    assert first.called_with[0] == ["later"]


def test_delayed_task_waits() -> None:
    jobs.add.using(run_after=datetime.now(UTC) + timedelta(hours=1)).enqueue("later")
    work()
    assert names() == set()
    with moved_time(timedelta(hours=2)):
        work()
    assert names() == {"later"}


def test_worker_runs_named_queues_only() -> None:
    jobs.add.using(queue_name="mails").enqueue("a mail")
    work(queue=["default"])
    assert names() == set()
    work(queue=["mails"])
    assert names() == {"a mail"}


def test_unknown_queue_of_task_is_rejected() -> None:
    with pytest.raises(InvalidTask):
        jobs.add.using(queue_name="other")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"queue": ["other"]}, "Unknown queue: other. Use default, mails."),
        ({"backend": "other"}, "TASKS has no backend 'other'. Use default."),
        ({"interval": 0.0}, "--interval is a number of seconds"),
    ],
)
def test_command_names_alternative(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(CommandError, match=expected):
        work(**options)


def test_failing_task_is_repeated() -> None:
    result = jobs.fail.enqueue(2)
    work()
    result.refresh()
    assert (result.return_value, [error.exception_class for error in result.errors]) == (3, [ValueError, ValueError])


def test_attempts_are_bounded() -> None:
    result = jobs.fail.enqueue(100)
    work()
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 3)


@pytest.mark.parametrize(("task", "error"), [(jobs.leave, SystemExit), (jobs.too_large, Exception)], ids=str)
def test_outcome_that_cannot_be_stored_is_a_failure(task: Any, error: type[BaseException]) -> None:
    result = task.enqueue()
    work()
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert issubclass(result.errors[-1].exception_class, error)


def test_arguments_that_leave_no_room_for_an_outcome_are_refused() -> None:
    with pytest.raises(InvalidTask, match="pass its primary key"):
        jobs.add.enqueue("x" * MAX_ARGUMENTS)
    assert due_tasks("default", ["default"]) == []


def test_errors_of_all_attempts_fit_beside_the_largest_arguments() -> None:
    arguments = "x" * (MAX_ARGUMENTS - len('{"args": [""], "kwargs": {}}'))
    result = jobs.fail_at_length.enqueue(arguments)
    work()
    result.refresh()
    assert [len(error.traceback) for error in result.errors] == [0, MAX_TRACEBACK, MAX_TRACEBACK]


def test_task_that_left_the_code_fails() -> None:
    stored = StoredTask.objects.get(pk=jobs.add.enqueue("Acme").id)
    stored.path = "tests.contract.contrib.tasks.jobs.gone"
    stored.save()
    work()
    stored.refresh_from_db()
    assert (stored.status, "jobs.gone" in stored.errors[0]["traceback"]) == ("FAILED", True)


def test_finished_task_expires() -> None:
    result = jobs.add.enqueue("Acme")
    work()
    with moved_time(timedelta(days=8)), pytest.raises(TaskResultDoesNotExist):
        jobs.add.get_result(result.id)


def test_claim_of_another_worker_is_respected() -> None:
    jobs.add.enqueue("Acme")
    (mine,), (theirs,) = due_tasks("default", ["default"]), due_tasks("default", ["default"])
    lease = timedelta(seconds=60)
    assert (mine.claim("a", lease), theirs.claim("b", lease)) == (True, False)


def test_outcome_after_a_lost_claim_is_discarded() -> None:
    jobs.add.enqueue("Acme")
    (mine,) = due_tasks("default", ["default"])
    mine.claim("a", timedelta(seconds=60))
    with moved_time(timedelta(minutes=2)):
        (theirs,) = due_tasks("default", ["default"])
        assert theirs.claim("b", timedelta(seconds=60))
    assert mine.finish(timedelta(days=1)) is False


@pytest.mark.parametrize("options", [{"leese": 3}, {"lease": "3"}, {"max_attempts": 0}], ids=str)
def test_wrong_option_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="OPTIONS"):
        DynamoTaskBackend("default", {"OPTIONS": options})


def test_backend_is_the_configured_one() -> None:
    assert type(task_backends["default"]) is DynamoTaskBackend
