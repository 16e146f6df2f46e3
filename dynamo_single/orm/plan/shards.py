"""The shards of a sharded key that a query reads: those that its identities and times can be in.

Conditions on other attributes do not narrow them. This module does not send requests, and does not depend on the place
of the schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from dynamo_single.orm.plan.constraints import Constraints
from dynamo_single.orm.plan.neighbours import KeyRange
from dynamo_single.orm.plan.plan import KeyCondition, Query
from dynamo_single.orm.schema.keys.codecs import CANONICAL
from dynamo_single.orm.schema.keys.shards import EVER, Schedule, Sharding, Window, seconds, shard_suffix
from dynamo_single.table.request import PARTITION_KEY_LIMIT

#: The schedule of a query without one.
_ONE = Schedule()
_TICK = timedelta(microseconds=1)


def shard_places(sharding: Sharding, query: Query, constraints: Constraints) -> tuple[int, ...]:
    """The places of all items that a query can give."""
    schedule, windows = query.schedule or _ONE, _windows(sharding, constraints)
    values = constraints.allowed.get(sharding.attribute)
    if values is not None:
        return _places(sharding, schedule, windows, values)
    alike = tuple(term.value for term in constraints.on(sharding.attribute) if term.operator == CANONICAL)[:1]
    return _places(sharding, schedule, windows, alike or None, alike=True)


def possible_keys(
    sharding: Sharding,
    query: Query,
    constraints: Constraints,
    key: tuple[str, str],
    values: Mapping[str, Any],
) -> Iterable[tuple[str, str]]:
    """The primary keys that the object of an identity can have, of its ``key`` without a shard."""
    at = values.get(sharding.at)
    windows = _windows(sharding, constraints) if at is None else [_moment(at)]
    for place in _places(sharding, query.schedule or _ONE, windows, [values[sharding.attribute]]):
        partition = key[0] + shard_suffix(place)
        if len(partition.encode()) <= PARTITION_KEY_LIMIT:
            yield partition, key[1]


def _places(
    sharding: Sharding,
    schedule: Schedule,
    windows: Sequence[Window],
    values: Sequence[object] | None,
    *,
    alike: bool = False,
) -> tuple[int, ...]:
    found = (sharding.places(schedule, window, values, alike=alike) for window in windows)
    return tuple(sorted({place for places in found for place in places}))


def range_in_shard(reading: KeyRange, place: int) -> KeyRange:
    """A range of a partition in one of its shards."""
    whole = reading.condition
    condition = KeyCondition(whole.partition + shard_suffix(place), whole.operator, whole.operands, place)
    return reading._replace(condition=condition)


def _windows(sharding: Sharding, constraints: Constraints) -> list[Window]:
    """Return the times that a query matches: the named ones, or all between two bounds."""
    named = constraints.allowed.get(sharding.at)
    if named is not None:
        return [_moment(each) for each in named]
    low, high = EVER
    for term in constraints.on(sharding.at):
        if term.operator in ("gt", "gte"):
            low = _later(low, seconds(term.value))
        elif term.operator == "lte":
            high = _earlier(high, seconds(term.value))
        elif term.operator == "lt":
            high = _earlier(high, seconds(term.value - _TICK))
        elif term.operator == "range":
            low, high = _later(low, seconds(term.value[0])), _earlier(high, seconds(term.value[1]))
    return [Window(low, high)]


def _moment(value: datetime) -> Window:
    return Window(seconds(value), seconds(value))


def _later(one: int | None, other: int) -> int:
    return other if one is None else max(one, other)


def _earlier(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)
