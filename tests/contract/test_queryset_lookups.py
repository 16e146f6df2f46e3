"""Lookups on the real engine: documents, moments finer than they are stored, and conditions that are too long."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.testing import assert_requests
from tests.catalog.models import Order, Sample, Ticket

pytestmark = pytest.mark.usefixtures("table")


def found(**conditions: Any) -> list[str]:
    """The samples that meet the conditions."""
    return [sample.pk for sample in Sample.objects.filter(**conditions)]


# documents


def test_a_filter_reaches_into_maps_lists_and_sets() -> None:
    """Paths, members and keys of documents are filtered by DynamoDB."""
    Sample.objects.create(sample_id="s1", data={"price": 5, "tags": ["a"]}, things=[1, "x"], words={"red", "blue"})
    Sample.objects.create(sample_id="s2", data={"price": 7.5})
    assert found(data__price__gte=6) == ["s2"]
    assert found(data__price=5) == ["s1"]
    assert found(data__tags__0="a") == ["s1"]
    assert found(data__has_key="tags") == ["s1"]
    assert found(data__tags__isnull=True) == ["s2"]
    assert found(words__contains="red") == ["s1"]
    assert found(things__contains="x") == ["s1"]
    assert found(things__1="x") == ["s1"]


def test_a_number_in_a_path_is_a_key_or_a_position() -> None:
    """The first step into a map is a key; deeper, a number finds the position of a list and the key of a map."""
    Sample.objects.create(sample_id="key", data={"2024": "x", "a": {"7": 1}})
    Sample.objects.create(sample_id="list", data={"2024": "y", "a": [0, 0, 0, 0, 0, 0, 0, 1]})
    assert found(data__2024="x") == ["key"]
    assert found(data__a__7=1) == ["key", "list"]
    assert found(data__a__7__isnull=False) == ["key", "list"]
    assert found(data__a__7__isnull=True) == []
    assert found(data__a__8__isnull=True) == ["key", "list"]
    assert found(data__has_key=2024) == ["key", "list"]
    assert found(data__a__has_key="7") == ["key"]
    assert [s.pk for s in Sample.objects.exclude(data__a__7=1)] == []
    assert [s.pk for s in Sample.objects.exclude(data__a__7=2)] == ["key", "list"]


def test_null_in_a_document_is_a_value() -> None:
    """As with Django's JSONField: ``=None`` finds JSON's null, ``isnull`` asks whether the key is there."""
    Sample.objects.create(sample_id="null", data={"x": None})
    Sample.objects.create(sample_id="one", data={"x": 1})
    Sample.objects.create(sample_id="without", data={})
    assert found(data__x=None) == ["null"]
    assert found(data__x__isnull=False) == ["null", "one"]
    assert found(data__x__isnull=True) == ["without"]


def test_equal_json_is_found_however_it_was_written() -> None:
    """JSON text has one form: the order of keys and the zeros behind a number do not count."""
    Sample.objects.create(sample_id="s", json={"b": [Decimal("1.50"), 2.0], "a": {"y": 1, "x": None}})
    assert found(json={"a": {"x": None, "y": Decimal("1.0")}, "b": [1.5, 2]}) == ["s"]
    assert found(json__in=[1, {"a": {"x": None, "y": 1}, "b": [1.5, 2]}]) == ["s"]
    assert found(json={"a": {"x": None, "y": 1}, "b": [2, 1.5]}) == []
    assert found(json=None) == []
    assert found(json__isnull=False) == ["s"]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"json__has_key": "a"}, "json__has_key is not supported: json is stored as JSON text"),
        ({"json__startswith": "a"}, "json__startswith is not supported"),
        ({"json__contains": "a"}, "json__contains is not supported"),
        ({"json__gt": 5}, "json__gt is not supported"),
        ({"json__range": (1, 2)}, "json__range is not supported"),
        ({"json__a": 5}, "cannot look into"),
        ({"things__has_key": "a"}, "things__has_key is not supported: only a map has keys"),
        ({"things__a": 5}, "things is a list, whose places are numbers"),
        ({"things__-1": 5}, "things is a list, whose places are numbers"),
    ],
)
def test_lookups_without_meaning_are_refused(conditions: dict[str, Any], message: str) -> None:
    """JSON text is compared as a whole, and only a map has keys."""
    with assert_requests(0), pytest.raises(NotSupported) as raised:
        list(Sample.objects.filter(**conditions))
    assert message in str(raised.value)


# values between two that can be stored

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(microseconds=500)


@pytest.mark.parametrize(
    ("lookup", "value", "matches"),
    [
        ("lt", LATER, True),
        ("lte", LATER, True),
        ("gt", LATER, False),
        ("gte", LATER, False),
        ("exact", LATER, False),
        ("exact", NOON, True),
        ("in", [LATER], False),
        ("in", [LATER, NOON], True),
        ("range", (NOON - timedelta(microseconds=1), LATER), True),
        ("range", (LATER, LATER + timedelta(seconds=1)), False),
        ("range", (NOON, NOON), True),
        ("gt", NOON - timedelta(microseconds=1), True),
        ("gte", NOON - timedelta(microseconds=1), True),
        ("lt", NOON - timedelta(microseconds=1), False),
    ],
)
def test_a_moment_between_two_milliseconds_is_compared_as_it_is(lookup: str, value: Any, *, matches: bool) -> None:
    """What is finer than the stored values is not cut off before it is compared, in a key and in a filter."""
    Order.objects.create(customer="c", number=1, placed_at=NOON)
    Ticket.objects.create(code="t", expires_at=NOON.replace(year=2100))
    assert Order.objects.filter(customer="c", **{f"placed_at__{lookup}": value}).exists() is matches
    assert Order.objects.filter(**{f"placed_at__{lookup}": value}).exists() is matches
    # Against all that are left out: nothing may be in both.
    assert Order.objects.filter(customer="c").exclude(**{f"placed_at__{lookup}": value}).exists() is not matches


def test_a_time_to_live_is_compared_to_the_second() -> None:
    """Half a second behind a stored second is later than it."""
    expires = datetime(2100, 1, 1, tzinfo=UTC)
    Ticket.objects.create(code="t", expires_at=expires)
    half = expires + timedelta(milliseconds=500)
    assert Ticket.objects.filter(expires_at__lt=half).count() == 1
    assert Ticket.objects.filter(expires_at__gte=half).count() == 0


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"number__gte": 1.5}, [2, 3]),
        ({"number__gt": 1.5}, [2, 3]),
        ({"number__lt": 1.5}, [1]),
        ({"number__lte": Decimal("2.5")}, [1, 2]),
        ({"number__range": (1.5, 2.5)}, [2]),
        ({"number": 1.5}, []),
        ({"number__in": [1.5, 3]}, [3]),
        ({"number__gt": 2.0}, [3]),
    ],
)
def test_a_fraction_is_compared_with_whole_numbers(conditions: dict[str, Any], expected: list[int]) -> None:
    """A bound between two whole numbers is no error and does not move."""
    for number in (1, 2, 3):
        Order.objects.create(customer="c", number=number)
    assert [order.number for order in Order.objects.filter(customer="c", **conditions)] == expected


@pytest.mark.parametrize("value", [datetime(2024, 1, 1), "2024-01-01T00:00:00", datetime(2024, 1, 1).date()])
def test_a_naive_moment_warns_as_django_does(value: Any) -> None:
    """Without a time zone a moment is taken in the default one, with Django's warning, in lookups and when saving."""
    with pytest.warns(RuntimeWarning, match=r"Sample.moment received a naive datetime \(2024-01-01 00:00:00\)"):
        Sample.objects.create(sample_id="s", moment=value)
    with pytest.warns(RuntimeWarning, match="naive"):
        assert found(moment=value) == ["s"]


