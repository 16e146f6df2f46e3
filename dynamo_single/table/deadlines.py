"""Limit the time of a request in all its attempts, and the time that a view may wait for DynamoDB.

A ``Deadline`` belongs to one request. A ``Budget`` belongs to code that sends several, such as a view; a context
variable passes it to threads and tasks. This module must not depend on HTTP, botocore or connections.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import inf
from time import monotonic

from msgspec import Struct

from dynamo_single.conf import TableSettings

#: Seconds of each request that are not charged to a budget, so a view may send many fast requests.
USUAL = 0.25


class Deadline(Struct, frozen=True):
    """The latest end of a request, by ``time.monotonic()``; ``reason`` names the setting and its value."""

    at: float
    reason: str

    @property
    def left(self) -> float:
        """The seconds that are left; 0 or less if none are."""
        return self.at - monotonic()

    def within(self, seconds: float) -> float:
        """Return ``seconds``, or the seconds that are left if they are fewer; raise ``TimeoutError`` if none are."""
        left = self.at - monotonic()
        if left <= 0:
            raise TimeoutError(self.reason)
        return min(left, seconds)

    def sooner(self, seconds: float) -> Deadline:
        """Return a deadline in ``seconds``, or the present one if it is earlier."""
        return Deadline(min(self.at, monotonic() + seconds), self.reason)


class BudgetSpent(Exception):
    """A request was not sent, because earlier requests have used up the budget; the text names the setting."""


class Budget:
    """The seconds that the requests of a block may take together beyond ``USUAL`` each; threads may share it.

    When they are used up, the current request is interrupted, and further ones raise ``BudgetSpent``.
    """

    def __init__(self, seconds: float, setting: str) -> None:
        self.seconds, self.setting = seconds, setting
        self.left = seconds
        self._lock = threading.Lock()

    def charge(self, seconds: float) -> None:
        """Subtract the seconds that a request or a pause took."""
        if seconds > 0:
            with self._lock:
                self.left -= seconds

    @property
    def reason(self) -> str:
        """The setting and its value, for messages."""
        return f"{self.setting} is {self.seconds:g} seconds"


BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget(seconds: float | None, setting: str) -> Iterator[None]:
    """Limit the seconds that the requests of a block may wait for DynamoDB together; ``None`` sets no limit.

    A nested block shares the budget of the outer one. Tasks that continue after the block have no limit from then on.
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
    """Return whether no further request of this block would be sent."""
    found = BUDGET.get()
    return found is not None and found.left <= 0


def charged(seconds: float) -> float:
    """Return the part of a pause that the budget of this block allows, and subtract it from the budget."""
    found = BUDGET.get()
    if found is None:
        return seconds
    most = max(0.0, min(seconds, found.left))
    found.charge(most)
    return most


@lru_cache(maxsize=64)
def total_reason(seconds: float) -> str:
    """Return the setting that limits one request, and its value, for messages."""
    return f"TOTAL_TIMEOUT is {seconds:g} seconds"


def deadline_of(settings: TableSettings, spent: Budget | None) -> Deadline:
    """Return the deadline of a request that starts now; raise ``BudgetSpent`` if the budget is used up."""
    now = monotonic()
    at, reason = now + settings.total_timeout, total_reason(settings.total_timeout)
    if spent is None:
        return Deadline(at, reason)
    if spent.left <= 0:
        raise BudgetSpent(spent.reason)
    until = now + USUAL + spent.left
    return Deadline(until, spent.reason) if until < at else Deadline(at, reason)
