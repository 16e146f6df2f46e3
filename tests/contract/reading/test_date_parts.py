"""Each part of a date is a range of datetimes in the current time zone, which a key reads."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Q
from django.db.models.functions import ExtractYear
from django.db.models.lookups import Exact
from django.utils import timezone

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.testing import assert_requests
from tests.catalog.models import Order, Sample, Ticket

pytestmark = pytest.mark.usefixtures("table")


def place(*moments: datetime) -> None:
    """Store an order for each datetime, numbered from 0."""
    for number, moment in enumerate(moments):
        Order.objects.create(customer="c", number=number, placed_at=moment)


def found(*conditions: Any, **more: Any) -> list[int]:
    """The numbers of the orders that meet the conditions."""
    return sorted(order.number for order in Order.objects.filter(*conditions, **more))


YEARS = [datetime(year, month, 15, tzinfo=UTC) for year in (2022, 2023, 2024) for month in (1, 6)]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"placed_at__year": 2023}, [2, 3]),
        ({"placed_at__year__in": [2022, 2024]}, [0, 1, 4, 5]),
        ({"placed_at__year__in": []}, []),
        ({"placed_at__year__range": (2023, 2024)}, [2, 3, 4, 5]),
        ({"placed_at__year__range": (2024, 2023)}, []),
        ({"placed_at__year__lt": 2023}, [0, 1]),
        ({"placed_at__year__gt": 2023}, [4, 5]),
        ({"placed_at__year__gt": 9999}, []),
        ({"placed_at__year__lte": 9999}, [0, 1, 2, 3, 4, 5]),
        ({"placed_at__year": 0}, []),
        ({"placed_at__year": 10**6}, []),
        ({"placed_at__year": 2023, "placed_at__month": 6}, [3]),
        ({"placed_at__year": 2023, "placed_at__month": 6, "placed_at__day": 15}, [3]),
        ({"placed_at__year": 2023, "placed_at__month": 2, "placed_at__day": 30}, []),
        ({"placed_at__year__in": [2022, 2024], "placed_at__month": 6}, [1, 5]),
        ({"placed_at__year__range": (2022, 2023), "placed_at__month__gte": 3}, [1, 3]),
        ({"placed_at__year": 2023, "placed_at__month__in": [5, 6, 7]}, [3]),
        ({"placed_at__year": 2023, "placed_at__day__lt": 15}, []),
        ({"placed_at__date": date(2023, 6, 15)}, [3]),
        ({"placed_at__date": "2023-06-15"}, [3]),
        ({"placed_at__date__in": [date(2023, 6, 15), date(2022, 1, 15)]}, [0, 3]),
        ({"placed_at__date__range": (date(2023, 6, 15), date(2024, 1, 15))}, [3, 4]),
        ({"placed_at__date__gt": date(2023, 6, 15)}, [4, 5]),
        ({"placed_at__date__gte": date(2023, 6, 15)}, [3, 4, 5]),
        ({"placed_at__date__lt": date(2023, 6, 15)}, [0, 1, 2]),
        ({"placed_at__date__lte": date(2023, 6, 15)}, [0, 1, 2, 3]),
        ({"placed_at__date__lte": date.max}, [0, 1, 2, 3, 4, 5]),
        ({"placed_at__date__year": 2022}, [0, 1]),
        ({"placed_at__year": None}, [9]),
        ({"placed_at__date__isnull": False}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_part_is_a_range(conditions: dict[str, Any], expected: list[int]) -> None:
    """Years, dates, and months and days with a year have the same results as in SQL."""
    place(*YEARS)
    Order.objects.create(customer="c", number=9)
    assert found(customer="c", **conditions) == expected
    assert sorted(o.number for o in Order.objects.exclude(**conditions).filter(customer="c")) == sorted(
        {0, 1, 2, 3, 4, 5, 9} - set(expected)
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Q(placed_at__year=2023) & (Q(placed_at__month=1) | Q(placed_at__month=6)), [2, 3]),
        (Q(placed_at__year=2023) & ~Q(placed_at__month=6), [2]),
        (Q(placed_at__year=2023, placed_at__month=6) | Q(placed_at__year=2024, placed_at__month=1), [3, 4]),
        (~Q(placed_at__year=2023, placed_at__month=6), [0, 1, 2, 4, 5]),
        (Q(placed_at__year=2023, placed_at__month=6) & Q(placed_at__month=1), []),
    ],
)
def test_a_month_is_one_of_the_years_around_it(condition: Q, expected: list[int]) -> None:
    """A year that always applies is enough for the months in parentheses next to it."""
    place(*YEARS)
    assert found(condition, customer="c") == expected


@pytest.mark.parametrize(
    ("conditions", "read", "requests"),
    [
        ({"placed_at__year": 2023}, 2, 1),
        ({"placed_at__year": 2023, "placed_at__month": 6}, 1, 1),
        ({"placed_at__date": date(2023, 6, 15)}, 1, 1),
        ({"placed_at__date__lt": date(2023, 6, 15)}, 3, 1),
        ({"placed_at__year__gte": 2024}, 2, 1),
    ],
)
def test_a_part_is_a_key_condition(conditions: dict[str, Any], read: int, requests: int) -> None:
    """If the key contains the datetime, only the range is read."""
    place(*YEARS)
    queryset = Order.objects.filter(**conditions)
    with assert_requests(["Query"] * requests) as sent:
        assert len(queryset) == read
    assert [each.response and each.response["ScannedCount"] for each in sent] == [read]
    assert "FilterExpression" not in sent[0].params
    assert queryset._plan().key.name == "by_time"


HOUR = timedelta(hours=1)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2024, 3, 31), 23),
        ("Europe/Berlin", date(2024, 10, 27), 25),
        ("Europe/Berlin", date(2024, 6, 1), 24),
        ("UTC", date(2024, 3, 31), 24),
        ("America/Sao_Paulo", date(2018, 11, 4), 23),
        ("America/Sao_Paulo", date(2018, 2, 17), 25),
        ("Pacific/Apia", date(2011, 12, 30), 0),
        ("Australia/Lord_Howe", date(2024, 4, 7), 24.5),
        ("America/St_Johns", date(2010, 11, 6), 25 - 1 / 60),
        ("America/St_Johns", date(2010, 11, 7), 24 + 1 / 60),
    ],
)
def test_a_day_is_as_long_as_it_is(zone: str, day: date, hours: float) -> None:
    """Days are days of the current time zone: 23 or 25 hours where clocks change, in two pieces where need be."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=1)
    tick = timedelta(minutes=1)
    info = ZoneInfo(zone)
    minutes = [begin + count * tick for count in range(4 * 24 * 60)]
    inside = [moment for moment in minutes if moment.astimezone(info).date() == day]
    assert len(inside) / 60 == pytest.approx(hours)
    edges = {*inside[:1], *inside[-1:]}
    edges |= {each + step for each in set(edges) for step in (-tick, tick, -SECOND, SECOND)}
    edges |= set(minutes[:: 24 * 20])
    within = {*inside}
    edges |= {each for each, after in pairwise(minutes) if (each in within) != (after in within)}
    chosen = sorted(edges)
    place(*chosen)
    with timezone.override(info):
        for lookup, holds in COMPARED.items():
            expected = [n for n, each in enumerate(chosen) if holds(each.astimezone(info).date(), day)]
            assert found(**{f"placed_at__{lookup}": day}) == expected, lookup


