"""Run the same coroutines in threads and in event loops.

All code that sends requests is a coroutine. An event loop awaits it. ``run()`` runs it in the current thread: every
step finishes before it returns, so nothing is suspended. ``in_order()`` runs several calls in parallel, as tasks of the
event loop or in threads. The process creates up to ``MAX_THREADS`` threads on first use. The module is independent of
requests and tables.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import aclosing, closing
from contextvars import copy_context
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.utils.asyncio import async_unsafe

A = TypeVar("A")
R = TypeVar("R")

#: The most threads of this process.
MAX_THREADS = 8


@async_unsafe("Waiting for a thread would block the event loop: use the method's asynchronous variant.")
def each_in_order(work: Callable[[A], R], arguments: Iterable[A], *, at_once: Callable[[], int]) -> Generator[R]:
    """Yield the result of ``work`` for each argument, in order, with up to ``at_once()`` calls in parallel.

    A single call runs in the caller's thread. All calls from one of the threads also run there, because the threads
    could otherwise wait for each other. Raise the first error. After an error, or if the caller stops early, calls that
    have not begun are dropped and the others are finished. Each call has a copy of the caller's context variables.
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
        """Drop the threads and the lock, which do not survive a fork."""
        self._lock = threading.Lock()
        self._own = threading.local()
        self._executor: ThreadPoolExecutor | None = None

    def is_own_thread(self) -> bool:
        """Return whether the caller runs in one of the threads."""
        return getattr(self._own, "known", False)

    def _mark(self) -> None:
        self._own.known = True

    def submit(self, work: Callable[[A], R], argument: A) -> Future[R]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(MAX_THREADS, "dynamo_single", self._mark)
            executor = self._executor
        # A context cannot be entered twice at the same time, so each call has a copy.
        return executor.submit(copy_context().run, work, argument)


_pool = _Pool()
os.register_at_fork(after_in_child=_pool.reset)
T = TypeVar("T")
#: A coroutine that ``run()`` supports.
Flow = Coroutine[Any, Any, T]
#: An asynchronous generator of pages. A caller that stops early has to close it.
Pages = AsyncGenerator[Sequence[T], None]


class _Mode(threading.local):
    """The number of ``run()`` calls on the stack of this thread; inside one, a step works without suspending."""

    depth = 0


#: The mode of the current thread. Code on the path of every request reads ``depth``; other code calls ``is_run()``.
mode = _Mode()


def is_run() -> bool:
    """Return whether ``run()`` runs the caller, rather than an event loop."""
    return mode.depth > 0


def run(flow: Flow[T]) -> T:
    """Run a coroutine in the current thread, and return its result."""
    mode.depth += 1
    try:
        flow.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        mode.depth -= 1
    flow.close()
    raise AssertionError("A coroutine in run() has awaited something that is not in this module.")


async def call_sync(work: Callable[[], T]) -> T:
    """Call synchronous code, such as a method that a project overrides; in an event loop, call it in a thread.

    The code may use ``run()`` or an event loop itself.
    """
    return outside_run(work) if mode.depth else await sync_to_async(work)()


async def in_thread(work: Callable[[], T]) -> T:
    """Call code that waits and does not use ``run()``; in an event loop, call it in one of the loop's own threads."""
    return work() if mode.depth else await asyncio.to_thread(work)


def outside_run(work: Callable[[], T]) -> T:
    """Call code that may use ``run()`` or an event loop itself."""
    depth, mode.depth = mode.depth, 0
    try:
        return work()
    finally:
        mode.depth = depth


async def call_method(owner: object, name: str, /, *args: object, **options: object) -> Any:
    """Call a method that sends requests; in an event loop, await its asynchronous variant, with the prefix ``a``."""
    if mode.depth:
        return outside_run(partial(getattr(owner, name), *args, **options))
    return await getattr(owner, f"a{name}")(*args, **options)


async def pause(seconds: float) -> None:
    """Wait for some seconds."""
    if mode.depth:
        time.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


def iterate_stream(stream: AsyncGenerator[T, None]) -> Iterator[T]:
    """Iterate over an asynchronous generator in the current thread."""
    try:
        while True:
            try:
                found: T = run(stream.__anext__())
            except StopAsyncIteration:
                return
            yield found
    finally:
        run(stream.aclose())


def iterate_pages(pages: AsyncGenerator[Iterable[T], None]) -> Iterator[T]:
    """Iterate over the objects on the pages of an asynchronous generator, and fetch each page when it is needed."""
    return chain.from_iterable(iterate_stream(pages))


async def as_stream(found: Iterable[T]) -> AsyncGenerator[T, None]:
    """Return an iterable as an asynchronous generator."""
    for each in found:
        yield each


async def collect(pages: AsyncGenerator[Iterable[T], None]) -> list[T]:
    """Return the objects on all pages of an asynchronous generator."""
    found: list[T] = []
    async with aclosing(pages):
        async for page in pages:
            found.extend(page)
    return found


async def flatten(pages: AsyncGenerator[Iterable[T], None]) -> AsyncGenerator[T, None]:
    """Iterate over the objects on the pages of an asynchronous generator, in a coroutine."""
    async with aclosing(pages):
        async for page in pages:
            for one in page:
                yield one


async def take(stream: AsyncGenerator[T, None], most: int) -> list[T]:
    """Return the next elements of an asynchronous generator, at most ``most``."""
    found: list[T] = []
    while len(found) < most:
        try:
            found.append(await anext(stream))
        except StopAsyncIteration:
            break
    return found


async def in_order(
    work: Callable[[A], Flow[T]],
    arguments: Iterable[A] | AsyncGenerator[A, None],
    *,
    at_once: Callable[[], int],
    finishes: bool = False,
) -> AsyncGenerator[T, None]:
    """Yield the result of the coroutine ``work`` for each argument, in order, with up to ``at_once()`` in parallel.

    In an event loop they are tasks. Tasks whose results are no longer needed are cancelled. With ``finishes``, which
    writes need, they are finished as in threads, unless the caller itself is cancelled.
    """
    if mode.depth:
        given = iterate_stream(arguments) if isinstance(arguments, AsyncGenerator) else arguments
        with closing(each_in_order(lambda argument: run(work(argument)), given, at_once=at_once)) as results:
            for result in results:
                yield result
        return
    rest = arguments if isinstance(arguments, AsyncGenerator) else as_stream(arguments)
    under_way: deque[asyncio.Task[T]] = deque()
    cancels = not finishes
    try:
        while True:
            begun = await take(rest, max(at_once() - len(under_way), 0 if under_way else 1))
            if len(begun) == 1 and not under_way:
                yield await work(begun[0])
                continue
            under_way.extend(asyncio.ensure_future(work(argument)) for argument in begun)
            if not under_way:
                return
            yield await under_way[0]
            under_way.popleft()
    except asyncio.CancelledError:
        cancels = True
        raise
    finally:
        for task in under_way if cancels else ():
            task.cancel()
        if under_way:
            await asyncio.gather(*under_way, return_exceptions=True)
