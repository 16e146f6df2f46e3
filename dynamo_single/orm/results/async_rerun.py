"""Run Django's synchronous code that evaluates our querysets in steps: stop at each queryset, and run again.

Between two runs, the app awaits each queryset in an event loop, or reads it together with others. The code must not
change anything before it reads its last queryset, and must evaluate the same querysets in each run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from dynamo_single.table.flow import call_sync, is_run

T = TypeVar("T")


class _Results(threading.local):
    """The results of the querysets, in the order of their evaluation; ``None`` while no such code runs."""

    found: list[list[Any]] | None = None
    taken = 0


_results = _Results()


class _UnreadQuerySet(BaseException):
    """A queryset has to be read; never leaves this module."""

    def __init__(self, queryset: Any) -> None:
        self.queryset = queryset


def take_result(queryset: Any) -> bool:
    """Set a queryset's results if such code evaluates it, and return whether it does; it sends no requests itself."""
    found = _results.found
    if found is None:
        return False
    if _results.taken == len(found):
        raise _UnreadQuerySet(queryset)
    queryset._result_cache = found[_results.taken]
    queryset._prefetch_done = True
    _results.taken += 1
    return True


def first_queryset(work: Callable[[], object]) -> Any:
    """Return the first queryset that such code evaluates, without reading it; ``None`` if it does not evaluate any."""
    try:
        _begun(work, [])
    except _UnreadQuerySet as unread:
        return unread.queryset
    return None


async def rerun(work: Callable[[], T], first: list[Any] | None = None) -> T:
    """Return the result of such code; read each queryset once, with the same requests as in a thread.

    ``first`` contains the results of the first queryset, if already available. Without it, a thread simply calls the
    code.
    """
    if first is None and is_run():
        return await call_sync(work)
    found: list[list[Any]] = [] if first is None else [first]
    while True:
        try:
            return _begun(work, found)
        except _UnreadQuerySet as unread:
            queryset = unread.queryset
        found.append(await queryset._read())


def _begun(work: Callable[[], T], found: list[list[Any]]) -> T:
    _results.found, _results.taken = found, 0
    try:
        return work()
    finally:
        _results.found = None
