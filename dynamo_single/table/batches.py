"""Send batches of reads, writes and INSERT statements, retry the part that DynamoDB left out, and keep to a rate.

A response reports the consumed capacity of its request, so a rate is kept by waiting after a request that exceeded it.
The module is independent of plans and models.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Any, Final

from msgspec import Struct, field

from dynamo_single.exceptions import (
    AccessDenied,
    BeginAgain,
    Conflict,
    DynamoSingleError,
    OutcomeUnknown,
    RequestFailed,
    TableUnavailable,
    Throttled,
)
from dynamo_single.table import flow, transport
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.lease import Lease
from dynamo_single.table.redirects import SentRequest, listening
from dynamo_single.table.request import MAX_BATCH_KEYS, READS, NewItem, Request, Statement
from dynamo_single.table.table import Table

logger = logging.getLogger("dynamo_single.requests")

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


#: The codes of statements (AWS API reference, BatchStatementError): of one whose item exists, and of a missing right.
EXISTS: Final = "DuplicateItem"
_DENIED: Final = "AccessDenied"
#: The code of a statement that may have been executed all the same, and the codes of those that are sent again.
_FAILED: Final = "InternalServerError"
_REPEATED: Final = frozenset(
    {_FAILED, "ProvisionedThroughputExceeded", "RequestLimitExceeded", "ThrottlingError", "TransactionConflict"}
)
#: The codes of a request that DynamoDB, or an engine without PartiQL, does not execute for anyone.
_UNKNOWN: Final = frozenset({"AccessDeniedException", "UnknownOperationException"})
_NO_RIGHT: Final = "the role lacks the right dynamodb:PartiQLInsert"
_NO_PARTIQL: Final = "the endpoint does not support PartiQL"


class InsertResult(Struct, frozen=True):
    """The result of one INSERT statement.

    - ``code`` is ``""`` if the item was inserted, otherwise the reason why it was not, such as ``EXISTS``.
    - ``is_doubtful``: an earlier attempt, or this one if there is an ``error``, may have inserted the item.
    - ``error`` is the error of a statement that was given up.
    """

    code: str = ""
    is_doubtful: bool = False
    error: DynamoSingleError | None = None


def can_insert(table: Table) -> bool:
    """Return whether the table takes INSERT statements, as far as this process knows; do not send a request."""
    if transport.is_endpoint_replaced(table.settings.endpoint_url):
        _warn(table.name, "the library that replaces AWS does not support PartiQL as AWS does")
        return False
    return table.takes_statements


async def insert_batch(
    table: Table, statements: Sequence[Statement], *, lease: Lease | None = None
) -> list[InsertResult]:
    """Send up to 25 INSERT statements as one BatchExecuteStatement; each inserts its item only if there is none.

    Throttled statements are sent again without the others, after growing pauses, in at most ``BATCH_ATTEMPTS``
    requests. If the role or the engine does not permit statements, the table's ``takes_statements`` becomes ``False``
    and a warning is logged.
    """
    batch = _Inserts([*range(len(statements))])
    slow_down: DynamoSingleError | None = None
    for attempt in range(BATCH_ATTEMPTS):
        if attempt:
            await flow.pause(_pause_before(attempt))
        sent = [statements[number] for number in batch.left]
        try:
            batch.answered(await table.ask(Request("BatchExecuteStatement", {"Statements": sent}, lease)))
        except (Throttled, Conflict) as error:
            slow_down = error
            continue
        except BeginAgain as error:
            batch.ended(InsertResult(error=error))
        except DynamoSingleError as error:
            batch.ended(_of_refused_request(table, error))
        if not batch.left:
            break
        slow_down = None
    undone = f"{len(batch.left)} statements of a BatchExecuteStatement undone"
    batch.ended(InsertResult(error=slow_down or _left_out(undone, "write")))
    if any(each.code == _DENIED for each in batch.results.values()):
        _refuse_statements(table, _NO_RIGHT)
    return [batch.results[number] for number in range(len(statements))]


class _Inserts(Struct):
    """The statements of a batch by their numbers: those that are left, and the results of the others.

    ``doubtful`` contains the numbers of statements that an attempt without a usable response may have executed.
    """

    left: list[int]
    results: dict[int, InsertResult] = field(default_factory=dict)
    doubtful: set[int] = field(default_factory=set)

    def answered(self, answer: Mapping[str, Any]) -> None:
        """Take DynamoDB's responses to the statements that are left."""
        if answer.get("ResponseMetadata", {}).get("RetryAttempts"):
            self.doubtful.update(self.left)
        again = []
        for number, response in zip(self.left, answer["Responses"], strict=True):
            code = response["Error"]["Code"] if "Error" in response else ""
            if code == _FAILED:
                self.doubtful.add(number)
            if code in _REPEATED:
                again.append(number)
            else:
                self.results[number] = InsertResult(code, number in self.doubtful)
        self.left = again

    def ended(self, result: InsertResult) -> None:
        """Give all statements that are left the same result, or ``OutcomeUnknown`` if they may have been executed."""
        for number in self.left:
            known = result
            if number in self.doubtful and not result.is_doubtful:
                known = InsertResult(result.code, is_doubtful=True, error=result.error and _unknown(result.error))
            self.results[number] = known
        self.left = []


def _unknown(error: DynamoSingleError) -> OutcomeUnknown:
    return OutcomeUnknown(
        "DynamoDB failed while it executed an INSERT statement, so the item may have been written. Read the item "
        f"before you repeat it. The last attempt failed too: {error}"
    )


def _of_refused_request(table: Table, error: DynamoSingleError) -> InsertResult:
    code = error.code if isinstance(error, RequestFailed) else ""
    if code in _UNKNOWN:
        _refuse_statements(table, _NO_RIGHT if isinstance(error, AccessDenied) else _NO_PARTIQL)
        return InsertResult(code)
    if isinstance(error, TableUnavailable):
        return InsertResult(is_doubtful=isinstance(error, OutcomeUnknown), error=error)
    # It is about a value of one item. Each item is sent by itself, and gets its own error.
    return InsertResult(code or type(error).__name__)


def _refuse_statements(table: Table, why: str) -> None:
    table.takes_statements = False
    _warn(table.name, why)


@lru_cache(maxsize=64)
def _warn(name: str, why: str) -> None:
    """Log why objects are created one by one, once for each table and reason in this process."""
    logger.warning(
        "bulk_create() and loaddata send one PutItem for each object of the table %r instead of one request for 25, "
        "because %s. Grant the right, or use an engine that supports PartiQL, and restart the process.",
        name,
        why,
    )


def _left_out(what: str, capacity: str) -> Throttled:
    return Throttled(
        f"DynamoDB left {what} after {BATCH_ATTEMPTS} requests because of throttling. Try again later, or "
        f"raise the table's {capacity} capacity."
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
