"""Plan, read and count the objects of a queryset.

The app sorts in memory if DynamoDB does not support an order, up to the caller's limit of matches. The result is always
complete: one match too many raises an error. This module does not depend on groups or aggregates.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Model
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue, NoAccessPattern, NotSupported, TooManyMatches
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items import batch_get, decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.items.page_readers import PageReader
from dynamo_single.orm.items.refresh import attributes_to_load, references_among
from dynamo_single.orm.plan import shapes
from dynamo_single.orm.plan.plan import InMemory, Plan, attributes_of, narrow, project
from dynamo_single.orm.reading import execute, single
from dynamo_single.orm.reading.sources import sort_attribute, with_sort_keys
from dynamo_single.orm.results import cached_lists, referenced, related, sorting
from dynamo_single.orm.results.cached_lists import CachedLists
from dynamo_single.orm.results.state import DEFAULT_LIMIT, QueryState
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.values import item_size, shown
from dynamo_single.orm.schema.references import Children
from dynamo_single.table.answers import TypedResponse, plain_response
from dynamo_single.table.flow import Pages, as_stream
from dynamo_single.table.request import Response

if TYPE_CHECKING:
    from dynamo_single.orm.reading import limits
    from dynamo_single.orm.reading.limits import Steps
else:
    limits = LazyModule("dynamo_single.orm.reading.limits")

T = TypeVar("T")

#: Results, some at a time.
Results = AsyncGenerator[Iterable[Any], None]

#: The kinds of plans whose keys the caller has listed.
_LISTED = ("empty", "get", "batch_get", "claim")
#: The kinds of plans whose number of matches has another bound.
_BOUNDED = (*_LISTED, "held")


def checked_number(number: object, takes: str) -> int:
    """Return a number of items or bytes; raises ``InvalidValue`` for anything else, which begins with ``takes``."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidValue(f"{takes}, at least 1, not {shown(number)}.")
    return number


def plan(state: QueryState) -> Plan:
    """Return the plan in the order of a key if one supports it, or with sorting in memory if the caller allows it."""
    columns, found = state.asked.columns, plan_with_keys(state)
    return found if columns is None else narrow(found, columns.attributes)


def plan_with_keys(state: QueryState) -> Plan:
    """Return the plan whose items contain their keys."""
    if state.asked.cached_lists is not None:
        return _exact_or_held(state)
    limit = state.asked.in_memory
    if limit is None:
        return plan_by_key(state)
    order = sorting.read_joined_sorting(state.model, state.ordering)
    if all(map(sorting.is_by_attribute, order)):
        try:
            return plan_by_key(state)
        except NoAccessPattern:
            if not order:
                raise
    for sort in order:
        if not sorting.is_joined(sort):
            sorting.check_orderable(state.model, sort.attribute, "order_by()")
    found = replace(plan_of_matches(state), in_memory=InMemory(limit, order, state.reversed))
    return project_plan(state, found)


def _exact_or_held(state: QueryState) -> Plan:
    """Return the plan of a key that expresses the whole query, in its order, or the plan of cached rows."""
    order = sorting.read_joined_sorting(state.model, state.ordering)
    if not any(sort.missing_first is not None or sorting.is_joined(sort) for sort in order):
        with suppress(NoAccessPattern):
            found = plan_by_key(state)
            if cached_lists.is_exact(found) and not state.asked.cached_lists.has(found):  # type: ignore[union-attr]  # see the caller
                return found
    for sort in order:
        if not sorting.is_joined(sort):
            sorting.check_orderable(state.model, sort.attribute, "order_by()")
    found = cached_lists.plan_cached(state.query(ordered=False), now=_now(state))
    if order or state.reversed:
        found = replace(found, in_memory=InMemory(None, order, state.reversed))
    return project_plan(state, found)


def _now(state: QueryState) -> datetime | None:
    """Return the current time if the model's objects expire."""
    return None if state.layout.expires is None else clock.instant()


def plan_by_key(state: QueryState, *, ordered: bool = True) -> Plan:
    """Return the plan in the order of a key, or in any order unless it is ``ordered``."""
    found = project_plan(state, _planned(state, ordered=ordered))
    # If the query has no order, reverse() reverses the order of the chosen key.
    if not state.reversed or found.query.ordering:
        return found
    if "scan" in (found.kind, *(part.kind for part in found.parts)):
        raise NotSupported("reverse() and last(): a scan has no order. Call allow_in_memory() and order_by() instead.")
    return found.backwards()


