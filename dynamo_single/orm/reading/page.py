"""Reads one page of a plan's items from a position, in either direction, within a budget of requests.

It knows the table and the requests' answers, and must not know models or how a position is written as a cursor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.reading import execute, single
from dynamo_single.orm.reading.budget import PAGE_GROWTH, Allowance, allowance_of, next_limit
from dynamo_single.orm.reading.positions import (
    Narrowed,
    Position,
    Start,
    ascends,
    at_item,
    covers,
    in_union,
    is_merged,
    parts_of,
    start_of,
    stream_count,
    within,
)
from dynamo_single.orm.reading.present_names import in_present_names
from dynamo_single.orm.reading.shards import at_once, first_share, next_share
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.compiler import compile_plan, with_page
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table.request import MAX_BATCH_KEYS, Item
from dynamo_single.table.table import Table


class Found(Struct, frozen=True):
    """An item and its position."""

    item: Item
    position: Position


class Reading(Struct, frozen=True):
    """What was read, in reading direction; ``stopped`` is where the budget ended it, if it did.

    ``finished`` are the shards that have nothing after what was found.
    """

    found: tuple[Found, ...] = ()
    stopped: Position | None = None
    finished: frozenset[int] = frozenset()


class Beginning(Struct, frozen=True):
    """Where reading a plan begins and which way it goes.

    ``narrowed`` says what each part of a union reads from the position on, if the union has an order.
    """

    table: Table
    plan: Plan
    position: Position
    backward: bool
    narrowed: tuple[Narrowed, ...] = ()
    #: The shards that have nothing from the position on.
    finished: frozenset[int] = frozenset()

    def rank(self, stream: int, item: Any) -> tuple[object, int]:
        """What a merge compares items by."""
        if self.plan.kind != "union":
            return at_item(self.plan, stream, item).sort, stream
        # As when everything is read: of equal items those of the first part come first, and backwards last.
        descending = self.plan.merged_by[0].descending
        return execute.order_of(self.plan, item), -stream if descending else stream

    @property
    def takes_least(self) -> bool:
        """Whether the item that a merge gives next is the one of the lowest rank."""
        return not self.backward if self.plan.kind == "union" else ascends(self.plan, backward=self.backward)

    def is_behind(self, stream: int, item: Item) -> bool:
        """Whether a merge gives an item after the one at the position."""
        position, plan = self.position, self.plan
        if plan.kind == "union":
            stored = (plan.layout.attributes[order.attribute].stored for order in plan.merged_by)
            ours = self.rank(position.stream, dict(zip(stored, position.values, strict=True)))
        else:
            ours = (position.sort, position.stream)
        theirs = self.rank(stream, item)
        return theirs > ours if self.takes_least else theirs < ours


async def read(beginning: Beginning, *, wanted: int, max_requests: int | None = None) -> Reading:
    """Up to ``wanted`` items that match, from the position on.

    Where nothing is filtered, the first request of each stream reads no more than is wanted. Otherwise each further one
    reads four times as much as the one before, up to what one page can hold.
    """
    atomic_block.check_plan(beginning.table.settings.alias, beginning.plan)
    await knowledge.undivided(beginning.table, beginning.plan.layout)
    beginning = replace(beginning, table=in_present_names(beginning.table, beginning.plan.layout))
    allowance = allowance_of(beginning.table, beginning.plan)
    merged = is_merged(beginning.plan)
    budget = _Budget(max_requests)
    # The next one is the last, from where it is taken off.
    streams: list[_Stream] = list(_streams(beginning))
    streams = streams if beginning.backward else streams[::-1]
    if merged:
        _check_budget(beginning.plan, len(streams), max_requests)
        waiting = [stream for stream in reversed(streams) if not stream.is_over]
        budget.spend(len(waiting))
        await _fill(beginning, waiting, wanted, allowance)
    found: list[Found] = []
    stopped: Position | None = None
    while streams and len(found) < wanted:
        place = _next(streams, beginning) if merged else -1
        stream = streams[place]
        if stream.is_over:
            del streams[place]
        elif stream.found:
            found.append(stream.take())
        elif budget.spend():
            if beginning.plan.is_sharded:
                share = next_share(wanted - len(found), stream.given, len(found))
                await stream.fill(share, allowance)
            else:
                await stream.fill(wanted - len(found), allowance)
        else:
            stopped = stream.rest()
            break
    return Reading(tuple(found), stopped, _finished(beginning, streams))


async def _fill(beginning: Beginning, streams: Sequence[_Stream], wanted: int, allowance: Allowance | None) -> None:
    """Read the beginnings of what is merged: shards at once, each its share, and anything else one by one."""
    if beginning.plan.is_sharded:
        share = first_share(wanted, len(streams))
        await at_once(beginning.table, lambda stream: stream.fill(share, allowance), streams)
        return
    for stream in streams:
        await stream.fill(wanted, allowance)


def _finished(beginning: Beginning, streams: Sequence[_Stream]) -> frozenset[int]:
    """The shards that have nothing left, of those that there are."""
    if not beginning.plan.is_sharded:
        return frozenset()
    going_on = {stream.stream for stream in streams if isinstance(stream, _Range) and not stream.is_over}
    return frozenset(range(stream_count(beginning.plan))) - going_on


class _Budget:
    """How many requests may still be sent; ``None`` for any number."""

    def __init__(self, left: int | None) -> None:
        self.left = left

    def spend(self, number: int = 1) -> bool:
        """Take some, if there are as many."""
        if self.left is None:
            return True
        self.left -= number
        return self.left >= 0


def _check_budget(plan: Plan, count: int, max_requests: int | None) -> None:
    if max_requests is None:
        return
    if plan.kind == "union":
        raise NotSupported(
            "max_requests is not supported where several keys answer a query in an order: what is found by one key "
            "waits for what the others find. Leave the order out, or max_requests."
        )
    if max_requests < count:
        raise InvalidValue(
            f"max_requests={max_requests}: {count} partitions are read side by side to put their items in order, so "
            f"that a page takes at least {count} requests. Allow as many, or leave the order out."
        )


def _next(streams: Sequence[_Stream], beginning: Beginning) -> int:
    """The place of the stream that a merge goes on with: one that cannot tell yet, or else the one in front."""
    ranks = [stream.next_rank for stream in streams]
    if None in ranks:
        return ranks.index(None)
    return ranks.index(min(ranks) if beginning.takes_least else max(ranks))


def _streams(beginning: Beginning) -> Iterator[_Stream]:
    offset = 0
    for number, part in enumerate(parts_of(beginning.plan)):
        position = within(part, offset, beginning.position)
        if part.keys:
            yield _Keys(beginning, number, offset, position)
        else:
            for stream in range(stream_count(part)):
                yield from _range(beginning, number, offset, stream, position)
        offset += stream_count(part)


def _range(beginning: Beginning, number: int, offset: int, stream: int, position: Position) -> Iterator[_Range]:
    """What is left of one key condition."""
    if stream in beginning.finished:
        return
    part = parts_of(beginning.plan)[number]
    if not beginning.narrowed or offset + stream == beginning.position.stream:
        start = start_of(part, stream, position, backward=beginning.backward)
    else:
        condition = beginning.narrowed[number].conditions[stream]
        start = None if condition is None else Start(condition, overlaps=True)
    if start is not None:
        yield _Range(beginning, number, offset, stream, start)


class _Stream:
    """Items that come one after the other, read as they are needed."""

    def __init__(self, beginning: Beginning, number: int, offset: int) -> None:
        self.beginning = beginning
        self.part = parts_of(beginning.plan)[number]
        self.offset = offset
        self.limit = 0
        self.found: deque[Found] = deque()
        self.given = 0
        #: What the next item is compared by, as long as it is the next one.
        self._ranked: Any = None

    def take(self) -> Found:
        """Give the next item."""
        self.given += 1
        self._ranked = None
        return self.found.popleft()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left."""
        raise NotImplementedError

    @property
    def next_rank(self) -> Any:
        """Where a merge has the next item, or what is not read yet; ``None`` if that is not known."""
        if self._ranked is None:
            self._ranked = self._rank()
        return self._ranked

    def _rank(self) -> tuple[object, int] | None:
        if self.found:
            return self.beginning.rank(self.found[0].position.stream, self.found[0].item)
        return None

    async def fill(self, wanted: int, allowance: Allowance | None) -> None:
        """Read the next items."""
        raise NotImplementedError

    def rest(self) -> Position:
        """The place of what is not read yet."""
        raise NotImplementedError

    def _keep(self, stream: int, item: Item, *, overlaps: bool) -> None:
        """Take an item that was read, unless another part gives it, or the page before has it."""
        if any(matches(other, item) for other in self.part.others):
            return
        if not overlaps or self.beginning.is_behind(self.offset + stream, item):
            position = in_union(self.beginning.plan, self.offset, at_item(self.part, stream, item), item)
            self.found.append(Found(item, position))


