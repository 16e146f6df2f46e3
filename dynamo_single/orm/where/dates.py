"""Parts of dates as ranges: ``created_at__date``, ``__year``, and ``__month`` and ``__day`` with a year.

DynamoDB compares stored datetimes and does not compute, so a year becomes the range from its beginning to its end. A
lookup is first converted to whole days of the calendar, and then to datetimes in the current time zone, or without
``USE_TZ`` in ``TIME_ZONE``, as in Django. This module uses Django's lookup classes and does not depend on keys, plans
or requests.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.db.models.expressions import Col
from django.db.models.functions import ExtractDay, ExtractMonth, ExtractYear, TruncDate
from django.db.models.functions.datetime import TimezoneMixin
from django.utils import timezone
from msgspec import Struct

from dynamo_single import clock
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import Condition, Nothing, Or
from dynamo_single.orm.conditions.wording import FILTER_IN_MEMORY
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.comparisons import attribute_comparison
from dynamo_single.orm.where.lookups import compared_field, direct_value, null_test, operator_of, range_bounds

if TYPE_CHECKING:
    from dynamo_single.orm.schema.fields.base import DynamoField


# Convert whole calendar days to ranges of datetimes in a time zone.  A day has 23 or 25 hours when clocks change, and
# two pieces if they are set back over midnight. This module does not depend on queries.

T = TypeVar("T")
#: Days or datetimes as spans: sorted, disjoint, without their ends.
Spans = tuple[tuple[T, T], ...]

#: The calendar's days as ordinals, from Python's first day to the one after the last.
FIRST, END = datetime.date.min.toordinal(), datetime.date.max.toordinal() + 1
BEGINNING = datetime.datetime.min.replace(tzinfo=datetime.UTC)
ETERNITY = datetime.datetime.max.replace(tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)

Moments = Spans[datetime.datetime]


def moments_of_days(
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
    """Return all datetimes on earlier days."""
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
    """Return when the clocks change between two datetimes, to the second."""
    before = low.astimezone(zone).utcoffset()
    while high - low >= 2 * SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def union(spans: Iterable[tuple[Any, Any]]) -> Spans[Any]:
    """Return the union of spans, without empty ones, and with adjacent ones joined."""
    merged: list[tuple[Any, Any]] = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(one: Spans[Any], other: Spans[Any]) -> Spans[Any]:
    """Return the intersection."""
    return union((max(low, begin), min(high, end)) for low, high in one for begin, end in other)


def complement(spans: Spans[object], first: object, end: object) -> Spans[Any]:
    """Return the range between ``first`` and ``end`` without these spans."""
    edges = [first, *(edge for span in spans for edge in span), end]
    return union(zip(edges[::2], edges[1::2], strict=True))


EVERY_DAY: Spans[int] = ((FIRST, END),)
#: The maximum number of years for a month or a day; each year is at least one range.
MAX_YEARS = 100

_PARTS: dict[type[Any], str] = {ExtractYear: "year", ExtractMonth: "month", ExtractDay: "day", TruncDate: "date"}
_COMPARED = ("exact", "in", "lt", "lte", "gt", "gte", "range", "isnull")


class DatePart(Struct, frozen=True):
    """One comparison of a part of a stored date or datetime; ``zone`` is ``None`` for dates."""

    field: Any
    zone: datetime.tzinfo | None
    part: str
    operator: str
    value: Any

    @property
    def is_null_test(self) -> bool:
        """Whether it only compares the presence of a value, since all parts are missing or none."""
        return self.operator == "isnull"

    @property
    def subject(self) -> tuple[str, datetime.tzinfo | None]:
        """The subject of the comparison; comparisons of one subject are combined."""
        return self.field.attname, self.zone


def read_part(model: type[DynamoModel], node: object) -> DatePart | None:
    """A lookup as a comparison of a part; ``None`` if it compares something else."""
    transform = getattr(node, "lhs", None)
    if not isinstance(transform, TimezoneMixin):
        return None
    inner: Any = transform
    if isinstance(inner.lhs, TruncDate):
        inner = inner.lhs
    if not isinstance(inner.lhs, Col):
        return None
    field = compared_field(model, inner.lhs)
    part = _PARTS.get(type(transform))
    if part is None:
        raise _refusal(field, str(transform.lookup_name))  # type: ignore[attr-defined]  # a transform's
    operator = operator_of(node)
    if operator not in _COMPARED:
        raise NotSupported(
            f"{field.name}__{part}__{operator} is not supported: compare a {part} by {', '.join(_COMPARED)}, or "
            f"{FILTER_IN_MEMORY}."
        )
    value = direct_value(node)
    if operator == "range":
        value = range_bounds(f"{field.name}__{part}", value)
    elif operator == "in":
        value = tuple(member for member in value if member is not None)
    elif operator == "isnull":
        value = null_test(f"{field.name}__{part}", value)
    return DatePart(field, _zone(field, inner.tzinfo), part, operator, value)


def _zone(field: DynamoField, given: datetime.tzinfo | None) -> datetime.tzinfo | None:
    if not field.attribute.rounds:
        return None
    if not settings.USE_TZ:
        return clock.zone()
    return timezone.get_current_timezone() if given is None else given


def _refusal(field: DynamoField, part: str) -> NotSupported:
    name = field.name
    days = f"{name}__date__range" if field.attribute.rounds else f"{name}__range"
    ways_out = {
        "week": f"filter by its days with {days}=(monday, sunday)",
        "iso_year": f"filter by its days with {days}=(first, last)",
        "quarter": f"filter by its months with {name}__year=... and {name}__month__in=(1, 2, 3)",
    }
    way_out = ways_out.get(part, f"keep the {part} in a separate attribute, or {FILTER_IN_MEMORY}")
    return NotSupported(
        f"{name}__{part} is not supported: DynamoDB compares stored values and does not compute. Instead {way_out}."
    )


def days_of(parts: Sequence[DatePart], within: Spans[int] = EVERY_DAY) -> Spans[int]:
    """The days that comparisons of one subject leave of those ``within``."""
    numbered = [part for part in parts if part.part in ("month", "day")]
    for part in parts:
        if part not in numbered:
            within = intersection(within, _span_of(part))
    if not numbered or not within:
        return within
    first, last = within[0][0], within[-1][1]
    if first == FIRST or last == END or last - first > 366 * MAX_YEARS:
        raise _needs_years(numbered[0])
    chosen = (
        (day, day + 1)
        for low, high in within
        for day in range(low, high)
        if all(_holds(part, datetime.date.fromordinal(day)) for part in numbered)
    )
    return union(chosen)


def _span_of(part: DatePart) -> Spans[int]:
    """The days of a comparison by year or by date."""
    operator, value = part.operator, part.value
    if operator == "in":
        return union((_begin(each), _begin(each, 1)) for each in value)
    low, high = value if operator == "range" else (value, value)
    begin = END if operator == "gt" else FIRST
    if operator in ("exact", "gte", "range"):
        begin = _begin(low)
    elif operator == "gt":
        begin = _begin(low, 1)
    end = {"lt": _begin(high), "gt": END, "gte": END}.get(operator, _begin(high, 1))
    return union([(begin, end)])


def _begin(value: int | datetime.date, further: int = 0) -> int:
    """Return the first day of a year, or the day itself, or of the period ``further`` after it."""
    if isinstance(value, datetime.date):
        return value.toordinal() + further
    year = value + further
    if year <= datetime.MINYEAR:
        return FIRST
    return END if year > datetime.MAXYEAR else datetime.date(year, 1, 1).toordinal()


_NUMBERS: dict[str, Callable[[int, Any], bool]] = {
    "exact": lambda number, value: bool(number == value),
    "in": lambda number, value: number in value,
    "lt": lambda number, value: bool(number < value),
    "lte": lambda number, value: bool(number <= value),
    "gt": lambda number, value: bool(number > value),
    "gte": lambda number, value: bool(number >= value),
    "range": lambda number, value: bool(value[0] <= number <= value[1]),
}


def _holds(part: DatePart, day: datetime.date) -> bool:
    return _NUMBERS[part.operator](day.month if part.part == "month" else day.day, part.value)


def _needs_years(part: DatePart) -> NotSupported:
    name = part.field.name
    return NotSupported(
        f"{name}__{part.part} is not supported by itself: DynamoDB compares stored values and does not "
        f"compute. Filter by at most {MAX_YEARS} years as well: {name}__year=2024 or "
        f"{name}__year__range=(2020, 2024). Otherwise store the {part.part} in a separate attribute, or "
        f"{FILTER_IN_MEMORY}."
    )


def condition_of(part: DatePart, days: Spans[int]) -> Condition:
    """Return the condition that an attribute is in one of these days."""
    field, zone = part.field, part.zone
    conditions = tuple(_on_days(field, days) if zone is None else _in_time(field, days, zone))
    if not conditions:
        return Nothing()
    return conditions[0] if len(conditions) == 1 else Or(conditions)


def _on_days(field: object, days: Spans[int]) -> Iterator[Condition]:
    for low, high in days:
        first, last = datetime.date.fromordinal(low), datetime.date.fromordinal(high - 1)
        if low + 1 == high:
            yield attribute_comparison(field, "exact", first)
        else:
            yield _between(field, None if low == FIRST else first, None if high == END else last)


def _in_time(field: DynamoField, days: Spans[int], zone: datetime.tzinfo) -> Iterator[Condition]:
    attribute: Any = field.attribute  # an attribute that rounds has a floor
    for first, end in moments_of_days(days, zone):
        # The last storable datetime: with both bounds inclusive, a key condition expresses the whole range.
        last = None if end is None else attribute.floor(end - datetime.timedelta(microseconds=1))
        yield _between(field, first, last)


def _between(field: object, first: object, last: object) -> Condition:
    if first is None and last is None:
        return attribute_comparison(field, "isnull", False)
    if first is None:
        return attribute_comparison(field, "lte", last)
    return (
        attribute_comparison(field, "gte", first)
        if last is None
        else attribute_comparison(field, "range", (first, last))
    )
