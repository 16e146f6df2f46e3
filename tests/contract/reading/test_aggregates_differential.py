"""Django's own aggregates, groups, orders and dates over SQLite, and ours over the same data, give the same.

``DIFFERENTIAL_EXAMPLES`` sets the number of data sets (10 in a normal run, 25 in a deep one), with several queries
each.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connections
from django.db import models as django_models
from django.db.models import Avg, Count, F, Max, Min, Q, Sum
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.catalog.models import Sample
from tests.deep import examples
from tests.unit.declaring import forgotten

EXAMPLES = examples(6, 25, "DIFFERENTIAL_EXAMPLES")
ALIAS = "reference"
ZONES = st.sampled_from(["UTC", "Europe/Rome", "America/St_Johns"])

VALUES: dict[str, st.SearchStrategy[Any]] = {
    # The last two: code points order them one way, UTF-16 units would the other.
    "text": st.sampled_from(["", "a", "B", "b a", "é", "\ufffd", "\U0001f600"]),
    "integer": st.sampled_from([-3, 0, 1, 2, 10]),
    "number": st.sampled_from([-2.5, 0.1, 0.2, 3.0, 10.25]),
    "decimal": st.sampled_from([Decimal("-1.50"), Decimal("0.01"), Decimal("0.10"), Decimal(7)]),
    "flag": st.booleans(),
    "moment": st.sampled_from(
        [
            datetime(2023, 12, 31, 23, 30, tzinfo=UTC),
            datetime(2024, 1, 1, 2, 45, 30, tzinfo=UTC),
            datetime(2024, 3, 31, 0, 59, 59, tzinfo=UTC),
            datetime(2024, 3, 31, 1, 0, tzinfo=UTC),
            datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
            datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
        ]
    ),
    "day": st.sampled_from([date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29), date(2025, 5, 5)]),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=12)
NUMBERS = st.sampled_from(["integer", "number", "decimal"])
NAMES = st.sampled_from(list(VALUES))
FILTERS = st.sampled_from([None, None, Q(integer__gt=0), Q(flag=True), ~Q(text="a"), Q(day__isnull=True)])

AGGREGATES = st.one_of(
    st.builds(Count, st.sampled_from(["pk", *VALUES]), distinct=st.booleans(), filter=FILTERS),
    st.builds(Count, st.just("*")),
    st.builds(Min, NAMES, filter=FILTERS),
    st.builds(Max, NAMES, filter=FILTERS),
    st.builds(Sum, NUMBERS, distinct=st.booleans(), filter=FILTERS, default=st.sampled_from([None, 0, 5])),
    st.builds(Avg, NUMBERS, distinct=st.booleans(), filter=FILTERS, default=st.sampled_from([None, 0, 5])),
)
MEASURES = st.lists(AGGREGATES, min_size=1, max_size=4).map(
    lambda found: {f"m{n}": each for n, each in enumerate(found)}
)


def an_order(name: str) -> st.SearchStrategy[Any]:
    """A name to order by: plain, or with where missing values go."""
    field = F(name)
    return st.sampled_from(
        [
            name,
            f"-{name}",
            field.asc(nulls_first=True),
            field.asc(nulls_last=True),
            field.desc(nulls_first=True),
            field.desc(nulls_last=True),
        ]
    )


ORDERS = st.lists(NAMES, min_size=1, max_size=3, unique=True).flatmap(
    lambda names: st.tuples(*(an_order(name) for name in names))
)


@pytest.fixture(scope="module")
def rows(django_db_blocker: Any) -> Iterator[Any]:
    """Create the same model in an in-memory SQLite database."""
    connections.settings[ALIAS] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
    }
    with forgotten(), django_db_blocker.unblock():

        class Row(django_models.Model):
            sample_id = django_models.CharField(max_length=10, primary_key=True)
            text = django_models.CharField(max_length=10, null=True)  # noqa: DJ001 - as a missing attribute
            integer = django_models.IntegerField(null=True)
            number = django_models.FloatField(null=True)
            decimal = django_models.DecimalField(null=True, max_digits=12, decimal_places=2)
            flag = django_models.BooleanField(null=True)
            moment = django_models.DateTimeField(null=True)
            day = django_models.DateField(null=True)

            class Meta:
                app_label = "catalog"

            def __str__(self) -> str:
                return self.sample_id

        with connections[ALIAS].schema_editor() as editor:
            editor.create_model(Row)
        yield Row
        connections[ALIAS].connection.close()  # the wrapper leaves a database in memory open
    del connections[ALIAS]
    del connections.settings[ALIAS]


def fill(rows: Any, data: list[dict[str, Any]]) -> tuple[Any, Any]:
    """Store the same in both; the two querysets of all of it."""
    Sample.objects.all().delete()
    rows.objects.using(ALIAS).all().delete()
    for number, values in enumerate(data):
        Sample.objects.create(sample_id=f"s{number:02}", **values)
    rows.objects.using(ALIAS).bulk_create(rows(sample_id=f"s{n:02}", **values) for n, values in enumerate(data))
    return Sample.objects.allow_in_memory(100), rows.objects.using(ALIAS).all()


def same(ours: Any, theirs: Any) -> bool:
    """Return whether two results have equal values and types; SQLite uses floats for exact numbers."""
    if ours is None or theirs is None or isinstance(theirs, str | bool | date):
        return type(ours) is type(theirs) and bool(ours == theirs)
    if isinstance(theirs, Decimal) != isinstance(ours, Decimal) or isinstance(ours, bool):
        return False
    return float(ours) == pytest.approx(float(theirs), rel=1e-12, abs=1e-12)


def same_rows(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> bool:
    """Return whether two lists contain the same rows in the same order."""
    if [list(row) for row in ours] != [list(row) for row in theirs]:
        return False
    pairs = ((our[name], row[name]) for our, row in zip(ours, theirs, strict=True) for name in row)
    return all(same(our, their) for our, their in pairs)


QUICKLY = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


@pytest.mark.usefixtures("table")
@given(data=ROWS, asked=st.lists(st.tuples(FILTERS, MEASURES), min_size=1, max_size=8))
@QUICKLY
def test_aggregates_are_djangos(rows: Any, data: list[dict[str, Any]], asked: list[Any]) -> None:
    """Any aggregates of any objects have the results that they have over SQL, by value and by type."""
    ours, theirs = fill(rows, data)
    for condition, measures in asked:
        wanted = condition or Q()
        found = ours.filter(wanted).aggregate(**measures)
        expected = theirs.filter(wanted).aggregate(**measures)
        assert same_rows([found], [expected]), (measures, found, expected)
        at_most = ours.filter(wanted).order_by("sample_id")[:3].aggregate(**measures)
        expected = theirs.filter(wanted).order_by("sample_id")[:3].aggregate(**measures)
        assert same_rows([at_most], [expected]), (measures, at_most, expected)


@pytest.mark.usefixtures("table")
@given(
    data=ROWS,
    asked=st.lists(
        st.tuples(st.lists(NAMES, min_size=1, max_size=2, unique=True), MEASURES, st.booleans()),
        min_size=1,
        max_size=6,
    ),
)
@QUICKLY
def test_groups_are_djangos(rows: Any, data: list[dict[str, Any]], asked: list[Any]) -> None:
    """Groups by any attributes have the same measures and order as in SQL."""
    ours, theirs = fill(rows, data)
    for names, measures, backwards in asked:
        order = (*(f"-{name}" if backwards else name for name in names),)
        grouped = [each.values(*names).annotate(**measures).order_by(*order) for each in (ours, theirs)]
        found, expected = map(list, grouped)
        assert same_rows(found, expected), (names, measures, found, expected)
        assert grouped[0].count() == grouped[1].count()
        assert same_rows(list(grouped[0][1:3]), list(grouped[1][1:3]))
        listed = [each.values_list(*names).distinct().order_by(*order) for each in (ours, theirs)]
        assert list(listed[0]) == list(listed[1])


@pytest.mark.usefixtures("table")
@given(data=ROWS, orders=st.lists(ORDERS, min_size=1, max_size=8))
@QUICKLY
def test_orders_are_djangos(rows: Any, data: list[dict[str, Any]], orders: list[Any]) -> None:
    """Any order is the same as in SQL, including the position of missing values."""
    ours, theirs = fill(rows, data)
    for order in orders:
        found, expected = (each.order_by(*order, "sample_id") for each in (ours, theirs))
        assert [each.pk for each in found] == [each.pk for each in expected], order
        assert [each.pk for each in found.reverse()] == [each.pk for each in expected.reverse()], order
        assert [each.pk for each in found[1:4]] == [each.pk for each in expected[1:4]], order
        assert found.values_list("text", flat=True).last() == expected.values_list("text", flat=True).last(), order


@pytest.mark.usefixtures("table")
@given(data=ROWS, zone=ZONES, order=st.sampled_from(["ASC", "DESC"]))
@QUICKLY
def test_dates_are_djangos(rows: Any, data: list[dict[str, Any]], zone: str, order: str) -> None:
    """Periods of dates and datetimes are the same as in SQL, in any time zone."""
    ours, theirs = fill(rows, data)
    with timezone.override(zoneinfo.ZoneInfo(zone)):
        for kind in ("year", "month", "week", "day"):
            for name in ("day", "moment"):
                assert list(ours.dates(name, kind, order)) == list(theirs.dates(name, kind, order)), (name, kind)
        for kind in ("year", "month", "week", "day", "hour", "minute", "second"):
            found = list(ours.datetimes("moment", kind, order))
            expected = list(theirs.datetimes("moment", kind, order))
            assert [each.isoformat() for each in found] == [each.isoformat() for each in expected], kind
    elsewhere = zoneinfo.ZoneInfo("Asia/Kathmandu")
    found = list(ours.datetimes("moment", "day", order, elsewhere))
    assert found == list(theirs.datetimes("moment", "day", order, elsewhere))
