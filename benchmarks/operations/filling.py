"""The data that every side reads: a customer with a short list, and a customer with a long list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.orders import wire
from benchmarks.sides.floor import Floor
from benchmarks.sides.side import Side, sides
from dynamo_single.conf import TableSettings


@contextmanager
def prepared(
    settings: TableSettings, *, listed: int, many: int = 1, bulk: int = 1
) -> Iterator[tuple[dict[str, Side], dict[str, str]]]:
    """Fill the table; yield the sides, and the reasons why others are left out."""
    floor = Floor(settings, bulk=bulk)
    for customer, number in ((floor.listed, listed), (floor.long_list, many)):
        floor.put(wire(customer, each) for each in range(1, number + 1))
    found, left_out = sides(settings, bulk=bulk)
    for side in found.values():
        if fill := getattr(side, "fill", None):
            fill(side.listed, listed)
            fill(side.long_list, many)
            side.ready()
    try:
        yield found, left_out
    finally:
        for side in found.values():
            side.close()
