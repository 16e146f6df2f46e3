"""Carries out a plan: sends its requests page by page and gives the stored items that match.

It knows the table and the requests' answers, and must not know models: an item is what DynamoDB returned.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from dynamo_single import layout as names
from dynamo_single.actions import key_of
from dynamo_single.compiler import compile_plan, item_key, with_page
from dynamo_single.exceptions import Throttled
from dynamo_single.matching import matches
from dynamo_single.query import EVERYTHING, Plan, Request
from dynamo_single.table import Table

Item = dict[str, dict[str, Any]]

#: How often keys that DynamoDB left out of a BatchGetItem's answer are asked for again, and the longest pause in
#: seconds (AWS API reference, BatchGetItem: "we strongly recommend that you use an exponential backoff algorithm").
BATCH_ATTEMPTS = 8
LONGEST_PAUSE = 2.0
#: A page that a filter may empty grows by this factor each time, so that a rare match costs few requests.
PAGE_GROWTH = 4


def limit_is_exact(plan: Plan) -> bool:
    """Whether ``Limit``, which counts items read, can stand for the number of items wanted."""
    return plan.kind in {"query", "scan"} and plan.filter == EVERYTHING and len(plan.conditions) <= 1


def requests(table: Table, plan: Plan, *, limit: int | None = None) -> tuple[Request, ...]:
    """The plan's first requests, as they will be sent."""
    return compile_plan(plan, table_name=table.name, limit=limit)


def items(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> Iterator[Item]:
    """The matching items from number ``skip`` up to ``stop``, read lazily: a page is sent for when it is needed.

    Skipped items are read, and paid for, as DynamoDB has no offset.
    """
    if plan.kind == "empty":
        found: Iterable[Item] = ()
    elif plan.kind == "get":
        found = _get(table, plan)
    elif plan.kind == "batch_get":
        found = _batch_get(table, plan)
    else:
        found = _pages_of_plan(table, plan, stop)
    return islice(iter(found), skip, stop)


def count(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> int:
    """The number of matching items; queries and scans only count, they return no item."""
    if plan.kind not in {"query", "scan"}:
        return sum(1 for _ in items(table, plan, skip=skip, stop=stop))
    total = 0
    for request in compile_plan(plan, table_name=table.name, count=True):
        for answer in _answers(table, request, None if stop is None else stop - total, exact=limit_is_exact(plan)):
            total += int(answer["Count"])
            if stop is not None and total >= stop:
                return max(stop - skip, 0)
    return max(total - skip, 0)


def _get(table: Table, plan: Plan) -> Iterator[Item]:
    (request,) = compile_plan(plan)
    item: Item | None = table.send(request).get("Item")
    if item is not None and matches(plan.filter, item, plan.layout):
        yield item


def _batch_get(table: Table, plan: Plan) -> Iterator[Item]:
    for request in compile_plan(plan, table_name=table.name):
        wanted = request.params["RequestItems"][table.name]["Keys"]
        found = {key_of(item): item for item in _batch(table, request)}
        for key in wanted:
            item = found.get(key_of(key))
            if item is not None and matches(plan.filter, item, plan.layout):
                yield item


def _batch(table: Table, request: Request) -> Iterator[Item]:
    for attempt in range(BATCH_ATTEMPTS):
        answer = table.send(request)
        yield from answer["Responses"].get(table.name, ())
        unprocessed = answer.get("UnprocessedKeys")
        if not unprocessed:
            return
        request = Request("BatchGetItem", {"RequestItems": unprocessed})
        time.sleep(random.uniform(0, min(LONGEST_PAUSE, 0.05 * 2**attempt)))  # noqa: S311 - jitter is no secret
    missing = len(request.params["RequestItems"][table.name]["Keys"])
    raise Throttled(
        f"DynamoDB left {missing} keys of a BatchGetItem unread after {BATCH_ATTEMPTS} requests: it asks to slow down. "
        "Try again later, or raise the table's read capacity."
    )


def _pages_of_plan(table: Table, plan: Plan, stop: int | None) -> Iterator[Item]:
    exact = limit_is_exact(plan)
    streams = [_items_of(table, request, stop, exact=exact) for request in compile_plan(plan, table_name=table.name)]
    if plan.merge == "sort_key" and len(streams) > 1:
        index = plan.key.index if plan.key else None
        sort = names.SORT_KEY if index is None else names.index_sort(index)
        yield from heapq.merge(*streams, key=lambda item: item[sort]["S"], reverse=not plan.forward)
        return
    for stream in streams:
        yield from stream


def _items_of(table: Table, request: Request, stop: int | None, *, exact: bool) -> Iterator[Item]:
    for answer in _answers(table, request, stop, exact=exact):
        yield from answer["Items"]


def _answers(table: Table, request: Request, wanted: int | None, *, exact: bool) -> Iterator[dict[str, Any]]:
    """The pages of one Query or Scan; ``wanted`` bounds what each page reads as far as the filter allows."""
    limit = wanted
    start_key = None
    while True:
        answer = table.send(with_page(request, start_key=start_key, limit=limit))
        yield answer
        start_key = answer.get("LastEvaluatedKey")
        if start_key is None:
            return
        if limit is not None:
            limit = limit - int(answer["Count"]) if exact else limit * PAGE_GROWTH
            if limit <= 0:
                return


def get_item(table: Table, key: tuple[str, str]) -> Item | None:
    """One item by its key, strongly consistent: one GetItem."""
    answer = table.send(Request("GetItem", {"Key": item_key(key), "ConsistentRead": True}))
    item: Item | None = answer.get("Item")
    return item
