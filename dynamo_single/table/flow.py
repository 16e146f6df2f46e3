"""Coroutines that run in a thread as well as in an event loop: one path of code for both.

What sends requests is written as ``async def`` and awaits them. ``run()`` carries a coroutine out in this thread, where
every step does its work at once and nothing is really awaited; in an event loop the coroutine is simply awaited. This
module must not know requests or tables.
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

# Several calls at once in threads, their results in order.
#
# The threads belong to the process and are made when they are first needed. This module must not know what is called.

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
T = TypeVar("T")
#: A coroutine of ours.
Flow = Coroutine[Any, Any, T]
#: An asynchronous generator of ours: what it finds, some at a time. Who leaves it early has to close it.
Pages = AsyncGenerator[Sequence[T], None]


class _Mode(threading.local):
    """How many ``run()`` are under way in this thread: within one, steps do their work at once."""

    depth = 0


#: The mode of this thread. Where requests are sent, its ``depth`` is looked at; others ask ``is_run()``.
mode = _Mode()


def is_run() -> bool:
    """Whether what asks is carried out by ``run()``, and not awaited in an event loop."""
    return mode.depth > 0


def run(flow: Flow[T]) -> T:
    """Carry a coroutine of ours out in this thread, and give its result."""
    mode.depth += 1
    try:
        flow.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        mode.depth -= 1
    flow.close()
    raise AssertionError("A coroutine that run() carries out has awaited something that is not of this module.")


async def local(work: Callable[[], T]) -> T:
    """Do what is no coroutine: what a project overrides, and what reads by itself; in an event loop in a thread.

    What it calls may run coroutines of its own, or a loop.
    """
    return apart(work) if mode.depth else await sync_to_async(work)()


async def in_thread(work: Callable[[], T]) -> T:
    """Do what waits and sends no request of ours; in an event loop in one of the loop's own threads."""
    return work() if mode.depth else await asyncio.to_thread(work)


def apart(work: Callable[[], T]) -> T:
    """Do, within a ``run()`` or not, what may run coroutines of its own, or a loop."""
    depth, mode.depth = mode.depth, 0
    try:
        return work()
    finally:
        mode.depth = depth


async def twin(owner: object, name: str, /, *args: object, **options: object) -> Any:
    """What a method that sends gives; in an event loop its twin, with an ``a`` before its name."""
    if mode.depth:
        return apart(partial(getattr(owner, name), *args, **options))
    return await getattr(owner, f"a{name}")(*args, **options)


async def pause(seconds: float) -> None:
    """Wait."""
    if mode.depth:
        time.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


def each(stream: AsyncGenerator[T, None]) -> Iterator[T]:
    """What a stream gives, one after the other in this thread: it goes on when its next one is needed."""
    try:
        while True:
            try:
                found: T = run(stream.__anext__())
            except StopAsyncIteration:
                return
            yield found
    finally:
        run(stream.aclose())


def iterate(pages: AsyncGenerator[Iterable[T], None]) -> Iterator[T]:
    """What is on the pages of a stream, one after the other: a page is asked for when its first one is needed."""
    return chain.from_iterable(each(pages))


async def streamed(found: Iterable[T]) -> AsyncGenerator[T, None]:
    """What an iterable gives, as a stream."""
    for each in found:
        yield each


async def listed(pages: AsyncGenerator[Iterable[T], None]) -> list[T]:
    """All that is on the pages of a stream."""
    found: list[T] = []
    async with aclosing(pages):
        async for page in pages:
            found.extend(page)
    return found


async def each_of(pages: AsyncGenerator[Iterable[T], None]) -> AsyncGenerator[T, None]:
    """What is on the pages of a stream, one after the other: ``iterate()`` for a coroutine."""
    async with aclosing(pages):
        async for page in pages:
            for one in page:
                yield one


async def some_of(stream: AsyncGenerator[T, None], most: int) -> list[T]:
    """The next ones of a stream, as many as there are up to ``most``."""
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
    """What ``work`` gives of each argument, in their order, several under way: ``threads.in_order()`` for coroutines.

    In an event loop they are tasks, and what nobody waits for any more is cancelled; with ``finishes``, as writes need
    it, it is waited for as in threads, unless what waits for it is cancelled itself.
    """
    if mode.depth:
        given = each(arguments) if isinstance(arguments, AsyncGenerator) else arguments
        with closing(each_in_order(lambda argument: run(work(argument)), given, at_once=at_once)) as results:
            for result in results:
                yield result
        return
    rest = arguments if isinstance(arguments, AsyncGenerator) else streamed(arguments)
    under_way: deque[asyncio.Task[T]] = deque()
    cancels = not finishes
    try:
        while True:
            begun = await some_of(rest, max(at_once() - len(under_way), 0 if under_way else 1))
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
