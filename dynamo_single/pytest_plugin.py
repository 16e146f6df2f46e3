"""The pytest plugin: test tables for ``django_db`` tests, a guard for all other tables, and three fixtures.

pytest loads it if the package is installed (entry point ``pytest11``); no other module imports it. Test tables need
pytest-django, whose fixtures and marks determine which tests have a database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.apps import apps

from dynamo_single.table.redirects import listening
from dynamo_single.test_tables import hooks
from dynamo_single.testing import FrozenTime, Requests, expire_items, fault, frozen_time

__all__ = ["Clock", "Faults", "dynamo_clock", "dynamo_fault", "dynamo_requests"]

_STACK = pytest.StashKey[ExitStack]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Guard every table, and create test tables with the first test database, in projects that use the app."""
    if apps.ready and apps.is_installed("dynamo_single"):
        stack = session.config.stash[_STACK] = ExitStack()
        stack.enter_context(hooks.wrapped_hooks())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Scan the test tables after the last test of each file, because test functions have no class for it."""
    hooks.look_after_test(nextitem is None or nextitem.path != item.path)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restore Django's methods."""
    if stack := config.stash.get(_STACK, None):
        stack.close()


@pytest.fixture
def dynamo_requests() -> Iterator[Requests]:
    """Return the requests that the test sends: ``len()`` counts them, and ``operations`` names them.

    They are printed at the end of the test; pytest shows them if it fails. ``clear()`` removes earlier requests.
    """
    requests = Requests()
    with listening(requests.append):
        yield requests
    print(requests)


class Faults:
    """Injects faults until the test ends."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, name: str, *, operation: str | None = None, times: int | None = None) -> None:
        """Let further requests fail, with the arguments of ``dynamo_single.testing.fault()``."""
        self._stack.enter_context(fault(name, operation=operation, times=times))

    def clear(self) -> None:
        """Stop injecting faults."""
        self._stack.close()


@pytest.fixture
def dynamo_fault() -> Iterator[Faults]:
    """Inject a fault until the test ends: ``dynamo_fault("throttled", operation="GetItem", times=1)``."""
    with ExitStack() as stack:
        yield Faults(stack)


class Clock(FrozenTime):
    """The stopped clock of the app, which also determines DynamoDB's time to live."""

    def move(self, by: timedelta) -> None:
        """Move the clock forwards, or back by a negative timedelta, and delete expired items from the test tables."""
        super().move(by)
        expire_items()


@pytest.fixture
def dynamo_clock() -> Iterator[Clock]:
    """Stop the app's clock until the test moves it, which also expires items."""
    with frozen_time():
        yield Clock()
