"""Valid and invalid values of attributes, without a table: each error names its attribute."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from django.db import models as django_models
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.fields.forms import number_member
from tests.catalog.models import Sample


class Role(str, Enum):  # noqa: UP042 - str() makes something else of it, and that is the point
    """Choices of strings as plain Python."""

    ADMIN = "admin"


class Level(django_models.TextChoices):
    """Choices of strings as in Django."""

    HIGH = "high"


def attribute(name: str) -> Any:
    """Return one of the sample's attributes."""
    return getattr(Sample, name)


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(("given", "text"), [(Role.ADMIN, "admin"), (Level.HIGH, "high"), ("x", "x")])
def test_a_text_choice_is_stored_as_its_value(given: str, text: str) -> None:
    """An enumeration's member is the text that it is, whatever ``str()`` makes of it."""
    for name in ("text", "json"):
        assert attribute(name).prepare(given) == text
    prepared = attribute("text").prepare(given)
    assert type(prepared) is str
    assert attribute("text").to_attribute_value(given) == {"S": text}
    assert attribute("data").to_attribute_value({"a": given}) == {"M": {"a": {"S": text}}}
    assert attribute("words").to_attribute_value({given}) == {"SS": [text]}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("token", 5, "token must be a UUID, not int 5."),
        ("token", b"x", "token must be a UUID, not bytes b'x'."),
        ("moment", "zz", "moment must be a date and time, not str 'zz'."),
        ("time", "25:00", "time must be a time of day without a zone, not str '25:00'."),
        ("time", "x", "time must be a time of day without a zone, not str 'x'."),
        ("time", time(9, tzinfo=UTC), "time must be a time of day without a zone, not time "),
        ("duration", 5, "duration must be a duration, not int 5."),
        ("duration", "soon", "duration must be a duration, not str 'soon'."),
        ("duration", "9999999999 00:00:00", "duration must be a duration, not str "),
        ("slug", 5, "slug must be a string (str), not int 5."),
        ("url", b"x", "url must be a string (str), not bytes b'x'."),
        ("address", 5, "address must be an IP address, not int 5."),
        ("integer", 10**40 + 1, "integer: "),
        ("decimal", Decimal("1" * 40), "decimal: "),
        ("number", 1e300, "number: "),
        ("numbers", {10**40 + 1}, "numbers: "),
        ("data", {"a": {"b": float("nan")}}, "data.a.b: nan cannot be stored"),
        ("data", {"a": {"": 1}}, "data.a: a map has an empty key"),
        ("things", [{"": 1}], "things[0]: a map has an empty key"),
        ("things", nested(5000), "things[0][0]"),
        ("json", nested(20_000), "json: the value is nested too deep"),
        ("json", {"a": b"x"}, "json must be a value that JSON can hold, not dict {'a': b'x'}."),
        ("json", b"x", "json must be a value that JSON can hold, not bytes b'x'."),
        ("json", {"a": {1}}, "json must be a value that JSON can hold"),
        ("json", float("nan"), "json must be a value that JSON can hold"),
    ],
)
def test_a_refusal_begins_with_the_attribute(name: str, value: Any, message: str) -> None:
    """An invalid value raises an ``InvalidValue`` of the attribute."""
    with pytest.raises(InvalidValue) as raised:
        attribute(name).to_attribute_value(value)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "stored", "message"),
    [
        ("token", {"S": "bad"}, "The stored item holds {'S': 'bad'} in token, and token reads a UUID."),
        ("day", {"S": "2024-02-30"}, "in day, and day reads a date."),
        ("time", {"S": "9"}, "in time, and time reads a time of day without a zone."),
        ("time", {"S": "09:00+02:00"}, "in time, and time reads a time of day without a zone."),
        ("duration", {"N": "0.0000001"}, "in duration, and duration reads a duration."),
        ("duration", {"N": "1.00000000000000000000000000000000000001"}, "in duration, and duration reads a duration."),
        ("duration", {"N": "1E+30"}, "in duration, and duration reads a duration."),
        ("moment", {"N": "1E+30"}, "in moment, and moment reads a date and time."),
        ("integer", {"N": "1.5"}, "in integer, and integer reads a whole number."),
        ("json", {"S": "{"}, "in json, and json reads a value that JSON can hold."),
        ("json", {"S": "[" * 100_000}, "in json, and json reads a value that JSON can hold."),
        ("json", {"N": "5"}, "The stored item holds json as N, and json reads S."),
    ],
)
def test_what_is_stored_wrongly_is_told_by_name(name: str, stored: dict[str, Any], message: str) -> None:
    """The error for another program's item names the wrong attribute."""
    with pytest.raises(InvalidValue) as raised:
        attribute(name).from_attribute_value(stored)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"b": 1, "a": {"d": 2, "c": 3}}, '{"a": {"c": 3, "d": 2}, "b": 1}'),
        (Decimal("1.50"), "1.5"),
        (2.0, "2"),
        (-0.0, "0"),
        (Decimal("1E+20"), "100000000000000000000"),
        (Decimal("1E+400"), "1E+400"),
        (Decimal("0.1234567890123456789012345678901234567890"), "0.123456789012345678901234567890123456789"),
        ([True, None, "é"], '[true, null, "é"]'),
        ((1, 2), "[1, 2]"),
    ],
)
def test_equal_json_values_have_one_text(given: Any, text: str) -> None:
    """Sorted keys and the shortest exact numbers let DynamoDB compare values."""
    json_attribute = attribute("json")
    assert json_attribute.to_attribute_value(given) == {"S": text}
    assert json_attribute.to_attribute_value(json_attribute.from_attribute_value({"S": text})) == {"S": text}