SECOND = timedelta(seconds=1)
COMPARED = {
    "date": lambda local, day: local == day,
    "date__lt": lambda local, day: local < day,
    "date__lte": lambda local, day: local <= day,
    "date__gt": lambda local, day: local > day,
    "date__gte": lambda local, day: local >= day,
}


def test_a_given_time_zone_counts() -> None:
    """``ExtractYear(..., tzinfo=...)`` uses the years of that zone."""
    place(datetime(2023, 12, 31, 23, 30, tzinfo=UTC))
    assert found(placed_at__year=2023) == [0]
    with timezone.override(BERLIN):
        assert found(placed_at__year=2024) == [0]
    assert found(Exact(ExtractYear("placed_at", tzinfo=BERLIN), 2024)) == [0]
    assert found(Exact(ExtractYear("placed_at", tzinfo=BERLIN), 2023)) == []


def test_days_are_compared_without_time_zones() -> None:
    """A date has no time zone: its year begins with its first of January everywhere."""
    for sample_id, day in (("a", date(2023, 12, 31)), ("b", date(2024, 1, 1)), ("c", date(2024, 2, 29))):
        Sample.objects.create(sample_id=sample_id, day=day)
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        assert [s.pk for s in Sample.objects.filter(day__year=2024)] == ["b", "c"]
        assert [s.pk for s in Sample.objects.filter(day__year=2024, day__month=2)] == ["c"]
        assert [s.pk for s in Sample.objects.filter(day__year=2024, day__month=2, day__day=29)] == ["c"]
        assert [s.pk for s in Sample.objects.filter(day__year__lte=2023)] == ["a"]


def test_a_time_to_live_has_days_too() -> None:
    """Values in seconds are compared up to the last second of a day."""
    Ticket.objects.create(code="t", expires_at=datetime(2100, 1, 1, 23, 59, 59, tzinfo=UTC))
    assert Ticket.objects.filter(expires_at__date=date(2100, 1, 1)).count() == 1
    assert Ticket.objects.filter(expires_at__date__gt=date(2100, 1, 1)).count() == 0


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"moment__month": 3}, "moment__month is not supported by itself"),
        ({"moment__day": 3, "moment__month": 3}, "moment__year__range=(2020, 2024)"),
        ({"moment__month": 3, "moment__year__gte": 2020}, "Filter by at most 100 years as well"),
        ({"moment__month": 3, "moment__year__range": (1900, 2020)}, "at most 100"),
        ({"moment__week": 3}, "filter by its days with moment__date__range=(monday, sunday)"),
        ({"day__week": 3}, "filter by its days with day__range=(monday, sunday)"),
        ({"moment__iso_year": 2024}, "moment__date__range=(first, last)"),
        ({"day__quarter": 2}, "day__year=... and day__month__in=(1, 2, 3)"),
        ({"moment__week_day": 2}, "keep the week_day in a separate attribute"),
        ({"moment__iso_week_day": 2}, "keep the iso_week_day in a separate attribute"),
        ({"moment__hour": 2}, "keep the hour in a separate attribute"),
        ({"moment__hour__gte": 2}, "keep the hour in a separate attribute"),
        ({"moment__minute": 2}, "keep the minute in a separate attribute"),
        ({"moment__second": 2}, "keep the second in a separate attribute"),
        ({"moment__time": "12:00"}, "keep the time in a separate attribute"),
        ({"moment__year__contains": 2}, "moment__year__contains is not supported: compare a year by exact"),
    ],
)
def test_parts_that_are_no_range_are_refused(conditions: dict[str, Any], message: str) -> None:
    """The error names the part, and the closest supported range."""
    with assert_requests(0), pytest.raises(NotSupported) as raised:
        list(Sample.objects.filter(**conditions))
    assert message in str(raised.value)


def test_a_range_of_years_has_two_bounds() -> None:
    """A single limit is not a range."""
    with pytest.raises(InvalidValue, match="moment__year__range takes two bounds"):
        list(Sample.objects.filter(moment__year__range=(2020,)))