class _Range(_Stream):
    """One Query or Scan, page by page."""

    def __init__(self, beginning: Beginning, number: int, offset: int, stream: int, start: Start) -> None:
        super().__init__(beginning, number, offset)
        self.stream = stream
        self.start = start
        self.is_read = False
        self.last_key: Any = None
        conditions = () if start.condition is None else (start.condition,)
        forward = ascends(self.part, backward=beginning.backward)
        self.plan = replace(self.part, conditions=conditions, forward=forward)

    @property
    def is_over(self) -> bool:
        return self.is_read and self.last_key is None and not self.found

    def _rank(self) -> tuple[object, int] | None:
        if self.found or self.last_key is None or self.beginning.plan.kind == "union":
            return super()._rank()
        return self.beginning.rank(self.stream, self.last_key)

    async def fill(self, wanted: int, allowance: Allowance | None) -> None:
        start_key, self._ranked = self.last_key, None
        if not self.is_read:
            # What overlaps with the page before is dropped again: at most one item, unless an index has equal keys.
            self.limit, start_key = wanted + self.start.overlaps, self.start.key
        elif self.part.filter == EVERYTHING and not self.part.others:
            self.limit = wanted
        else:
            self.limit = next_limit(self.limit)
        table = self.beginning.table
        (request,) = compile_plan(self.plan)
        answer = await table.ask(with_page(request, start_key=start_key, limit=self.limit))
        if allowance is not None and self.part.kind == "query":
            allowance.take(answer)
        for item in single.as_read(self.part, answer["Items"]):
            # A narrowed condition may hold what a strict bound of its own leaves out.
            if not self.start.overlaps or self._is_covered(item):
                self._keep(self.stream, item, overlaps=self.start.overlaps)
        self.last_key = answer.get("LastEvaluatedKey")
        if self.last_key is not None and self.start.overlaps and not self._is_covered(self.last_key):
            # At a strict bound everything is read, and DynamoDB takes no key from outside of a condition to go on from.
            self.last_key = None
        self.is_read = True

    def _is_covered(self, item: Item) -> bool:
        return covers(self.part.conditions[self.stream], at_item(self.part, self.stream, item).sort)

    def rest(self) -> Position:
        if not self.is_read:
            return Position(self.offset + self.stream + self.beginning.backward)
        position = at_item(self.part, self.stream, self.last_key)
        return replace(position, stream=self.offset + self.stream)