def plan_of_matches(state: QueryState) -> Plan:
    """Return the plan that reads complete matches in any order."""
    if state.asked.cached_lists is not None:
        return cached_lists.plan_cached(state.query(ordered=False), now=_now(state))
    return _planned(state, ordered=False)


def _planned(state: QueryState, *, ordered: bool) -> Plan:
    """Return the planner's plan, or a plan that caches rows if a filter is too long for DynamoDB and caching is
    allowed."""
    found = shapes.plan(state.query(ordered=ordered), now=_now(state))
    return found if state.asked.cache_limit is None else cached_lists.with_short_filter(found, state.asked.cache_limit)


def project_plan(state: QueryState, plan: Plan) -> Plan:
    """Return the plan, limited to the necessary attributes."""
    if state.asked.columns is not None:
        return project(plan, state.asked.columns.attributes)
    if not state.loading[0]:
        return plan
    read = (
        attributes_to_load(
            state.model, state.loading, state.related_reads.select_related, state.related_reads.prefetch_related
        )
        or ()
    )
    # A reverse manager knows its objects by the reference that it filters by.
    followed = {*attributes_of(plan.query.where), *(field.attname for field in state.known_related)}
    return project(plan, {*read, *references_among(state.model, followed)})


def limit_of(state: QueryState, plan: Plan, what: str, *, sliced: bool) -> int | None:
    """Return the limit of matches in memory; ``None`` if they have another bound.

    Raises ``NotSupported`` without a limit. ``sliced`` is true if the slice applies to the matches.
    """
    if state.asked.in_memory is not None:
        return state.asked.in_memory
    if plan.kind in _BOUNDED or plan.single or (sliced and state.window.stop is not None):
        return None
    slicing = ", or slice: queryset[:100]" if sliced else ""
    raise NotSupported(
        f"{state.label}: {what}: DynamoDB does not compute that, so the app would read every match, without a "
        f"limit. Set a limit: .allow_in_memory(limit={DEFAULT_LIMIT}){slicing}."
    )


async def read_form(state: QueryState) -> None:
    """Read the schema state of the items that a query reads, unless it is known: planning depends on it."""
    await knowledge.ask(state.layout)
    for lookup in state.related_reads.prefetch_related:
        model: Any = state.model
        for step in lookup.split("__") if isinstance(lookup, str) else ():
            children = getattr(model, step, None)
            if not isinstance(children, Children):
                break
            model = children.model
            await knowledge.ask(registry.layout_of(model))


def open_pages(state: QueryState) -> Results:
    """Return the pages of objects, or of their rows of ``values()``, in the slice. It does not send a request yet.

    In an event loop ``read_form()`` is awaited first.
    """
    if state.is_empty:
        return as_stream(())
    found = plan(state)
    if state.related_reads.prefetch_related:
        members = related.members_of(state, found)
        if members:
            return related.read_collection(state, found, members)
    if found.in_memory is None and state.asked.columns is None and (found.kind == "batch_get" or found.is_merged):
        return _objects_by_key(state, found)
    decoder = page_decoder(state, found)
    if decoder is None:
        return _made(items(state, found), object_reader(state))
    return execute.pages(state.table, found, skip=state.window.start, stop=state.window.stop, decoder=decoder)


async def _made(found: Pages[Any], make: Callable[[Any], Any]) -> Results:
    async with aclosing(found) as pages:
        async for page in pages:
            # Return the objects before an invalid item first, and then raise its error.
            yield map(make, page)


def object_reader(state: QueryState) -> Callable[[Item], Any]:
    """Return a function that makes an object, or a row of ``values()``, of an item."""
    if state.asked.columns is not None:
        return state.asked.columns.reader(state.model)
    return partial(instance, state) if state.known_related else partial(decode.instance, state.model)


def page_decoder(state: QueryState, plan: Plan) -> execute.PageDecoder | None:
    """Return what makes the objects or rows of whole pages; ``None`` if the caller must create each item separately."""
    if not plan.is_paged:
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
        made = decode.page_objects(made_by, response.typed[wanted])
    if made is None:
        return map(object_reader(state), single.projected_items(plan, plain_response(response)["Items"][wanted]))
    return map(partial(set_known_related, state), made) if state.known_related else made


