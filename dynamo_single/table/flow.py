"""Coroutines that run in a thread as well as in an event loop: one path of code for both.

What sends requests is written as ``async def`` and awaits them. ``run()`` carries a coroutine out in this thread, where
every step does its work at once and nothing is really awaited; in an event loop the coroutine is simply awaited. This
module must not know requests or tables.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

from dynamo_single.table import threads

A = TypeVar("A")
T = TypeVar("T")
#: A coroutine of ours.
Flow = Coroutine[Any, Any, T]
#: An asynchronous generator of ours: what it finds, some at a time. Who leaves it early has to close it.
Pages = AsyncGenerator[Sequence[T], None]


class _Mode(threading.local):
    """How many ``run()`` are under way in this thread: within one, steps do their work at once."""

    depth = 0


_mode = _Mode()


def is_run() -> bool:
    """Whether what asks is carried out by ``run()``, and not awaited in an event loop."""
    return _mode.depth > 0


def run(flow: Flow[T]) -> T:
    """Carry a coroutine of ours out in this thread, and give its result."""
    _mode.depth += 1
    try:
        flow.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        _mode.depth -= 1
    flow.close()
    raise AssertionError("A coroutine that run() carries out has awaited something that is not of this module.")


async def local(work: Callable[[], T]) -> T:
    """Do what is no coroutine: what a project overrides, and what reads by itself; in an event loop in a thread.

    What it calls may run coroutines of its own, or a loop.
    """
    return apart(work) if _mode.depth else await sync_to_async(work)()


def apart(work: Callable[[], T]) -> T:
    """Do, within a ``run()`` or not, what may run coroutines of its own, or a loop."""
    depth, _mode.depth = _mode.depth, 0
    try:
        return work()
    finally:
        _mode.depth = depth


async def pause(seconds: float) -> None:
    """Wait."""
    if _mode.depth:
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


async def in_order(
    work: Callable[[A], Flow[T]], arguments: Iterable[A], *, at_once: Callable[[], int]
) -> AsyncGenerator[T, None]:
    """What ``work`` gives of each argument, in their order, several under way: ``threads.in_order()`` for coroutines.

    In an event loop they are tasks, and what nobody waits for any more is cancelled.
    """
    if _mode.depth:
        with closing(threads.in_order(lambda argument: run(work(argument)), arguments, at_once=at_once)) as results:
            for result in results:
                yield result
        return
    rest = iter(arguments)
    under_way: deque[asyncio.Task[T]] = deque()
    try:
        while True:
            begun = list(islice(rest, max(at_once() - len(under_way), 0 if under_way else 1)))
            if len(begun) == 1 and not under_way:
                yield await work(begun[0])
                continue
            under_way.extend(asyncio.ensure_future(work(argument)) for argument in begun)
            if not under_way:
                return
            yield await under_way[0]
            under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.gather(*under_way, return_exceptions=True)
