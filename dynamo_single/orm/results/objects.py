"""The objects that a queryset asks for, each by itself: the plan that finds them, reading them, and counting them.

What DynamoDB cannot put in order is sorted among as many matches as the caller allowed, and no more: nothing is cut
off, one match too many is an error. This module must not know groups or aggregates.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.db.models import Model
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue, NoAccessPattern, NotSupported, TooManyMatches
from dynamo_single.orm.items import batch_get, decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.items.page_readers import PageReader
from dynamo_single.orm.items.refresh import references, wanted
from dynamo_single.orm.items.unique_rules import lookups_of
from dynamo_single.orm.plan import shapes
from dynamo_single.orm.plan.plan import InMemory, Plan, attributes_of, narrow, project
from dynamo_single.orm.reading import execute, single
from dynamo_single.orm.reading.sources import sort_attribute, with_sort_keys
from dynamo_single.orm.results import cached_lists, related, sorting
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.references import Children
from dynamo_single.table.answers import TypedResponse, plain_response
from dynamo_single.table.flow import Pages, as_stream
from dynamo_single.table.request import Response

T = TypeVar("T")

#: Results, some at a time.
Results = AsyncGenerator[Iterable[Any], None]

#: How many matches ``allow_in_memory()`` allows if it is not told.
DEFAULT_LIMIT = 1000
#: The kinds of plans whose matches the caller has listed by their keys.
_LISTED = ("empty", "get", "batch_get", "claim")
#: What tells that something else bounds how many matches there are.
_BOUNDED = (*_LISTED, "held")


def checked_limit(limit: object) -> int:
    """Refuse a limit that is no number of matches."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidValue(
            f"allow_in_memory(limit=...) takes the most matches to work on, from 1 up, not {shown(limit)}."
        )
    return limit


def checked_reads(number: object) -> int:
    """Refuse what is no number of items."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidValue(
            f"allow_reads() takes the most items that may be read for nothing, from 1 up, not {shown(number)}."
        )
    return number


def plan(state: QueryState) -> Plan:
    """The plan in the order of a key if one serves it, else sorted in memory if that was allowed."""
    columns, found = state.asked.columns, plan_with_keys(state)
    return found if columns is None else narrow(found, columns.attributes)


def plan_with_keys(state: QueryState) -> Plan:
    """The same plan, of which each item holds its keys."""
    if state.asked.held is not None:
        return _exact_or_held(state)
    limit = state.asked.in_memory
    if limit is None:
        return plan_by_key(state)
    order = sorting.read_sorting(state.model, state.ordering)
    if all(map(sorting.is_by_attribute, order)):
        try:
            return plan_by_key(state)
        except NoAccessPattern:
            if not order:
                raise
    for sort in order:
        sorting.check_orderable(state.model, sort.attribute, "order_by()")
    found = replace(plan_of_matches(state), in_memory=InMemory(limit, order, state.reversed))
    return projected(state, found)


def _exact_or_held(state: QueryState) -> Plan:
    """The plan by a key that expresses all that was asked, in its order; else what is held, in order."""
    order = sorting.read_joined_sorting(state.model, state.ordering)
    if not any(sort.missing_first is not None or sorting.is_joined(sort) for sort in order):
        with suppress(NoAccessPattern):
            found = plan_by_key(state)
            if cached_lists.is_exact(found) and not state.asked.held.has(found):  # type: ignore[union-attr]  # see the caller
                return found
    for sort in order:
        if not sorting.is_joined(sort):
            sorting.check_orderable(state.model, sort.attribute, "order_by()")
    found = cached_lists.plan_cached(state.query(ordered=False), now=_now(state))
    if order or state.reversed:
        found = replace(found, in_memory=InMemory(None, order, state.reversed))
    return projected(state, found)


def _now(state: QueryState) -> datetime | None:
    """The present, where the model's objects expire."""
    return None if state.layout.expires is None else clock.instant()


def plan_by_key(state: QueryState, *, ordered: bool = True) -> Plan:
    """The plan in the order of a key, or in any order unless it is to be ``ordered``."""
    found = projected(state, _planned(state, ordered=ordered))
    # Without an order of its own, reverse() turns the order of the key that was chosen.
    if not state.reversed or found.query.ordering:
        return found
    if "scan" in (found.kind, *(part.kind for part in found.parts)):
        raise NotSupported("reverse() and last(): a scan has no order. Call allow_in_memory() and order_by() instead.")
    return found.backwards()


def plan_of_matches(state: QueryState) -> Plan:
    """The plan that finds what matches, in any order, and reads it whole."""
    if state.asked.held is not None:
        return cached_lists.plan_cached(state.query(ordered=False), now=_now(state))
    return _planned(state, ordered=False)


def _planned(state: QueryState, *, ordered: bool) -> Plan:
    """The planner's plan; one that holds what it reads if a filter is too long for DynamoDB, and that was allowed."""
    found = shapes.plan(state.query(ordered=ordered), now=_now(state))
    return found if state.asked.may_hold is None else cached_lists.with_short_filter(found, state.asked.may_hold)


