"""Streams of pages, put one after the other or merged by their order.

They send nothing by themselves, and close what they were given when they end or are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from heapq import heapify, heappop, heapreplace
from typing import Any, TypeVar

from msgspec import Struct

from dynamo_single.table.flow import Pages

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
