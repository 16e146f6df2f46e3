"""The app's clock: its values, its use in tests, and the absence of other clocks in the app."""

from __future__ import annotations

import ast
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest
from django.test import override_settings
from django.utils import timezone

from dynamo_single import clock
from dynamo_single.testing import frozen_time, moved_time

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)
SOON = timedelta(seconds=5)

#: Functions that return the current time.
ASKS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.gmtime",
    "time.localtime",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "django.utils.timezone.now",
}
#: Functions that return the current time without an argument.
ASKS_WITHOUT_ARGUMENT = {"django.utils.timezone.localdate", "django.utils.timezone.localtime"}
#: A module without such a line needs no parsing, which takes seconds for all modules.
IMPORTS = re.compile(r"^\s*(import|from)\b.*\b(time|datetime|timezone|utils)\b", re.MULTILINE)
#: The allowed modules, their functions and the reasons.
MAY_ASK = {
    # This is the clock.
    ("dynamo_single/clock.py", "django.utils.timezone.now"),
    ("dynamo_single/clock.py", "time.time"),
    # Waits for a process or a table: a test that moves the clock does not prolong them.
    ("dynamo_single/engines.py", "time.monotonic"),
    ("dynamo_single/table/schema.py", "time.monotonic"),
    ("project/site/management/commands/demo.py", "time.monotonic"),
    # The creation time of a table is compared with the computer's clock.
    ("dynamo_single/test_tables/run_locks.py", "time.time"),
    # The time of a request.
    ("dynamo_single/table/deadlines.py", "time.monotonic"),
    ("dynamo_single/table/transport.py", "time.monotonic"),
    ("dynamo_single/table/http/connections.py", "time.monotonic"),
    # A signature is compared with the server's clock, which tests do not move.
    ("dynamo_single/table/transport.py", "time.time"),
    # It formats a given time.
    ("dynamo_single/table/http/botocore_client.py", "time.gmtime"),
    ("dynamo_single/table/transport.py", "time.gmtime"),
    # How long a task ran, and a worker waited.
    ("dynamo_single/contrib/tasks/worker.py", "time.monotonic"),
    # When a span ended, which other services compare with their spans.
    ("dynamo_single/contrib/observability/telemetry.py", "time.time_ns"),
    # When it last looked for a provider.
    ("dynamo_single/contrib/observability/telemetry.py", "time.monotonic"),
    # The end of a lease, and the server's response about its clock.
    ("dynamo_single/table/lease.py", "time.monotonic"),
    ("dynamo_single/orm/rollout/tolerance.py", "time.monotonic"),
    ("dynamo_single/orm/rollout/knowledge.py", "time.time"),
    ("dynamo_single/orm/rollout/presence.py", "time.time"),
    # How long a command waits for processes, and the server's time.
    ("dynamo_single/evolution/processes.py", "time.monotonic"),
    ("dynamo_single/evolution/processes.py", "time.time"),
    ("dynamo_single/evolution/steps.py", "time.monotonic"),
    # How long one request of a browser carries a job on.
    ("dynamo_single/admin/batch_actions/jobs.py", "time.monotonic"),
    # The age of a table's cached state.
    ("dynamo_single/orm/rollout/knowledge.py", "time.monotonic"),
    ("dynamo_single/orm/schema/bindings.py", "time.monotonic"),
    # The speed of reads, for the user's rate.
    ("dynamo_single/evolution/backfill/run.py", "time.monotonic"),
    ("dynamo_single/evolution/backfill/report.py", "time.monotonic"),
    # The time since items were read, so that an index shows earlier writes.
    ("dynamo_single/orm/effects/recount.py", "time.monotonic"),
    # The interval of progress reports.
    ("dynamo_single/evolution/migrate_run.py", "time.monotonic"),
    ("dynamo_single/table/batches.py", "time.monotonic"),
}


def asked(source: str) -> Iterator[str]:
    """Return the functions for the current time that a module uses, by full name."""
    if not IMPORTS.search(source):
        return
    nodes = [*ast.walk(ast.parse(source))]
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                bound = each.name if each.asname else each.name.partition(".")[0]
                known[each.asname or bound] = bound
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and (name := full_name(node, known)) in ASKS:
            yield name
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            name = full_name(node.func, known)
            if name in ASKS_WITHOUT_ARGUMENT:
                yield name


def full_name(node: ast.expr, known: dict[str, str]) -> str:
    """Return the dotted name of an expression, as far as the imports determine it."""
    if isinstance(node, ast.Attribute):
        return f"{full_name(node.value, known)}.{node.attr}"
    return known.get(node.id, "") if isinstance(node, ast.Name) else ""