def projected(state: QueryState, plan: Plan) -> Plan:
    """The plan, with the attributes that it is to read if these are not all."""
    if state.asked.columns is not None:
        return project(plan, state.asked.columns.attributes)
    if not state.loading[0]:
        return plan
    read = wanted(state.model, state.loading, state.along.named, state.along.prefetched) or ()
    # A reference that is filtered by is what a manager of the other side tells its objects by.
    followed = {*attributes_of(plan.query.where), *(field.attname for field in state.known)}
    return project(plan, {*read, *references(state.model, followed)})


def limit_of(state: QueryState, plan: Plan, what: str, *, sliced: bool) -> int | None:
    """The most matches that may be worked on; ``None`` if something else bounds them, and an error if nothing does.

    ``sliced`` says that the slice is one of matches.
    """
    if state.asked.in_memory is not None:
        return state.asked.in_memory
    if plan.kind in _BOUNDED or plan.single or (sliced and state.window.stop is not None):
        return None
    slicing = ", or slice: queryset[:100]" if sliced else ""
    raise NotSupported(
        f"{state.label}: {what}: DynamoDB does not compute that, so every match would have to be read, and nothing "
        f"says how many there are. Say how many at most: .allow_in_memory(limit={DEFAULT_LIMIT}){slicing}."
    )


async def know(state: QueryState) -> None:
    """Ask the table in which form the items are that a query reads, if that is not known: planning asks for it."""
    await knowledge.ask(state.layout)
    if lookups := lookups_of(state.model):
        await knowledge.ask_rules(state.layout, lookups)
    for lookup in state.along.prefetched:
        model: Any = state.model
        for step in lookup.split("__") if isinstance(lookup, str) else ():
            children = getattr(model, step, None)
            if not isinstance(children, Children):
                break
            model = children.model
            await knowledge.ask(registry.layout_of(model))


def opened(state: QueryState) -> Results:
    """The pages of objects, or of their rows of ``values()``, from the beginning to the end of the slice.

    Nothing is read yet. In an event loop, after ``know()``.
    """
    if state.is_empty:
        return as_stream(())
    found = plan(state)
    if state.along.prefetched:
        members = related.members_of(state, found)
        if members:
            return related.read_collection(state, found, members)
    if found.in_memory is None and state.asked.columns is None and (found.kind == "batch_get" or found.is_merged):
        return _objects_by_key(state, found)
    decoder = page_decoder(state, found)
    if decoder is None:
        return _made(items(state, found), reader(state))
    return execute.pages(state.table, found, skip=state.window.start, stop=state.window.stop, decoder=decoder)


async def _made(found: Pages[Any], make: Callable[[Any], Any]) -> Results:
    async with aclosing(found) as pages:
        async for page in pages:
            # One that cannot be made is an error once those before it were returned.
            yield map(make, page)


def reader(state: QueryState) -> Callable[[Item], Any]:
    """What makes an object, or a row of ``values()``, of an item that was read."""
    if state.asked.columns is not None:
        return state.asked.columns.reader(state.model)
    return partial(instance, state) if state.known else partial(decode.instance, state.model)


def page_decoder(state: QueryState, plan: Plan) -> execute.PageDecoder | None:
    """Return what makes the objects or rows of whole pages; ``None`` if they are made item by item."""
    if not plan.comes_in_pages:
        return None
    if state.asked.columns is not None:
        made_by = state.asked.columns.page_reader(state.model)
    else:
        made_by = decode.page_reader(state.model, plan.projection)
    return None if made_by is None else execute.PageDecoder(made_by.form, partial(_results, state, plan, made_by))


def _results(state: QueryState, plan: Plan, made_by: PageReader, response: Response, wanted: slice) -> Iterable[Any]:
    """Return the objects or rows of a response."""
    made = None
    if isinstance(response, TypedResponse):
        made = decode.made_at_once(state.model, made_by, response.typed[wanted])
    if made is None:
        return map(reader(state), single.as_read(plan, plain_response(response)["Items"][wanted]))
    return map(partial(tell, state), made) if state.known else made


def _objects_by_key(state: QueryState, plan: Plan) -> Results:
    """Yield the objects of several primary keys, or those that are merged by a sort key, made of whole responses."""
    window, decoder = state.window, None
    if plan.kind == "batch_get":
        pairs = batch_get.pages(state.model, state.table, plan, skip=window.start, stop=window.stop)
        return _made(pairs, lambda pair: tell(state, batch_get.made(state.model, pair[1])))
    made_by = decode.page_reader(state.model, plan.projection, by=sort_attribute(plan))
    if made_by is not None:
        decoder = execute.PageDecoder(made_by.form, partial(_with_sort_keys, state, plan, made_by))
    found = execute.pages(state.table, plan, skip=window.start, stop=window.stop, decoder=decoder)
    return _made(found, lambda each: tell(state, batch_get.made(state.model, each)))


