"""Carries out a plan: sends its requests page by page and gives the stored items that match.

It knows the table and the requests' answers, and must not know models: an item is what DynamoDB returned.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice, repeat
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported, UnexpectedItem
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.lowering import lower, order_value
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, ITEM_TYPE
from dynamo_single.orm.plan.choice import of_type
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.plan.projection import PartialItem, attributes_of
from dynamo_single.orm.reading.allowance import Allowance, allowance_of
from dynamo_single.orm.requests import block
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.requests.compiler import compile_batches, compile_plan, compile_reads, item_key, with_page
from dynamo_single.orm.requests.expressions import ExpressionTooLong
from dynamo_single.table import names, threads
from dynamo_single.table.batches import Wanted, get_batches, most_at_once
from dynamo_single.table.limits import MAX_ACTIONS, MAX_PAGE_ITEMS
from dynamo_single.table.pages import PageForm
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

Item = dict[str, dict[str, Any]]

#: A page that a filter may empty grows by this factor each time, so that a rare match costs few requests.
PAGE_GROWTH = 4


def next_limit(limit: int) -> int:
    """How many items the next page reads, where the last one held too few matches: at most what a page can hold."""
    return min(limit * PAGE_GROWTH, MAX_PAGE_ITEMS)


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
    if block.current() is not None:
        made = block.put_whole(table.settings.alias, plan.keys) if plan.kind == "get" else None
        if made is not None:
            return islice(as_read(plan, [made] if matches(plan.filter, made, plan.layout) else []), skip, stop)
        block.check_plan(table.settings.alias, plan)
    allowance = allowance_of(table, plan)
    if plan.kind == "empty":
        found: Iterable[Item] = ()
    elif plan.kind == "get":
        found = _get(table, plan)
    elif plan.kind == "batch_get":
        found = _batch_get(table, plan, stop)
    elif plan.kind == "union":
        found = _union(table, plan, stop, allowance)
    else:
        found = _pages_of_plan(table, plan, stop, allowance, exact=limit_is_exact(plan))
    return islice(as_read(plan, found), skip, stop)


def pages(table: Table, plan: Plan, form: PageForm, *, stop: int | None) -> Iterator[dict[str, Any]]:
    """The answers that hold the matches of a plan that comes in pages, up to ``stop`` or more; read lazily.

    Their items are decoded by ``form``, or are dicts.
    """
    block.check_plan(table.settings.alias, plan)
    streams = _streams(table, plan, stop, allowance_of(table, plan), exact=limit_is_exact(plan), form=form)
    return chain.from_iterable(streams)


def as_read(plan: Plan, found: Iterable[Item]) -> Iterator[Item]:
    """The items that a plan's requests gave, as what they are: whole, or only what its projection names."""
    if not plan.projection:
        return iter(found)
    read = frozenset(plan.projection)
    return (PartialItem(item, read) for item in found)


def count(table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None) -> int:
    """The number of matching items; queries and scans only count, they return no item.

    An item of another type, where only this model's should be, is ``UnexpectedItem`` as it is when it is read. Behind a
    filter nobody can tell whether it matched: there it is not counted.
    """
    block.check_plan(table.settings.alias, plan)
    if plan.kind not in {"query", "scan"}:
        return sum(1 for item in items(table, plan, skip=skip, stop=stop) if _is_of_model(plan, item))
    all_own = plan.filter == EVERYTHING
    total = 0
    allowance, exact = allowance_of(table, plan), limit_is_exact(plan)
    requests = _compile_count(table, plan)
    first_pages = _first_pages(table, requests, None) if stop is None else repeat(None, len(requests))
    for request, first in zip(requests, first_pages, strict=True):
        wanted = None if stop is None else stop - total
        for answer in _answers(table, request, wanted, allowance, first=first, exact=exact):
            total += int(answer["Count"])
            # Where a page ends before its time, Dynoxide counts the item that did not fit in as scanned.
            if all_own and answer["ScannedCount"] - answer["Count"] > ("LastEvaluatedKey" in answer):
                raise _unexpected(plan)
            if stop is not None and total >= stop:
                return max(stop - skip, 0)
    return max(total - skip, 0)


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


def _get(table: Table, plan: Plan) -> Iterator[Item]:
    (request,) = compile_plan(plan)
    item: Item | None = table.send(request).get("Item")
    if item is not None and matches(plan.filter, item, plan.layout):
        yield item


def _batch_get(table: Table, plan: Plan, stop: int | None) -> Iterator[Item]:
    requests = compile_plan(plan, table_name=table.name)
    wanted, condition = Wanted(stop), lower(plan.filter, plan.layout)
    everything = condition == EVERYTHING
    for request, batch in zip(requests, get_batches(table, requests, wanted), strict=True):
        found = {key_of(item): item for item in batch}
        for key in request.params["RequestItems"][table.name]["Keys"]:
            item = found.get(key_of(key))
            if item is not None and (everything or matches(condition, item)):
                wanted.took_one()
                yield item


def _union(table: Table, plan: Plan, stop: int | None, allowance: Allowance | None) -> Iterator[Item]:
    """The items of every part, each once."""
    streams = [_of_part(table, part, stop, allowance) for part in plan.parts]
    ordering = plan.merged_by
    if not ordering:
        return chain.from_iterable(streams)
    return heapq.merge(*_mirrored(streams, forward=not ordering[0].descending), key=partial(order_of, plan))


