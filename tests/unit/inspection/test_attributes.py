"""The attribute that reads the values of one name."""

from __future__ import annotations

import pytest

from dynamo_single.contrib.inspection import attributes
from tests.unit.inspection.tables import stored


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-05-01T12:00:00.123Z"], 'TimestampAttribute(stored_as="iso")'),
        (["2024-05-01T12:00:00.123456+0000"], 'TimestampAttribute(stored_as="pynamodb")'),
        (["2024-05-01T12:00:00Z"], 'TimestampAttribute(stored_as="%Y-%m-%dT%H:%M:%SZ")'),
        (["2024-05-01 12:00:00.123456"], 'TimestampAttribute(stored_as="%Y-%m-%d %H:%M:%S.%f")'),
        (["2024-05-01T12:00:00Z", "2024-05-01T12:00:00+02:00"], 'TimestampAttribute(stored_as="iso")'),
        (["2024-13-01T12:00:00Z"], "UnicodeAttribute()"),
        (["2024-05-01"], "DateAttribute()"),
        (["2024-05-01", "never"], "UnicodeAttribute()"),
        (["01234567-89ab-cdef-0123-456789abcdef"], "UUIDAttribute()"),
        (["01234567-89AB-CDEF-0123-456789ABCDEF"], "UnicodeAttribute()"),
        (['{"a": 1}', "[]"], 'JSONAttribute(stored_as="text")'),
        (["{a}"], "UnicodeAttribute()"),
        ([""], "UnicodeAttribute()"),
        ([1714564800, 1714564801], 'TimestampAttribute(stored_as="seconds")'),
        ([1714564800123], 'TimestampAttribute(stored_as="milliseconds")'),
        ([1, 1714564800], "IntegerAttribute()"),
        ([1, 2.5], "DecimalAttribute()"),
        ([True, False], "BooleanAttribute()"),
        ([{"a": 1}], "MapAttribute()"),
        ([[1, "a"]], "ListAttribute()"),
        ([{"a"}], "UnicodeSetAttribute(null=True)"),
        ([b"a"], "BinaryAttribute()"),
        (["a", None], "UnicodeAttribute(null=True)"),
        ([None], "UnicodeAttribute(null=True)"),
        (["a", 1], "()"),
    ],
)
def test_values_decide_the_attribute(values: list[object], expected: str) -> None:
    """The class and its options, as the source has them."""
    found = attributes.find("name", [stored(each) for each in values], missing=0)
    assert f"{found.kind}({', '.join(f'{name}={value}' for name, value in found.options.items())})" == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2024-05-01T12:00:00Z", "2024-05-01T12:00:00+02:00"], "UnicodeAttribute"),
        ([1714564800], "IntegerAttribute"),
        (["[]"], "UnicodeAttribute"),
        (["2024-05-01T12:00:00.123Z"], "TimestampAttribute"),
    ],
)
def test_values_in_keys_keep_their_text(values: list[object], expected: str) -> None:
    """A key contains them as they are stored."""
    assert attributes.find("name", [stored(each) for each in values], missing=0, in_key=True).kind == expected


def test_missing_value_is_null() -> None:
    """An item of the sample lacks the attribute."""
    assert attributes.find("name", [stored("a")], missing=1).options == {"null": "True"}


@pytest.mark.parametrize(
    ("name", "noted"), [("is_open", 1), ("isOpen", 1), ("enabled", 1), ("island", 0), ("count", 0)]
)
def test_numbers_for_booleans_are_noted(name: str, noted: int) -> None:
    """Zero and one with a name like a question may be booleans, which the values alone do not show."""
    assert len(attributes.find(name, [stored(1), stored(0)], missing=0).notes) == noted
