"""Send BatchGetItem and BatchWriteItem, retry the part that DynamoDB left out, and keep to a rate of capacity units.

A response reports the consumed capacity of its request, so a rate is kept by waiting after a request that exceeded it.
The module is independent of plans and models.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

from msgspec import Struct

from dynamo_single.exceptions import DynamoSingleError, Throttled
from dynamo_single.table import flow
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.lease import Lease
from dynamo_single.table.redirects import SentRequest, listening
from dynamo_single.table.request import MAX_BATCH_KEYS, READS, NewItem, Request
from dynamo_single.table.table import Table

Item = NewItem

#: One entry of a BatchWriteItem: a PutRequest or a DeleteRequest.
Write = dict[str, Any]

#: The most requests for one batch, and the longest pause between them in seconds (AWS API reference,
#: BatchGetItem and BatchWriteItem: "we strongly recommend that you use an exponential backoff algorithm").
BATCH_ATTEMPTS = 8
LONGEST_PAUSE = 2.0


class RemainingItems:
    """The number of items that a query still needs, which limits how many requests are sent in advance."""

    def __init__(self, number: int | None) -> None:
        self.left = number

    def took(self, number: int) -> None:
        """Subtract items that were found."""
        if self.left is not None:
            self.left -= number

    @property
    def batches(self) -> int:
        """The least number of batches."""
        return flow.MAX_THREADS if self.left is None else -(-self.left // MAX_BATCH_KEYS)


def max_parallel_reads(table: Table) -> int:
    """Return how many reads of one query may run in parallel: at most ``PARALLEL_READS``, 8, and the connections."""
    return min(flow.MAX_THREADS, table.settings.max_pool_connections, table.settings.parallel_reads)


def get_batches(table: Table, requests: Iterable[Request], wanted: RemainingItems) -> AsyncGenerator[list[Item], None]:
    """Yield the items of each request, in the order of the requests; DynamoDB does not order the items of one.

    Up to ``max_parallel_reads()`` requests run in parallel, fewer if the number of wanted items needs fewer.
    """
    most = max_parallel_reads(table)
    return flow.in_order(partial(get_batch, table), requests, at_once=lambda: min(most, wanted.batches))


async def get_batch(table: Table, request: Request) -> list[Item]:
    """Return the items of one request, and retry unprocessed keys after random pauses that grow."""
    answers = await _responses(table, None, request)
    return [item for answer in answers for item in answer["Responses"].get(table.name, ())]


def get_responses(
    table: Table, requests: Iterable[Request], wanted: RemainingItems, decoder: ResponseDecoder | None
) -> AsyncGenerator[list[dict[str, Any]], None]:
    """Yield the responses of each request, with items decoded by ``decoder``; otherwise as ``get_batches()``."""
    most = max_parallel_reads(table)
    return flow.in_order(partial(_responses, table, decoder), requests, at_once=lambda: min(most, wanted.batches))


async def _responses(table: Table, decoder: ResponseDecoder | None, request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for attempt in range(BATCH_ATTEMPTS):
        if attempt:
            await flow.pause(_pause_before(attempt))
        answer = await table.ask(request, decoder)
        found.append(answer)
        unprocessed = answer.get("UnprocessedKeys")
        if not unprocessed:
            return found
        request = request.with_params({"RequestItems": unprocessed})
    missing = len(request.params["RequestItems"][table.name]["Keys"])
    raise _left_out(f"{missing} keys of a BatchGetItem unread", "read")


class UnprocessedWrites(Struct, frozen=True):
    """The writes of a batch that may not have been executed, and the error."""

    writes: Sequence[Write]
    error: DynamoSingleError


async def write_batch(
    table: Table, writes: Sequence[Write], *, patient: bool = False, lease: Lease | None = None
) -> UnprocessedWrites | None:
    """Send up to 25 writes without conditions as one BatchWriteItem, and retry unprocessed ones after growing pauses.

    With ``patient``, also retry if DynamoDB throttles the whole request, beyond the usual attempts. Return the writes
    that are left.
    """
    slow_down: Throttled | None = None
    for attempt in range(BATCH_ATTEMPTS):
        if attempt:
            await flow.pause(_pause_before(attempt))
        try:
            answer = await table.ask(Request("BatchWriteItem", {"RequestItems": {table.name: writes}}, lease))
        except Throttled as error:
            if not patient:
                return UnprocessedWrites(writes, error)
            slow_down = error
            continue
        except DynamoSingleError as error:
            return UnprocessedWrites(writes, error)
        left = (answer.get("UnprocessedItems") or {}).get(table.name)
        if not left:
            return None
        writes, slow_down = left, None
    return UnprocessedWrites(
        writes, slow_down or _left_out(f"{len(writes)} writes of a BatchWriteItem undone", "write")
    )


def _left_out(what: str, capacity: str) -> Throttled:
    return Throttled(
        f"DynamoDB left {what} after {BATCH_ATTEMPTS} requests: it asks to slow down. Try again later, or raise the "
        f"table's {capacity} capacity."
    )


def _pause_before(attempt: int) -> float:
    return random.uniform(0, min(LONGEST_PAUSE, 0.025 * 2**attempt))  # noqa: S311 - jitter is no secret


#: The seconds of unused capacity that later requests may use.
_SAVED: Final = 1.0


def pause_for(consumed: float, seconds: float, rate: float | None) -> float:
    """Return the seconds to wait before the next request to keep to ``rate`` units a second."""
    return 0.0 if rate is None else max(0.0, consumed / rate - seconds)


class Rate:
    """A limit of units a second, on average over all threads that share it; ``None`` sets no limit.

    Unused capacity expires after a second, so a pause is not followed by a burst.
    """

    def __init__(self, units: float | None, *, now: Callable[[], float] = time.monotonic) -> None:
        self._units = units
        self._now = now
        self._lock = threading.Lock()
        self._consumed = 0.0
        self._since = now()

    @property
    def consumed(self) -> float:
        """The units consumed so far."""
        return self._consumed

    def count(self, units: float) -> None:
        """Add consumed units."""
        with self._lock:
            self._consumed += units

    def pause(self) -> float:
        """Return the seconds that the next request has to wait."""
        if self._units is None:
            return 0.0
        with self._lock:
            present = self._now()
            self._since = max(self._since, present - self._consumed / self._units - _SAVED)
            return pause_for(self._consumed, present - self._since, self._units)


class Pace:
    """A rate for reads and one for writes.

    ``wait`` waits for some seconds; the ``wait`` method of an event allows another thread to end the pause.
    """

    def __init__(
        self, *, reads: float | None = None, writes: float | None = None, wait: Callable[[float], object] = time.sleep
    ) -> None:
        self.reads, self.writes = Rate(reads), Rate(writes)
        self._wait = wait

    def before(self, operation: str) -> None:
        """Wait until a request of this operation may be sent."""
        if pause := (self.reads if operation in READS else self.writes).pause():
            self._wait(pause)

    def counting(self) -> AbstractContextManager[None]:
        """Count the capacity that the requests of a block consume, including requests of threads with its context."""
        return listening(self._count)

    def _count(self, request: SentRequest) -> None:
        (self.reads if request.operation in READS else self.writes).count(request.consumed)
