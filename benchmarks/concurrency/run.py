"""Do asynchronous reads overlap?

``python -m benchmarks.concurrency.run [--size SIZE] [--json FILE]`` reads 200 objects by ``aget()`` in parallel,
with a delay of 5 ms for each request, and compares this with aiodynamo, pydynox and sequential reads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from benchmarks.harness.distance import MILLISECONDS, far_away
from benchmarks.harness.report import CONTROL, OURS, Report, Row, Size, main
from benchmarks.harness.rounds import rounds, settle
from benchmarks.operations.filling import prepared
from benchmarks.orders import CUSTOMER, key, said_by, values
from benchmarks.sides.side import Side
from dynamo_single.testing import local_engine
from tests.catalog.models import Order

READS, LEAST = 200, 100
IN_TURN, AIODYNAMO, PYDYNOX = "floor, in turn", "aiodynamo", "pydynox"


async def _together(reads: Iterable[Any]) -> list[Any]:
    return await asyncio.gather(*reads)


def cases(found: dict[str, Side], loop: asyncio.AbstractEventLoop, count: int) -> dict[str, Callable[[], list[Any]]]:
    """Return ``count`` parallel reads of each asynchronous side, and sequential reads of the floor."""
    numbers = [1 + each % LEAST for each in range(count)]
    keys = [key(CUSTOMER, number) for number in numbers]
    pks = [Order(customer=CUSTOMER, number=number).pk for number in numbers]

    def together(reads: Callable[[], Iterable[Any]], on: asyncio.AbstractEventLoop = loop) -> list[Any]:
        return on.run_until_complete(_together(reads()))

    known: dict[str, Callable[[], list[Any]]] = {IN_TURN: lambda: [found["floor"].get() for _ in numbers]}
    if aiodynamo := found.get(AIODYNAMO):
        read = partial(aiodynamo.client.get_item, aiodynamo.table)
        known[AIODYNAMO] = partial(together, lambda: [read(each) for each in keys], aiodynamo.loop)
    if pydynox := found.get(PYDYNOX):
        known[PYDYNOX] = partial(together, lambda: [pydynox.model.get(**each) for each in keys])
    known[OURS] = partial(together, lambda: [Order.objects.aget(pk=pk) for pk in pks])
    return known


def measure(size: Size) -> Report:
    """Measure the wall time and the CPU."""
    count = max(4, size.times(READS) if size.name == "tiny" else READS)
    loop = asyncio.new_event_loop()
    with local_engine() as table, far_away(table.settings) as far, prepared(far, listed=LEAST) as (found, left_out):
        known = cases(found, loop, count)
        for name, case in known.items():
            first = said_by(case()[0])
            if first["number"] != 1 or first["customer"] != values(CUSTOMER, 1)["customer"]:
                raise AssertionError(f"{name} read {first}.")
        known[CONTROL] = known[OURS]
        settle()
        baseline = AIODYNAMO if AIODYNAMO in known else IN_TURN
        rows = [
            Row(f"{count} reads, {name}", baseline, rounds(known, count=size.rounds, repeat=1, clock=clock))
            for name, clock in (("wall time", time.perf_counter), ("CPU", time.process_time))
        ]
    loop.close()
    return Report(f"Asynchronous reads at {MILLISECONDS} ms, as a multiple of {baseline}", "seconds", rows, left_out)


if __name__ == "__main__":
    main(__doc__, measure)