def _of_part(table: Table, part: Plan, stop: int | None, allowance: Allowance | None) -> Iterator[Item]:
    # What another part gives is dropped here, so that no number of items read is sure to be enough.
    if part.kind == "query":
        found = _pages_of_plan(table, part, stop, allowance, exact=False)
    elif part.kind == "batch_get":
        found = _batch_get(table, part, stop)  # which only bounds what is read ahead
    else:
        found = items(table, part)
    return (item for item in found if not any(matches(other, item) for other in part.others))


def _mirrored(streams: list[Iterator[Item]], *, forward: bool) -> list[Iterator[Item]]:
    """The streams as a merge takes them: equal items come in their order, and backwards in the opposite one."""
    return streams if forward else streams[::-1]


def order_of(plan: Plan, item: Item) -> tuple[Any, ...]:
    """What the items of a union are merged by: the values of the attributes that it is ordered by."""
    attributes = plan.layout.attributes
    values = ((order_value(item[attributes[order.attribute].stored])[1], order) for order in plan.merged_by)
    return tuple(Descending(value) if order.descending else value for value, order in values)


class Descending(Struct, frozen=True):
    """A value that sorts the other way round."""

    value: Any

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)


def _pages_of_plan(
    table: Table, plan: Plan, stop: int | None, allowance: Allowance | None, *, exact: bool
) -> Iterator[Item]:
    streams = map(_items_of, _streams(table, plan, stop, allowance, exact=exact))
    return _merged(plan, streams) if plan.is_merged else chain.from_iterable(streams)


def _merged(plan: Plan, streams: Iterable[Iterator[Item]]) -> Iterator[Item]:
    index = plan.index
    sort = names.SORT_KEY if index is None else names.index_sort(index)
    mirrored = _mirrored(list(streams), forward=plan.forward)
    yield from heapq.merge(*mirrored, key=lambda item: item[sort]["S"], reverse=not plan.forward)


def _streams(
    table: Table,
    plan: Plan,
    stop: int | None,
    allowance: Allowance | None,
    *,
    exact: bool,
    form: PageForm | None = None,
) -> Iterator[Iterator[dict[str, Any]]]:
    """The pages of each request of a plan."""
    requests = compile_plan(plan, table_name=table.name)
    # A merge needs the first page of each partition, and what no slice ends is read to the end of all.
    ahead = plan.is_merged or (stop is None and len(requests) > 1)
    first_pages = _first_pages(table, requests, stop, form) if ahead else repeat(None, len(requests))
    for request, first in zip(requests, first_pages, strict=True):
        yield _answers(table, request, stop, allowance, first=first, exact=exact, form=form)


def _first_pages(
    table: Table, requests: Sequence[Request], limit: int | None, form: PageForm | None = None
) -> Iterator[dict[str, Any]]:
    """The first page of each request in their order, several read at once; further ones wait until they are needed."""
    most = most_at_once(table)
    pages = (with_page(request, limit=limit) for request in requests)
    return threads.in_order(partial(table.send, form=form), pages, at_once=lambda: most)


def _items_of(answers: Iterable[dict[str, Any]]) -> Iterator[Item]:
    return chain.from_iterable(answer["Items"] for answer in answers)


def _answers(
    table: Table,
    request: Request,
    wanted: int | None,
    allowance: Allowance | None,
    *,
    first: dict[str, Any] | None = None,
    exact: bool,
    form: PageForm | None = None,
) -> Iterator[dict[str, Any]]:
    """The pages of one Query or Scan, of which the ``first`` may be read already.

    ``wanted`` bounds what each page reads as far as the filter allows.
    """
    limit = wanted
    start_key = None
    while True:
        answer = first or table.send(with_page(request, start_key=start_key, limit=limit), form)
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


def at_once(table: Table, plans: Sequence[Plan]) -> list[list[Item]]:
    """The items of some plans of whole primary keys as of one moment, by one TransactGetItems; again on a conflict."""
    for plan in plans:
        block.check_plan(table.settings.alias, plan)
    keys = list(dict.fromkeys(key for plan in plans for key in plan.keys))
    if len(keys) > MAX_ACTIONS:
        raise NotSupported(f"{len(keys)} items cannot be read at once: DynamoDB takes {MAX_ACTIONS}.")
    answers = table.send_patiently(compile_reads(keys, table.name))["Responses"] if keys else []
    found = {key: answer["Item"] for key, answer in zip(keys, answers, strict=True) if answer.get("Item")}
    return [
        [found[key] for key in plan.keys if key in found and matches(plan.filter, found[key], plan.layout)]
        for plan in plans
    ]


def get_item(table: Table, key: tuple[str, str]) -> Item | None:
    """One item by its key, strongly consistent: one GetItem."""
    block.check_keys(table.settings.alias, [key])
    return stored_item(table, key)


def stored_item(table: Table, key: tuple[str, str]) -> Item | None:
    """The same, whatever a block is about to do with the item."""
    answer = table.send(Request("GetItem", {"Key": item_key(key), "ConsistentRead": True}))
    item: Item | None = answer.get("Item")
    return item


def get_items(table: Table, keys: Collection[ItemKey]) -> dict[ItemKey, Item]:
    """The items that are there under some keys, strongly consistent: one GetItem, or a BatchGetItem for each 100."""
    wanted = list(dict.fromkeys(keys))
    if len(wanted) == 1:
        item = get_item(table, wanted[0])
        return {} if item is None else {wanted[0]: item}
    block.check_keys(table.settings.alias, wanted)
    batches = get_batches(table, compile_batches(wanted, table.name), Wanted(None))
    return {key_of(item): item for batch in batches for item in batch}
