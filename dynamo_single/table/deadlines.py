"""How long a request may take in all its attempts, and how long one HTTP request may wait for DynamoDB.

A ``Deadline`` belongs to one request; a ``Budget`` to whatever sends several, such as a view: a context variable
carries it into threads and tasks. This module must not know HTTP, botocore or connections.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

from msgspec import Struct

from dynamo_single.conf import TableSettings

#: Seconds of each request that are not charged to a budget: a view may send many requests that are answered at once.
USUAL = 0.25


class Deadline(Struct, frozen=True):
    """When a request ends at the latest, by ``time.monotonic()``; ``reason`` says which setting that is of."""

    at: float
    reason: str

    @property
    def left(self) -> float:
        """The seconds that are left; 0 or less if none are."""
        return self.at - monotonic()

    def within(self, seconds: float) -> float:
        """The given seconds, or those that are left if they are fewer; raises ``TimeoutError`` if none are."""
        left = self.at - monotonic()
        if left <= 0:
            raise TimeoutError(self.reason)
        return min(left, seconds)

    def sooner(self, seconds: float) -> Deadline:
        """One in so many seconds, if that is before this one."""
        return Deadline(min(self.at, monotonic() + seconds), self.reason)


class BudgetSpent(Exception):
    """A request is not sent any more: those before it have waited as long as all of them may. The text says so."""


class Budget:
    """The seconds that the requests of a block may take together beyond ``USUAL`` each; threads may share it.

    When they are spent, the request that is under way is cut off, and no other one is sent.
    """

    def __init__(self, seconds: float, setting: str) -> None:
        self.seconds, self.setting = seconds, setting
        self.left = seconds
        self._lock = threading.Lock()

    def charge(self, seconds: float) -> None:
        """Take off what a request, or a pause, took."""
        if seconds > 0:
            with self._lock:
                self.left -= seconds

    @property
    def reason(self) -> str:
        """What a message says of the bound."""
        return f"{self.setting} is {self.seconds:g} seconds"


BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget(seconds: float | None, setting: str) -> Iterator[None]:
    """Within the block requests may wait for DynamoDB for so many seconds together; ``None`` is no bound.

    A block within another one has that one's budget. Tasks that were started in the block and go on after it have no
    such bound from then on.
    """
    if seconds is None or BUDGET.get() is not None:
        yield
        return
    own = Budget(seconds, setting)
    token = BUDGET.set(own)
    try:
        yield
    finally:
        BUDGET.reset(token)
        own.left = inf


def is_spent() -> bool:
    """Whether no further request of this block would be sent."""
    found = BUDGET.get()
    return found is not None and found.left <= 0


def charged(seconds: float) -> float:
    """As much of a pause as the budget of this block has left, which is taken off it."""
    found = BUDGET.get()
    if found is None:
        return seconds
    most = max(0.0, min(seconds, found.left))
    found.charge(most)
    return most


def deadline_of(settings: TableSettings, spent: Budget | None) -> Deadline:
    """When a request that begins now ends at the latest; raises ``BudgetSpent`` where it may not begin."""
    now = monotonic()
    at, reason = now + settings.total_timeout, f"TOTAL_TIMEOUT is {settings.total_timeout:g} seconds"
    if spent is None:
        return Deadline(at, reason)
    if spent.left <= 0:
        raise BudgetSpent(spent.reason)
    until = now + USUAL + spent.left
    return Deadline(until, spent.reason) if until < at else Deadline(at, reason)
