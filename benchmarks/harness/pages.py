"""Whole pages of two projects, ours and one on SQLite, each in a separate process."""

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
    """Set up Django with its tables in the child; return whether the tables use SQL."""
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
    """Measure a page in both projects alternately; return the row."""
    with _workers(module) as calls:
        cases = {side: partial(call, size.times(repeat)) for side, call in calls.items()}
        return Row(name, SQLITE, asked(cases, count=size.rounds))
