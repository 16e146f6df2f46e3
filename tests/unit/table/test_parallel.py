"""Calls in threads: their order, their parallelism, and failures."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest
from django.core.exceptions import SynchronousOnlyOperation

from dynamo_single.table import flow
from dynamo_single.table.flow import each_in_order

_seen: ContextVar[str] = ContextVar("seen", default="")


def test_results_come_in_order() -> None:
    """The results are those of ``map()``, whichever call ends first."""
    turn = [threading.Event() for _ in range(6)]
    turn[5].set()

    def backwards(number: int) -> int:
        turn[number].wait(10)
        turn[number - 1].set()
        return number * number

    assert list(each_in_order(backwards, range(6), at_once=lambda: 6)) == [0, 1, 4, 9, 16, 25]


def test_a_single_call_stays_in_its_thread() -> None:
    """One argument, or one at a time, needs no thread; several never run in the caller's."""

    def thread(_: int) -> int:
        return threading.get_ident()

    here = threading.get_ident()
    assert list(each_in_order(thread, [1], at_once=lambda: 8)) == [here]
    assert list(each_in_order(thread, range(3), at_once=lambda: 1)) == [here] * 3
    assert here not in set(each_in_order(thread, range(3), at_once=lambda: 8))
    assert list(each_in_order(thread, [], at_once=lambda: 8)) == []


@pytest.mark.parametrize("bound", [1, 2, 5, 8])
def test_no_more_are_begun_than_allowed(bound: int) -> None:
    """Running calls and unconsumed results together never exceed the limit."""
    taken = 0

    def arguments() -> Iterator[int]:
        nonlocal taken
        for number in range(20):
            taken += 1
            yield number

    results = each_in_order(lambda number: number, arguments(), at_once=lambda: bound)
    for received, number in enumerate(results, 1):
        assert number == received - 1
        assert taken <= received - 1 + bound


def test_calls_really_overlap() -> None:
    """The limit determines the number of parallel calls and of threads."""
    together = threading.Barrier(flow.MAX_THREADS)

    def meet(_: int) -> bool:
        together.wait(10)
        return True

    assert all(each_in_order(meet, range(2 * flow.MAX_THREADS), at_once=lambda: flow.MAX_THREADS))


def test_calls_see_the_callers_context() -> None:
    """Calls have the caller's context variables, and their changes are local."""

    def change(number: int) -> str:
        before = _seen.get()
        _seen.set(str(number))
        return before

    token = _seen.set("mine")
    try:
        assert list(each_in_order(change, range(4), at_once=lambda: 2)) == ["mine"] * 4
        assert _seen.get() == "mine"
    finally:
        _seen.reset(token)


def test_the_first_error_is_raised_when_nothing_runs_any_more() -> None:
    """Running calls end before the error is raised, and others are never started."""
    begun: list[int] = []
    ended: list[int] = []
    failing = threading.Event()

    def fail(number: int) -> None:
        begun.append(number)
        if number == 0:
            failing.set()
            raise ZeroDivisionError
        failing.wait(10)
        ended.append(number)

    with pytest.raises(ZeroDivisionError):
        list(each_in_order(fail, range(100), at_once=lambda: 3))
    assert sorted(ended) == sorted(set(begun) - {0})
    assert set(begun) <= {0, 1, 2}


def test_a_caller_that_stops_leaves_nothing_behind() -> None:
    """Closing the results waits for running calls."""
    begun: list[int] = []
    ended: list[int] = []
    release = threading.Event()

    def wait(number: int) -> int:
        begun.append(number)
        if number:
            release.wait(10)
        ended.append(number)
        return number

    results = each_in_order(wait, range(9), at_once=lambda: 3)
    assert next(results) == 0
    release.set()
    results.close()  # type: ignore[attr-defined]  # a generator
    # The threads may have started any of the three by then.
    assert sorted(ended) == sorted(begun)
    assert {0} <= set(begun) <= {0, 1, 2}


def test_an_event_loop_is_not_held_up() -> None:
    """A call in the thread of an event loop raises an error, since waiting would block it."""

    async def ask() -> None:
        list(each_in_order(str, range(3), at_once=lambda: 2))

    with pytest.raises(SynchronousOnlyOperation, match="asynchronous variant"):
        asyncio.run(ask())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_threads_do_not_survive_a_fork() -> None:
    """A child process creates new threads instead of the lost ones."""
    assert list(each_in_order(str, range(3), at_once=lambda: 3)) == ["0", "1", "2"]
    child = os.fork()
    if not child:
        # Nothing of the test framework may run in the child.
        status = 1
        try:
            status = int(list(each_in_order(str, range(3), at_once=lambda: 3)) != ["0", "1", "2"])
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_calls_within_calls_need_no_further_threads() -> None:
    """If all threads run calls with inner calls, none waits for another."""

    def inner(number: int) -> int:
        return number + 1

    def outer(number: int) -> list[int]:
        here = threading.get_ident()
        found = list(each_in_order(lambda each: (inner(each), threading.get_ident()), range(3), at_once=lambda: 8))
        assert {thread for _, thread in found} == {here}
        return [number + each for each, _ in found]

    results = list(each_in_order(outer, range(40), at_once=lambda: 8))
    assert results == [[number + 1, number + 2, number + 3] for number in range(40)]
