"""Lookups on the real engine: documents, datetimes with a finer precision, and conditions that are too long."""

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
from django.db.models.fields.json import KeyTransform
from django.db.models.lookups import Exact

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue, NoAccessPattern, NotSupported, UnknownField
from dynamo_single.testing import assert_requests
from tests.catalog.models import Member, Order, Product, Sample, Ticket
from tests.other_names import own_names
from tests.unit.declaring import declare, forgotten, messages

pytestmark = pytest.mark.usefixtures("table")


def found(**conditions: Any) -> list[str]:
    """The samples that meet the conditions."""
    return [sample.pk for sample in Sample.objects.filter(**conditions)]


# documents


def test_a_filter_reaches_into_maps_lists_and_sets() -> None:
    """DynamoDB filters paths, members and keys of documents."""
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
    """``=None`` finds JSON's null, and ``isnull`` tests whether the key exists, as in Django's JSONField."""
    Sample.objects.create(sample_id="null", data={"x": None})
    Sample.objects.create(sample_id="one", data={"x": 1})
    Sample.objects.create(sample_id="without", data={})
    assert found(data__x=None) == ["null"]
    assert found(data__x__isnull=False) == ["null", "one"]
    assert found(data__x__isnull=True) == ["without"]


def test_equal_json_is_found_however_it_was_written() -> None:
    """JSON text has one form: the order of keys and the zeros after a number do not count."""
    Sample.objects.create(sample_id="s", json={"b": [Decimal("1.50"), 2.0], "a": {"y": 1, "x": None}})
    assert found(json={"a": {"x": None, "y": Decimal("1.0")}, "b": [1.5, 2]}) == ["s"]
    assert found(json__in=[1, {"a": {"x": None, "y": 1}, "b": [1.5, 2]}]) == ["s"]
    assert found(json={"a": {"x": None, "y": 1}, "b": [2, 1.5]}) == []
    assert found(json=None) == []
    assert found(json__isnull=False) == ["s"]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"json__has_key": "a"}, "json__has_key is not supported: DynamoDB can compare the JSON string of json"),
        ({"json__startswith": "a"}, "json__startswith is not supported"),
        ({"json__contains": "a"}, "json__contains is not supported"),
        ({"json__gt": 5}, "json__gt is not supported"),
        ({"json__range": (1, 2)}, "json__range is not supported"),
        ({"json__a": 5}, "cannot look into"),
        ({"things__has_key": "a"}, "things__has_key is not supported: only a map has keys"),
        ({"json__size": 1}, "json__size__exact is not supported: DynamoDB can compare the JSON string of json"),
        ({"json__has_keys": ["a"]}, "json__has_keys is not supported"),
        ({"things__has_any_keys": ["a"]}, "only a map has keys"),
        ({"decimal__size": 1}, "decimal__size is not supported: decimal is a DecimalAttribute"),
        ({"day__size": 1}, "Strings, binary values, sets, lists and maps have a size"),
        ({"token__size__gt": 1}, "token__size is not supported"),
        ({"words__size__isnull": True}, "compare a size by exact, in, lt, lte, gt, gte, range"),
        ({"words__size__startswith": 1}, "compare a size by exact"),
        ({"data__contained_by": {}}, "DynamoDB has no exact equivalent of the lookup 'contained_by'"),
        ({"text__regex": "a"}, "DynamoDB has no exact equivalent of the lookup 'regex': compute it in memory"),
        ({"text__endswith": "a"}, "keep the string reversed"),
        ({"data__name__iexact": "a"}, "data__name__iexact is not supported: DynamoDB compares bytes"),
        ({"decimal__iexact": "1"}, "decimal is not a string, and only strings have case"),
        ({"things__a": 5}, "things is a list, whose elements have numbers"),
        ({"things__-1": 5}, "things is a list, whose elements have numbers"),
    ],
)
def test_lookups_without_meaning_are_refused(conditions: dict[str, Any], message: str) -> None:
    """JSON strings are compared as a whole, and only a map has keys."""
    with assert_requests(0), pytest.raises(NotSupported) as raised:
        list(Sample.objects.filter(**conditions))
    assert message in str(raised.value)


