"""Run tasks: claim one, extend its lease while it runs, and store its outcome."""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from traceback import format_exception
from types import TracebackType
from typing import Final

from django.db import close_old_connections
from django.tasks import TaskContext, TaskResultStatus
from django.tasks.signals import task_finished, task_started

from dynamo_single.contrib.tasks.backend import DynamoTaskBackend
from dynamo_single.contrib.tasks.models import StoredTask, due_tasks
from dynamo_single.exceptions import ItemTooLarge, TableUnavailable

logger = logging.getLogger("dynamo_single.tasks")

#: The longest pause between two attempts to reach an unavailable table, in seconds.
MAX_PAUSE: Final = 30.0
#: How often a waiting worker looks whether it was told to stop, in seconds.
_SLICE: Final = 0.1


class Worker:
    """Runs the tasks of some queues, one at a time. Any number of workers can run the same queues.

    A task runs at least once: if a worker ends before it has stored the outcome, another one starts the task again
    when the lease has expired. The clocks of the machines must agree to within a fraction of the lease.

    A worker that finds no task sends a Query for each queue every ``interval`` seconds. A task takes two UpdateItems,
    and one more for each third of the lease that it runs.
    """

    def __init__(self, backend: DynamoTaskBackend, queues: Sequence[str], *, interval: float = 1.0) -> None:
        self.id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._backend = backend
        self._queues = queues
        self._interval = interval
        self._is_stopping = False
        # The index may return a task for a moment as it was before it was claimed.
        self._tried: deque[tuple[str, str | None]] = deque(maxlen=1000)

    def stop(self) -> None:
        """Let ``run()`` return after the current task."""
        self._is_stopping = True

    def run(self, *, until_empty: bool = False) -> None:
        """Run tasks until ``stop()`` is called, or until no task can be run now."""
        pause = self._interval
        while not self._is_stopping:
            try:
                found = self._claim_next()
            except TableUnavailable as error:
                pause = min(max(2 * pause, _SLICE), MAX_PAUSE)
                logger.warning("The worker tries again in %.0f seconds: %s", pause, error)
                self._sleep(pause)
                continue
            pause = self._interval
            if found is not None:
                self._execute(found)
            elif until_empty:
                return
            else:
                self._sleep(self._interval)

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._is_stopping and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE))

    def _claim_next(self) -> StoredTask | None:
        """Return a task that this worker has claimed, or ``None`` if there is none that it has not tried."""
        while True:
            due = due_tasks(self._backend.alias, self._queues)
            untried = [task for task in due if (task.task_id, task.place) not in self._tried]
            if not untried or self._is_stopping:
                return None
            # The first one, so that a single worker keeps the order; then any of the others, so that many workers do
            # not all try the same tasks.
            first, *others = untried
            secrets.SystemRandom().shuffle(others)
            for task in (first, *others):
                self._tried.append((task.task_id, task.place))
                if self._may_start(task) and task.claim(self.id, self._backend.lease):
                    return task

    def _may_start(self, task: StoredTask) -> bool:
        """Return whether the task has an attempt left; otherwise store that it failed."""
        if len(task.worker_ids) < self._backend.max_attempts:
            return True
        if task.give_up(self._backend.keep_results):
            self._announce(task)
        return False

    def _execute(self, task: StoredTask) -> None:
        close_old_connections()
        try:
            with _Lease(task, self._backend):
                outcome = self._call(task)
        except KeyboardInterrupt:
            task.release(timedelta())
            raise
        finally:
            close_old_connections()
        self._set(task, outcome)
        self._store(task)

    def _call(self, stored: StoredTask) -> str | BaseException:
        """Call the task's function; return its value as JSON, or its error.

        It does not change the object, which the thread of the lease saves.
        """
        try:
            task = self._backend.task_of(stored)
            result = self._backend.result_of(stored, task)
            task_started.send_robust(type(self._backend), task_result=result)
            context = [TaskContext(task_result=result)] if task.takes_context else []
            return json.dumps(task.call(*context, *result.args, **result.kwargs))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as in Django's own backend, SystemExit is a failure of the task
            return error

    def _set(self, stored: StoredTask, outcome: str | BaseException) -> None:
        if isinstance(outcome, BaseException):
            stored.status, stored.returned = TaskResultStatus.FAILED.value, None
            stored.add_error(type(outcome), "".join(format_exception(outcome)))
        else:
            stored.status, stored.returned = TaskResultStatus.SUCCESSFUL.value, outcome

    def _store(self, task: StoredTask) -> None:
        """Store the outcome, or put the task back; repeat while the table is unavailable and the lease holds."""
        attempts = len(task.worker_ids)
        is_retried = task.status == TaskResultStatus.FAILED and attempts < self._backend.max_attempts
        end = time.monotonic() + self._backend.lease.total_seconds()
        while True:
            try:
                if is_retried:
                    is_held = task.release(self._backend.retry_delay * 2 ** (attempts - 1))
                else:
                    is_held = task.finish(self._backend.keep_results)
            except ItemTooLarge as error:
                if task.status != TaskResultStatus.SUCCESSFUL:
                    raise  # not by an error: MAX_ARGUMENTS leaves room for each
                self._set(task, error)
            except TableUnavailable as error:
                if time.monotonic() > end:
                    logger.error("The outcome of %s is not stored, and the task runs again: %s", task, error)
                    return
                time.sleep(1)
            else:
                break
        if not is_held:
            logger.warning("The lease of %s has expired: its outcome is that of another worker.", task)
        elif not is_retried:
            self._announce(task)

    def _announce(self, stored: StoredTask) -> None:
        try:
            task = self._backend.task_of(stored)
        except Exception:
            logger.exception("The task %s has failed.", stored)
        else:
            task_finished.send_robust(type(self._backend), task_result=self._backend.result_of(stored, task))


class _Lease:
    """Extends the lease of a task in a thread, while the task runs.

    Past the time limit the process ends, so that another worker starts the task again: a thread cannot end a function.
    """

    def __init__(self, task: StoredTask, backend: DynamoTaskBackend) -> None:
        self._task = task
        self._backend = backend
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._extend, name=f"lease of {task.task_id}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _extend(self) -> None:
        limit = time.monotonic() + self._backend.time_limit.total_seconds()
        step = self._backend.lease.total_seconds() / 3
        while not self._is_over.wait(max(min(step, limit - time.monotonic()), 0)):
            if time.monotonic() >= limit:
                logger.error("%s ran longer than the time limit. The worker ends.", self._task)
                logging.shutdown()
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                if not self._task.extend(self._backend.lease):
                    logger.warning("Another worker has claimed %s: it runs twice.", self._task)
                    return
            except TableUnavailable as error:
                logger.warning("The lease of %s is not extended: %s", self._task, error)
