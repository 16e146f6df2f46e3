"""The pytest plugin: test tables for ``django_db`` tests, no other table in reach, and three fixtures.

pytest loads it where the package is installed (entry point ``pytest11``); nothing else imports it. Test tables come
with pytest-django, whose fixtures and marks decide which test has a database.
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
    """Guard every table, and make test tables with the first test database; in projects that have the app."""
    if apps.ready and apps.is_installed("dynamo_single"):
        stack = session.config.stash[_STACK] = ExitStack()
        stack.enter_context(hooks.wrapped_hooks())


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Have the test tables scanned after the last test of each file: a test function has no class that would do it."""
    hooks.look_after_test(nextitem is None or nextitem.path != item.path)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave Django as it was."""
    if stack := config.stash.get(_STACK, None):
        stack.close()


@pytest.fixture
def dynamo_requests() -> Iterator[Requests]:
    """The requests that the test sends: ``len()`` counts them, ``operations`` names them.

    They are printed when the test ends, which pytest shows if it fails. ``clear()`` forgets what came before.
    """
    requests = Requests()
    with listening(requests.append):
        yield requests
    print(requests)


class Faults:
    """Answers requests with faults until the test ends."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, name: str, *, operation: str | None = None, times: int | None = None) -> None:
        """From now on let requests fail as ``dynamo_single.testing.fault()`` does, with the same arguments."""
        self._stack.enter_context(fault(name, operation=operation, times=times))

    def clear(self) -> None:
        """Answer no more of them."""
        self._stack.close()


@pytest.fixture
def dynamo_fault() -> Iterator[Faults]:
    """``dynamo_fault("throttled", operation="GetItem", times=1)``: a fault by its name, until the test ends."""
    with ExitStack() as stack:
        yield Faults(stack)


class Clock(FrozenTime):
    """The app's clock while it stands still; DynamoDB's time to live goes by it too."""

    def move(self, by: timedelta) -> None:
        """Set the clock ahead, or back by a negative span, and delete from the test tables what has expired by then."""
        super().move(by)
        expire_items()


@pytest.fixture
def dynamo_clock() -> Iterator[Clock]:
    """The app's clock, which stands still until the test moves it, and takes times to live along."""
    with frozen_time():
        yield Clock()
