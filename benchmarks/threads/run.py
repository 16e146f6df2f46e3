"""Do several threads achieve more than one thread?

``python -m benchmarks.threads.run [--size SIZE] [--json FILE]`` reads objects individually, in one thread
and in sixteen threads, with each client that threads can share. It measures wall time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any

from benchmarks.harness.report import CONTROL, OURS, Report, Row, Size, main
from benchmarks.harness.rounds import rounds, settle
from benchmarks.operations.filling import prepared
from dynamo_single.testing import local_engine

THREADS, GETS, LEAST = 16, 1600, 100
BASELINE = "floor"
#: aiodynamo supports one loop, and SQLite in memory one connection.
OF_ONE_THREAD = {"aiodynamo": "which is made for one thread.", "Django, SQLite": "whose memory has one connection."}


def alone(get: Callable[[], Any], gets: int) -> None:
    """Read all objects in this thread."""
    for _ in range(gets):
        get()


def shared(pool: ThreadPoolExecutor, get: Callable[[], Any], gets: int) -> None:
    """Read as many objects, shared among all threads."""
    parts = [pool.submit(alone, get, gets // THREADS) for _ in range(THREADS)]
    for part in parts:
        part.result()


def measure(size: Size) -> Report:
    """Measure one thread, and sixteen."""
    gets = max(THREADS, size.times(GETS) // THREADS * THREADS)
    with (
        local_engine() as table,
        prepared(table.settings, listed=LEAST) as (found, left_out),
        ThreadPoolExecutor(THREADS) as pool,
    ):
        reads = {name: side.get for name, side in found.items() if name not in OF_ONE_THREAD}
        reads[CONTROL] = reads[OURS]
        one = {name: partial(alone, get, gets) for name, get in reads.items()}
        many = {name: partial(shared, pool, get, gets) for name, get in reads.items()}
        for case in many.values():
            case()
        settle()
        rows = [
            Row(
                f"{gets:,} gets in {name}",
                BASELINE,
                rounds(cases, count=size.rounds, repeat=1, clock=time.perf_counter),
            )
            for name, cases in (("one thread", one), (f"{THREADS} threads", many))
        ]
    notes = [_gained(name, *(row.taken[name] for row in rows), gets) for name in reads if name != CONTROL]
    return Report(
        "Wall time of gets, as a multiple of the floor", "seconds", rows, {**left_out, **OF_ONE_THREAD}, notes
    )


def _gained(name: str, one: list[float], many: list[float], gets: int) -> str:
    first, second = gets / median(one), gets / median(many)
    return (
        f"- {name}: {first:,.0f} gets a second in one thread, {second:,.0f} in {THREADS}: {second / first:.2f} times."
    )


if __name__ == "__main__":
    main(__doc__, measure)
