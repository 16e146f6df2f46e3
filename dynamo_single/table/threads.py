"""Several calls at once in threads, their results in order.

The threads belong to the process and are made when they are first needed. This module must not know what is called.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice
from typing import TypeVar

from django.utils.asyncio import async_unsafe

A = TypeVar("A")
R = TypeVar("R")

#: Threads of this process, whoever asks for them.
MAX_THREADS = 8


@async_unsafe("Waiting for a thread would hold up the event loop: use the method's asynchronous twin.")
def each_in_order(work: Callable[[A], R], arguments: Iterable[A], *, at_once: Callable[[], int]) -> Generator[R]:
    """``work`` of each argument, in their order; ``at_once()``, asked again for each, bounds how many are under way.

    A single call is made in the caller's own thread, and so is every call of a caller that is itself one of these
    threads: all of them could be waiting for one another. The first error is raised; what was not begun by then is
    dropped and what was is waited for, also if the caller takes no more. Each call sees the caller's context variables.
    """
    rest = iter(arguments)
    if _pool.is_own_thread():
        yield from map(work, rest)
        return
    under_way: deque[Future[R]] = deque()
    try:
        while True:
            begun = list(islice(rest, max(at_once() - len(under_way), 0 if under_way else 1)))
            if len(begun) == 1 and not under_way:
                yield work(begun[0])
                continue
            under_way.extend(_pool.submit(work, argument) for argument in begun)
            if not under_way:
                return
            yield under_way[0].result()
            under_way.popleft()
    finally:
        wait([future for future in under_way if not future.cancel()])


class _Pool:
    """The threads of this process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the threads, and the lock too: neither survives a fork."""
        self._lock = threading.Lock()
        self._own = threading.local()
        self._executor: ThreadPoolExecutor | None = None

    def is_own_thread(self) -> bool:
        """Whether the caller runs in one of the threads."""
        return getattr(self._own, "known", False)

    def _mark(self) -> None:
        self._own.known = True

    def submit(self, work: Callable[[A], R], argument: A) -> Future[R]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(MAX_THREADS, "dynamo_single", self._mark)
            executor = self._executor
        # A context can be entered once at a time: each call gets a copy of its own.
        return executor.submit(copy_context().run, work, argument)


_pool = _Pool()
os.register_at_fork(after_in_child=_pool.reset)
