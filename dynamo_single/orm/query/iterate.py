"""Objects one after the other without keeping them: ``iterator()`` and ``aiterator()``.

Pages are sent for when they are needed, and related objects are read chunk by chunk. This module must not know plans.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from asgiref.sync import sync_to_async

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.table.flow import run
from dynamo_single.table.redirects import SentRequest, listening

if TYPE_CHECKING:
    from dynamo_single.orm.results import prefetch
    from dynamo_single.orm.results.objects import Results
    from dynamo_single.orm.results.state import RelatedReads
else:
    prefetch = LazyModule("dynamo_single.orm.results.prefetch")

T = TypeVar("T")

#: Django's own default (QuerySet.iterator) for reading related objects.
CHUNK_SIZE = 2000


def iterate(results: Iterable[T], related_reads: RelatedReads, chunk_size: int | None = None) -> Iterator[T]:
    """Return the results; read related objects for each chunk."""
    found = iter(results)
    if not related_reads:
        yield from found
        return
    while chunk := _chunk(found, related_reads, chunk_size or CHUNK_SIZE):
        yield from chunk


async def aread_related(pages: Results, related_reads: RelatedReads, chunk_size: int) -> AsyncGenerator[Any, None]:
    """Return the results asynchronously; read related objects for each chunk."""
    _check(chunk_size)
    chunk: list[Any] = []
    async with aclosing(pages):
        async for page in pages:
            for each in page:
                if not related_reads:
                    yield each
                    continue
                chunk.append(each)
                if len(chunk) == chunk_size:
                    await prefetch.read_related(chunk, related_reads)
                    for read in chunk:
                        yield read
                    chunk = []
    await prefetch.read_related(chunk, related_reads)
    for read in chunk:
        yield read


def _check(chunk_size: int) -> None:
    if chunk_size <= 0:
        raise ValueError("Chunk size must be strictly positive.")


async def aiterate(
    results: Iterable[T], related_reads: RelatedReads, chunk_size: int = CHUNK_SIZE
) -> AsyncGenerator[T, None]:
    """Return the results to asynchronous code; a thread sends requests, at most one page ahead."""
    _check(chunk_size)
    found = iter(results)
    take = sync_to_async(_chunk if related_reads else _rest_of_page)
    while chunk := await take(found, related_reads, chunk_size):
        for result in chunk:
            yield result


def _chunk(results: Iterator[T], related_reads: RelatedReads, size: int) -> list[T]:
    chunk = list(islice(results, size))
    run(prefetch.read_related(chunk, related_reads))
    return chunk


def _rest_of_page(results: Iterator[T], related_reads: RelatedReads, size: int) -> list[T]:
    """Results up to the first one of the next page: each crossing between threads sends no more than it has to."""
    sent: list[str] = []

    def note(request: SentRequest) -> None:
        sent.append(request.operation)

    chunk: list[T] = []
    with listening(note):
        for result in islice(results, size):
            if not chunk:
                sent.clear()
            chunk.append(result)
            if sent:
                break
    return chunk
