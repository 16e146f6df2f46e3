"""Carries out a plan: sends its requests page by page and gives the stored items that match.

It knows the table and the requests' answers, and must not know models: an item is what DynamoDB returned. What sends is
a coroutine, and what gives pages an asynchronous generator; ``flow`` carries both out in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from dynamo_single.exceptions import UnexpectedItem
from dynamo_single.orm.conditions.lowering import order_value
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, ITEM_TYPE, join
from dynamo_single.orm.plan.choice import of_type
from dynamo_single.orm.plan.plan import Plan, attributes_of
from dynamo_single.orm.reading import shards, single
from dynamo_single.orm.reading.budget import Allowance, allowance_of, next_limit
from dynamo_single.orm.reading.present_names import in_present_names
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.compiler import compile_plan, with_page
from dynamo_single.orm.requests.expressions import ExpressionTooLong
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import names
from dynamo_single.table.answers import PageForm
from dynamo_single.table.batches import most_at_once
from dynamo_single.table.flow import Pages, in_order, iterate
from dynamo_single.table.request import NewItem, Request, Response
from dynamo_single.table.table import Table

Item = NewItem
T = TypeVar("T")

#: What some requests are answered, one page after the other.
Answers = AsyncGenerator[dict[str, Any], None]
#: Requests, and the first page of each if that is read already.
_Firsts = AsyncGenerator[tuple[Request, dict[str, Any] | None], None]


def limit_is_exact(plan: Plan) -> bool:
    """Whether ``Limit``, which counts items read, can stand for the number of items wanted."""
    return plan.kind in {"query", "scan"} and plan.filter == EVERYTHING and len(plan.conditions) <= 1


def requests(table: Table, plan: Plan, *, limit: int | None = None) -> tuple[Request, ...]:
    """The plan's first requests, as they will be sent."""
    return compile_plan(plan, table_name=table.name, limit=limit)


