"""The cost of reads in a partition of 100,000 items: requests, capacity, time, and the memory of iterating.

``python -m benchmarks.large_partition.run [ITEMS]`` starts a local engine in memory, fills it and prints a table. The
baseline is the same Query, sent and paged manually. Times depend on the machine; compare them by ratio in one run.
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

from dynamo_single.table import Request, Table
from dynamo_single.testing import capture_requests, local_engine
from tests.catalog.models import Order

CUSTOMER = "big"
BATCH = 25
MEBIBYTE = 1024 * 1024


def fill(table: Table, count: int) -> None:
    """Put ``count`` orders of one customer into the table, 25 a request."""
    for start in range(0, count, BATCH):
        puts = []
        for number in range(start, min(start + BATCH, count)):
            order = Order(customer=CUSTOMER, number=number, status="open" if number % 1000 else "rare", total=number)
            puts.append({"PutRequest": {"Item": order._container_serialize()}})
        request = Request("BatchWriteItem", {"RequestItems": {table.name: puts}})
        while unprocessed := table.send(request).get("UnprocessedItems"):
            request = Request("BatchWriteItem", {"RequestItems": unprocessed})


def by_hand(table: Table) -> Iterator[dict[str, Any]]:
    """Yield every item of the partition as DynamoDB returns it; the baseline."""
    params: dict[str, Any] = {
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": f"CUSTOMER#{CUSTOMER}"}},
    }
    while True:
        answer = table.send(Request("Query", params))
        yield from answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        params = {**params, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def measure(name: str, question: Callable[[], Any]) -> None:
    """Run the query once and print its cost."""
    started, cpu = time.perf_counter(), time.process_time()
    with capture_requests() as sent:
        found = question()
    seconds, used = time.perf_counter() - started, time.process_time() - cpu
    consumed = sum(request.consumed for request in sent)
    print(f"{name:<38} {found!s:>8} {len(sent):>9} {consumed:>10.1f} {seconds * 1000:>10.1f} {used * 1000:>9.1f}")


def peak(question: Callable[[], Any]) -> tuple[float, float]:
    """Return Python's peak memory during the query in MiB, and the seconds."""
    tracemalloc.start()
    started = time.perf_counter()
    question()
    seconds = time.perf_counter() - started
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / MEBIBYTE, seconds


def main(count: int) -> None:
    """Fill a table and measure the queries."""
    with local_engine() as table:
        started = time.perf_counter()
        fill(table, count)
        print(f"{count} items under one partition key, put in {time.perf_counter() - started:.0f} s\n")
        orders = Order.objects.filter(customer=CUSTOMER)
        rare = orders.filter(status="rare")
        print(f"{'question':<38} {'answer':>8} {'requests':>9} {'units':>10} {'ms':>10} {'CPU ms':>9}")
        measure("first()", lambda: orders.first().number)
        measure("last()", lambda: orders.last().number)
        measure("[1000:1020]", lambda: len(orders[1000:1020]))
        measure("page(20)", lambda: len(orders.page(20)))
        cursor = orders.cursor_for(orders.get(number=count // 2))
        measure("page(20), from the middle", lambda: orders.page(20, cursor).items[0].number)
        measure("page(20), one match in 1,000", lambda: len(rare.page(20)))
        measure("page(20), same, max_requests=2", lambda: len(rare.page(20, max_requests=2)))
        measure("filter(number__gte=...).count()", lambda: orders.filter(number__gte=count - 500).count())
        measure("count()", orders.count)
        measure("exists()", orders.exists)
        measure("iterator(), every object", lambda: sum(1 for _ in orders.iterator()))
        measure("baseline: the same Query by hand", lambda: sum(1 for _ in by_hand(table)))
        print()
        for part in (count // 4, count // 2, count):
            wanted = orders.filter(number__lt=part)
            most, seconds = peak(lambda wanted=wanted: sum(1 for _ in wanted.iterator()))
            print(f"iterating {part:>7} objects holds at most {most:6.1f} MiB ({seconds:.1f} s while traced)")
        print(f"the process's largest size: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
