"""Tools for the tests of projects that use the app: an engine, the sent requests, faults, and the time.

Nothing here is needed at run time, and nothing depends on a test framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.test import override_settings
from django.utils import timezone

from dynamo_single import clock
from dynamo_single.conf import TableSettings, aliases, engine_setting, parse, shapes
from dynamo_single.engines import Engine, LocalEngine, find_engine
from dynamo_single.table import redirects, schema
from dynamo_single.table.http.faults import refusal, unanswered, unreachable
from dynamo_single.table.redirects import Interceptor, SentRequest, capture_requests, intercept
from dynamo_single.table.request import Parameters
from dynamo_single.table.table import Table, get_table
from dynamo_single.test_tables import contents, guard
from dynamo_single.test_tables.contents import request_line

__all__ = [
    "FAULTS",
    "FrozenTime",
    "Interceptor",
    "LocalEngine",
    "Requests",
    "SentRequest",
    "assert_requests",
    "capture_requests",
    "expire_items",
    "fault",
    "frozen_time",
    "intercept",
    "local_engine",
    "moved_time",
    "refusal",
    "refuse",
    "setup_table",
    "unreachable",
]


class Requests(list[SentRequest]):
    """Sent requests in the order of their responses."""

    @property
    def operations(self) -> list[str]:
        """The operation of each request."""
        return [request.operation for request in self]

    def __str__(self) -> str:
        """Return a line for each request with its parameters, and their total consumption."""
        lines = [f"{number}. {request_line(request)}" for number, request in enumerate(self, start=1)]
        consumed = sum(request.consumed for request in self)
        return "\n".join([f"Requests: {len(self)}, capacity units: {consumed:g}", *lines])


@contextmanager
def assert_requests(expected: int | Sequence[str]) -> Iterator[list[SentRequest]]:
    """Assert the number of the block's requests, or their operations in order. A failure lists them."""
    with capture_requests() as sent:
        yield sent
    operations = [request.operation for request in sent]
    holds = len(sent) == expected if isinstance(expected, int) else operations == list(expected)
    if not holds:
        wanted = f"{expected} requests" if isinstance(expected, int) else ", ".join(expected) or "no requests"
        listed = "\n".join(f"{number}. {request_line(request)}" for number, request in enumerate(sent, start=1))
        raise AssertionError(f"Expected {wanted}, but {len(sent)} were sent:\n{listed or '(none)'}")


@contextmanager
def refuse(code: str, *, operation: str | None = None, times: int | None = None, **answer: Any) -> Iterator[None]:
    """Simulate DynamoDB's rejection of requests in the block with an error code.

    It affects all requests, or only the first ``times`` of one operation. ``answer`` is added to DynamoDB's response
    next to the error, such as ``CancellationReasons=[{"Code": "None"}]``.
    """
    with _failing(lambda asked, params: refusal(asked, code, **answer), operation, times):
        yield


@contextmanager
def _failing(
    failure: Callable[[str, Parameters], Exception], operation: str | None, times: int | None
) -> Iterator[None]:
    left = times

    def interceptor(asked: str, params: Parameters) -> None:
        nonlocal left
        if left == 0 or (operation is not None and asked != operation):
            return
        if left is not None:
            left -= 1
        raise failure(asked, params)

    try:
        with intercept(interceptor):
            yield
    finally:
        # A right that was only refused by a test must not be missing in the next one.
        for each in map(get_table, aliases()):
            each.takes_statements = True


#: The faults of ``fault()``, with DynamoDB's error code if DynamoDB rejects the request.
FAULTS: Mapping[str, str] = {
    "throttled": "ThrottlingException",
    "conflict": "TransactionConflictException",
    "denied": "AccessDeniedException",
    "no table": "ResourceNotFoundException",
    "server error": "InternalServerError",
    "unreachable": "",
    "lost answer": "",
}


@contextmanager
def fault(
    name: str, *, operation: str | None = None, times: int | None = None, alias: str = "default"
) -> Iterator[None]:
    """Let requests in the block fail in a way of ``FAULTS``: all, or only the first ``times`` of one operation.

    ``"unreachable"``: no request is sent. ``"lost answer"``: the request is executed on the alias's table, and its
    response is lost. For the others, DynamoDB rejects the request without an effect.
    """
    if name not in FAULTS:
        raise ValueError(f"There is no fault {name!r}; there are {', '.join(map(repr, FAULTS))}.")
    with _failing(lambda asked, params: _failure(name, get_table(alias), asked, params), operation, times):
        yield


