"""Shards read side by side: each gives its share of what is wanted, several requests at once, merged by the sort key.

A shard is asked for as much as it will probably give, so that little is read that is not given, and asked again when
it has given that. This module knows the table, and must not know where a schedule comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from heapq import heapify, heappop, heapreplace
from typing import Any, Generic, TypeVar

from msgspec import Struct

from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.reading.budget import Allowance, next_limit
from dynamo_single.orm.requests.compiler import compile_plan, with_page
from dynamo_single.table import names
from dynamo_single.table.answers import PageForm
from dynamo_single.table.batches import most_at_once
from dynamo_single.table.flow import Flow, Pages, in_order
from dynamo_single.table.request import NewItem, Request
from dynamo_single.table.table import Table

# Streams of pages, put one after the other or merged by their order.
#
# They send nothing by themselves, and close what they were given when they end or are closed.

T = TypeVar("T")


class Descending(Struct, frozen=True):
    """A value that sorts the other way round."""

    value: Any

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)


async def chained(streams: Sequence[Pages[T]]) -> Pages[T]:
    """One stream after the other."""
    for stream in streams:
        async with aclosing(stream):
            async for page in stream:
                yield page


async def merge_sorted(streams: Sequence[Pages[T]], key: Callable[[T], object], *, reverse: bool = False) -> Pages[T]:
    """Streams that are in order as one in order, or all in reverse order; of equal ones the first stream's come first.

    A stream's next page is asked for when everything before it was given.
    """
    rank: Callable[[T], Any] = (lambda each: Descending(key(each))) if reverse else key
    async with AsyncExitStack() as stack:
        for stream in streams:
            await stack.enter_async_context(aclosing(stream))
        # What is next of each stream, which stream it is, where it lies on its page, and the page.
        heap: list[list[Any]] = []
        for number, stream in enumerate(streams):
            if page := await _filled(stream):
                heap.append([rank(page[0]), number, 0, page])
        heapify(heap)
        found: list[T] = []
        while heap:
            head = heap[0]
            _, number, place, page = head
            found.append(page[place])
            place += 1
            if place == len(page):
                yield found
                found, place = [], 0
                page = await _filled(streams[number])
                if page is None:
                    heappop(heap)
                    continue
                head[3] = page
            head[0], head[2] = rank(page[place]), place
            heapreplace(heap, head)


async def _filled(stream: Pages[T]) -> Sequence[T] | None:
    """The next page of a stream with anything on it."""
    async for page in stream:
        if page:
            return page
    return None


R = TypeVar("R")


def first_share(wanted: int, shards: int) -> int:
    """How many items to read of each shard, if so many are wanted of all: seldom too few.

    Hashed identities spread evenly, so that a shard gives its part and twice the standard deviation, or less.
    """
    return _share(wanted, wanted / max(shards, 1))


def next_share(wanted: int, given: int, given_by_all: int) -> int:
    """The same of one shard that has given some of what all have given."""
    return _share(wanted, wanted * max(given, 1) / max(given_by_all, 1))


def _share(wanted: int, expected: float) -> int:
    return max(1, min(wanted, math.ceil(expected + 2 * math.sqrt(expected))))


async def at_once(table: Table, work: Callable[[T], Flow[R]], each: Iterable[T]) -> list[R]:
    """Do some work for each, as many at once as ``PARALLEL_READS`` allows; what it gives, in order."""
    most = most_at_once(table)
    async with aclosing(in_order(work, each, at_once=lambda: most)) as results:
        return [result async for result in results]


#: What an answer holds: items, or what was made of them, each with the text that it is sorted by.
Ranked = Sequence[tuple[str, T]]


class _Shard(Generic[T]):
    """One shard, of which some items are read and not given yet."""

    def __init__(self, request: Request, limit: int | None) -> None:
        self.request = request
        self.limit = limit
        self.items: Ranked[T] = ()
        self.place = 0
        self.given = 0
        self.last_page = 0
        self.last_key: Any = None
        self.is_over = False
        self.answer: dict[str, Any] = {}

    @property
    def left(self) -> int:
        """How many items are read and not given yet."""
        return len(self.items) - self.place

    def take(self) -> T:
        """Give the next item."""
        self.place += 1
        self.given += 1
        return self.items[self.place - 1][1]

    async def read(self, table: Table, form: PageForm | None, allowance: Allowance | None) -> None:
        """Read on: one answer, and more only until there is an item or none is left."""
        while True:
            request = with_page(self.request, start_key=self.last_key, limit=self.limit)
            self.answer = await table.ask(request, form)
            if allowance is not None:
                allowance.take(self.answer)
            self.last_key = self.answer.get("LastEvaluatedKey")
            self.is_over = self.last_key is None
            if self.left or self.is_over or self.answer["Count"]:
                return
            self.limit = None if self.limit is None else next_limit(self.limit)

    def put(self, found: Ranked[T]) -> None:
        """Let what was read come after what is not given yet."""
        self.items = [*self.items[self.place :], *found]
        self.place, self.last_page = 0, len(found)


async def ranked(
    table: Table,
    plan: Plan,
    found_in: Callable[[dict[str, Any]], Ranked[T]],
    *,
    form: PageForm | None = None,
    stop: int | None,
    allowance: Allowance | None,
) -> Pages[T]:
    """What ``found_in`` finds in the answers of all shards of a plan, in the order of its texts.

    What is read at a time suits ``stop``. There is a page at ``stop``; whoever wants more than that goes on. Items are
    decoded by ``form``, if there is one, and ``found_in`` is called in the caller's own thread.
    """
    requests = compile_plan(plan, table_name=table.name)
    shards: list[_Shard[T]] = [
        _Shard(each, None if stop is None else first_share(stop, len(requests))) for each in requests
    ]

    async def read(shard: _Shard[T]) -> None:
        await shard.read(table, form, allowance)

    async def fill(some: Sequence[_Shard[T]]) -> None:
        await at_once(table, read, some)
        for shard in some:
            shard.put(found_in(shard.answer))
            shard.answer = {}

    await fill(shards)
    rank = _ranking(plan)
    heap = [(rank(shard, number), number) for number, shard in enumerate(shards) if shard.left]
    heapify(heap)
    found: list[T] = []
    given = 0
    while heap:
        number = heap[0][1]
        shard = shards[number]
        found.append(shard.take())
        given += 1
        is_dry = not shard.left and not shard.is_over
        if is_dry or given == stop:
            yield found
            found = []
        if is_dry:
            await fill(_to_fill(shards, shard, plan, stop, given))
        if shard.left:
            heapreplace(heap, (rank(shard, number), number))
        else:
            heappop(heap)
    yield found


def merged_items(table: Table, plan: Plan, stop: int | None, allowance: Allowance | None) -> Pages[NewItem]:
    """The items of all shards of a plan in the order of the sort key, as ``ranked()``."""
    return ranked(table, plan, partial(with_texts, plan), stop=stop, allowance=allowance)


def with_texts(plan: Plan, answer: Mapping[str, Any]) -> list[tuple[str, NewItem]]:
    """The items of an answer, each with the text that it is sorted by."""
    sort = sort_of(plan)
    return [(item[sort]["S"], item) for item in answer["Items"]]


def sort_of(plan: Plan) -> str:
    """The physical name of the sort key that a plan reads by."""
    return names.SORT_KEY if plan.index is None else names.index_sort(plan.index)


def _to_fill(shards: Sequence[_Shard[T]], dry: _Shard[T], plan: Plan, stop: int | None, given: int) -> list[_Shard[T]]:
    """The shards to read on: the one that has nothing left, and those that will have nothing left soon."""
    wanted = None if stop is None else stop - given if stop > given else stop
    found = []
    for shard in shards:
        if shard.is_over:
            continue
        share = None if wanted is None else next_share(wanted, shard.given, given)
        if shard is not dry and 2 * shard.left > (shard.last_page if share is None else share):
            continue
        if share is not None:
            filtered = plan.filter != EVERYTHING
            shard.limit = next_limit(shard.limit or 1) if filtered else share
        found.append(shard)
    return found


def _ranking(plan: Plan) -> Callable[[_Shard[Any], int], Any]:
    """By what the next items of shards are compared; equal ones come in the order of the shards, or backwards in the
    opposite one."""
    if plan.forward:
        return lambda shard, number: (shard.items[shard.place][0], number)
    return lambda shard, number: (Descending(shard.items[shard.place][0]), -number)
