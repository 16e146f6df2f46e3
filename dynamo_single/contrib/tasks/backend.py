"""The backend for ``TASKS``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django.tasks import Task, TaskResult, TaskResultStatus
from django.tasks.backends.base import BaseTaskBackend
from django.tasks.base import TaskError
from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
from django.tasks.signals import task_enqueued
from django.utils.module_loading import import_string

from dynamo_single import clock, transactions
from dynamo_single.contrib.tasks.models import MAX_ARGUMENTS, StoredTask, later_place, ready_place
from dynamo_single.exceptions import ConfigurationError

#: The options, with their defaults; all but ``max_attempts`` are seconds.
DEFAULTS: dict[str, float] = {
    "lease": 60,
    "max_attempts": 3,
    "retry_delay": 10,
    "time_limit": 60 * 60,
    "keep_results": 7 * 24 * 60 * 60,
}


class DynamoTaskBackend(BaseTaskBackend):
    """Stores tasks as items, for ``manage.py dynamo_worker``.

    ``enqueue()`` sends one PutItem. In a block of ``dynamo_single.transactions.atomic()`` it is a part of the block's
    transaction. ``get_result()`` sends one strongly consistent GetItem. ``OPTIONS`` has these keys:

    - ``lease``: seconds after which another worker can claim the task of a worker that has ended.
    - ``max_attempts``: how often a task is started, whether it raised an error or its worker ended.
    - ``retry_delay``: seconds until the second attempt after an error; each further delay is twice as long.
    - ``time_limit``: seconds after which a worker ends, so that another one runs the task.
    - ``keep_results``: seconds for which finished tasks are kept.
    """

    supports_async_task = True
    supports_defer = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        unknown = set(self.options) - set(DEFAULTS)
        if unknown:
            raise ConfigurationError(
                f"TASKS[{alias!r}]['OPTIONS'] has unknown keys: {', '.join(sorted(unknown))}. Use "
                f"{', '.join(DEFAULTS)}."
            )
        options = DEFAULTS | self.options
        for name, value in options.items():
            least = 0 if name == "retry_delay" else 1
            if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
                raise ConfigurationError(
                    f"TASKS[{alias!r}]['OPTIONS'][{name!r}] is {value!r}. Set it to a number of at least {least}."
                )
        self.lease = timedelta(seconds=options["lease"])
        self.max_attempts = int(options["max_attempts"])
        self.retry_delay = timedelta(seconds=options["retry_delay"])
        self.time_limit = timedelta(seconds=options["time_limit"])
        self.keep_results = timedelta(seconds=options["keep_results"])

    def enqueue(self, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Store a task: one PutItem. ``task_enqueued`` is sent when it is in the table.

        Raises ``InvalidTask`` if its arguments are longer than ``MAX_ARGUMENTS`` bytes of JSON.
        """
        self.validate_task(task)
        stored = self._stored(task, args, kwargs)
        stored.save()
        return self._announced(stored, task)

    async def aenqueue(self, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The asynchronous variant of ``enqueue()``."""
        self.validate_task(task)
        stored = self._stored(task, args, kwargs)
        await stored.asave()
        return self._announced(stored, task)

    def get_result(self, result_id: str) -> TaskResult[..., Any]:
        """Return a task by its id: one GetItem. Raises ``TaskResultDoesNotExist``, also once it has expired."""
        return self._found(result_id, StoredTask.objects.consistent().filter(pk=str(result_id)).first())

    async def aget_result(self, result_id: str) -> TaskResult[..., Any]:
        """The asynchronous variant of ``get_result()``."""
        return self._found(result_id, await StoredTask.objects.consistent().filter(pk=str(result_id)).afirst())

    def task_of(self, stored: StoredTask) -> Task[..., Any]:
        """Return the task as it was enqueued; raise ``InvalidTask`` if it is not in the code, or no longer valid."""
        try:
            found = import_string(stored.path)
        except ImportError as error:
            raise InvalidTask(f"Cannot import {stored.path}, the task of {stored.task_id}: {error}") from error
        if not isinstance(found, Task):
            raise InvalidTask(f"{stored.path}, the task of {stored.task_id}, is not a task. Decorate it with @task.")
        return found.using(
            priority=stored.priority, queue_name=stored.queue, run_after=stored.run_after, backend=self.alias
        )

    def result_of(self, stored: StoredTask, task: Task[..., Any]) -> TaskResult[..., Any]:
        """Return the result of a stored task."""
        args, kwargs = stored.called_with
        result: TaskResult[..., Any] = TaskResult(
            task=task,
            id=stored.task_id,
            status=TaskResultStatus(stored.status),
            enqueued_at=stored.enqueued_at,
            started_at=stored.started_at,
            finished_at=stored.finished_at,
            last_attempted_at=stored.last_attempted_at,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[TaskError(**error) for error in stored.errors],
            worker_ids=[*stored.worker_ids],
        )
        # As Django's own backends do: a result is frozen, and its constructor does not accept the value.
        object.__setattr__(result, "_return_value", None if stored.returned is None else json.loads(stored.returned))
        return result

    def check(self, **kwargs: Any) -> list[Any]:
        """Return errors of the settings."""
        from django.apps import apps
        from django.core.checks import Error

        if apps.is_installed("dynamo_single.contrib.tasks"):
            return []
        return [Error('"dynamo_single.contrib.tasks" is not in INSTALLED_APPS.', id="dynamo_tasks.E001")]

    def _stored(self, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> StoredTask:
        now = clock.now()
        arguments = json.dumps({"args": [*args], "kwargs": {**kwargs}})
        if len(arguments) > MAX_ARGUMENTS:  # json.dumps() escapes what is not ASCII
            raise InvalidTask(
                f"The arguments of {task.module_path} are {len(arguments)} bytes of JSON, and a task stores at most "
                f"{MAX_ARGUMENTS}. Nothing was enqueued. Store the data as an object, and pass its primary key."
            )
        return StoredTask(
            backend=self.alias,
            queue=task.queue_name,
            priority=task.priority,
            place=later_place(task.run_after) if task.run_after is not None else ready_place(task.priority, now),
            path=task.module_path,
            arguments=arguments,
            run_after=task.run_after,
            enqueued_at=now,
        )

    def _announced(self, stored: StoredTask, task: Task[..., Any]) -> TaskResult[..., Any]:
        result = self.result_of(stored, task)
        transactions.on_commit(partial(task_enqueued.send, type(self), task_result=result))
        return result

    def _found(self, result_id: str, stored: StoredTask | None) -> TaskResult[..., Any]:
        if stored is None or stored.backend != self.alias:
            raise TaskResultDoesNotExist(result_id)
        return self.result_of(stored, self.task_of(stored))
