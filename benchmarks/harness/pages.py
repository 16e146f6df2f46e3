"""Whole pages of two projects, ours and one on SQLite, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import call_command

from benchmarks.harness.report import CONTROL, OURS, Row, Size
from benchmarks.harness.rounds import asked
from benchmarks.harness.worker import Worker
from dynamo_single.testing import local_engine

SQLITE = "Django, SQLite"


def begin() -> bool:
    """Set Django up in the child, with tables; whether they are SQL's."""
    django.setup()
    is_sql = "sqlite3" in settings.DATABASES["default"]["ENGINE"]
    if is_sql:
        call_command("migrate", run_syncdb=True, verbosity=0)
    return is_sql


@contextmanager
def _workers(module: str) -> Iterator[Mapping[str, Callable[[int], float]]]:
    with local_engine() as table, ExitStack() as stack:
        port = urlsplit(table.settings.endpoint_url).port
        url = f"dynamodb://127.0.0.1:{port}/{table.name}?region={table.settings.region}"
        on_sql = stack.enter_context(Worker(module, "benchmarks.settings_sql"))
        ours = stack.enter_context(Worker(module, "benchmarks.settings_dynamo", DYNAMO_URL=url))
        yield {SQLITE: on_sql.call, OURS: ours.call, CONTROL: ours.call}


def row_of(name: str, module: str, *, repeat: int, size: Size) -> Row:
    """A page in both projects, in turns."""
    with _workers(module) as calls:
        cases = {side: partial(call, size.times(repeat)) for side, call in calls.items()}
        return Row(name, SQLITE, asked(cases, count=size.rounds))
