"""BatchGetItem, several at once, and BatchWriteItem; each sent again for what DynamoDB left out.

This module knows the table, and must not know plans or models.
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
from dynamo_single.table.answers import PageForm
from dynamo_single.table.redirects import SentRequest, listening
from dynamo_single.table.request import MAX_BATCH_KEYS, READS, NewItem, Request
from dynamo_single.table.table import Table

Item = NewItem

#: One entry of a BatchWriteItem: a PutRequest or a DeleteRequest.
Write = dict[str, Any]

#: How often what DynamoDB left out of a batch is sent again, and the longest pause in seconds (AWS API reference,
#: BatchGetItem and BatchWriteItem: "we strongly recommend that you use an exponential backoff algorithm").
BATCH_ATTEMPTS = 8
LONGEST_PAUSE = 2.0


class Wanted:
    """How many items are still wanted, which bounds how many requests are sent before their answers are needed."""

    def __init__(self, number: int | None) -> None:
        self.left = number

    def took(self, number: int) -> None:
        """So many of them were found."""
        if self.left is not None:
            self.left -= number

    @property
    def batches(self) -> int:
        """How many batches it takes at the least."""
        return flow.MAX_THREADS if self.left is None else -(-self.left // MAX_BATCH_KEYS)


def most_at_once(table: Table) -> int:
    """How many reads of one query may be under way: ``PARALLEL_READS``, eight, and as many as there are connections."""
    return min(flow.MAX_THREADS, table.settings.max_pool_connections, table.settings.parallel_reads)


def get_batches(table: Table, requests: Iterable[Request], wanted: Wanted) -> AsyncGenerator[list[Item], None]:
    """The items of each request, request by request; those of one come in any order.

    As many requests are under way as ``most_at_once()`` says, and no more than what is wanted takes.
    """
    most = most_at_once(table)
    return flow.in_order(partial(get_batch, table), requests, at_once=lambda: min(most, wanted.batches))


async def get_batch(table: Table, request: Request) -> list[Item]:
    """The items of one request: asked again for unprocessed keys, after pauses that grow and are random."""
    answers = await _answers(table, None, request)
    return [item for answer in answers for item in answer["Responses"].get(table.name, ())]


def get_answers(
    table: Table, requests: Iterable[Request], wanted: Wanted, form: PageForm | None
) -> AsyncGenerator[list[dict[str, Any]], None]:
    """As ``get_batches()``, but the answers to each request; their items are decoded by a form if there is one."""
    most = most_at_once(table)
    return flow.in_order(partial(_answers, table, form), requests, at_once=lambda: min(most, wanted.batches))


async def _answers(table: Table, form: PageForm | None, request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for attempt in range(BATCH_ATTEMPTS):
        if attempt:
            await flow.pause(_pause_before(attempt))
        answer = await table.ask(request, form)
        found.append(answer)
        unprocessed = answer.get("UnprocessedKeys")
        if not unprocessed:
            return found
        request = Request("BatchGetItem", {"RequestItems": unprocessed})
    missing = len(request.params["RequestItems"][table.name]["Keys"])
    raise _left_out(f"{missing} keys of a BatchGetItem unread", "read")


class Rest(Struct, frozen=True):
    """The writes of a batch that are not carried out as far as is known, and why."""

    writes: Sequence[Write]
    error: DynamoSingleError


async def write_batch(table: Table, writes: Sequence[Write], *, patient: bool = False) -> Rest | None:
    """Send up to 25 writes, without conditions, as one BatchWriteItem; again for what is left, after growing pauses.

    With ``patient`` also where DynamoDB asks to slow down before it carries out any, beyond botocore's own attempts.
    """
    slow_down: Throttled | None = None
    for attempt in range(BATCH_ATTEMPTS):
        if attempt:
            await flow.pause(_pause_before(attempt))
        try:
            answer = await table.ask(Request("BatchWriteItem", {"RequestItems": {table.name: writes}}))
        except Throttled as error:
            if not patient:
                return Rest(writes, error)
            slow_down = error
            continue
        except DynamoSingleError as error:
            return Rest(writes, error)
        left = (answer.get("UnprocessedItems") or {}).get(table.name)
        if not left:
            return None
        writes, slow_down = left, None
    return Rest(writes, slow_down or _left_out(f"{len(writes)} writes of a BatchWriteItem undone", "write"))


def _left_out(what: str, capacity: str) -> Throttled:
    return Throttled(
        f"DynamoDB left {what} after {BATCH_ATTEMPTS} requests: it asks to slow down. Try again later, or raise the "
        f"table's {capacity} capacity."
    )


def _pause_before(attempt: int) -> float:
    return random.uniform(0, min(LONGEST_PAUSE, 0.025 * 2**attempt))  # noqa: S311 - jitter is no secret


# Keeping to a rate of capacity units: how long the next request has to wait, of what earlier ones consumed.
#
# A request tells what it consumed only with its answer, so that a rate is kept by waiting after what was too much.
# This module must not know what is asked for.

#: How many seconds of a rate that were left unused may be made up for at once.
_SAVED: Final = 1.0


def pause_for(consumed: float, seconds: float, rate: float | None) -> float:
    """How many seconds to wait before the next request, to stay at ``rate`` units a second."""
    return 0.0 if rate is None else max(0.0, consumed / rate - seconds)


class Rate:
    """At most so many units a second on average, of all threads that use it; ``None`` for as many as they can.

    What one second left unused is not saved up for longer, so that a pause is followed by no burst.
    """

    def __init__(self, units: float | None, *, now: Callable[[], float] = time.monotonic) -> None:
        self._units = units
        self._now = now
        self._lock = threading.Lock()
        self._consumed = 0.0
        self._since = now()

    @property
    def consumed(self) -> float:
        """All units so far."""
        return self._consumed

    def count(self, units: float) -> None:
        """Something has been consumed."""
        with self._lock:
            self._consumed += units

    def pause(self) -> float:
        """How many seconds the next request has to wait."""
        if self._units is None:
            return 0.0
        with self._lock:
            present = self._now()
            self._since = max(self._since, present - self._consumed / self._units - _SAVED)
            return pause_for(self._consumed, present - self._since, self._units)


class Pace:
    """A rate for reading and one for writing.

    ``wait`` is what waits for some seconds, such as an event's, which ends the waiting when it is set.
    """

    def __init__(
        self, *, reads: float | None = None, writes: float | None = None, wait: Callable[[float], object] = time.sleep
    ) -> None:
        self.reads, self.writes = Rate(reads), Rate(writes)
        self._wait = wait

    def before(self, operation: str) -> None:
        """Wait as long as a request of this operation has to."""
        if pause := (self.reads if operation in READS else self.writes).pause():
            self._wait(pause)

    def counting(self) -> AbstractContextManager[None]:
        """Count what the requests of the block consume, and those of threads that have its context."""
        return listening(self._count)

    def _count(self, request: SentRequest) -> None:
        (self.reads if request.operation in READS else self.writes).count(request.consumed)