class _Keys(_Stream):
    """The items of whole primary keys, in the order of the keys."""

    def __init__(self, beginning: Beginning, number: int, offset: int, position: Position) -> None:
        super().__init__(beginning, number, offset)
        # Each key is a stream of its own, which the one at the position has given.
        self.overlaps = bool(beginning.narrowed) and position.key is None
        self.left = self._numbers(beginning, number, position)

    def _numbers(self, beginning: Beginning, number: int, position: Position) -> list[int]:
        keys = self.part.keys
        if self.overlaps:
            kept = beginning.narrowed[number].keys
            left = [place for place, key in enumerate(keys) if key in kept]
        elif beginning.backward:
            left = list(range(position.stream))
        else:
            left = list(range(position.stream + (position.key is not None), len(keys)))
        return left[::-1] if beginning.backward else left

    @property
    def is_over(self) -> bool:
        return not self.left and not self.found

    async def fill(self, wanted: int, allowance: Allowance | None) -> None:
        # One request at a time: a key that nothing is stored under is followed by more than are missing.
        self._ranked = None
        self.limit = min(max(wanted, self.limit * PAGE_GROWTH), MAX_BATCH_KEYS)
        numbers, self.left = self.left[: self.limit], self.left[self.limit :]
        keys = self.part.keys
        part = replace(self.part, keys=tuple(keys[number] for number in numbers))
        found = await single.by_plan_key(self.beginning.table, part)
        for number in numbers:
            item = found.get(keys[number])
            # What holds several of the claims stands at the first of them, on whichever page that is.
            if item is not None and (self.part.lookup is None or single.plan_key_of(self.part, item) == keys[number]):
                self._keep(number, item, overlaps=self.overlaps)

    def rest(self) -> Position:
        return Position(self.offset + self.left[0] + self.beginning.backward)
