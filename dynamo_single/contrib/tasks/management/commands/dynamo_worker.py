"""``manage.py dynamo_worker``: run the tasks of a backend for ``TASKS``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.tasks import task_backends

from dynamo_single.contrib.tasks.backend import DynamoTaskBackend
from dynamo_single.contrib.tasks.worker import Worker
from dynamo_single.exceptions import DynamoSingleError


class Command(BaseCommand):
    """Run tasks until SIGTERM or SIGINT, which let the current task finish. A second signal puts it back."""

    help = "Runs the tasks that Django's TASKS stores in the table. Run as many workers as you need."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--backend``, ``--queue``, ``--interval`` and ``--until-empty``."""
        parser.add_argument("--backend", default="default", help="the alias in TASKS (default: %(default)s)")
        parser.add_argument(
            "--queue", action="append", metavar="NAME", help="a queue; repeat it for several (default: all in QUEUES)"
        )
        parser.add_argument(
            "--interval",
            type=float,
            default=1.0,
            metavar="SECONDS",
            help="how often an idle worker reads each queue (default: %(default)s)",
        )
        parser.add_argument("--until-empty", action="store_true", help="end when no task can be run now")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the worker."""
        if not 0.1 <= options["interval"] <= 3600:
            raise CommandError("--interval is a number of seconds from 0.1 to 3600.")
        backend = _backend(options["backend"])
        queues = options["queue"] or sorted(backend.queues)
        unknown = sorted({*queues} - backend.queues) if backend.queues else []
        if not queues:
            raise CommandError(f"TASKS[{backend.alias!r}]['QUEUES'] is empty. Name the queues with --queue.")
        if unknown:
            raise CommandError(f"Unknown queue: {', '.join(unknown)}. Use {', '.join(sorted(backend.queues))}.")
        worker = Worker(backend, queues, interval=options["interval"])
        if options["verbosity"]:
            self.stdout.write(f"Worker {worker.id} runs the tasks of {', '.join(queues)}.")
            self.stdout.flush()
        try:
            with _stopping(worker):
                worker.run(until_empty=options["until_empty"])
        except DynamoSingleError as error:
            raise CommandError(str(error)) from error


@contextmanager
def _stopping(worker: Worker) -> Iterator[None]:
    """Stop the worker by the first signal, and interrupt its task by the second."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def stop(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.default_int_handler)
        worker.stop()

    for each in before:
        signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _backend(alias: str) -> DynamoTaskBackend:
    if alias not in task_backends.settings:
        raise CommandError(f"TASKS has no backend {alias!r}. Use {', '.join(sorted(task_backends.settings))}.")
    backend: object = task_backends[alias]
    if not isinstance(backend, DynamoTaskBackend):
        raise CommandError(
            f"TASKS[{alias!r}] does not store tasks in the table. Set its BACKEND to "
            '"dynamo_single.contrib.tasks.backend.DynamoTaskBackend".'
        )
    return backend
