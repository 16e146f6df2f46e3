"""Pages of a queryset: the objects after a cursor, with the cursors of the previous and the next page.

``positions`` defines the start of a page, ``page`` reads it, and ``cursors`` encodes its ends. This module does not
send requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from msgspec import structs

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.plan.plan import PartialItem, Plan
from dynamo_single.orm.reading import cursors, positions
from dynamo_single.orm.reading import page as reading_page
from dynamo_single.orm.reading.cursors import Cursor
from dynamo_single.orm.reading.page import PageStart, ReadResult
from dynamo_single.orm.reading.positions import NarrowedPart, Position
from dynamo_single.orm.results import objects, prefetch
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.table.redirects import SentRequest

T = TypeVar("T", covariant=True)

#: The most objects of one page.
MAX_SIZE = 1000


@dataclass(frozen=True, slots=True)
class Page(Sequence[T], Generic[T]):
    """Some objects of a query in their order, and the cursors of the pages before and after them.

    ``ended_by_budget`` is set if ``max_requests`` ended the page, which may be short or empty then. Its next cursor
    continues there, or its previous one if it was read backwards. ``requests`` and ``consumed`` are the number of
    requests for the page, including related objects, and the capacity units that they consumed.
    """

    items: tuple[T, ...] = ()
    next_cursor: str | None = None
    previous_cursor: str | None = None
    ended_by_budget: bool = False
    requests: int = 0
    consumed: float = 0.0

    @property
    def has_next(self) -> bool:
        """Whether a next page exists."""
        return self.next_cursor is not None

    @property
    def has_previous(self) -> bool:
        """Whether a previous page exists."""
        return self.previous_cursor is not None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]


def check_size(size: object, max_requests: object) -> None:
    """Raise ``InvalidValue`` for an invalid size of a page or number of requests."""
    _check_number("size", size, MAX_SIZE)
    if max_requests is not None:
        _check_number("max_requests", max_requests, None)


#: Makes the results of a page's items.
ResultsReader = Callable[[Sequence[Any]], Awaitable[list[Any]]]


async def page(
    state: QueryState, size: int, cursor: str | None, max_requests: int | None, made: ResultsReader | None = None
) -> Page[Any]:
    """Return one page, without its cost; see ``QuerySet.page``. ``made`` computes its results in memory."""
    plan = _plan(state, "page()")
    begin = cursors.decode(cursor, plan) if cursor else Cursor(positions.first_position(plan, backward=False))
    reading = await reading_page.read(_beginning(state, plan, begin), wanted=size + 1, max_requests=max_requests)
    given = reading.found[:size]
    given = given[::-1] if begin.backward else given
    make: Callable[[Any], Any] = objects.object_reader(state)
    found = [make(item) for _, item in given] if made is None else await made([item for _, item in given])
    if state.related_reads:
        await prefetch.read_related(found, state.related_reads)
    before, after = _ends(plan, begin, reading, size)
    finished = _finished(reading, size)
    ahead, behind = (frozenset(), finished) if begin.backward else (finished, frozenset())
    return Page(
        tuple(found),
        None if after is None else cursors.encode(Cursor(after, finished=ahead), plan),
        None if before is None else cursors.encode(Cursor(before, backward=True, finished=behind), plan),
        ended_by_budget=reading.stopped is not None,
    )


def _finished(reading: ReadResult, size: int) -> frozenset[int]:
    """Return the shards without items after the page, including the first item of the next page."""
    return reading.finished - {stream for stream, _ in reading.found[size:]}


def with_costs(page: Page[T], sent: Sequence[SentRequest]) -> Page[T]:
    """Return a page with its cost."""
    return replace(page, requests=len(sent), consumed=sum(request.consumed for request in sent))


def cursor_for(state: QueryState, obj: object, *, before: bool) -> str:
    """Return the cursor of an object; see ``QuerySet.cursor_for``."""
    plan = _plan(state, "cursor_for()")
    if before and plan.kind == "scan":
        raise NotSupported(
            "cursor_for(before=True): a scan can only be read forwards. Use a query that a key supports."
        )
    if not isinstance(obj, state.model):
        raise InvalidValue(f"cursor_for() takes an object of {state.label}, not {shown(obj)}.")
    item: Item | None = obj._stored
    if item is None:
        raise InvalidValue(f"cursor_for({shown(obj)}): it is not stored, so no query returns it. Save it first.")
    if isinstance(item, PartialItem):
        raise NotSupported(
            f"cursor_for({shown(obj)}): the object has only some attributes, so its position is unknown. Read "
            "the object without only() and defer()."
        )
    position = positions.find_position(plan, item)
    if position is None:
        raise InvalidValue(
            f"cursor_for({shown(obj)}): as it was read, it is not one of this queryset's objects. Call "
            "cursor_for() on the queryset that returned it, or read it again."
        )
    return cursors.encode(Cursor(position, backward=before), plan)


def _plan(state: QueryState, asked: str) -> Plan:
    if state.window.is_sliced:
        raise TypeError(f"Cannot use {asked} once a slice has been taken: a page has its own size and cursor.")
    if state.computation is not None:
        raise NotSupported(
            f"{asked} is not supported for computed results: the app reads every match before it knows the "
            "first result. Page through the objects and compute in Python, or slice the results: "
            "queryset[:100]."
        )
    plan = objects.plan_with_keys(structs.replace(state, in_pages=True))
    if plan.in_memory is not None or plan.kind == "held":
        raise NotSupported(
            f"{asked} is not supported after allow_in_memory(): the app reads every match before it knows the "
            "first object, so there are no pages to read. Slice the list of all objects: queryset[:100]."
        )
    if plan.kind == "union" and not plan.merged_by and any(part.is_sharded for part in plan.parts):
        raise NotSupported(
            f"{asked} is not supported if a query without an order reads a sharded key in several ways: no "
            f'position marks the start of the next page. Add an order: order_by("{_order_of_shards(plan)}").'
        )
    return plan


def _order_of_shards(plan: Plan) -> str:
    """Return the attribute by which the shards of a union are ordered."""
    keys = (part.key for part in plan.parts if part.key is not None and part.is_sharded)
    return next((key.sort.parts[0].name for key in keys if key.sort.parts), plan.layout.identity[0])


def _beginning(state: QueryState, plan: Plan, begin: Cursor) -> PageStart:
    position = begin.position
    narrowed: tuple[NarrowedPart, ...] = ()
    if position.values:
        attribute = registry.attributes_of(state.model)[plan.merged_by[0].attribute]
        value = attribute.from_attribute_value(dict(position.values[0]))
        narrowed = positions.narrow_parts(plan, value, backward=begin.backward, now=clock.instant())
    return PageStart(state.table, plan, position, begin.backward, narrowed, begin.finished)


def _check_number(name: str, value: object, most: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or (most is not None and value > most):
        limit = "1 or more" if most is None else f"from 1 to {most}"
        raise InvalidValue(f"page({name}={shown(value)}): {name} must be an integer, {limit}.")


def _ends(plan: Plan, begin: Cursor, reading: ReadResult, size: int) -> tuple[Position | None, Position | None]:
    """Return the end of the previous page and the start of the next, if such pages may exist."""
    given = [positions.at(plan, *each) for each in reading.found[:size]]
    if begin.backward:
        before = given[-1] if len(reading.found) > size else reading.stopped
        if begin.position == positions.first_position(plan, backward=True):
            return before, None
        # If nothing was found and no limit ended the reading, the page after begins at the very beginning.
        rest = reading.stopped or positions.first_position(plan, backward=False)
        return before, given[0] if given else rest
    after = given[-1] if len(reading.found) > size else reading.stopped
    if plan.kind == "scan" or begin.position == positions.first_position(plan, backward=False):
        return None, after
    rest = reading.stopped or positions.first_position(plan, backward=True)
    return given[0] if given else rest, after