def _objects_by_key(state: QueryState, plan: Plan) -> Results:
    """Yield the objects of several primary keys, or of a merge by a sort key, created from whole responses."""
    window, decoder = state.window, None
    if plan.kind == "batch_get":
        pairs = batch_get.pages(state.model, state.table, plan, skip=window.start, stop=window.stop)
        return _made(pairs, lambda pair: set_known_related(state, batch_get.object_of(state.model, pair[1])))
    made_by = decode.page_reader(state.model, plan.projection, by=sort_attribute(plan))
    if made_by is not None:
        decoder = execute.PageDecoder(made_by.form, partial(_with_sort_keys, state, plan, made_by))
    found = execute.pages(state.table, plan, skip=window.start, stop=window.stop, decoder=decoder)
    return _made(found, lambda each: set_known_related(state, batch_get.object_of(state.model, each)))


def _with_sort_keys(
    state: QueryState, plan: Plan, made_by: PageReader, response: Response, _wanted: slice
) -> Sequence[tuple[str, object]]:
    """Return the objects of a response with their sort keys, or their items if the app cannot create them together."""
    made = None
    if isinstance(response, TypedResponse):
        made = decode.page_objects(made_by, response.typed)
    if made is not None:
        return made
    found = with_sort_keys(plan, plain_response(response))
    items = single.projected_items(plan, [item for _, item in found])
    return [(sort, item) for (sort, _), item in zip(found, items, strict=True)]


def instance(state: QueryState, item: Item) -> Model:
    """Return the object of an item, with the already known related objects."""
    return set_known_related(state, decode.instance(state.model, item))


def set_known_related(state: QueryState, obj: Model) -> Model:
    """Set the already known related objects of an object."""
    for field, known in state.known_related.items():
        found = known.get(getattr(obj, field.attname))
        if found is not None and not field.is_cached(obj):
            setattr(obj, field.name, found)
    return obj


def items(state: QueryState, plan: Plan) -> Pages[Item]:
    """Yield the items of a plan, in order, in the slice."""
    if plan.in_memory is None:
        return _pages(state, plan, skip=state.window.start, stop=state.window.stop)
    return _sorted(state, plan, plan.in_memory)


def _pages(state: QueryState, plan: Plan, *, skip: int = 0, stop: int | None = None) -> Pages[Item]:
    if plan.kind == "held":
        rows = state.asked.cached_lists or cached_lists.CachedLists(
            state.asked.in_memory or DEFAULT_LIMIT, state.asked.in_memory_bytes
        )
        return rows.pages(state.table, plan, skip=skip, stop=stop)
    return execute.pages(state.table, plan, skip=skip, stop=stop)


async def _sorted(state: QueryState, plan: Plan, how: InMemory) -> Pages[Item]:
    state, steps = with_steps(state, how.limit) if any(map(sorting.is_joined, how.ordering)) else (state, None)
    found = [item async for page in matches(state, plan) for item in page]
    if steps is not None:
        steps.held += len(found)
    known = referenced.Known(steps, state.asked.in_memory_bytes)
    readers = await sorting.value_readers(state.model, how.ordering, found, known)
    sorting.sort_items(found, how, lambda item, name: readers[name](item))
    yield found[state.window.start : state.window.stop]


def with_steps(state: QueryState, limit: int | None) -> tuple[QueryState, Steps | None]:
    """Return a state whose matches and referenced objects have a common limit, and that limit; none without one."""
    steps = state.asked.steps or (None if limit is None else limits.Steps(limit))
    return replace(state, asked=replace(state.asked, steps=steps)), steps


def matches(state: QueryState, plan: Plan, limit: int | None = None) -> Pages[Item]:
    """Yield every match of a plan in its order; raise ``TooManyMatches`` for the first match over the limit.

    Without ``limit``, it is that of the plan.
    """
    if limit is None and plan.in_memory is not None:
        limit = plan.in_memory.limit
    return limited_matches(state, _pages(state, plan, stop=_page_limit(plan, limit)), limit)


async def limited_matches(state: QueryState, found: Pages[Item], limit: int | None) -> Pages[Item]:
    """Yield the items; raise ``TooManyMatches`` for the first item over the limit, and the first page over its bytes.

    The steps of the query that have a common limit record the bytes.
    """
    seen, steps = 0, state.asked.steps
    size = 0 if steps is None else steps.size.bytes
    async with aclosing(found):
        async for page in found:
            first, seen = seen, seen + len(page)
            if limit is not None or steps is not None:
                size += sum(map(item_size, page))
                _check_size(state, seen, size)
                if steps is not None:
                    steps.size.bytes = size
            if limit is None or seen <= limit:
                yield page
                continue
            yield page[: limit - first]
            check_number(state, seen, limit)


