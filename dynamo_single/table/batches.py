"""BatchGetItem, several at once, and BatchWriteItem; each sent again for what DynamoDB left out.

This module knows the table, and must not know plans or models.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from dynamo_single.exceptions import DynamoSingleError, Throttled
from dynamo_single.table import flow, threads
from dynamo_single.table.items import NewItem
from dynamo_single.table.limits import MAX_BATCH_KEYS
from dynamo_single.table.pages import PageForm
from dynamo_single.table.request import Request
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
        return threads.MAX_THREADS if self.left is None else -(-self.left // MAX_BATCH_KEYS)


def most_at_once(table: Table) -> int:
    """How many reads of one query may be under way: ``PARALLEL_READS``, eight, and as many as there are connections."""
    return min(threads.MAX_THREADS, table.settings.max_pool_connections, table.settings.parallel_reads)


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
    table: Table, requests: Iterable[Request], wanted: Wanted, form: PageForm
) -> AsyncGenerator[list[dict[str, Any]], None]:
    """As ``get_batches()``, but the answers to each request, of which the items are decoded by a form."""
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
