"""A task as an item, and its place in the index from which workers read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

from django.db.models import Q
from django.tasks import TaskResultStatus
from django.utils import timezone

from dynamo_single import clock, models
from dynamo_single.conf import alias_of_own_models
from dynamo_single.contrib.tasks.exceptions import WorkerLost
from dynamo_single.exceptions import ConditionNotMet, StaleObject

#: The highest priority that Django allows.
MAX_PRIORITY: Final = 100
#: The most tasks of a queue that one Query reads: a worker chooses among them by priority.
PAGE: Final = 10
#: The most bytes of arguments, so that the outcome of a task always fits into its item.
MAX_ARGUMENTS: Final = 256 * 1024
#: The most characters of a traceback that a task stores: its end; and the most of all attempts together.
MAX_TRACEBACK: Final = 10_000
MAX_TRACEBACKS: Final = 20_000


def ready_place(priority: int, since: datetime) -> str:
    """Return the place of a task that can run now: first by priority, then by time."""
    return f"R{MAX_PRIORITY - priority:03d}-{_text(since)}"


def later_place(due: datetime) -> str:
    """Return the place of a task that can run from a time on; it sorts after all tasks that can run now."""
    return f"W000-{_text(due)}"


def _text(moment: datetime) -> str:
    aware = timezone.make_aware(moment) if timezone.is_naive(moment) else moment
    return f"{aware.astimezone(UTC):%Y%m%dT%H%M%S.%f}"


class StoredTask(models.Model):
    """A task, its outcome, and its place in its queue.

    ``place`` is empty once the task is finished, which takes it out of the index. A claimed task keeps a place at the
    end of its lease: if its worker does not extend the lease or finish the task, another worker finds it there.
    ``worker_ids`` has an entry for each claim, so that its value identifies the current one.
    """

    task_id = models.IdAttribute(kind="ulid")
    backend = models.UnicodeAttribute()
    queue = models.UnicodeAttribute()
    place = models.UnicodeAttribute(null=True)
    priority = models.IntegerAttribute()
    path = models.UnicodeAttribute()
    # Texts and not ``JSONAttribute``, which would read 0.5 as a ``Decimal``.
    arguments = models.UnicodeAttribute()
    returned = models.UnicodeAttribute(null=True)
    status = models.UnicodeAttribute(choices=TaskResultStatus.choices, default=TaskResultStatus.READY.value)
    run_after = models.TimestampAttribute(null=True)
    enqueued_at = models.TimestampAttribute()
    started_at = models.TimestampAttribute(null=True)
    last_attempted_at = models.TimestampAttribute(null=True)
    finished_at = models.TimestampAttribute(null=True)
    worker_ids: Any = models.JSONAttribute(default=list)
    errors: Any = models.JSONAttribute(default=list)
    expires = models.TTLAttribute(null=True)

    class Keys:
        primary = models.Key("DJANGOTASK#{task_id}", "#METADATA")
        by_place = models.IndexKey("gs1", "DJANGOTASKS#{backend}#{queue}", "{place}#{task_id}")

    class Meta:
        item_type = "DjangoTask"
        table = alias_of_own_models()
        verbose_name = "task"

    def __str__(self) -> str:
        return f"{self.path} ({self.task_id})"

    @property
    def called_with(self) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the keyword arguments."""
        found = json.loads(self.arguments)
        return found["args"], found["kwargs"]

    @property
    def is_running(self) -> bool:
        """Whether the last claim has no recorded outcome."""
        return bool(self.status == TaskResultStatus.RUNNING)

    def claim(self, worker_id: str, lease: timedelta) -> bool:
        """Claim the task for a worker: one UpdateItem. Return whether it was still as it was read."""
        seen, now = self.place, clock.now()
        self._note_lost_worker()
        self.status = TaskResultStatus.RUNNING.value
        self.worker_ids = [*self.worker_ids, worker_id]
        self.started_at = self.started_at or now
        self.last_attempted_at = now
        self.place = later_place(now + lease)
        return self._save_if(Q(place=seen))

    def give_up(self, kept: timedelta) -> bool:
        """Store that a task without a claim has failed: one UpdateItem. Return whether it was as it was read."""
        seen = self.place
        self._note_lost_worker()
        self.status = TaskResultStatus.FAILED.value
        return self._finish_if(Q(place=seen), kept)

    def extend(self, lease: timedelta) -> bool:
        """Extend the lease of the current claim: one UpdateItem. Return whether the claim still holds."""
        self.place = later_place(clock.now() + lease)
        return self._save_if(Q(worker_ids=self.worker_ids))

    def finish(self, kept: timedelta) -> bool:
        """Store the outcome, which expires after ``kept``: one UpdateItem. Return whether the claim still holds."""
        return self._finish_if(Q(worker_ids=self.worker_ids), kept)

    def release(self, delay: timedelta) -> bool:
        """Put the task back into its queue: one UpdateItem. Return whether the claim still held."""
        self.status = TaskResultStatus.READY.value
        self.place = later_place(clock.now() + delay)
        return self._save_if(Q(worker_ids=self.worker_ids))

    def add_error(self, kind: type[BaseException], text: str) -> None:
        """Record the error of an attempt, with the end of its traceback; older tracebacks give way to newer ones."""
        path = f"{kind.__module__}.{kind.__qualname__}"
        left = MAX_TRACEBACKS
        errors = []
        for error in ({"exception_class_path": path, "traceback": text}, *reversed(self.errors)):
            end = error["traceback"][-min(MAX_TRACEBACK, left) :] if left else ""
            left -= len(end)
            errors.append({**error, "traceback": end})
        self.errors = errors[::-1]

    def _note_lost_worker(self) -> None:
        if self.is_running:
            self.add_error(WorkerLost, f"Worker {self.worker_ids[-1]} did not finish the task within its lease.")

    def _finish_if(self, condition: Q, kept: timedelta) -> bool:
        self.finished_at, self.place = clock.now(), None
        self.expires = self.finished_at + kept
        return self._save_if(condition)

    def _save_if(self, condition: Q) -> bool:
        try:
            self.save(condition=condition)
        except (ConditionNotMet, StaleObject):
            return False
        return True


def due_tasks(backend: str, queues: Iterable[str]) -> list[StoredTask]:
    """Return tasks that can be claimed now, the most urgent first, up to ``2 * PAGE`` for each queue.

    It sends a Query for each queue, and a second one if ``PAGE`` tasks are waiting that were never delayed. Within a
    page, priority decides; of delayed and lapsed tasks, a page has those that have been due the longest. The index is
    eventually consistent: a task in the result may be claimed already.
    """
    found = chain.from_iterable(_due(backend, queue) for queue in queues)
    return sorted(found, key=lambda task: (-task.priority, (task.place or "")[5:]))


def _due(backend: str, queue: str) -> list[StoredTask]:
    last = later_place(clock.now())
    waiting = StoredTask.objects.filter(backend=backend, queue=queue)
    found = list(waiting.filter(place__range=("R", last))[:PAGE])
    if len(found) == PAGE and (found[-1].place or "").startswith("R"):
        found += waiting.filter(place__range=("W", last))[:PAGE]
    return found
