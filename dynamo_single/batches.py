"""BatchGetItem: several at once, and each asked again for the keys that DynamoDB left out.

This module knows the table, and must not know plans or models.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from dynamo_single import parallel
from dynamo_single.compiler import MAX_BATCH_KEYS
from dynamo_single.exceptions import Throttled
from dynamo_single.query import Request
from dynamo_single.table import Table

Item = dict[str, dict[str, Any]]

#: How often keys that DynamoDB left out of a BatchGetItem's answer are asked for again, and the longest pause in
#: seconds (AWS API reference, BatchGetItem: "we strongly recommend that you use an exponential backoff algorithm").
BATCH_ATTEMPTS = 8
LONGEST_PAUSE = 2.0


class Wanted:
    """How many items are still wanted, which bounds how many requests are sent before their answers are needed."""

    def __init__(self, number: int | None) -> None:
        self.left = number

    def took_one(self) -> None:
        """One of them was found."""
        if self.left is not None:
            self.left -= 1

    @property
    def batches(self) -> int:
        """How many batches it takes at the least."""
        return parallel.MAX_THREADS if self.left is None else -(-self.left // MAX_BATCH_KEYS)


def get_batches(table: Table, requests: Iterable[Request], wanted: Wanted) -> Iterator[list[Item]]:
    """The items of each request, request by request; those of one come in any order.

    Up to eight requests are under way at once, and no more than there are connections, or than what is wanted takes.
    """
    most = min(parallel.MAX_THREADS, table.settings.max_pool_connections)
    return parallel.in_order(partial(get_batch, table), requests, at_once=lambda: min(most, wanted.batches))


def get_batch(table: Table, request: Request) -> list[Item]:
    """The items of one request: asked again for unprocessed keys, after pauses that grow and are random."""
    found: list[Item] = []
    for attempt in range(BATCH_ATTEMPTS):
        if attempt:
            pause(attempt)
        answer = table.send(request)
        found += answer["Responses"].get(table.name, ())
        unprocessed = answer.get("UnprocessedKeys")
        if not unprocessed:
            return found
        request = Request("BatchGetItem", {"RequestItems": unprocessed})
    missing = len(request.params["RequestItems"][table.name]["Keys"])
    raise Throttled(
        f"DynamoDB left {missing} keys of a BatchGetItem unread after {BATCH_ATTEMPTS} requests: it asks to slow down. "
        "Try again later, or raise the table's read capacity."
    )


def pause(attempt: int) -> None:
    """Wait before asking again for the ``attempt``-th time."""
    time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.025 * 2**attempt)))  # noqa: S311 - jitter is no secret