def test_sizes_are_counted_by_dynamodb() -> None:
    """Sizes of sets, lists, maps and bytes are the same as in Python; strings are measured in UTF-16."""
    Sample.objects.create(
        sample_id="s",
        data={"list": [1, 2], "text": "é𝄞", "n": 5},
        things=[[1], "x"],
        words={"a"},
        blob=b"abc",
        text="𝄞",
    )
    Sample.objects.create(sample_id="empty", data={}, things=[], text="")
    assert found(data__size=3) == found(things__size=2) == found(words__size=1) == found(blob__size=3) == ["s"]
    assert found(data__size=0) == found(things__size__lt=1) == found(text__size=0) == ["empty"]
    assert found(text__size=2) == found(data__text__size=3) == ["s"]
    assert found(data__list__size__gte=2) == found(things__0__size=1) == ["s"]
    assert found(data__n__size__gte=0) == []
    assert found(data__size__in=[3, 4]) == found(things__size__range=(1, 2)) == ["s"]
    assert found(things__size__range=(2, 1)) == found(words__size__in=[]) == []
    assert [sample.pk for sample in Sample.objects.exclude(words__size=1)] == ["empty"]


def test_a_key_may_be_called_size() -> None:
    """Before further steps, or in an expression, it is a key of the map; otherwise it is the map's size."""
    Sample.objects.create(sample_id="s", data={"size": {"w": 3}})
    Sample.objects.create(sample_id="t", data={"size": 3})
    assert found(data__size=1) == ["s", "t"]
    assert found(data__size__w=3) == ["s"]
    assert [s.pk for s in Sample.objects.filter(Exact(KeyTransform("size", "data"), 3))] == ["t"]
    with pytest.raises(UnknownField, match="Unsupported lookup 'size'"):
        found(data__size__size=1)


@pytest.mark.parametrize("size", [1.5, "1", True])
def test_a_size_is_a_whole_number(size: Any) -> None:
    """Any other value raises an error before any request is sent."""
    with pytest.raises(InvalidValue, match="size is compared with whole numbers"):
        found(words__size=size)


def test_stored_types_can_be_asked_for() -> None:
    """A whole attribute, or a place in a document, by DynamoDB's name of its type."""
    Sample.objects.create(sample_id="s", data={"price": 5, "note": None, "tags": ["a"], "bytes": b"x"}, words={"a"})
    Sample.objects.create(sample_id="t", data={"price": "5"})
    assert found(data__price__attribute_type="N") == ["s"]
    assert found(data__price__attribute_type="S") == ["t"]
    assert found(data__note__attribute_type="NULL") == found(data__tags__0__attribute_type="S") == ["s"]
    assert found(data__bytes__attribute_type="B") == found(words__attribute_type="SS") == ["s"]
    assert found(data__attribute_type="M") == ["s", "t"]
    with pytest.raises(InvalidValue, match=r"attribute_type takes one of S, N, B, BOOL, NULL, M, .*, not 'X'"):
        found(data__attribute_type="X")


def test_several_keys_are_asked_for_at_once() -> None:
    """All of them, or any; none at all is in every map, and any of none in no map."""
    Sample.objects.create(sample_id="s", data={"a": 1, "b": {"x": 1, "y": 2}})
    Sample.objects.create(sample_id="t", data={"a": 1})
    Sample.objects.create(sample_id="none")
    assert found(data__has_keys=["a", "b"]) == ["s"]
    assert found(data__has_any_keys=["b", "a"]) == ["s", "t"]
    assert found(data__b__has_keys=["x", "y"]) == ["s"]
    assert found(data__has_keys=[]) == ["s", "t"]
    assert found(data__has_any_keys=[]) == []