def _with_sort_keys(
    state: QueryState, plan: Plan, made_by: PageReader, response: Response, _wanted: slice
) -> Sequence[tuple[str, object]]:
    """Return the objects of a response with their sort keys, or their items if they cannot be made together."""
    made = None
    if isinstance(response, TypedResponse):
        made = decode.made_at_once(state.model, made_by, response.typed)
    if made is not None:
        return made
    found = with_sort_keys(plan, plain_response(response))
    items = single.as_read(plan, [item for _, item in found])
    return [(sort, item) for (sort, _), item in zip(found, items, strict=True)]


def instance(state: QueryState, item: Item) -> Model:
    """The object of an item, with the related objects that are known already."""
    return tell(state, decode.instance(state.model, item))


def tell(state: QueryState, obj: Model) -> Model:
    """Let an object know the related objects that are known already."""
    for field, known in state.known.items():
        found = known.get(getattr(obj, field.attname))
        if found is not None and not field.is_cached(obj):
            setattr(obj, field.name, found)
    return obj


def items(state: QueryState, plan: Plan) -> Pages[Item]:
    """What a plan finds, in order, from the beginning to the end of the slice."""
    if plan.in_memory is None:
        return _pages(state, plan, skip=state.window.start, stop=state.window.stop)
    return _sorted(state, plan, plan.in_memory)


def _pages(state: QueryState, plan: Plan, *, skip: int = 0, stop: int | None = None) -> Pages[Item]:
    if plan.kind == "held":
        rows = state.asked.held or cached_lists.CachedLists(state.asked.in_memory or DEFAULT_LIMIT)
        return rows.pages(state.table, plan, skip=skip, stop=stop)
    return execute.pages(state.table, plan, skip=skip, stop=stop)


async def _sorted(state: QueryState, plan: Plan, how: InMemory) -> Pages[Item]:
    found = [item async for page in matches(state, plan, how.limit) for item in page]
    readers = await sorting.value_readers(state.model, how.ordering, found)
    sorting.sort_items(found, how, lambda item, name: readers[name](item))
    yield found[state.window.start : state.window.stop]


def matches(state: QueryState, plan: Plan, limit: int | None) -> Pages[Item]:
    """Every match of a plan, in the plan's own order; ``TooManyMatches`` instead of the one after the limit."""
    return checked(state, _pages(state, plan, stop=_page_limit(plan, limit)), limit)


async def checked(state: QueryState, found: Pages[Item], limit: int | None) -> Pages[Item]:
    """The same items; ``TooManyMatches`` instead of the one after the limit."""
    seen = 0
    async with aclosing(found):
        async for page in found:
            first, seen = seen, seen + len(page)
            if limit is None or seen <= limit:
                yield page
                continue
            yield page[: limit - first]
            raise TooManyMatches(
                f"{state.label}: more than {limit} objects match, which is as many as allow_in_memory(limit={limit}) "
                "allows. Nothing was cut off, so there is no result. Allow more: .allow_in_memory(limit=...).",
                limit=limit,
            )


def first_limit(state: QueryState, plan: Plan) -> int | None:
    """The ``Limit`` of the first request of a plan, if it has one."""
    if plan.in_memory is not None or plan.kind == "held":
        return _page_limit(plan.parts[0] if plan.kind == "held" else plan, state.asked.in_memory)
    return state.window.stop if execute.limit_is_exact(plan) else None


def _page_limit(plan: Plan, limit: int | None) -> int | None:
    """How many items a plan's request may read before it is known that too many match, if that is known."""
    # Where a filter drops items, a Limit would only make more and smaller pages of the same reading.
    return limit + 1 if limit is not None and execute.limit_is_exact(plan) else None


async def count(state: QueryState) -> int:
    """How many there are: one Query with Select=COUNT for each megabyte that is passed over."""
    if state.is_empty:
        return 0
    window, shared = state.window, state.asked.held
    found = plan_by_key(state, ordered=False) if shared is None else _exact_or_held(state.unordered())
    if found.kind == "held":
        return sum([len(page) async for page in _pages(state, found, skip=window.start, stop=window.stop)])
    if shared is not None and window.stop is None:
        return await _count_up_to(state, found, shared.limit)
    return await execute.count(state.table, found, skip=window.start, stop=window.stop)


async def hold(state: QueryState) -> None:
    """Read what answers a question in memory, unless it was read; ``TooManyMatches`` if that is too much."""
    found = cached_lists.plan_cached(state.query(ordered=False), now=_now(state))
    if state.asked.held is not None and found.kind == "held":
        await state.asked.held.hold(state.table, found)


async def _count_up_to(state: QueryState, plan: Plan, limit: int) -> int:
    """One Query with Select=COUNT of no more than is held."""
    seen = await execute.count(state.table, plan, skip=state.window.start, stop=limit + 1)
    if seen > limit:
        most = f"{state.label}: there are more than {limit} objects to count."
        raise TooManyMatches(f"{most} Allow more: .allow_in_memory(limit=...)", limit=limit)
    return seen


async def exists(state: QueryState) -> bool:
    """Whether there is one: reads until the first match."""
    first = replace(state.unordered(), window=state.window.first)
    async with aclosing(opened(first)) as pages:
        async for page in pages:
            for _ in page:
                return True
    return False