# conditions that are too long


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (lambda: Sample.objects.filter(text__in=[f"t{i}" for i in range(1000)]), "text__in=['t0', 't1', 't2', "),
        (lambda: Sample.objects.exclude(pk__in=[f"s{i}" for i in range(1000)]), "not (sample_id__in=["),
        (lambda: Sample.objects.filter(reduce(or_, (Q(text=f"t{i}") for i in range(200)))), "399 operators"),
    ],
)
def test_a_filter_that_dynamodb_would_refuse_is_refused_before(query: Callable[[], Any], said: str) -> None:
    """An expression of more than 4 KB or 300 operators is named, with the limit and the way out."""
    for ask in (list, lambda queryset: queryset.count(), lambda queryset: queryset.explain()):
        with assert_requests(0), pytest.raises(NotSupported) as raised:
            ask(query())
        assert said in str(raised.value)
        assert "DynamoDB takes 4096 bytes and 300 operators" in str(raised.value)
        assert "fewer values" in str(raised.value)


def test_a_filter_of_some_hundred_values_is_sent() -> None:
    """What DynamoDB takes is not refused."""
    Sample.objects.create(sample_id="s", text="t399")
    assert found(text__in=[f"t{i}" for i in range(400)]) == ["s"]


def test_a_thousand_keys_are_read_in_batches() -> None:
    """Whole primary keys are no expression, so there is no such limit on them."""
    Sample.objects.create(sample_id="s7")
    with assert_requests(["BatchGetItem"] * 10):
        assert found(pk__in=[f"s{i}" for i in range(1000)]) == ["s7"]


def test_a_value_of_another_kind_is_told_by_name() -> None:
    """Lookups refuse what the attribute would refuse to store."""
    for conditions in ({"token": 5}, {"moment__gt": "zz"}, {"integer": "x"}):
        with pytest.raises(InvalidValue, match=rf"^{next(iter(conditions)).partition('__')[0]} takes"):
            Sample.objects.filter(**conditions)
    assert found(token=str(uuid.uuid4())) == []