def test_nobody_else_asks_for_the_time() -> None:
    """Only the clock reads the current time, except for private measurements of durations."""
    found = {
        (str(path.relative_to(ROOT)), name)
        for package in ("dynamo_single", "accounts", "project")
        for path in (ROOT / package).rglob("*.py")
        for name in asked(path.read_text())
    }
    assert found == MAY_ASK


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\ntime.time()", ["time.time"]),
        ("import time as t\nt.time()", ["time.time"]),
        ("from time import time\ntime()", ["time.time"]),
        ("from django.utils import timezone\nField(default=timezone.now)", ["django.utils.timezone.now"]),
        ("from django.utils.timezone import now as n\nn()", ["django.utils.timezone.now"]),
        ("import django.utils.timezone\ndjango.utils.timezone.now()", ["django.utils.timezone.now"]),
        ("from datetime import datetime\ndatetime.now(UTC)", ["datetime.datetime.now"]),
        ("import datetime\ndatetime.date.today()", ["datetime.date.today"]),
        ("from django.utils import timezone\ntimezone.localdate()", ["django.utils.timezone.localdate"]),
        ("from django.utils import timezone\ntimezone.localtime(value)", []),
        ("from dynamo_single import clock\nclock.now()", []),
        ("import datetime\ndatetime.time()", []),
    ],
)
def test_a_question_for_the_time_is_found(source: str, found: list[str]) -> None:
    """The kind of import does not matter."""
    assert list(asked(source)) == found


def test_the_clock_gives_the_computers_time() -> None:
    """Left alone it differs from nothing."""
    assert abs(clock.now() - timezone.now()) < SOON
    assert abs(clock.timestamp() - time.time()) < 5
    assert clock.now().tzinfo is not None


def test_the_clock_follows_what_stands_in_for_the_computers() -> None:
    """Tests that replace ``time.time`` and ``timezone.now`` move the clock too."""
    with mock.patch("django.utils.timezone.now", return_value=NOON), mock.patch("time.time", NOON.timestamp):
        assert (clock.now(), clock.timestamp(), clock.today()) == (NOON, NOON.timestamp(), date(2024, 2, 29))


def test_time_is_moved_within_the_block() -> None:
    """The clock moves ahead, back in an inner block, and to its former value after an error."""
    with pytest.raises(ZeroDivisionError), moved_time(timedelta(days=400)):
        assert abs(clock.now() - timezone.now() - timedelta(days=400)) < SOON
        assert abs(clock.timestamp() - time.time() - 400 * 86400) < 5
        assert clock.today() == date.fromtimestamp(time.time() + 400 * 86400)
        with moved_time(-timedelta(days=400)):
            assert abs(clock.now() - timezone.now()) < SOON
        raise ZeroDivisionError
    assert abs(clock.now() - timezone.now()) < SOON


def test_time_is_moved_for_every_thread() -> None:
    """The app's own threads use the test's clock."""
    seen: list[datetime] = []
    with moved_time(timedelta(days=400)):
        thread = threading.Thread(target=lambda: seen.append(clock.now()))
        thread.start()
        thread.join()
    assert abs(seen[0] - timezone.now() - timedelta(days=400)) < SOON


def test_a_function_can_be_decorated() -> None:
    """Other context managers of Django's tests can do this too."""

    @frozen_time(NOON)
    def asks() -> datetime:
        return clock.now()

    assert [asks(), asks()] == [NOON, NOON]


def test_frozen_time_stands_still_until_it_is_moved() -> None:
    """All three functions return the same microsecond."""
    with frozen_time(NOON) as frozen:
        assert (clock.now(), clock.timestamp(), clock.today()) == (NOON, NOON.timestamp(), date(2024, 2, 29))
        assert clock.now().tzinfo is UTC
        frozen.move(12 * HOUR)
        assert (clock.now(), clock.timestamp()) == (NOON + 12 * HOUR, (NOON + 12 * HOUR).timestamp())
        assert clock.today() == date(2024, 3, 1)
        frozen.move(-HOUR)
        assert clock.now() == NOON + 11 * HOUR
    assert abs(clock.now() - timezone.now()) < SOON


def test_the_present_is_frozen() -> None:
    """Without an argument, the clock stops at the start of the block."""
    with moved_time(HOUR), frozen_time():
        first = clock.now()
        time.sleep(0.002)
        assert clock.now() == first
        assert abs(first - timezone.now() - HOUR) < SOON


def test_blocks_within_blocks() -> None:
    """A given time is absolute; inner moves are undone, and outer blocks stay."""
    with moved_time(HOUR), frozen_time(NOON) as outer:
        outer.move(HOUR)
        with moved_time(HOUR):
            assert clock.now() == NOON + 2 * HOUR
        with frozen_time(NOON):
            assert clock.now() == NOON
        assert clock.now() == NOON + HOUR


def test_a_naive_moment_is_taken_in_the_default_time_zone() -> None:
    """Django does the same for a field."""
    with override_settings(TIME_ZONE="Asia/Tokyo"), frozen_time(datetime(2024, 2, 29, 21)):
        assert clock.now() == datetime(2024, 2, 29, 12, tzinfo=UTC)


@override_settings(USE_TZ=False)
def test_without_time_zones_the_present_is_naive() -> None:
    """This applies to a moved, stopped and normal clock, with the same time as the timestamp."""
    assert abs(clock.now() - timezone.now()) < SOON
    with moved_time(HOUR):
        assert abs(clock.now() - timezone.now() - HOUR) < SOON
    with frozen_time(NOON):
        assert clock.now() == datetime.fromtimestamp(NOON.timestamp())
        assert clock.now().timestamp() == clock.timestamp()
