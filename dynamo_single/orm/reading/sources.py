"""The page engine: each source of pages is one Query or Scan, and the engine reads several sequentially, or merges them
in order.

A source has the position that it has reached, the limit of its next page, and read items that it has not returned yet.
All requests of a read pass through its ``PlanReader``: it translates names that a rename changes between two pages, and
counts what is read and discarded. Lists, merged shards, counts, unions and pages of cursors all read by this module. It
does not depend on models.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from heapq import heapify, heappop, heapreplace
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.reading.budget import Allowance, next_limit
from dynamo_single.orm.reading.current_names import following_table
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.compiler import compile_plan, with_page
from dynamo_single.table import names
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.batches import max_parallel_reads
from dynamo_single.table.flow import Flow, Pages, in_order
from dynamo_single.table.request import Request, Response
from dynamo_single.table.table import Table

T = TypeVar("T")
R = TypeVar("R")

#: The position of an item in an order; empty if it is not known before the next page is read.
Rank = tuple[Any, ...]


class Completes(Protocol):
    """Completes the response to a Query or Scan; see ``completion``."""

    async def complete(self, table: Table, request: Request, response: Response) -> Response:
        """Return the complete response."""


class PlanReader(Struct, frozen=True):
    """The parts that all sources of one read share.

    ``form`` decodes items, if there is one. ``completion`` completes pages of a table with a shape of its own.
    """

    table: Table
    allowance: Allowance | None = None
    form: ResponseDecoder | None = None
    completion: Completes | None = None

    async def ask(self, request: Request) -> Response:
        """Send a request for a page; raises ``TooManyReads`` for a Query that discards too many items."""
        response = await self.table.ask(request, self.form)
        if self.completion is not None:
            response = await self.completion.complete(self.table, request, response)
        if self.allowance is not None and request.operation == "Query":
            self.allowance.take(response)
        return response


async def open_reader(table: Table, plan: Plan, form: ResponseDecoder | None = None) -> PlanReader:
    """Return the reader of a plan, which an ``atomic()`` block, or shards of later code, may refuse."""
    atomic_block.check_plan(table.settings.alias, plan)
    allowance = Allowance(table, plan) if _discards_items(plan) else None
    return PlanReader(following_table(table, plan), allowance, form)


def _discards_items(plan: Plan) -> bool:
    """Return whether a Query of the plan may read items that its filter leaves out."""
    if plan.kind == "union":
        return any(map(_discards_items, plan.parts))
    return plan.kind == "query" and plan.filter != EVERYTHING


class Source(Generic[T]):
    """Ordered items, some of which the app has read but not returned yet."""

    items: deque[T]
    #: How many items were returned.
    returned = 0
    #: Whether there is nothing more to read.
    is_exhausted = False


class PageSource(Source[T]):
    """One Query or Scan, a page at a time.

    ``limit`` bounds the next page and grows with each page, since a filter may leave few items. If it ``is_exact``, it
    is the number of items still wanted.
    """

    def __init__(self, request: Request, limit: int | None = None, *, is_exact: bool = False) -> None:
        self.items = deque()
        self.request = request
        self.limit = limit
        self.is_exact = is_exact
        #: The start of the next page.
        self.last_key: Mapping[str, Any] | None = None
        self.page_size = 0

    async def read(self, reader: PlanReader) -> Response:
        """Send the request for the next page."""
        response = await reader.ask(with_page(self.request, start_key=self.last_key, limit=self.limit))
        self.last_key = response.get("LastEvaluatedKey")
        self.is_exhausted = self.last_key is None
        if self.limit is not None:
            self.limit = self.limit - int(response["Count"]) if self.is_exact else next_limit(self.limit)
            self.is_exhausted = self.is_exhausted or self.limit <= 0
        return response

    async def read_items(self, reader: PlanReader) -> Response:
        """Send requests until a page has items, unless some are left of the page before."""
        response = await self.read(reader)
        while not (response["Count"] or self.items or self.is_exhausted):
            response = await self.read(reader)
        return response

    def add(self, items: Sequence[T]) -> None:
        """Add the items of a page."""
        self.items += items
        self.page_size = len(items)


async def pages_of(
    reader: PlanReader, sources: Iterable[PageSource[Any]], page_of: Callable[[Response], R], *, at_once: int = 1
) -> AsyncGenerator[R, None]:
    """Yield ``page_of()`` each response, source by source; it reads first pages in parallel, up to ``at_once``."""
    if at_once == 1:
        for source in sources:
            while not source.is_exhausted:
                yield page_of(await source.read(reader))
        return

    async def first_page(source: PageSource[Any]) -> tuple[PageSource[Any], Response]:
        return source, await source.read(reader)

    async with aclosing(in_order(first_page, sources, at_once=lambda: at_once)) as first_pages:
        async for source, response in first_pages:
            yield page_of(response)
            while not source.is_exhausted:
                yield page_of(await source.read(reader))


async def in_parallel(table: Table, work: Callable[[T], Flow[R]], each: Iterable[T]) -> list[R]:
    """Return the result of ``work`` for each argument, in order; ``PARALLEL_READS`` bounds how many run in parallel."""
    most = max_parallel_reads(table)
    async with aclosing(in_order(work, each, at_once=lambda: most)) as results:
        return [result async for result in results]


class Descending(Struct, frozen=True):
    """A value that sorts in reverse."""

    value: Any

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)


S = TypeVar("S", bound=Source[Any])


async def merge(
    sources: Sequence[S],
    rank: Callable[[int, S], Rank],
    read: Callable[[S, int], Flow[bool]],
    *,
    stop: int | None = None,
) -> Pages[Any]:
    """Yield the items of several sources in the order of ``rank()``; a page ends at ``stop``.

    ``rank()`` gets the number of a source, and the source. An empty rank, the lowest of all, marks a source to read:
    ``read()`` gets the source and the number of items returned so far, and returns ``False`` to end the merge. If ranks
    are equal, the first source comes first.
    """
    heap = [(rank(number, source), number) for number, source in enumerate(sources)]
    heapify(heap)
    page: list[Any] = []
    returned = 0
    while heap:
        number = heap[0][1]
        source = sources[number]
        if source.items:
            page.append(source.items.popleft())
            source.returned += 1
            returned += 1
            if returned == stop:
                yield page
                page = []
        elif source.is_exhausted:
            heappop(heap)
            continue
        else:
            if page:
                yield page
                page = []
            if not await read(source, returned):
                return
        heapreplace(heap, (rank(number, source), number))
    yield page


def sort_attribute(plan: Plan) -> str:
    """Return the physical name of the sort key that a plan reads by."""
    return names.key_names(plan.index)[1]


#: The items of a response, or the results that were made of them, each with its sort key.
SortKeyed = Sequence[tuple[str, T]]


async def merged_partitions(
    reader: PlanReader, plan: Plan, items_of: Callable[[Response], SortKeyed[T]], stop: int | None
) -> Pages[T]:
    """Yield the items of all key conditions of a plan in the order of the sort key; a page ends at ``stop``.

    It reads shards in parallel: first an equal share of the requested items each, then, while too few items are loaded,
    the shards with few left. ``items_of`` is called in the caller's own thread.
    """
    share = first_share(stop, len(plan.conditions)) if stop is not None and plan.is_sharded else stop
    sources: list[PageSource[tuple[str, T]]] = [PageSource(request, share) for request in compile_plan(plan)]

    async def read_all(some: Sequence[PageSource[tuple[str, T]]]) -> None:
        read = await in_parallel(reader.table, lambda source: source.read_items(reader), some)
        for source, response in zip(some, read, strict=True):
            source.add(items_of(response))

    async def read(source: PageSource[tuple[str, T]], returned: int) -> bool:
        await read_all(_shards_to_read(sources, source, plan, stop, returned) if plan.is_sharded else [source])
        return True

    def rank(number: int, source: PageSource[tuple[str, T]]) -> Rank:
        if source.items:
            sort = source.items[0][0]
        elif source.last_key is None:
            return ()
        else:
            # Items of the next page are not before the key of its start.
            sort = source.last_key[sort_attribute(plan)]["S"]
        return (sort, number) if plan.forward else (Descending(sort), -number)

    await read_all(sources)
    async with aclosing(merge(sources, rank, read, stop=stop)) as pages:
        async for page in pages:
            yield [item for _, item in page]


def with_sort_keys(plan: Plan, response: Mapping[str, Any]) -> SortKeyed[Any]:
    """Return the items of a response, each with its sort key."""
    sort = sort_attribute(plan)
    return [(item[sort]["S"], item) for item in response["Items"]]


def first_share(wanted: int, shards: int) -> int:
    """Return how many items to read from each shard for a total number: seldom too few.

    Hashed identities spread evenly, so that a shard has its part plus twice the standard deviation, or fewer.
    """
    return _share(wanted, wanted / max(shards, 1))


def next_share(wanted: int, returned: int, returned_by_all: int) -> int:
    """Return how many items to read from a shard, given its share of the returned items."""
    return _share(wanted, wanted * max(returned, 1) / max(returned_by_all, 1))


def _share(wanted: int, expected: float) -> int:
    return max(1, min(wanted, math.ceil(expected + 2 * math.sqrt(expected))))


def _shards_to_read(
    shards: Sequence[PageSource[T]], empty: PageSource[T], plan: Plan, stop: int | None, returned: int
) -> list[PageSource[T]]:
    """Return the exhausted shard, and those that will soon be exhausted; set their limits.

    If the loaded items may be sufficient, it is that shard alone.
    """
    wanted = None if stop is None else stop - returned if stop > returned else stop
    is_short = wanted is None or sum(len(shard.items) for shard in shards) < wanted
    found = []
    for shard in shards:
        if shard.is_exhausted:
            continue
        share = None if wanted is None else next_share(wanted, shard.returned, returned)
        has_few = 2 * len(shard.items) <= (shard.page_size if share is None else share)
        if shard is not empty and not (is_short and has_few):
            continue
        if plan.filter == EVERYTHING:
            shard.limit = share
        found.append(shard)
    return found
