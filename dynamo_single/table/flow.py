"""Coroutines that run in a thread as well as in an event loop: one path of code for both.

What sends requests is written as ``async def`` and awaits them. ``run()`` carries a coroutine out in this thread, where
every step does its work at once and nothing is really awaited; in an event loop the coroutine is simply awaited. This
module must not know requests or tables.
"""

from __future__ import annotations

import threading
import time
from asyncio import sleep
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from asgiref.sync import sync_to_async

T = TypeVar("T")
#: A coroutine of ours.
Flow = Coroutine[Any, Any, T]


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
    if not _mode.depth:
        return await sync_to_async(work)()
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
        await sleep(seconds)
