"""When days are: the moments of whole calendar days in a time zone.

A day has 23 or 25 hours where clocks change, and where they are set back over midnight it has two pieces. This module
must not know queries.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
#: Days or moments as the spans that they consist of: sorted, apart from each other, without their ends.
Spans = tuple[tuple[T, T], ...]

#: The calendar's days as ordinals, from the first that Python knows to the one after the last.
FIRST, END = datetime.date.min.toordinal(), datetime.date.max.toordinal() + 1
BEGINNING = datetime.datetime.min.replace(tzinfo=datetime.UTC)
ETERNITY = datetime.datetime.max.replace(tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)

Moments = Spans[datetime.datetime]


def moments(
    days: Spans[int], zone: datetime.tzinfo
) -> Iterator[tuple[datetime.datetime | None, datetime.datetime | None]]:
    """The spans of time, in UTC and without their ends, in which days (by ordinal) are; ``None`` is an open end."""
    pieces = (
        piece
        for low, high in days
        for piece in intersection(complement(_before(low, zone), BEGINNING, ETERNITY), _before(high, zone))
    )
    for first, end in union(pieces):
        yield None if first == BEGINNING else first, None if end == ETERNITY else end


def _before(day: int, zone: datetime.tzinfo) -> Moments:
    """All moments that are on an earlier day."""
    if day <= FIRST:
        return ()
    if day >= END:
        return ((BEGINNING, ETERNITY),)
    midnight = datetime.datetime.combine(datetime.date.fromordinal(day), datetime.time.min)
    once, again = (midnight.replace(tzinfo=zone, fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
    if once == again:
        return ((BEGINNING, once),)
    if once > again:
        # Midnight is skipped: the day begins when the clocks are put forward.
        return ((BEGINNING, _change(again, once, zone)),)
    # Midnight comes twice: when the clocks are set back over it, it is the day before for a while.
    return union([(BEGINNING, once), (_change(once, again, zone), again)])


def _change(low: datetime.datetime, high: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """When the clocks change between two moments, to the second."""
    before = low.astimezone(zone).utcoffset()
    while high - low >= 2 * SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def union(spans: Iterable[tuple[Any, Any]]) -> Spans[Any]:
    """What lies in any of these spans; empty ones disappear, and those that touch become one."""
    merged: list[tuple[Any, Any]] = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(one: Spans[Any], other: Spans[Any]) -> Spans[Any]:
    """What lies in both."""
    return union((max(low, begin), min(high, end)) for low, high in one for begin, end in other)


def complement(spans: Spans[object], first: object, end: object) -> Spans[Any]:
    """What lies between ``first`` and ``end`` and in none of these spans."""
    edges = [first, *(edge for span in spans for edge in span), end]
    return union(zip(edges[::2], edges[1::2], strict=True))
