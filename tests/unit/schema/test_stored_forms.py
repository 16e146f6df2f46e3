"""``stored_as``: values in the form in which other programs store them, compared with PynamoDB's own attributes."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pynamodb.attributes as pynamodb
import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, InvalidValue, UnreadableItem
from dynamo_single.orm.schema.fingerprints import attribute_class, form_of
from dynamo_single.orm.schema.keys.codecs import codec_for
from tests.deep import examples

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
MOMENTS = st.datetimes(timezones=st.just(UTC))
FORMATS = ("iso", "pynamodb", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f+00:00")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: value is not None)


def named(attribute: Any, name: str = "value") -> Any:
    """Return an attribute with a name, as a model gives it."""
    attribute.name = attribute.attr_name = name
    return attribute


#: Our attribute, PynamoDB's, and the values that both store.
PAIRS: dict[str, tuple[Any, Any, Any]] = {
    "pynamodb": (models.TimestampAttribute(stored_as="pynamodb"), pynamodb.UTCDateTimeAttribute(), MOMENTS),
    "expiry": (
        models.TTLAttribute(),
        pynamodb.TTLAttribute(),
        st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0)),
    ),
    "json": (models.JSONAttribute(stored_as="text"), pynamodb.JSONAttribute(), JSON),
    "boolean": (models.BooleanAttribute(), pynamodb.BooleanAttribute(), st.booleans()),
    "number": (models.BooleanAttribute(stored_as="number"), pynamodb.NumberAttribute(), st.sampled_from([0, 1])),
    "version": (models.VersionAttribute(), pynamodb.VersionAttribute(), st.integers(0, 10**15)),
    "base64": (
        models.BinaryAttribute(stored_as="base64"),
        pynamodb.BinaryAttribute(legacy_encoding=True),
        st.binary(min_size=1),
    ),
    "binary": (models.BinaryAttribute(), pynamodb.BinaryAttribute(legacy_encoding=False), st.binary(min_size=1)),
}


@pytest.mark.parametrize("name", PAIRS)
@given(data=st.data())
@settings(max_examples=examples(30, 1000))
def test_each_library_reads_the_others_values(name: str, data: st.DataObject) -> None:
    ours, theirs, values = PAIRS[name]
    value = data.draw(values)
    read = named(ours).deserialize(theirs.serialize(value))
    assert name == "json" or read == value  # in JSON, fractions are read as Decimal
    assert theirs.deserialize(ours.serialize(read)) == value
    assert ours.attr_type == theirs.attr_type


@given(moment=MOMENTS)
@settings(max_examples=examples(30, 1000))
def test_the_text_is_pynamodbs_own(moment: datetime) -> None:
    ours = models.TimestampAttribute(stored_as="pynamodb")
    assert ours.serialize(moment) == pynamodb.UTCDateTimeAttribute().serialize(moment)


@pytest.mark.parametrize("form", FORMATS)
@given(one=MOMENTS, other=MOMENTS)
@settings(max_examples=examples(30, 1000))
def test_texts_and_keys_sort_as_moments(form: str, one: datetime, other: datetime) -> None:
    attribute = named(models.TimestampAttribute(stored_as=form))
    before, after = sorted((attribute.clean(one), attribute.clean(other)))
    texts = [attribute.encode(before), attribute.encode(after)]
    codec = codec_for(attribute.key_kind)
    keys = [codec.encode(before), codec.encode(after)]
    assert (texts == sorted(texts), texts[0] == texts[1]) == (True, before == after)
    assert (keys == sorted(keys), keys[0] == keys[1]) == (True, before == after)
    assert attribute.decode(texts[0]) == before


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T12:00:00Z", NOON),
        ("2024-05-01t12:00:00z", NOON),
        ("2024-05-01T12:00:00", NOON),
        ("2024-05-01 12:00:00", NOON),
        ("20240501T120000Z", NOON),
        ("2024-05-01", NOON - timedelta(hours=12)),
        ("2024-05-01T14:00:00+02:00", NOON),
        ("2024-05-01T05:30:00-0630", NOON),
        ("2024-05-01T12:00:00.123Z", NOON + timedelta(milliseconds=123)),
        ("2024-05-01T12:00:00.123456+0000", NOON + timedelta(microseconds=123456)),
        ("2024-05-01T12:00:00.1234567890Z", NOON + timedelta(microseconds=123456)),
        ("999-05-01T12:00:00.000000+0000", NOON.replace(year=999)),
    ],
)
@pytest.mark.parametrize("form", ["iso", "pynamodb"])
def test_any_iso_text_is_read(form: str, text: str, moment: datetime) -> None:
    read = models.TimestampAttribute(stored_as=form).decode(text)
    assert (read, read.tzinfo) == (moment, UTC)


@pytest.mark.parametrize(
    ("form", "stored", "moment"),
    [
        ("seconds", "1714564800", NOON),
        ("seconds", "1714564800.25", NOON + timedelta(milliseconds=250)),
        ("seconds", "-1.5", datetime(1969, 12, 31, 23, 59, 58, 500000, UTC)),
        ("seconds", "1.7145648E+9", NOON),
        ("milliseconds", "1714564800000.125", NOON + timedelta(microseconds=125)),
        ("milliseconds", "1714564800000", NOON),
    ],
)
def test_numbers_are_read_with_their_fractions(form: str, stored: str, moment: datetime) -> None:
    assert models.TimestampAttribute(stored_as=form).decode(stored) == moment


@pytest.mark.parametrize(
    ("form", "stored"),
    [
        ("iso", "soon"),
        ("iso", "2024-13-01T00:00:00Z"),
        ("iso", "0001-01-01T00:00:00+05:00"),
        ("iso", ""),
        ("pynamodb", "1714564800"),
        ("seconds", "1E+40"),
        ("seconds", "NaN"),
    ],
)
def test_other_values_cannot_be_read(form: str, stored: str) -> None:
    attribute = named(models.TimestampAttribute(stored_as=form))
    with pytest.raises(UnreadableItem, match="value"):
        attribute.from_attribute_value({attribute.attr_type: stored})


def test_a_number_is_no_text() -> None:
    attribute = named(models.TimestampAttribute(stored_as="iso"))
    with pytest.raises(UnreadableItem, match="reads S"):
        attribute.from_attribute_value({"N": "1714564800"})


@override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin")
def test_naive_moments_are_stored_in_utc() -> None:
    attribute = models.TimestampAttribute(stored_as="iso")
    text = attribute.serialize(datetime(2024, 5, 1, 14))
    assert (text, attribute.decode("2024-05-01T12:00:00.000Z")) == (
        "2024-05-01T12:00:00.000Z",
        datetime(2024, 5, 1, 14),
    )


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("iso", "2024-05-01T12:00:00.123Z"),
        ("pynamodb", "2024-05-01T12:00:00.123456+0000"),
        ("%Y-%m-%dT%H:%M:%SZ", "2024-05-01T12:00:00Z"),
        ("%Y-%m-%d %H:%M:%S.%f", "2024-05-01 12:00:00.123456"),
    ],
)
def test_finer_parts_are_cut_off(form: str, text: str) -> None:
    attribute = models.TimestampAttribute(stored_as=form)
    assert attribute.serialize(NOON + timedelta(microseconds=123456)) == text


@pytest.mark.parametrize("form", ["days", "%d.%m.%Y", "%Y-%m-%dT%H:%M", "%H:%M:%S %Y-%m-%d", 5, ""])
def test_a_format_that_does_not_sort_is_refused(form: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"stored_as|sort by time"):
        models.TimestampAttribute(stored_as=form)


@pytest.mark.parametrize(
    "declared",
    [
        lambda: models.TimestampAttribute(stored_as="seconds", unit="s"),
        lambda: models.TTLAttribute(stored_as="iso"),
        lambda: models.TTLAttribute(stored_as="milliseconds"),
        lambda: models.BooleanAttribute(stored_as="text"),
        lambda: models.JSONAttribute(stored_as="binary"),
        lambda: models.BinaryAttribute(stored_as="hex"),
    ],
)
def test_a_form_that_does_not_fit_is_refused(declared: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"stored_as|seconds"):
        declared()


@pytest.mark.parametrize(
    ("stored", "value"),
    [({"N": "1"}, True), ({"N": "0"}, False), ({"N": "1.0"}, True), ({"BOOL": True}, True), ({"NULL": True}, None)],
)
def test_a_boolean_is_read_in_both_forms(stored: Any, value: object) -> None:
    assert models.BooleanAttribute(stored_as="number").from_attribute_value(stored) is value


@pytest.mark.parametrize("stored", [{"N": "2"}, {"S": "1"}, {"N": "-1"}])
def test_another_number_is_no_boolean(stored: Any) -> None:
    with pytest.raises(UnreadableItem):
        named(models.BooleanAttribute(stored_as="number")).from_attribute_value(stored)


def test_bytes_that_are_no_base64_are_unreadable() -> None:
    with pytest.raises(UnreadableItem):
        named(models.BinaryAttribute(stored_as="base64")).from_attribute_value({"B": b"\x00\x01"})


@pytest.mark.parametrize(
    "text", ['{"b": 1, "a": [1.50]}', '["\\ud800"]', "NaN", '{"a": [Infinity]}', '"a\nb"', '{"a": 1, "a": 2}']
)
def test_foreign_json_is_kept_until_it_changes(text: str) -> None:
    attribute = named(models.JSONAttribute())
    stored = {"S": text}
    assert attribute.encoded(attribute.decode(text), stored).stored is stored


def test_json_without_a_form_is_refused_when_it_changes() -> None:
    attribute = named(models.JSONAttribute())
    with pytest.raises(InvalidValue):
        attribute.encoded([math.nan, 1], {"S": "[NaN]"})


class Stamp(models.TimestampAttribute):
    """A project's own class."""

    def clean(self, value: object) -> datetime:
        """Whole minutes."""
        return super().clean(value).replace(second=0, microsecond=0)


