"""What does one operation cost the client's CPU, compared with PynamoDB on the same items?

``python -m benchmarks.client_cpu.run [--rounds N] [--json]`` starts a local engine in memory and measures reading an
object, saving one of its attributes, and listing 1,000 objects. First it asserts that both return equal data. Each row
has a control, which repeats our case. If the control is far from 1, ignore the row.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import django
import pynamodb

from benchmarks.harness.rounds import is_quiet, median_ratio, rounds, settle
from benchmarks.sides import pynamodb_model
from dynamo_single.testing import capture_requests, local_engine
from tests.catalog.models import Order

CUSTOMER = "company-3f0d2a54-7d2b-4c1e-9a0e-5b8f6c7d1e22"
LISTED = 1000
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ATTRIBUTES = ("customer", "number", "placed_at", "status", "coupon", "total")
OURS, THEIRS, CONTROL = "ours", "PynamoDB", "ours again"
#: The number of calls of an operation in one measurement.
REPEAT = {"get": 200, "save of one attribute": 200, f"list of {LISTED}": 4}
LEAST_ROUNDS = 9


def fill() -> None:
    """Put the orders of one customer into the table."""
    Order.objects.bulk_create(
        Order(
            customer=CUSTOMER,
            number=number,
            placed_at=BEGIN + timedelta(minutes=number),
            coupon=f"coupon-{number % 10}",
            total=Decimal(number) + Decimal("0.25"),
        )
        for number in range(LISTED)
    )


def data(order: Any) -> tuple[Any, ...]:
    """Return the data of an order, read by either side."""
    return tuple(getattr(order, name) for name in ATTRIBUTES)


class Cases:
    """The three operations of the app and of PynamoDB."""

    def __init__(self, theirs: type[Any]) -> None:
        self.theirs = theirs
        self.partition = f"CUSTOMER#{CUSTOMER}"
        found = theirs.query(self.partition)
        self.their_order = next(each for each in found if each.number == LISTED // 2)
        self.order = Order.objects.get(customer=CUSTOMER, number=LISTED // 2)
        self.values = count()

    def get(self) -> Any:
        """Read an object by its primary key: GetItem."""
        return Order.objects.get(pk=self.order.pk)

    def their_get(self) -> Any:
        """Read an object with PynamoDB."""
        return self.theirs.get(self.partition, self.their_order.sk)

    def save(self) -> Any:
        """Write an attribute without a key, if the item exists: UpdateItem, which returns the item."""
        self.order.status = f"status {next(self.values)}"
        self.order.save()
        return self.order

    def their_save(self) -> Any:
        """Write an attribute with PynamoDB."""
        status = f"status {next(self.values)}"
        self.their_order.update(actions=[self.theirs.status.set(status)], condition=self.theirs.pk.exists())
        return self.their_order

    def read_all(self) -> list[Any]:
        """Read a partition: Query."""
        return list(Order.objects.filter(customer=CUSTOMER))

    def their_read_all(self) -> list[Any]:
        """Read a partition with PynamoDB."""
        return list(self.theirs.query(self.partition))

    def pairs(self) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
        """Return the operations by name."""
        called = (self.get, self.their_get), (self.save, self.their_save), (self.read_all, self.their_read_all)
        return dict(zip(REPEAT, called, strict=True))

    def assert_equal(self) -> None:
        """Raise unless both sides read each other's data equally, and each of our operations sends one request."""
        for ours, theirs in self.pairs().values():
            with capture_requests() as sent:
                ours()
            theirs()
            if len(sent) != 1:
                raise AssertionError(f"{len(sent)} requests were sent for one of PynamoDB.")
        for write in (self.save, self.their_save):
            written = write()
            for read in (self.get(), self.their_get()):
                if data(read) != data(written):
                    raise AssertionError(f"{data(read)} was read of {data(written)}.")
        listed = [data(order) for order in self.read_all()]
        if len(listed) != LISTED or listed != [data(order) for order in self.their_read_all()]:
            raise AssertionError("The lists differ.")


def measured(pairs: Mapping[str, Any], number: int) -> dict[str, dict[str, list[float]]]:
    """Return the rounds of every operation, in microseconds."""
    taken = {}
    for name, (ours, theirs) in pairs.items():
        cases = {OURS: ours, THEIRS: theirs, CONTROL: ours}
        seconds = rounds(cases, count=number, repeat=REPEAT[name])
        taken[name] = {case: [round(each * 1_000_000, 1) for each in found] for case, found in seconds.items()}
    return taken


def print_row(name: str, taken: Mapping[str, list[float]]) -> None:
    """Print one operation: the least CPU, and the ratios."""
    ours, theirs, again = taken[OURS], taken[THEIRS], taken[CONTROL]
    control = median_ratio(again, ours)
    print(
        f"{name:<22} {min(ours):>10.0f} {min(theirs):>10.0f} {median_ratio(ours, theirs):>8.2f} "
        f"{min(ours) / min(theirs):>8.2f} {control:>8.2f} {min(again) / min(ours):>8.2f}"
        f"{'' if is_quiet(control) else '  inconclusive'}"
    )


def main() -> None:
    """Measure and print all operations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how many, at least nine")
    parser.add_argument("--json", action="store_true", help="print every round, in microseconds, as one JSON document")
    options = parser.parse_args()
    if options.rounds < LEAST_ROUNDS:
        parser.error(f"--rounds must be at least {LEAST_ROUNDS}.")
    with local_engine() as table:
        fill()
        where = table.settings
        cases = Cases(pynamodb_model.model_of(where.endpoint_url, where.region, where.table_name))
        cases.assert_equal()
        settle()
        taken = measured(cases.pairs(), options.rounds)
    versions = {"python": platform.python_version(), "django": django.__version__, "pynamodb": pynamodb.__version__}
    if options.json:
        print(json.dumps({**versions, "rounds": taken}))
        return
    print(f"{', '.join(f'{name} {version}' for name, version in versions.items())}; {options.rounds} rounds\n")
    print(f"{'':<22} {'CPU, least, µs':^21} {'ours / PynamoDB':^17} {'control':^17}")
    print(f"{'operation':<22} {'ours':>10} {'PynamoDB':>10} {'median':>8} {'minima':>8} {'median':>8} {'minima':>8}")
    for name, found in taken.items():
        print_row(name, found)


if __name__ == "__main__":
    main()
