"""The guard of a test's requests: only test tables while Django allows database access, and engines of the test itself.

Django and pytest-django decide about database access; both replace the same method. So the ``django_db`` mark,
``databases`` of a test class, and ``django_db_blocker`` mean the same here as for SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import AccessOutsideTest
from dynamo_single.table import redirects
from dynamo_single.table.request import Parameters
from dynamo_single.test_tables import write_record

_without_guard: ContextVar[bool] = ContextVar("lifted", default=False)

_WAY_OUT = (
    "Use the django_db mark or fixture, TestCase or TransactionTestCase with this database in `databases`, or run an "
    "engine of the test's own with dynamo_single.testing.local_engine()."
)


def check(settings: TableSettings, operation: str, params: Parameters) -> None:
    """Raise ``AccessOutsideTest`` unless a request to the table is allowed now, and record the items that it writes."""
    if redirects.is_test_engine(settings):
        return
    if not _without_guard.get():
        if refusal := _refusal():
            raise AccessOutsideTest(f"{_named(settings)}, and Django allows none: {refusal} {_WAY_OUT}") from refusal
        if not redirects.is_stand_in(settings):
            raise AccessOutsideTest(f"{_named(settings)}, which is not a table of the tests. {_WAY_OUT}")
    write_record.record_request(operation, params)


@contextmanager
def allow_engine(endpoint_url: str) -> Iterator[None]:
    """Allow tests and the processes that they start to reach every table of an engine that a test runs."""
    redirects.state.engines[endpoint_url] += 1
    redirects.publish()
    try:
        yield
    finally:
        redirects.state.engines[endpoint_url] -= 1
        redirects.publish()


@contextmanager
def guarded() -> Iterator[None]:
    """Check every request within the block, even before and after there are test tables.

    Processes that are started within the block cannot reach other tables either.
    """
    redirects.state.in_tests = True
    redirects.publish()
    start()
    try:
        yield
    finally:
        redirects.state.in_tests = False
        redirects.publish()
        stop()


def start() -> None:
    """Check every request of this process, and record its writes."""
    redirects.state.guard = check
    write_record.start()


def stop() -> None:
    """Check requests as before the tests, unless a ``guarded()`` block is active."""
    write_record.stop()
    redirects.state.guard = check if redirects.state.in_tests else redirects.default_guard()


@contextmanager
def without_guard() -> Iterator[None]:
    """Do not check requests within the block, to create, empty and remove the test tables themselves."""
    token = _without_guard.set(True)
    try:
        yield
    finally:
        _without_guard.reset(token)


def _named(settings: TableSettings) -> str:
    return f"A test sent a request to the table {settings.table_name!r} at {settings.place}"


def _refusal() -> BaseException | None:
    """Return why no connection may be opened now, or ``None`` if one of the aliases allows it."""
    refusal: BaseException | None = None
    # The error of the default alias explains best what a test lacks.
    for alias in sorted(connections, key=lambda each: each != DEFAULT_DB_ALIAS):
        try:
            BaseDatabaseWrapper.ensure_connection(cast(Any, _Probe(alias)))
        except (AssertionError, RuntimeError) as error:
            refusal = refusal or error
        else:
            return None
    return refusal


class _Probe:
    """The members of a closed connection that Django's and pytest-django's checks use. Opening it has no effect."""

    connection = None
    in_atomic_block = False
    closed_in_transaction = False

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.wrap_database_errors: AbstractContextManager[None] = nullcontext()

    def connect(self) -> None:
        """Allow the request."""

    def ensure_connection(self) -> None:
        """Do nothing: a check that refuses access has replaced this method and does not call it."""
