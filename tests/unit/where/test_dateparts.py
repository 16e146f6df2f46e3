"""Dates and datetimes as spans: set operations, and the datetimes of dates in any time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Q
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import Compare, Nothing, Or
from dynamo_single.orm.where.dates import END, FIRST, complement, intersection, moments_of_days, union
from dynamo_single.orm.where.tree import read_where
from tests.catalog.models import Sample

spans = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))).map(union)
#: Zones whose clocks change at midnight, by half an hour, by a whole day, or never.
ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia")


def members(found: Any) -> set[int]:
    """The numbers in some spans."""
    return {number for low, high in found for number in range(low, high)}


@given(spans, spans)
def test_spans_are_sets(one: Any, other: Any) -> None:
    """Union, intersection and complement match the sets of contained numbers, and spans never touch."""
    assert members(union([*one, *other])) == members(one) | members(other)
    assert members(intersection(one, other)) == members(one) & members(other)
    assert members(complement(one, 0, 20)) == set(range(20)) - members(one)
    assert all(before[1] < after[0] for before, after in pairwise(one))


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1970, 1, 3), datetime(2037, 12, 29)),
    st.integers(-2, 2),
    st.integers(0, 3),
)
def test_a_moment_is_on_the_day_that_its_clock_shows(zone: str, moment: datetime, offset: int, length: int) -> None:
    """A datetime is in the spans of some dates exactly if its local date is one of them."""
    at, info = moment.replace(tzinfo=UTC), ZoneInfo(zone)
    first = at.date().toordinal() + offset
    found = list(moments_of_days(union([(first, first + length)]), info))
    inside = any((low is None or low <= at) and (high is None or at < high) for low, high in found)
    assert inside == (first <= at.astimezone(info).date().toordinal() < first + length)


@pytest.mark.parametrize("zone", ZONES)
def test_all_days_are_all_moments(zone: str) -> None:
    """The ends of the calendar are open, and an empty set of dates has an empty set of datetimes."""
    assert list(moments_of_days(((FIRST, END),), ZoneInfo(zone))) == [(None, None)]
    assert list(moments_of_days((), ZoneInfo(zone))) == []
    ((low, high),) = moments_of_days(((FIRST, FIRST + 1),), ZoneInfo(zone))
    assert (low, high and high.year) == (None, 1)
    ((low, high),) = moments_of_days(((END - 1, END),), ZoneInfo(zone))
    assert (low and low.year, high) == (9999, None)


def read(*conditions: Any, **more: Any) -> Any:
    """Return the conditions of ``filter()`` with these arguments."""
    return read_where(Sample, Sample.objects.filter(*conditions, **more).query.where)


BEGIN, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
LEAP_DAY = date(2024, 2, 29)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"moment__year": 2024}, Compare("moment", "range", (BEGIN, LAST))),
        ({"moment__year__gte": 2024}, Compare("moment", "gte", BEGIN)),
        ({"moment__year__lte": 2024}, Compare("moment", "lte", LAST)),
        ({"moment__year__gt": 2023, "moment__year__lt": 2025}, Compare("moment", "range", (BEGIN, LAST))),
        ({"moment__year__range": (1, 9999)}, Compare("moment", "isnull", False)),
        ({"moment__year": 2024, "moment__date__lt": date(2024, 1, 1)}, Nothing()),
        ({"day__year": 2024, "day__month": 2, "day__day": 29}, Compare("day", "exact", LEAP_DAY)),
        ({"day__year": 2023, "day__month": 2, "day__day": 29}, Nothing()),
        ({"day__year__in": [2023, 2024], "day__month": 2, "day__day": 29}, Compare("day", "exact", LEAP_DAY)),
        ({"day__year": 2024, "day__month": 2}, Compare("day", "range", (date(2024, 2, 1), LEAP_DAY))),
        (
            {"day__year__in": [2022, 2024]},
            Or(tuple(Compare("day", "range", (date(year, 1, 1), date(year, 12, 31))) for year in (2022, 2024))),
        ),
        ({"day__year__in": [2023, 2024]}, Compare("day", "range", (date(2023, 1, 1), date(2024, 12, 31)))),
    ],
)
def test_parts_together_are_as_few_ranges_as_there_are(conditions: dict[str, Any], expected: Any) -> None:
    """Adjacent parts are one range, a single date is one value, and impossible parts are empty."""
    assert read(**conditions) == expected


def test_the_time_zone_is_that_of_the_evaluation() -> None:
    """A queryset uses the dates of the time zone in which it is read."""
    queryset = Sample.objects.filter(moment__date=LEAP_DAY)
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        found: Any = read_where(Sample, queryset.query.where)
    assert found.value[0] == datetime(2024, 2, 28, 15, tzinfo=UTC)
    assert found.value[1] == datetime(2024, 2, 29, 15, tzinfo=UTC) - timedelta(milliseconds=1)


def test_another_attributes_year_does_not_count() -> None:
    """A month needs the years of its own attribute."""
    with pytest.raises(NotSupported, match="moment__month is not supported by itself"):
        read(Q(day__year=2024), moment__month=2)