@pytest.mark.parametrize(
    ("lookup", "value"), [("iexact", "1"), ("size", 1), ("attribute_type", "S"), ("size__gt", 1), ("startswith", "1")]
)
def test_a_pk_of_several_values_is_asked_for_exactly(lookup: str, value: Any) -> None:
    """The pk is not stored, so only exact values can be compared."""
    with pytest.raises(NotSupported, match=r"is not supported on catalog.Order, whose pk consists of customer, number"):
        list(Order.objects.filter(**{f"pk__{lookup}": value}))


@own_names
def test_iexact_is_answered_by_a_canonical_key() -> None:
    """Only a key with the canonical form supports the lookup, in one Query."""
    Member.objects.create(member_id="m", email="Ann@Example.org")
    with assert_requests(["Query"]) as sent:
        assert [member.pk for member in Member.objects.filter(email__iexact=" ann@example.ORG")] == ["m"]
    assert "FilterExpression" not in sent[0].params
    with pytest.raises(NotSupported, match=r"email__istartswith is not supported.*CanonicalAttribute"):
        list(Member.objects.filter(email__istartswith="ann"))


def test_nested_values_have_no_index() -> None:
    """A query by only a nested value raises an error, as does a key that contains it; a filter works."""
    with pytest.raises(NoAccessPattern, match=r"also keep data__price in a separate attribute.*have no index"):
        list(Product.objects.filter(data__price=5))
    with forgotten(), pytest.raises(ConfigurationError, match="DynamoDB cannot index nested values"):
        declare("Nested", ("N#{n_id}", "{data.price}"), n_id=models.IdAttribute(), data=models.MapAttribute())
    with forgotten():
        keys = {"by_price": models.IndexKey("gs1", "N", "{data__price}")}
        nested = declare("Nested", ("N#{n_id}", "M"), keys, n_id=models.IdAttribute(), data=models.MapAttribute())
        assert [text for _, text in messages(nested) if "DynamoDB cannot index nested values" in text]
    assert list(Product.objects.filter(pk="product-1", data__price=5)) == []


# values between two storable ones

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
    """A datetime with a finer precision is not truncated before it is compared, in keys and filters."""
    Order.objects.create(customer="c", number=1, placed_at=NOON)
    Ticket.objects.create(code="t", expires_at=NOON.replace(year=2100))
    assert Order.objects.filter(customer="c", **{f"placed_at__{lookup}": value}).exists() is matches
    assert Order.objects.filter(**{f"placed_at__{lookup}": value}).exists() is matches
    # Compared with all excluded objects: the two must be disjoint.
    assert Order.objects.filter(customer="c").exclude(**{f"placed_at__{lookup}": value}).exists() is not matches


def test_a_time_to_live_is_compared_to_the_second() -> None:
    """Half a second after a stored second is later than it."""
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
    """A naive datetime uses the default time zone and logs a warning, in lookups and saves, as in Django."""
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
        (
            lambda: Sample.objects.filter(reduce(or_, (Q(text__startswith=f"t{i}") for i in range(200)))),
            "399 operators",
        ),
    ],
)
def test_a_filter_that_dynamodb_would_refuse_is_refused_before(query: Callable[[], Any], said: str) -> None:
    """An expression of more than 4 KB or 300 operators raises an error with the limit and the fix."""
    for ask in (list, lambda queryset: queryset.count(), lambda queryset: queryset.explain()):
        with assert_requests(0), pytest.raises(NotSupported) as raised:
            ask(query())
        assert said in str(raised.value)
        assert "DynamoDB accepts 4096 bytes and 300 operators" in str(raised.value)
        assert "fewer values" in str(raised.value)


def test_a_filter_of_some_hundred_values_is_sent() -> None:
    """Expressions within DynamoDB's limits work."""
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
        with pytest.raises(InvalidValue, match=rf"^{next(iter(conditions)).partition('__')[0]} must be"):
            Sample.objects.filter(**conditions)
    assert found(token=str(uuid.uuid4())) == []
