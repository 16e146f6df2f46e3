"""How long do independent reads take together?

``python -m benchmarks.waiting.run [--size SIZE] [--json FILE]`` reads with a delay of 5 ms for each request: many
keys together, several partitions, and the children of several parents. The baseline is one request. It measures wall
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness.distance import MILLISECONDS, far_away
from benchmarks.harness.report import CONTROL, OURS, Report, Row, Size, main
from benchmarks.harness.rounds import rounds, settle
from benchmarks.operations.filling import prepared
from benchmarks.sides.floor import Floor
from benchmarks.sides.side import Side
from dynamo_single.testing import local_engine
from tests.catalog.models import Employee, Firm, Order

LEAST, PARTITIONS, INSIDE = 100, 20, 5
ONE, IN_TURN = "one request", "floor, in turn"
CUSTOMERS = tuple(f"waiting-{number}" for number in range(1, PARTITIONS + 1))
FIRMS = tuple(f"firm-{number}" for number in range(1, PARTITIONS + 1))


def fill() -> None:
    """Write five orders for each customer, and five people for each firm."""
    numbers = range(1, INSIDE + 1)
    Order.objects.bulk_create(
        [Order(customer=customer, number=number, total=number) for customer in CUSTOMERS for number in numbers],
        update_conflicts=True,
    )
    firms = [Firm(firm_id=firm, name=firm, stock="F") for firm in FIRMS]
    Firm.objects.bulk_create(firms, update_conflicts=True)
    Employee.objects.bulk_create(
        [Employee(firm=firm, employee_id=f"{firm.firm_id}-{number}") for firm in firms for number in numbers],
        update_conflicts=True,
    )


def in_turn(floor: Floor, keys: Sequence[str]) -> list[Any]:
    """Query the partitions sequentially."""
    found = []
    for each in keys:
        asked = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": each}}}
        found.extend(floor.call("Query", {"TableName": floor.table, **asked})["Items"])
    return found


def of_partitions() -> list[Any]:
    """Return the orders of all customers."""
    return list(Order.objects.filter(customer__in=CUSTOMERS))


def of_parents() -> list[Any]:
    """Return the people of all firms."""
    firms = Firm.objects.filter(firm_id__in=FIRMS).prefetch_related("staff")
    return [each for firm in firms for each in firm.staff.all()]


def questions(found: dict[str, Side]) -> dict[str, dict[str, Callable[[], Sequence[Any]]]]:
    """Return the cases of each row."""
    floor = found["floor"]
    many = {name: side.in_bulk for name, side in found.items() if side.in_bulk and name != "Django, SQLite"}
    partitions = [f"CUSTOMER#{customer}" for customer in CUSTOMERS]
    return {
        f"in_bulk of {LEAST}": many,
        f"{PARTITIONS} partitions": {IN_TURN: lambda: in_turn(floor, partitions), OURS: of_partitions},
        f"children of {PARTITIONS} parents": {IN_TURN: lambda: in_turn(floor, FIRMS), OURS: of_parents},
    }


def measure(size: Size) -> Report:
    """Measure all rows."""
    with local_engine() as table, far_away(table.settings) as far, prepared(far, listed=LEAST) as (found, left_out):
        fill()
        settle()
        rows = []
        for name, cases in questions(found).items():
            known = {ONE: found["floor"].get, **cases, CONTROL: cases[OURS]}
            for side, case in known.items():
                read = case()
                if side != ONE and len(read) < LEAST:
                    raise AssertionError(f"{side} found {len(read)}.")
            rows.append(Row(name, ONE, rounds(known, count=size.rounds, repeat=size.times(5), clock=time.perf_counter)))
    question = f"Waiting at {MILLISECONDS} ms a request, as a multiple of one request"
    return Report(question, "seconds", rows, left_out)


if __name__ == "__main__":
    main(__doc__, measure)
