"""Read one page of a plan's items from a position on, in either direction, within a limit of requests.

This module depends on the table and its responses, but not on models, or on how a cursor contains a position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.plan.reach import read_whole
from dynamo_single.orm.reading import single
from dynamo_single.orm.reading.budget import PAGE_GROWTH
from dynamo_single.orm.reading.completion import completed
from dynamo_single.orm.reading.execute import union_rank
from dynamo_single.orm.reading.positions import (
    NarrowedPart,
    Position,
    StreamStart,
    is_ascending,
    is_merged,
    part_position,
    parts_of,
    position_of_item,
    start_of,
    stream_count,
)
from dynamo_single.orm.reading.sources import (
    Descending,
    PageSource,
    PlanReader,
    Rank,
    Source,
    first_share,
    in_parallel,
    merge,
    next_share,
    open_reader,
    sort_attribute,
)
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.table.request import MAX_BATCH_KEYS, Item
from dynamo_single.table.table import Table

#: An item and the number of its stream.
FoundItem = tuple[int, Item]


class ReadResult(Struct, frozen=True):
    """The items of a page, in reading direction; ``stopped`` is the position at which the request limit ended it, if it
    did.

    ``finished`` contains the shards without items after these.
    """

    found: Sequence[FoundItem] = ()
    stopped: Position | None = None
    finished: frozenset[int] = frozenset()


class PageStart(Struct, frozen=True):
    """Where reading a plan begins, and in which direction it goes.

    ``narrowed`` contains what each part of a union reads from the position on, if the union has an order.
    """

    table: Table
    plan: Plan
    position: Position
    backward: bool
    narrowed: tuple[NarrowedPart, ...] = ()
    #: The shards without items from the position on.
    finished: frozenset[int] = frozenset()

    def rank(self, stream: int, item: Any) -> Rank:
        """Return the position of an item, or of a ``LastEvaluatedKey``, in the order of a merge."""
        if self.plan.kind == "union":
            rank, descends = union_rank(self.plan, stream, item), self.backward
        else:
            rank = item[sort_attribute(self.plan)]["S"], stream
            descends = not is_ascending(self.plan, backward=self.backward)
        return (Descending(rank),) if descends else rank

    def is_behind(self, stream: int, item: Item) -> bool:
        """Return whether a merge yields an item after the item at the position."""
        position, plan = self.position, self.plan
        here: dict[str, Any] = {sort_attribute(plan): {"S": position.sort}}
        if plan.kind == "union":
            stored = (plan.layout.attributes[order.attribute].stored for order in plan.merged_by)
            here = dict(zip(stored, position.values, strict=True))
        return self.rank(stream, item) > self.rank(position.stream, here)


async def read(beginning: PageStart, *, wanted: int, max_requests: int | None = None) -> ReadResult:
    """Return up to ``wanted`` matching items from the position on.

    Without a filter the first request of each stream reads only as many items as needed. Otherwise each further request
    reads four times as much as the previous one, up to the maximum of one page.
    """
    plan, merges = beginning.plan, is_merged(beginning.plan)
    reader = await open_reader(beginning.table, plan)
    streams = [stream for stream in _streams(beginning) if not stream.is_exhausted]
    streams = streams[::-1] if beginning.backward else streams
    requests, stopped = 0, None
    if merges:
        _check_limit(plan, len(streams), max_requests)
    if merges and plan.is_sharded:
        requests, share = len(streams), first_share(wanted, len(streams))
        await in_parallel(reader.table, lambda stream: stream.read_next(reader, share), streams)

    async def read_next(stream: _Stream, returned: int) -> bool:
        nonlocal requests, stopped
        if requests == max_requests:
            stopped = stream.rest()
            return False
        requests += 1
        missing = wanted - returned
        share = next_share(missing, stream.returned, returned) if plan.is_sharded else missing
        await stream.read_next(reader, share)
        return True

    found: list[FoundItem] = []
    async with aclosing(merge(streams, partial(_rank, beginning), read_next, stop=wanted)) as pages:
        async for page in pages:
            found += page
            if len(found) == wanted:
                break
    return ReadResult(found, stopped, _finished(plan, streams))


def _rank(beginning: PageStart, _number: int, stream: _Stream) -> Rank:
    """Return the position of the next item of a stream; it reads separate streams sequentially."""
    if not is_merged(beginning.plan):
        return ()
    if stream.items:
        return beginning.rank(*stream.items[0])
    if isinstance(stream, _Keys) or beginning.plan.kind == "union" or stream.is_unread or stream.last_key is None:
        return ()
    # Items of the next page are not before the key of its start.
    return beginning.rank(stream.number, stream.last_key)


def _finished(plan: Plan, streams: Sequence[_Stream]) -> frozenset[int]:
    """Return the exhausted shards."""
    if not plan.is_sharded:
        return frozenset()
    return frozenset(range(stream_count(plan))) - {
        stream.number for stream in streams if stream.items or not stream.is_exhausted
    }


def _check_limit(plan: Plan, count: int, max_requests: int | None) -> None:
    if max_requests is None:
        return
    if plan.kind == "union":
        raise NotSupported(
            "max_requests is not supported if several keys serve an ordered query: the app must read all "
            "keys before it can return the next result. Remove the order or max_requests."
        )
    if max_requests < count:
        raise InvalidValue(
            f"max_requests={max_requests}: an ordered page reads {count} partitions in parallel, which takes at "
            f"least {count} requests. Raise max_requests, or remove the order."
        )


def _streams(beginning: PageStart) -> Iterator[_Stream]:
    offset = 0
    for number, plan in enumerate(parts_of(beginning.plan)):
        part, position = _Part(beginning, plan, number, offset), part_position(plan, offset, beginning.position)
        if plan.keys:
            yield _Keys(part, position)
        else:
            for stream in range(stream_count(plan)):
                start = None if stream in beginning.finished else part.start_of(stream, position)
                if start is not None:
                    yield _Range(part, stream, start)
        offset += stream_count(plan)


class _Part(Struct, frozen=True):
    """A part of a union, in front of which there are ``offset`` streams; any other plan is one."""

    beginning: PageStart
    plan: Plan
    number: int
    offset: int

    def start_of(self, stream: int, position: Position) -> StreamStart | None:
        """Return the rest of one key condition."""
        beginning = self.beginning
        if not beginning.narrowed or self.offset + stream == beginning.position.stream:
            return start_of(self.plan, stream, position, backward=beginning.backward)
        condition = beginning.narrowed[self.number].conditions[stream]
        return None if condition is None else StreamStart(condition, overlaps=True)

    def found(self, items: Iterable[FoundItem], *, overlaps: bool) -> Iterator[FoundItem]:
        """Yield read items, unless another part returns them or the page before has them."""
        for stream, item in items:
            if any(matches(other, item) for other in self.plan.exclusions):
                continue
            if not overlaps or self.beginning.is_behind(self.offset + stream, item):
                yield self.offset + stream, item


class _Range(PageSource[FoundItem]):
    """The rest of one Query or Scan."""

    def __init__(self, part: _Part, stream: int, start: StreamStart) -> None:
        conditions = () if start.condition is None else (start.condition,)
        forward = is_ascending(part.plan, backward=part.beginning.backward)
        plan = read_whole(part.plan) if part.plan.query.layout.reaches else part.plan
        (request,) = compile_plan(replace(plan, conditions=conditions, forward=forward))
        super().__init__(request)
        self.number = part.offset + stream
        self.part = part
        self.stream = stream
        self.overlaps = start.overlaps
        self.last_key = start.key

    async def read_next(self, reader: PlanReader, wanted: int) -> None:
        """Send one request for ``wanted`` items, or more if it may drop others."""
        plan = self.part.plan
        if plan.query.layout.reaches:
            reader = completed(reader, plan)[0]
        if self.is_unread:
            # Drop items of the page before: at most one, unless an index has equal keys.
            self.limit = wanted + self.overlaps
        elif plan.filter == EVERYTHING and not plan.exclusions:
            self.limit = wanted
        items = single.projected_items(plan, (await self.read(reader))["Items"])
        if self.overlaps:
            # A narrowed condition may include what a strict bound of the plan's own excludes.
            items = [item for item in items if self._is_covered(item)]
            if self.last_key is not None and not self._is_covered(self.last_key):
                # At a strict bound everything is read, and DynamoDB does not accept a key outside a condition.
                self.last_key, self.is_exhausted = None, True
        self.items += self.part.found(((self.stream, item) for item in items), overlaps=self.overlaps)

    @property
    def is_unread(self) -> bool:
        """Whether the reader has not sent a request yet."""
        return self.limit is None

    def _is_covered(self, item: Mapping[str, Any]) -> bool:
        return self.part.plan.conditions[self.stream].includes(item[sort_attribute(self.part.plan)]["S"])

    def rest(self) -> Position:
        """Return the position of the unread rest."""
        if self.is_unread or self.last_key is None:
            return Position(self.number + self.part.beginning.backward)
        return replace(position_of_item(self.part.plan, self.stream, self.last_key), stream=self.number)


class _Keys(Source[FoundItem]):
    """The items of complete primary keys, in the order of the keys."""

    def __init__(self, part: _Part, position: Position) -> None:
        self.items = deque()
        self.number = part.offset
        self.part = part
        # Each key is a separate stream; the stream at the position has returned its item.
        self.overlaps = bool(part.beginning.narrowed) and position.key is None
        self.unread = self._numbers(position)
        self.is_exhausted = not self.unread
        self.limit = 0

    def _numbers(self, position: Position) -> list[int]:
        keys, beginning = self.part.plan.keys, self.part.beginning
        if self.overlaps:
            narrowed = beginning.narrowed[self.part.number].keys
            numbers = [number for number, key in enumerate(keys) if key in narrowed]
        elif beginning.backward:
            numbers = list(range(position.stream))
        else:
            numbers = list(range(position.stream + (position.key is not None), len(keys)))
        return numbers[::-1] if beginning.backward else numbers

    async def read_next(self, reader: PlanReader, wanted: int) -> None:
        """Send one request, for more keys than are wanted after one whose items were missing."""
        plan = self.part.plan
        self.limit = min(max(wanted, self.limit * PAGE_GROWTH), MAX_BATCH_KEYS)
        numbers, self.unread = self.unread[: self.limit], self.unread[self.limit :]
        self.is_exhausted = not self.unread
        keys = tuple(plan.keys[number] for number in numbers)
        items = await single.items_by_plan_key(reader.table, replace(plan, keys=keys))
        if plan.lookup is not None:
            # An item that holds several of the claims is at the first of them, on whichever page that is.
            items = {key: item for key, item in items.items() if single.plan_key_of(plan, item) == key}
        found = ((number, items[key]) for number, key in zip(numbers, keys, strict=True) if key in items)
        self.items += self.part.found(found, overlaps=self.overlaps)

    def rest(self) -> Position:
        """Return the position of the unread rest."""
        return Position(self.part.offset + self.unread[0] + self.part.beginning.backward)


_Stream = _Range | _Keys
