"""Objects one after the other without keeping them: ``iterator()`` and ``aiterator()``.

Pages are sent for when they are needed, and related objects are read chunk by chunk. This module must not know plans.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

from asgiref.sync import sync_to_async

from dynamo_single.table.listeners import SentRequest, listening

#: Django's own default (QuerySet.iterator), where related objects are read along.
CHUNK_SIZE = 2000


def iterate(queryset: Any, chunk_size: int | None = None) -> Iterator[Any]:
    """The results of a queryset; what is read along is read for each chunk of them."""
    results = iter(queryset._iterable_class(queryset))
    if not queryset._reads_related():
        yield from results
        return
    while chunk := _chunk(queryset, results, chunk_size or CHUNK_SIZE):
        yield from chunk


async def aiterate(queryset: Any, chunk_size: int = CHUNK_SIZE) -> AsyncIterator[Any]:
    """The same from asynchronous code; requests are sent by a thread, at most one page ahead of what was taken."""
    if chunk_size <= 0:
        raise ValueError("Chunk size must be strictly positive.")
    results = iter(queryset._iterable_class(queryset))
    take = sync_to_async(_chunk if queryset._reads_related() else _rest_of_page)
    while chunk := await take(queryset, results, chunk_size):
        for result in chunk:
            yield result


def _chunk(queryset: Any, results: Iterator[Any], size: int) -> list[Any]:
    chunk = list(islice(results, size))
    queryset._read_related(chunk)
    return chunk


def _rest_of_page(queryset: Any, results: Iterator[Any], size: int) -> list[Any]:
    """Results up to the first one of the next page: each crossing between threads sends no more than it has to."""
    sent: list[str] = []

    def note(request: SentRequest) -> None:
        sent.append(request.operation)

    chunk: list[Any] = []
    with listening(note):
        for result in islice(results, size):
            if not chunk:
                sent.clear()
            chunk.append(result)
            if sent:
                break
    return chunk
