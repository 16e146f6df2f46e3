"""What a test pays for a test table, beside a new table for each test: ``python -m benchmarks.test_isolation.run``.

On Dynoxide in memory, 200 rounds of each; prints milliseconds (median) for a test that left no, 3 or 60 items.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from dynamo_single.isolation import contents  # noqa: E402 - after Django is set up
from dynamo_single.table import Table, provisioning  # noqa: E402
from dynamo_single.testing import local_engine  # noqa: E402

ROUNDS = 200


def write(table: Table, number: int) -> None:
    """Leave items as a test does."""
    for each in range(number):
        keys = {"pk": {"S": f"TEST#{each}"}, "sk": {"S": "#METADATA"}}
        table.call("PutItem", {"TableName": table.name, "Item": keys})


def milliseconds(table: Table, number: int, work: Callable[[], object]) -> float:
    """The median of what the work takes after a test."""
    taken = []
    for _ in range(ROUNDS):
        write(table, number)
        started = perf_counter()
        work()
        taken.append((perf_counter() - started) * 1000)
    return median(taken)


def main() -> None:
    """Print a row for each number of items."""
    with local_engine(root=Path(__file__).resolve().parents[2]) as table:
        print(f"{'items left':>10} {'emptied, ms':>12} {'remembered and given back, ms':>30} {'a new table, ms':>16}")
        for number in (0, 3, 60):
            emptied = milliseconds(table, number, lambda: contents.restore(table, {}))
            both = milliseconds(table, number, lambda: (contents.read(table), contents.restore(table, {})))
            anew = milliseconds(table, number, lambda: provisioning.recreate(table))
            print(f"{number:>10} {emptied:>12.2f} {both:>30.2f} {anew:>16.2f}")


if __name__ == "__main__":
    main()
