"""Code of Django's that reads querysets of ours in its middle, for an event loop: it stops at each, and begins again.

What is read is awaited between two beginnings. It is for code that changes nothing before the last of its querysets is
read, and asks for the same ones whenever it is begun. In a thread such code is simply called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from dynamo_single.table.flow import call_sync, is_run

T = TypeVar("T")


class _Given(threading.local):
    """What the querysets gave, in the order that they are read in; ``None`` where no such code is begun."""

    found: list[list[Any]] | None = None
    taken = 0


_given = _Given()


class _Unread(BaseException):
    """A queryset is to be read; never leaves this module."""

    def __init__(self, queryset: Any) -> None:
        self.queryset = queryset


def take(queryset: Any) -> bool:
    """Whether a queryset got what it gives, where it is asked for by such code; there none is read at once."""
    found = _given.found
    if found is None:
        return False
    if _given.taken == len(found):
        raise _Unread(queryset)
    queryset._result_cache = found[_given.taken]
    queryset._prefetch_done = True
    _given.taken += 1
    return True


async def restarted(work: Callable[[], T]) -> T:
    """What such code gives: each queryset is read once, by the requests that it sends in a thread."""
    if is_run():
        return await call_sync(work)
    found: list[list[Any]] = []
    while True:
        try:
            return _begun(work, found)
        except _Unread as unread:
            queryset = unread.queryset
        found.append(await queryset._read())


def _begun(work: Callable[[], T], found: list[list[Any]]) -> T:
    _given.found, _given.taken = found, 0
    try:
        return work()
    finally:
        _given.found = None
