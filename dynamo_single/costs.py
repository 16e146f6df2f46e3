"""The cost of requests: items read and returned, capacity units and time, of one request or in total for a block.

This module listens to sent requests and keeps only numbers. It must not depend on models or plans.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from dynamo_single.table.redirects import SentRequest, listening
from dynamo_single.table.request import READS

__all__ = ["Cost", "Costs", "measure_requests"]


class Cost(Struct, frozen=True):
    """The cost of one request.

    ``items_read`` counts the items that DynamoDB reads and charges for, and ``items_returned`` the items that match
    the filter. A failed request does not report its units: they count as 0, and ``error`` contains the error code.
    ``seconds`` is the duration.
    """

    operation: str
    items_read: int = 0
    items_returned: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    seconds: float = 0.0
    error: str = ""

    @classmethod
    def of(cls, sent: SentRequest) -> Cost:
        """Return the cost of a sent request."""
        is_read = sent.operation in READS
        read, returned = _items(sent.operation, sent.response) if is_read and sent.response is not None else (0, 0)
        return cls(
            operation=sent.operation,
            items_read=read,
            items_returned=returned,
            read_units=sent.consumed if is_read else 0.0,
            write_units=0.0 if is_read else sent.consumed,
            seconds=sent.seconds,
            error=sent.error,
        )

    def __str__(self) -> str:
        failed = f", and failed with {self.error}" if self.error else ""
        return f"{self.operation}: {_worded(self, reads=self.operation in READS)}{failed}"


class Costs:
    """The total cost of the requests of a block, in constant memory.

    ``operations`` counts the requests by operation, and ``failures`` the failed ones. ``seconds`` is the sum of the
    durations, even of requests in parallel.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.operations: dict[str, int] = {}
        self.failures = 0
        self.items_read = 0
        self.items_returned = 0
        self.read_units = 0.0
        self.write_units = 0.0
        self.seconds = 0.0

    @property
    def requests(self) -> int:
        """The number of requests."""
        return sum(self.operations.values())

    def add(self, cost: Cost) -> None:
        """Add one request. Several threads may do so in parallel."""
        with self._lock:
            self.operations[cost.operation] = self.operations.get(cost.operation, 0) + 1
            self.failures += bool(cost.error)
            self.items_read += cost.items_read
            self.items_returned += cost.items_returned
            self.read_units += cost.read_units
            self.write_units += cost.write_units
            self.seconds += cost.seconds

    def __str__(self) -> str:
        if not self.operations:
            return "no requests"
        operations = ", ".join(f"{count} {operation}" for operation, count in self.operations.items())
        failed = f", {self.failures} failed" if self.failures else ""
        worded = _worded(self, reads=not READS.isdisjoint(self.operations))
        return f"{counted(self.requests, 'request')} ({operations}{failed}), {worded}"

    def __repr__(self) -> str:
        return f"<Costs: {self}>"


@contextmanager
def measure_requests() -> Iterator[Costs]:
    """Add up the cost of the requests in the block. Blocks can be nested; each counts all requests in it.

    Requests of other threads do not count, except of threads that the block's own reads and ``sync_to_async`` use.
    """
    costs = Costs()
    with listening(lambda sent: costs.add(Cost.of(sent))):
        yield costs


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, for messages."""
    return f"{number:g} {noun}" if number == 1 else f"{number:,.10g} {noun}s"


def _worded(cost: Cost | Costs, *, reads: bool) -> str:
    parts = []
    if reads:
        parts.append(f"{counted(cost.items_read, 'item')} read, {cost.items_returned} returned")
        parts.append(counted(cost.read_units, "read unit"))
    if cost.write_units:
        parts.append(counted(cost.write_units, "write unit"))
    return ", ".join([*parts, f"{cost.seconds * 1000:.1f} ms"])


def _items(operation: str, response: Mapping[str, Any]) -> tuple[int, int]:
    # A response that a test injects may lack attributes that DynamoDB always returns.
    if operation == "GetItem":
        found = int("Item" in response)
    elif operation == "BatchGetItem":
        found = sum(map(len, response.get("Responses", {}).values()))
    elif operation == "TransactGetItems":
        found = sum("Item" in each for each in response.get("Responses", ()))
    else:
        found = int(response.get("Count", 0))
    return int(response.get("ScannedCount", found)), found