def items(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> Iterator[Item]:
    """The items of ``pages()``, one after the other in this thread."""
    return iterate(pages(table, plan, skip=skip, stop=stop))


async def listed(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> list[Item]:
    """All items of ``pages()``."""
    return [item async for page in pages(table, plan, skip=skip, stop=stop) for item in page]


async def pages(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> Pages[Item]:
    """The matching items from number ``skip`` up to ``stop``; a page is sent for when it is needed.

    Skipped items are read, and paid for, as DynamoDB has no offset.
    """
    await knowledge.undivided(table, plan.layout)
    table = in_present_names(table, plan.layout) if plan.layout.twins else table
    if plan.kind == "get":
        yield single.as_read(plan, await single.of_key(table, plan))[skip:stop]
        return
    atomic_block.check_plan(table.settings.alias, plan)
    allowance = allowance_of(table, plan)
    if plan.kind == "empty":
        return
    if plan.kind == "batch_get":
        found = single.of_keys(table, plan, stop)
    elif plan.kind == "claim":
        found = single.of_claims(table, plan)
    elif plan.kind == "union":
        found = _union(table, plan, stop, allowance)
    else:
        found = _pages_of_plan(table, plan, stop, allowance, exact=limit_is_exact(plan))
    seen = 0
    async with aclosing(found):
        async for page in found:
            if skip or stop is not None:
                first, seen = seen, seen + len(page)
                page = page[max(skip - first, 0) : None if stop is None else stop - first]
            yield single.as_read(plan, page)
            if stop is not None and seen >= stop:
                return


def answers(table: Table, plan: Plan, form: PageForm, *, stop: int | None) -> Answers:
    """The answers that hold the matches of a plan that comes in pages, up to ``stop`` or more.

    Their items are decoded by ``form``, or are dicts.
    """
    atomic_block.check_plan(table.settings.alias, plan)
    table = in_present_names(table, plan.layout) if plan.layout.twins else table
    return _all_answers(table, plan, stop, allowance_of(table, plan), exact=limit_is_exact(plan), form=form)


def of_shards(
    table: Table,
    plan: Plan,
    form: PageForm,
    found_in: Callable[[dict[str, Any]], shards.Ranked[T]],
    *,
    stop: int | None,
) -> Pages[T]:
    """What the answers of a plan of several shards hold, merged by the sort key, up to ``stop`` or more."""
    atomic_block.check_plan(table.settings.alias, plan)
    table = in_present_names(table, plan.layout)
    return shards.ranked(table, plan, found_in, form=form, stop=stop, allowance=allowance_of(table, plan))


async def count(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> int:
    """The number of matching items; queries and scans only count, they return no item.

    An item of another type, where only this model's should be, is ``UnexpectedItem`` as it is when it is read. After a
    filter nobody can tell whether it matched: there it is not counted.
    """
    atomic_block.check_plan(table.settings.alias, plan)
    await knowledge.undivided(table, plan.layout)
    if plan.kind not in {"query", "scan"}:
        found = await listed(table, plan, skip=skip, stop=stop)
        return sum(1 for item in found if _is_of_model(plan, item))
    total, table = 0, in_present_names(table, plan.layout)
    allowance, exact = allowance_of(table, plan), limit_is_exact(plan)
    requests = _compile_count(table, plan)
    if plan.is_sharded and stop is None:
        counts = await shards.at_once(table, partial(_count_of_shard, table, plan, allowance), requests)
        return max(sum(counts) - skip, 0)
    async with aclosing(_first_pages(table, requests, None, ahead=stop is None)) as firsts:
        async for request, first in firsts:
            wanted = None if stop is None else stop - total
            async with aclosing(_answers(table, request, wanted, allowance, first=first, exact=exact)) as answers:
                async for answer in answers:
                    total += _counted(plan, answer)
                    if stop is not None and total >= stop:
                        return max(stop - skip, 0)
    return max(total - skip, 0)


async def _count_of_shard(table: Table, plan: Plan, allowance: Allowance | None, request: Request) -> int:
    async with aclosing(_answers(table, request, None, allowance, exact=False)) as answers:
        return sum([_counted(plan, answer) async for answer in answers])


def _counted(plan: Plan, answer: Response) -> int:
    # Where a page ends before its time, Dynoxide counts the item that did not fit in as scanned.
    if plan.filter == EVERYTHING and answer["ScannedCount"] - answer["Count"] > ("LastEvaluatedKey" in answer):
        raise _unexpected(plan)
    return int(answer["Count"])


def _compile_count(table: Table, plan: Plan) -> tuple[Request, ...]:
    """The requests of a count, which leave out what is of another type, unless the filter has no room for that."""
    if ITEM_TYPE not in attributes_of(plan.filter):
        own = replace(plan, filter=join((plan.filter, of_type(plan.layout))))
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
        f"Among the items to count is one whose itemType is not {own!r}. Something else wrote into this model's keys: "
        "reading the objects names the item."
    )


def _union(table: Table, plan: Plan, stop: int | None, allowance: Allowance | None) -> Pages[Item]:
    """The items of every part, each once."""
    parts = [_of_part(table, part, stop, allowance) for part in plan.parts]
    ordering = plan.merged_by
    if not ordering:
        return shards.chained(parts)
    in_order = [
        found if part.in_memory is None else _sorted(found, plan) for part, found in zip(plan.parts, parts, strict=True)
    ]
    return shards.merge_sorted(_mirrored(in_order, forward=not ordering[0].descending), key=partial(order_of, plan))


async def _of_part(table: Table, part: Plan, stop: int | None, allowance: Allowance | None) -> Pages[Item]:
    # What another part gives is dropped here, so that no number of items read is sure to be enough.
    if part.kind == "query":
        found = _pages_of_plan(table, part, stop, allowance, exact=False)
    elif part.kind == "batch_get":
        found = single.of_keys(table, part, stop)  # which only bounds what is read ahead
    else:
        found = pages(table, part)
    async with aclosing(found):
        async for page in found:
            yield [item for item in page if not any(matches(other, item) for other in part.others)]


async def _sorted(found: Pages[Item], plan: Plan) -> Pages[Item]:
    """The single items of one part of a union, all of them read, in the order in which its parts are merged."""
    async with aclosing(found):
        items = [item async for page in found for item in page]
    yield sorted(items, key=partial(order_of, plan))


def _mirrored(found: list[Pages[Item]], *, forward: bool) -> list[Pages[Item]]:
    """The streams as a merge takes them: equal items come in their order, and backwards in the opposite one."""
    return found if forward else found[::-1]


def order_of(plan: Plan, item: Item) -> tuple[object, ...]:
    """What the items of a union are merged by: the values of the attributes that it is ordered by."""
    attributes = plan.layout.attributes
    values = ((order_value(item[attributes[order.attribute].stored])[1], order) for order in plan.merged_by)
    return tuple(shards.Descending(value) if order.descending else value for value, order in values)


def _pages_of_plan(
    table: Table, plan: Plan, stop: int | None, allowance: Allowance | None, *, exact: bool
) -> Pages[Item]:
    if plan.is_sharded and plan.is_merged:
        return shards.merged_items(table, plan, stop, allowance)
    if plan.is_merged:
        return _merged(table, plan, stop, allowance, exact=exact)
    return _items_of(_all_answers(table, plan, stop, allowance, exact=exact))


async def _merged(
    table: Table, plan: Plan, stop: int | None, allowance: Allowance | None, *, exact: bool
) -> Pages[Item]:
    requests = compile_plan(plan, table_name=table.name)
    async with aclosing(_first_pages(table, requests, stop)) as firsts:
        found = [
            _items_of(_answers(table, request, stop, allowance, first=first, exact=exact))
            async for request, first in firsts
        ]
    index = plan.index
    sort = names.SORT_KEY if index is None else names.index_sort(index)
    mirrored = _mirrored(found, forward=plan.forward)
    merged = shards.merge_sorted(mirrored, key=lambda item: item[sort]["S"], reverse=not plan.forward)
    async with aclosing(merged):
        async for page in merged:
            yield page


def _all_answers(
    table: Table,
    plan: Plan,
    stop: int | None,
    allowance: Allowance | None,
    *,
    exact: bool,
    form: PageForm | None = None,
) -> Answers:
    """The pages of each request of a plan, one request after the other."""
    requests = compile_plan(plan, table_name=table.name)
    if len(requests) == 1:
        return _answers(table, requests[0], stop, allowance, exact=exact, form=form)
    # What no slice ends is read to the end of all.
    firsts = _first_pages(table, requests, stop, form, ahead=stop is None)
    return _one_after_the_other(table, firsts, stop, allowance, exact=exact, form=form)


async def _one_after_the_other(
    table: Table,
    firsts: _Firsts,
    stop: int | None,
    allowance: Allowance | None,
    *,
    exact: bool,
    form: PageForm | None,
) -> Answers:
    async with aclosing(firsts):
        async for request, first in firsts:
            pages = _answers(table, request, stop, allowance, first=first, exact=exact, form=form)
            async with aclosing(pages):
                async for answer in pages:
                    yield answer


async def _first_pages(
    table: Table,
    requests: Sequence[Request],
    limit: int | None,
    form: PageForm | None = None,
    *,
    ahead: bool = True,
) -> _Firsts:
    """Each request, with its first page if these are read ``ahead``: several at once, where further ones wait."""
    if not ahead:
        for request in requests:
            yield request, None
        return
    most = most_at_once(table)
    firsts = (with_page(request, limit=limit) for request in requests)
    left = iter(requests)
    async with aclosing(in_order(partial(table.ask, form=form), firsts, at_once=lambda: most)) as answers:
        async for answer in answers:
            yield next(left), answer


async def _items_of(answers: Answers) -> Pages[Item]:
    async with aclosing(answers):
        async for answer in answers:
            yield answer["Items"]


async def _answers(
    table: Table,
    request: Request,
    wanted: int | None,
    allowance: Allowance | None,
    *,
    first: dict[str, Any] | None = None,
    exact: bool,
    form: PageForm | None = None,
) -> Answers:
    """The pages of one Query or Scan, of which the ``first`` may be read already.

    ``wanted`` bounds what each page reads as far as the filter allows.
    """
    limit = wanted
    start_key = None
    while True:
        answer = first or await table.ask(with_page(request, start_key=start_key, limit=limit), form)
        first = None
        if allowance is not None:
            allowance.take(answer)
        yield answer
        start_key = answer.get("LastEvaluatedKey")
        if start_key is None:
            return
        if limit is not None:
            limit = limit - int(answer["Count"]) if exact else next_limit(limit)
            if limit <= 0:
                return