def test_a_projects_class_takes_a_form() -> None:
    attribute = Stamp(stored_as="iso")
    assert isinstance(attribute, Stamp)
    assert attribute.serialize(NOON + timedelta(seconds=5)) == "2024-05-01T12:00:00.000Z"


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (models.TimestampAttribute(stored_as="iso"), ("TimestampAttribute", {"stored_as": "iso"})),
        (models.TimestampAttribute(stored_as="seconds"), ("TimestampAttribute", {"unit": "s"})),
        (models.TimestampAttribute(stored_as="milliseconds"), ("TimestampAttribute", {})),
        (models.BooleanAttribute(stored_as="number"), ("BooleanAttribute", {"stored_as": "number"})),
        (models.JSONAttribute(stored_as="text"), ("JSONAttribute", {})),
        (Stamp(stored_as="pynamodb"), (f"{__name__}.Stamp", {"stored_as": "pynamodb"})),
    ],
)
def test_migrations_name_the_declared_class_and_the_form(attribute: Any, expected: Any) -> None:
    assert form_of(attribute) == expected


def test_migrations_make_the_same_attribute_again() -> None:
    attribute = models.TimestampAttribute(stored_as="pynamodb")
    path, options = form_of(attribute)
    again = attribute_class(path)(**options)
    assert again.serialize(NOON) == attribute.serialize(NOON)


def test_a_copy_keeps_its_form() -> None:
    assert models.TimestampAttribute(stored_as="iso").copy().serialize(NOON) == "2024-05-01T12:00:00.000Z"


def test_other_attributes_have_no_forms() -> None:
    with pytest.raises(TypeError, match="stored_as"):
        models.DecimalAttribute(stored_as="text")


def test_the_class_itself_is_unchanged() -> None:
    models.BooleanAttribute(stored_as="number")
    assert models.BooleanAttribute().to_attribute_value(True) == {"BOOL": True}
    assert models.TimestampAttribute().to_attribute_value(NOON) == {"N": str(int(Decimal(NOON.timestamp()) * 1000))}
