"""How much memory does an object from the table hold?

``python -m benchmarks.memory.run [--size SIZE] [--json FILE]`` lists objects with each client while
``tracemalloc`` counts Python's allocations, and divides the memory that remains after garbage collection.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness.report import CONTROL, OURS, Report, Row, Size, main
from benchmarks.harness.rounds import asked
from benchmarks.operations.filling import prepared
from dynamo_single.testing import local_engine

LISTED, LEAST = 1000, 100
BASELINE = "floor"
#: More rounds do not help: the number is the same each time.
ROUNDS = 3


def held(listing: Callable[[], Sequence[Any]]) -> float:
    """Return the bytes that an object of a list holds, including its reference in the list."""
    listing()
    gc.collect()
    tracemalloc.start()
    objects = listing()
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(objects)


def measure(size: Size) -> Report:
    """Measure the objects of a list, objects read with ``only()``, and plain rows."""
    listed = max(LEAST, size.times(LISTED))
    with local_engine() as table, prepared(table.settings, listed=listed) as (found, left_out):
        rows = []
        for method, name in (("objects", "an object of a list"), ("rows", "a row of two values")):
            listings = {each: getattr(side, method) for each, side in found.items() if getattr(side, method)}
            listings.pop("raw socket", None)
            listings[CONTROL] = listings[OURS]
            cases = {each: lambda listing=listing: held(listing) for each, listing in listings.items()}
            rows.append(Row(name, BASELINE, asked(cases, count=min(ROUNDS, size.rounds))))
    least = min(rows[0].taken[OURS])
    return Report("Memory that is held", "bytes", rows, left_out, [f"An object of ours holds {least:,.0f} bytes."])


if __name__ == "__main__":
    main(__doc__, measure)