async def held_pages(queryset: Any, found: Results, steps: Steps) -> Results:
    """Yield pages of objects that are held with those of other steps; raise ``TooManyMatches`` above the limits.

    The matches that were compared to find the objects are released, and no longer count.
    """
    held, size = steps.held, steps.size.bytes
    async with aclosing(found):
        async for page in found:
            objects = list(page)
            steps.held, steps.size.bytes = held, size
            steps.hold(queryset, objects, queryset._asked.in_memory_bytes)
            held, size = steps.held, steps.size.bytes
            yield objects


def check_number(state: QueryState, number: int, limit: int | None) -> None:
    """Raise ``TooManyMatches`` for more matches than the limit."""
    if limit is None or number <= limit:
        return
    steps = state.asked.steps
    allowed = limit if steps is None else steps.limit
    beside = (
        "" if steps is None or not steps.held else f" in addition to the {steps.held} keys and objects of other steps"
    )
    raise TooManyMatches(
        f"{state.label}: more than {limit} objects match{beside}, the limit of "
        f"allow_in_memory(limit={allowed}). The result would be incomplete, so the app returns none. Raise the "
        "limit: .allow_in_memory(limit=...).",
        limit=allowed,
    )


def _check_size(state: QueryState, number: int, size: int) -> None:
    """Raise ``TooManyMatches`` for matches that are larger together than the limit of bytes."""
    asked = state.asked
    if size > asked.in_memory_bytes:
        beside = " with the objects of other steps" if asked.steps is not None and asked.steps.held else ""
        raise TooManyMatches(
            f"{state.label}: the first {number} matches have {size} bytes{beside}, and "
            f"allow_in_memory(max_bytes={asked.in_memory_bytes}) allows no more. The result would be "
            "incomplete, so the app returns none. Filter by more, or raise the limit: "
            ".allow_in_memory(limit=..., max_bytes=...).",
            limit=asked.in_memory_bytes,
        )


def first_limit(state: QueryState, plan: Plan) -> int | None:
    """Return the ``Limit`` of the first request of a plan, if it has one."""
    if plan.in_memory is not None or plan.kind == "held":
        return _page_limit(plan.parts[0] if plan.kind == "held" else plan, state.asked.in_memory)
    return state.window.stop if execute.limit_is_exact(plan) else None


def _page_limit(plan: Plan, limit: int | None) -> int | None:
    """Return the ``Limit`` by which one request shows that too many items match; ``None`` for a plan with a filter."""
    # If a filter drops items, a Limit would only divide the same reading into more and smaller pages.
    return limit + 1 if limit is not None and execute.limit_is_exact(plan) else None


async def count(state: QueryState) -> int:
    """Return the number of results: one Query with Select=COUNT for each megabyte of items."""
    if state.is_empty:
        return 0
    window, shared = state.window, state.asked.cached_lists
    found = plan_by_key(state, ordered=False) if shared is None else _exact_or_held(state.unordered())
    if found.kind == "held":
        return sum([len(page) async for page in _pages(state, found, skip=window.start, stop=window.stop)])
    if shared is not None and window.stop is None:
        return await _count_up_to(state, found, shared)
    return await execute.count(state.table, found, skip=window.start, stop=window.stop)


async def read_into_memory(state: QueryState) -> None:
    """Read the rows of a query into its cache, unless they are there; raises ``TooManyMatches`` above its limit."""
    found = cached_lists.plan_cached(state.query(ordered=False), now=_now(state))
    if state.asked.cached_lists is not None and found.kind == "held":
        await state.asked.cached_lists.hold(state.table, found)


async def _count_up_to(state: QueryState, plan: Plan, shared: CachedLists) -> int:
    """Return the number of results, up to the limits of the cache: one Query with Select=COUNT for each megabyte."""
    limit, megabytes = shared.limit, math.ceil(shared.most_bytes / 2**20)
    seen = await execute.count(
        state.table, plan, skip=state.window.start, stop=state.window.start + limit + 1, megabytes=megabytes
    )
    if seen > limit:
        most = f"{state.label}: there are more than {limit} objects to count, or more than {megabytes} MB of them."
        raise TooManyMatches(f"{most} Allow more: .allow_in_memory(limit=...)", limit=limit)
    return seen


async def exists(state: QueryState) -> bool:
    """Return whether there is a result: reads until the first match."""
    first = replace(state.unordered(), window=state.window.first)
    async with aclosing(open_pages(first)) as pages:
        async for page in pages:
            for _ in page:
                return True
    return False
