"""Execute a plan: read the stored items that match it, page by page, or count them.

All functions that send requests are coroutines, and those that yield pages are asynchronous generators; ``flow`` runs
both in a thread. This module depends on the table and its responses, but not on models.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from operator import itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import UnexpectedItem
from dynamo_single.orm.conditions.lowering import order_value
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, ITEM_TYPE, join
from dynamo_single.orm.plan.choice import type_condition
from dynamo_single.orm.plan.plan import Plan, attributes_of
from dynamo_single.orm.plan.reach import late_filter, reach_of
from dynamo_single.orm.reading import single
from dynamo_single.orm.reading.completion import completed
from dynamo_single.orm.reading.sources import (
    Descending,
    PageSource,
    PlanReader,
    Rank,
    Source,
    in_parallel,
    merge,
    merged_partitions,
    open_reader,
    pages_of,
    with_sort_keys,
)
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.requests.expressions import ExpressionTooLong
from dynamo_single.table import names
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.batches import max_parallel_reads
from dynamo_single.table.flow import Pages
from dynamo_single.table.request import NewItem, Request, Response
from dynamo_single.table.table import Table

Item = NewItem


def limit_is_exact(plan: Plan) -> bool:
    """Return whether ``Limit``, which counts items read, can be the number of items wanted."""
    return plan.kind in {"query", "scan"} and plan.filter == EVERYTHING and len(plan.conditions) <= 1


async def item_list(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> list[Item]:
    """Return all items of ``pages()``."""
    return [item async for page in pages(table, plan, skip=skip, stop=stop) for item in page]


class PageDecoder(Struct, frozen=True):
    """How results are made of whole responses, whose items are decoded by ``form``.

    ``results_of`` gets a response and the slice of its items that is wanted. It returns the results; of a merged plan
    pairs of a sort key and a result, and of a batch_get a mapping from primary keys.
    """

    form: ResponseDecoder
    results_of: Callable[[Response, slice], Any]

    def all_of(self, response: Response) -> Any:
        """Return the results of all items of a response."""
        return self.results_of(response, slice(None))


class _DecodedPage(Struct, frozen=True):
    """The results of one response; it creates only the results of a slice."""

    decoder: PageDecoder
    response: Response

    def __len__(self) -> int:
        return int(self.response["Count"])

    def __getitem__(self, wanted: slice) -> Iterable[Any]:
        found: Iterable[Any] = self.decoder.results_of(self.response, wanted)
        return found


async def pages(
    table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None, decoder: PageDecoder | None = None
) -> Pages[Any]:
    """Yield the matching items from number ``skip`` up to ``stop``; it requests a page when the caller needs it.

    You pay for skipped items, because DynamoDB has no offset. Results are yielded if there is a ``decoder``; a plan of
    a get, a claim or a union has none.
    """
    if plan.kind == "get":
        yield single.projected_items(plan, await single.item_of_key_plan(table, plan))[skip:stop]
        return
    reader = await open_reader(table, plan, None if decoder is None else decoder.form)
    passed = 0
    async with aclosing(_pages(reader, plan, stop, decoder)) as found:
        async for page in found:
            wanted = page[max(skip - passed, 0) : None if stop is None else stop - passed]
            passed += len(page)
            yield wanted if decoder else single.projected_items(plan, wanted)
            if stop is not None and passed >= stop:
                return


def _pages(reader: PlanReader, plan: Plan, stop: int | None, decoder: PageDecoder | None) -> Pages[Any]:
    if plan.kind == "batch_get":
        return single.items_of_keys_plan(reader.table, plan, stop, reader.form, decoder.all_of if decoder else None)
    if plan.kind == "claim":
        return single.items_of_claims_plan(reader.table, plan)
    if plan.kind == "union":
        return _union(reader, plan, stop)
    return _pages_of_conditions(reader, plan, stop, decoder, is_exact=limit_is_exact(plan))


def _pages_of_conditions(
    reader: PlanReader, plan: Plan, stop: int | None, decoder: PageDecoder | None = None, *, is_exact: bool
) -> Pages[Any]:
    """The pages of a query, a Scan or an empty plan."""
    if plan.query.layout.reaches:
        reader, plan = completed(reader, plan)
    if plan.is_merged:
        return merged_partitions(reader, plan, decoder.all_of if decoder else partial(with_sort_keys, plan), stop)
    sources = list(map(partial(PageSource[Item], limit=stop, is_exact=is_exact), compile_plan(plan)))
    at_once = max_parallel_reads(reader.table) if stop is None and len(sources) > 1 else 1
    page_of = partial(_DecodedPage, decoder) if decoder else itemgetter("Items")
    return pages_of(reader, sources, page_of, at_once=at_once)


async def count(
    table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None, megabytes: int | None = None
) -> int:
    """Return the number of matching items; queries and Scans only count, and return no items.

    Returns ``stop`` as soon as the items that it has read exceed ``megabytes``.

    Raises ``UnexpectedItem`` for an item of another type if only items of this model can be there. With a filter it
    does not count such an item, because the response does not show whether it matched.
    """
    if plan.kind not in {"query", "scan"} or (plan.query.layout.reaches and late_filter(plan) != EVERYTHING):
        atomic_block.check_plan(table.settings.alias, plan)  # listed() would return what the block creates
        found = await item_list(table, plan, skip=skip, stop=stop)
        return sum(1 for item in found if _is_of_model(plan, item))
    reader = await open_reader(table, plan)
    total, is_exact, requests = 0, limit_is_exact(plan), _compile_count(reader.table, plan)
    read = 0

    def sources() -> Iterator[PageSource[Item]]:
        for request in requests:
            yield PageSource(request, None if stop is None else stop - total, is_exact=is_exact)

    async def total_of(source: PageSource[Item]) -> int:
        return sum([number async for number in pages_of(reader, (source,), partial(_counted, plan))])

    if plan.is_sharded and stop is None:
        return max(sum(await in_parallel(reader.table, total_of, sources())) - skip, 0)
    at_once = max_parallel_reads(reader.table) if stop is None and len(requests) > 1 else 1
    counted = partial(_counted_page, plan)
    async with aclosing(pages_of(reader, sources(), counted, at_once=at_once)) as numbers:
        async for number, has_more in numbers:
            total += number
            read += has_more  # such a response has read a megabyte
            if stop is not None and (total >= stop or (megabytes is not None and read >= megabytes)):
                return max(stop - skip, 0)
    return max(total - skip, 0)


def _counted_page(plan: Plan, response: Response) -> tuple[int, bool]:
    return _counted(plan, response), "LastEvaluatedKey" in response


def _counted(plan: Plan, response: Response) -> int:
    # If a page ends early, Dynoxide counts the item that did not fit in as scanned.
    is_usual = response["ScannedCount"] - response["Count"] <= ("LastEvaluatedKey" in response)
    if plan.filter == EVERYTHING and not is_usual and not _skips_foreign(plan):
        raise _unexpected(plan)
    return int(response["Count"])


def _skips_foreign(plan: Plan) -> bool:
    reach = reach_of(plan) if plan.query.layout.reaches else None
    return reach is not None and reach.skips_foreign


def _compile_count(table: Table, plan: Plan) -> tuple[Request, ...]:
    """Return the requests of a count, which exclude items of other types unless the filter has no room for that."""
    reach = reach_of(plan) if plan.query.layout.reaches else None
    if ITEM_TYPE not in attributes_of(plan.filter) and (reach is None or not reach.is_late(names.ITEM_TYPE)):
        own = replace(plan, filter=join((plan.filter, type_condition(plan.layout))))
        with suppress(ExpressionTooLong):
            return compile_plan(own, table_name=table.name, count=True)
    return compile_plan(plan, table_name=table.name, count=True)


def _is_of_model(plan: Plan, item: Item) -> bool:
    if item.get(names.ITEM_TYPE, {}).get("S") != plan.layout.item_type:
        raise _unexpected(plan)
    return True


def _unexpected(plan: Plan) -> UnexpectedItem:
    own = plan.layout.item_type
    return UnexpectedItem(
        f"An item to count does not have the type {own!r}: another program wrote it under a key of this model. "
        "Read the objects: the error names the item."
    )


class _PartSource(Source[Item]):
    """One part of a union."""

    def __init__(self, pages: Pages[Item]) -> None:
        self.items = deque()
        self.pages = pages

    async def read(self) -> None:
        """Read the next page that has items."""
        async for page in self.pages:
            if page:
                self.items += page
                return
        self.is_exhausted = True


async def _union(reader: PlanReader, plan: Plan, stop: int | None) -> Pages[Item]:
    """Yield the items of every part, each once."""
    parts = [_part(reader, part, stop) for part in plan.parts]
    async with AsyncExitStack() as stack:
        for pages in parts:
            await stack.enter_async_context(aclosing(pages))
        if not plan.merged_by:
            for pages in parts:
                async for page in pages:
                    yield page
            return
        sources = [
            _PartSource(pages if part.in_memory is None else _sorted(pages, plan))
            for part, pages in zip(plan.parts, parts, strict=True)
        ]

        async def read(source: _PartSource, _returned: int) -> bool:
            await source.read()
            return True

        def rank(number: int, source: _PartSource) -> Rank:
            return union_rank(plan, number, source.items[0]) if source.items else ()

        async with aclosing(merge(sources, rank, read)) as merged:
            async for page in merged:
                yield page


async def _part(reader: PlanReader, part: Plan, stop: int | None) -> Pages[Item]:
    # This drops items that another part returns, so any number of read items may be too small.
    if part.kind == "query":
        found = _pages_of_conditions(reader, part, stop, is_exact=False)
    elif part.kind == "batch_get":
        found = single.items_of_keys_plan(reader.table, part, stop)  # the limit applies only to prefetched pages
    else:
        found = pages(reader.table, part)
    async with aclosing(found):
        async for page in found:
            yield [item for item in page if not any(matches(other, item) for other in part.exclusions)]


async def _sorted(pages: Pages[Item], plan: Plan) -> Pages[Item]:
    """Yield all items of one part of a union as one page, in the order of the merged parts."""
    async with aclosing(pages):
        items = [item async for page in pages for item in page]
    yield sorted(items, key=partial(union_rank, plan, 0))


def union_rank(plan: Plan, stream: int, item: Item) -> Rank:
    """Return the position of an item in the order of a union: of equal items, those of the first part come first."""
    ordering, attributes = plan.merged_by, plan.layout.attributes
    values = ((order_value(item[attributes[order.attribute].stored])[1], order) for order in ordering)
    ranked = tuple(Descending(value) if order.descending else value for value, order in values)
    return (*ranked, -stream if ordering[0].descending else stream)
