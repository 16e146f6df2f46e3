"""What does an operation cost the client's CPU, compared with other clients and the floor?

``python -m benchmarks.operations.run [--size SIZE] [--json FILE]`` starts a local engine in memory, fills it,
asserts that all sides read and write equal data, and measures their operations alternately.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.harness.report import CONTROL, OURS, Report, Row, Size, main
from benchmarks.harness.rounds import rounds, settle
from benchmarks.operations.equal import assert_equal
from benchmarks.operations.filling import prepared
from benchmarks.sides.side import Side
from dynamo_single.testing import local_engine

LISTED, MANY, BULK = 1000, 10_000, 1000
#: The most items of a BatchGetItem.
LEAST = 100


@dataclass(frozen=True, slots=True)
class Operation:
    """A measured operation: a method of the sides, and the number of calls in one measurement at full size."""

    method: str
    name: str
    repeat: int
    baseline: str = "floor"


OPERATIONS = (
    Operation("get", "get", 400),
    Operation("create", "create", 400),
    Operation("save", "save, one attribute changed", 400),
    Operation("update", "update of one attribute", 400),
    Operation("objects", "list of {listed} objects", 6),
    Operation("rows", "values_list of {listed}", 6),
    Operation("many", "list of {many} objects", 1),
    Operation("in_bulk", "in_bulk of 100", 40),
    Operation("atomic", "atomic block of ten", 60),
    Operation("bulk_create", "bulk_create of {bulk}", 1),
    Operation("bulk_in_transactions", "bulk_create of {bulk}, in_transactions", 1),
    # The floor sends only one number, so a multiple of its time would be meaningless.
    Operation("document", "one place in a document of 300 KB", 4, "PynamoDB"),
    Operation("put_many", "bulk_create of {bulk}, update_conflicts", 1),
)


def measured(operation: Operation, found: Mapping[str, Side], size: Size) -> dict[str, list[float]]:
    """Return the CPU seconds of one call for each side that supports the operation, and twice for ours."""
    cases = {name: case for name, side in found.items() if (case := getattr(side, operation.method))}
    cases[CONTROL] = cases[OURS]
    for case in cases.values():
        case()
    return rounds(cases, count=size.rounds, repeat=size.times(operation.repeat))


def measure(size: Size) -> Report:
    """Measure all operations."""
    listed, many, bulk = (size.times(number) if size.name == "tiny" else number for number in (LISTED, MANY, BULK))
    listed = max(listed, LEAST)
    with local_engine() as table, prepared(table.settings, listed=listed, many=many, bulk=bulk) as (found, left_out):
        assert_equal(found, listed=listed, many=many)
        settle()
        rows = []
        for operation in OPERATIONS:
            name = operation.name.format(listed=f"{listed:,}", many=f"{many:,}", bulk=f"{bulk:,}")
            rows.append(Row(name, operation.baseline, measured(operation, found, size)))
    return Report("Client CPU of an operation, as a multiple of the floor", "seconds", rows, left_out)


if __name__ == "__main__":
    main(__doc__, measure)
