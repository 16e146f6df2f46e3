"""The app's coroutines: ``run()`` runs them in a thread, and an event loop awaits them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dynamo_single.table.flow import call_sync, is_run, pause, run


async def _steps() -> tuple[bool, int, bool]:
    """Return whether it is run, the thread of a piece of work, and whether the work saw itself as run."""
    thread, within = await call_sync(lambda: (threading.get_ident(), is_run()))
    await pause(0)
    return is_run(), thread, within


def test_run_does_every_step_in_this_thread() -> None:
    """No other thread or loop is needed."""
    assert run(_steps()) == (True, threading.get_ident(), False)
    assert not is_run()


def test_an_event_loop_does_the_work_in_another_thread() -> None:
    """Synchronous work does not block the loop."""
    run_here, thread, within = asyncio.run(_steps())
    assert not run_here
    assert not within
    assert thread != threading.get_ident()


def test_work_may_run_a_loop_of_its_own() -> None:
    """A handler that calls ``asyncio.run`` within a write is in a loop there, and not afterwards."""

    async def outer() -> tuple[bool, bool]:
        inside = await call_sync(lambda: asyncio.run(_is_run()))
        return inside, is_run()

    async def _is_run() -> bool:
        return is_run()

    assert run(outer()) == (False, True)


def test_an_error_passes_through() -> None:
    """The caller gets it, and the state is reset."""

    async def fails() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        run(fails())
    assert not is_run()


def test_awaiting_something_else_is_a_fault_of_ours() -> None:
    """A coroutine that really waits cannot be run: this raises an error instead of hanging."""

    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="awaited something"):
        run(waits())