def _failure(name: str, table: Table, operation: str, params: Parameters) -> Exception:
    if name == "unreachable":
        return unreachable(table.settings)
    if name == "lost answer":
        # A new context has no interceptors or listeners: the request is sent, but counts only as the failed one.
        Context().run(table.call, operation, params)
        return unanswered(table.settings)
    if name == "conflict" and operation == "TransactWriteItems":
        reasons = [{"Code": "TransactionConflict"} for _ in params["TransactItems"]]
        return refusal(operation, "TransactionCanceledException", CancellationReasons=reasons)
    return refusal(operation, FAULTS[name])


@contextmanager
def moved_time(by: timedelta) -> Iterator[None]:
    """Move the app's clock forwards within the block, or back by a negative timedelta; nested blocks add up.

    This changes the clock of ``dynamo_single.clock`` for all threads, not the computer's.
    """
    clock.adjustment.moved += by
    try:
        yield
    finally:
        clock.adjustment.moved -= by


class FrozenTime:
    """The stopped clock of the app."""

    def move(self, by: timedelta) -> None:
        """Move the clock forwards, or back by a negative timedelta."""
        clock.adjustment.moved += by


@contextmanager
def frozen_time(at: datetime | None = None) -> Iterator[FrozenTime]:
    """Stop the app's clock within the block, at a datetime or the current time, until ``move()`` is called.

    A naive datetime is in Django's default time zone. As for ``moved_time()``, only the app's clock changes.
    """
    before = clock.adjustment.stopped, clock.adjustment.moved
    moment = datetime.fromtimestamp(clock.timestamp(), UTC) if at is None else at
    aware = timezone.make_aware(moment, timezone.get_default_timezone()) if timezone.is_naive(moment) else moment
    clock.adjustment.stopped, clock.adjustment.moved = aware, timedelta()
    try:
        yield FrozenTime()
    finally:
        clock.adjustment.stopped, clock.adjustment.moved = before


def expire_items() -> int:
    """Delete the items that have expired by the app's clock, as DynamoDB does within days, and return their number.

    The function affects only test tables, and tables of engines that the test runs. It sends a Scan of each.
    """
    found = {table.settings: table for table in map(get_table, aliases()) if _is_of_tests(table)}
    return sum(contents.expire(table, clock.timestamp()) for table in found.values())


def _is_of_tests(table: Table) -> bool:
    return redirects.is_stand_in(table.settings) or redirects.is_test_engine(table.settings)


@contextmanager
def local_engine(*, alias: str = "default", root: Path | None = None, engine: Engine | None = None) -> Iterator[Table]:
    """Run an engine in memory on a free port, with the alias pointing to it and its table created.

    The companion of the table is created there too, and so are the tables whose companion it is.

    Use it in a session-wide fixture, since starting takes some milliseconds. Without ``engine``, the setting
    ``DYNAMO_SINGLE_ENGINE`` chooses the engine. ``root`` is the directory of ``node_modules``.
    """
    where = root or Path(getattr(django_settings, "BASE_DIR", Path.cwd()))
    with LocalEngine(engine or find_engine(where, engine_setting())) as running:
        declared = django_settings.DYNAMO_SINGLE
        local = {each.alias: _at(running.endpoint_url, each) for each in _with_companions(alias, declared)}
        with override_settings(DYNAMO_SINGLE={**declared, **local}), guard.allow_engine(running.endpoint_url):
            for each in map(get_table, local):
                schema.apply(schema.as_owned(each))
            yield get_table(alias)


def _with_companions(alias: str, declared: Mapping[str, object]) -> list[TableSettings]:
    """Return the settings of an alias, of its companion, and of the tables that have it as their companion."""
    known = parse(alias, declared[alias])
    others = [parse(name, value) for name, value in declared.items() if name != alias]
    return [known, *(each for each in others if alias == each.companion or each.alias == known.companion)]


def _at(endpoint_url: str, known: TableSettings) -> dict[str, object]:
    """Return the settings of a table at another endpoint."""
    return {
        "TABLE_NAME": known.table_name,
        "REGION": known.region,
        **shapes.declared(known.shape),
        "ENDPOINT_URL": endpoint_url,
        "TRANSPORT": known.transport,
        **({} if known.owns else {"OWNS": False}),
        **({"COMPANION": known.companion} if known.companion else {}),
    }


def setup_table(alias: str = "default") -> Table:
    """Return an empty table that matches the settings, for a fixture of each test. Only on a local engine.

    A matching table with at most 100 items is emptied in a few milliseconds. Any other table is created again.
    """
    table = get_table(alias)
    fits = table.settings.is_local and not schema.differences(schema.as_owned(table).settings, schema.observe(table))
    if fits and contents.empty(table, most=100):
        return table
    table.replaced += 1
    return schema.recreate(table)
