"""When days are: the moments of whole calendar days in a time zone.

A day has 23 or 25 hours where clocks change, and where they are set back over midnight it has two pieces. This module
must not know queries.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from dynamo_single.orm.where.spans import Spans, complement, intersection, union

#: The calendar's days as ordinals, from the first that Python knows to the one behind the last.
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