@pytest.mark.parametrize(
    ("line", "number"), [("1", 1), ("1.0", 1), ("2.50", Decimal("2.5")), ("1E+999999999", Decimal("1E+999999999"))]
)
def test_a_line_of_a_number_set_is_a_number(line: str, number: Any) -> None:
    """A number with a billion digits is rejected without writing it out."""
    found = number_member(line)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("time", "9:30", {"S": "09:30:00"}),
        ("time", datetime(2024, 1, 1, 9, 30, 0, 5, tzinfo=UTC), {"S": "09:30:00.000005"}),
        ("time", time(1, 30, fold=1), {"S": "01:30:00"}),
        ("duration", timedelta(days=1, microseconds=5), {"N": "86400.000005"}),
        ("duration", "-00:00:01.5", {"N": "-1.5"}),
        ("duration", "1 02:00:00", {"N": "93600"}),
        ("duration", timedelta.max, {"N": "86399999999999.999999"}),
        ("address", "2001:DB8:0::1", {"S": "2001:db8::1"}),
        ("address", ipaddress.ip_address("::1"), {"S": "::1"}),
        ("address", "10.0.0.1", {"S": "10.0.0.1"}),
        ("address", "", {"NULL": True}),
        ("address", "2001:db8:", {"S": "2001:db8:"}),
    ],
)
def test_a_value_has_one_stored_form(name: str, value: Any, stored: dict[str, Any]) -> None:
    """This applies to every spelling; times and durations are read as they were prepared."""
    assert attribute(name).to_attribute_value(value) == stored
    assert attribute(name).from_attribute_value(stored) == attribute(name).prepare(value)


def test_an_address_of_both_kinds_is_unpacked_where_that_is_asked_for() -> None:
    """``unpack_ipv4`` of Django's field does the same."""
    unpacking: Any = models.IPAddressAttribute(unpack_ipv4=True)
    assert unpacking.prepare("::ffff:10.0.0.1") == "10.0.0.1"


@given(st.timedeltas())
def test_a_duration_is_read_from_its_text(duration: timedelta) -> None:
    """The text that is part of a ``pk``, whatever the sign."""
    assert attribute("duration").from_text(attribute("duration").to_text(duration)) == duration
