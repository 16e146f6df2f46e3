"""The cost of a test table for a test, compared with a new table for each test.

``python -m benchmarks.test_isolation.run`` measures 200 rounds on Dynoxide in memory. It prints the median milliseconds
for a test that leaves 0, 3 or 60 items.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from dynamo_single.table import (
    Table,
    schema,
)
from dynamo_single.table.request import Item
from dynamo_single.test_tables import contents
from dynamo_single.testing import local_engine

#: The number of rounds by the number of items of the test class.
ROUNDS = {0: 200, 5000: 5}


def keys(number: int, name: str = "TEST") -> list[tuple[str, str]]:
    """Return the keys of items that a test, or its class, writes."""
    return [(f"{name}#{each}", "#METADATA") for each in range(number)]


def items(number: int, name: str = "TEST") -> dict[tuple[str, str], Item]:
    """Return items with these keys."""
    return {key: {"pk": {"S": key[0]}, "sk": {"S": key[1]}} for key in keys(number, name)}


def milliseconds(table: Table, rounds: int, number: int, work: Callable[[], object]) -> float:
    """Return the median time of the work after a test."""
    taken = []
    for _ in range(rounds):
        for item in items(number).values():
            table.call("PutItem", {"TableName": table.name, "Item": item})
        started = perf_counter()
        work()
        taken.append((perf_counter() - started) * 1000)
    return median(taken)


def scanned_twice(table: Table, found: dict[tuple[str, str], Item]) -> None:
    """Read all items, and revert the differences that a second Scan finds."""
    contents.read(table)
    contents.restore(table, found)


def main() -> None:
    """Print a row for each number of items."""
    with local_engine(root=Path(__file__).resolve().parents[2]) as table:
        print(
            f"{'of the class':>12} {'of the test':>11} {'record, ms':>11} {'two Scans, ms':>14} {'a new table, ms':>16}"
        )
        for of_class, rounds in ROUNDS.items():
            found = items(of_class, "CLASS")
            contents.restore(table, found)
            for number in (0, 3, 60):
                record = milliseconds(table, rounds, number, partial(contents.put_back, table, found, keys(number)))
                scans = milliseconds(table, rounds, number, partial(scanned_twice, table, found))
                anew = milliseconds(table, rounds, number, partial(schema.recreate, table))
                print(f"{of_class:>12} {number:>12} {record:>11.2f} {scans:>14.2f} {anew:>16.2f}")
                contents.restore(table, found)


if __name__ == "__main__":
    main()
