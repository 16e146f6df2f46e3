"""Reads one page of a plan's items from a position, in either direction, within a budget of requests.

It knows the table and the requests' answers, and must not know models or how a position is written as a cursor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dynamo_single import reading
from dynamo_single.actions import key_of
from dynamo_single.compiler import MAX_BATCH_KEYS, compile_plan, with_page
from dynamo_single.exceptions import InvalidValue
from dynamo_single.positions import (
    Item,
    Position,
    Start,
    ascends,
    at_item,
    covers,
    is_behind,
    is_merged,
    start_of,
    stream_count,
)
from dynamo_single.query import EVERYTHING, Plan, Request
from dynamo_single.table import Table


@dataclass(frozen=True, slots=True)
class Found:
    """An item with the places in front of it and behind it, in the plan's own order."""

    item: Item
    before: Position
    after: Position


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, in reading direction; ``stopped`` is where the budget ended it, if it did."""

    found: tuple[Found, ...] = ()
    stopped: Position | None = None


@dataclass(slots=True)
class Budget:
    """How many requests may still be sent; ``None`` for any number."""

    left: int | None = None

    def spend(self) -> bool:
        """Take one request, if there is one left."""
        if self.left is None:
            return True
        self.left -= 1
        return self.left >= 0


def read(
    table: Table, plan: Plan, position: Position, *, backward: bool, wanted: int, max_requests: int | None = None
) -> Reading:
    """Up to ``wanted`` items that match, from the position on.

    Where nothing is filtered, the first request of each stream reads no more than is wanted. Otherwise each further one
    reads four times as much as the one before.
    """
    streams = _streams(table, plan, position, backward=backward)
    budget = Budget(max_requests)
    if is_merged(plan):
        if max_requests is not None and max_requests < len(streams):
            raise InvalidValue(
                f"max_requests={max_requests}: {len(streams)} partitions are read side by side to put their items in "
                f"order, so that a page takes at least {len(streams)} requests. Allow as many, or leave the order out."
            )
        for stream in streams:
            budget.spend()
            stream.fill(wanted)
    found: list[Found] = []
    while len(found) < wanted and (streams := [each for each in streams if not each.is_over]):
        stream = _next(streams, plan, backward=backward)
        if stream.has_items:
            found.append(stream.take())
        elif budget.spend():
            stream.fill(wanted - len(found))
        else:
            return Reading(tuple(found), stream.rest())
    return Reading(tuple(found))


class Stream(Protocol):
    """Items that come one after the other, read as they are needed."""

    @property
    def has_items(self) -> bool:
        """Whether an item was read that is not taken yet."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left."""

    def fill(self, wanted: int) -> None:
        """Send one request for the next items."""

    def take(self) -> Found:
        """The next item that was read."""

    def rest(self) -> Position:
        """The place of what is not read yet."""

    def rank(self) -> tuple[str, int]:
        """Where a merge has the next item, or what is not read yet."""


def _streams(table: Table, plan: Plan, position: Position, *, backward: bool) -> list[Stream]:
    """What is left from the position on, in reading sequence."""
    if plan.kind == "empty":
        return []
    if plan.keys:
        return [_Keys(table, plan, position, backward=backward)]
    found: list[Stream] = []
    for number in range(stream_count(plan)):
        start = start_of(plan, number, position, backward=backward)
        if start is not None:
            found.append(_Range(table, plan, number, position, start, backward=backward))
    return found[::-1] if backward else found


def _next(streams: Sequence[Stream], plan: Plan, *, backward: bool) -> Stream:
    if not is_merged(plan):
        return streams[0]
    choose = min if ascends(plan, backward=backward) else max
    return choose(streams, key=lambda stream: stream.rank())


@dataclass(slots=True)
class _Range:
    """One Query or Scan, page by page."""

    table: Table
    plan: Plan
    number: int
    position: Position
    start: Start
    backward: bool = field(kw_only=True)
    items: deque[Item] = field(default_factory=deque)
    last_key: Any = None
    limit: int = 0
    is_read: bool = False

    @property
    def has_items(self) -> bool:
        return bool(self.items)

    @property
    def is_over(self) -> bool:
        return self.is_read and self.last_key is None and not self.items

    def fill(self, wanted: int) -> None:
        start_key = self.last_key
        if not self.is_read:
            # What overlaps with the page before is dropped again: at most one item, unless an index has equal keys.
            self.limit, start_key = wanted + self.start.overlaps, self.start.key
        elif self.plan.filter == EVERYTHING:
            self.limit = wanted
        else:
            self.limit *= reading.PAGE_GROWTH
        answer = self.table.send(with_page(self._request(), start_key=start_key, limit=self.limit))
        self.items.extend(filter(self._is_wanted, reading.as_read(self.plan, answer["Items"])))
        self.last_key = answer.get("LastEvaluatedKey")
        self.is_read = True

    def _request(self) -> Request:
        conditions = () if self.start.condition is None else (self.start.condition,)
        forward = ascends(self.plan, backward=self.backward)
        (request,) = compile_plan(replace(self.plan, conditions=conditions, forward=forward))
        return request

    def _is_wanted(self, item: Item) -> bool:
        if not self.start.overlaps:
            return True
        sort = at_item(self.plan, self.number, item).sort
        return covers(self.plan.conditions[self.number], sort) and is_behind(
            self.plan, self.position, self.number, sort, backward=self.backward
        )

    def take(self) -> Found:
        item = self.items.popleft()
        position = at_item(self.plan, self.number, item)
        return Found(item, position, position)

    def rest(self) -> Position:
        if not self.is_read:
            return Position(self.number + self.backward)
        return at_item(self.plan, self.number, self.last_key)

    def rank(self) -> tuple[str, int]:
        return at_item(self.plan, self.number, self.items[0] if self.items else self.last_key).sort, self.number


class _Keys:
    """The items of whole primary keys, in the order of the keys."""

    def __init__(self, table: Table, plan: Plan, position: Position, *, backward: bool) -> None:
        self.table = table
        self.plan = plan
        self.backward = backward
        # A place is the number of keys in front of it.
        self.place = position.stream
        self.limit = 0
        self.found: deque[Found] = deque()

    @property
    def has_items(self) -> bool:
        return bool(self.found)

    @property
    def is_over(self) -> bool:
        return self.place == (0 if self.backward else len(self.plan.keys)) and not self.found

    def fill(self, wanted: int) -> None:
        # One request at a time: a key that nothing is stored under is followed by more than are missing.
        self.limit = min(max(wanted, self.limit * reading.PAGE_GROWTH), MAX_BATCH_KEYS)
        numbers = self._numbers()
        keys = self.plan.keys
        part = replace(self.plan, keys=tuple(keys[number] for number in numbers))
        found = {key_of(item): item for item in reading.items(self.table, part)}
        for number in numbers:
            if (item := found.get(keys[number])) is not None:
                self.found.append(Found(item, Position(number), Position(number + 1)))
        self.place = numbers[-1] + (not self.backward)

    def _numbers(self) -> range:
        if self.backward:
            return range(self.place - 1, max(self.place - self.limit, 0) - 1, -1)
        return range(self.place, min(self.place + self.limit, len(self.plan.keys)))

    def take(self) -> Found:
        return self.found.popleft()

    def rest(self) -> Position:
        return Position(self.place)

    def rank(self) -> tuple[str, int]:
        return "", self.place
