"""Sums are exact for any numbers, have the attribute's type, and can count each value once."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.results.measures import Accumulator, Measure, checked_default

DIGITS = st.integers(-(10**38) + 1, 10**38 - 1)
#: Anything that DynamoDB stores as a number.
NUMBERS = st.builds(lambda digits, exponent: Decimal(digits).scaleb(exponent), DIGITS, st.integers(-130, 80))


def total(function: Any, attribute: models.Attribute[Any], values: list[Any], **options: Any) -> Any:
    """The result of one measure of these values."""
    tally = Accumulator(Measure("n", function, "n", **options), attribute)
    for value in values:
        tally.add(value)
    return tally.result()


@given(values=st.lists(st.none() | NUMBERS, max_size=20), distinct=st.booleans())
def test_decimals_lose_no_digit(values: list[Decimal | None], distinct: bool) -> None:
    """A sum is the sum of fractions, and an average is it to 38 digits; missing values count for nothing."""
    there = [Fraction(value) for value in values if value is not None]
    there = list(dict.fromkeys(there)) if distinct else there
    attribute = models.DecimalAttribute()
    found = total("Sum", attribute, values, distinct=distinct)
    assert (None if found is None else Fraction(found)) == (sum(there) if there else None)
    assert total("Count", attribute, values, distinct=distinct) == len(there)
    average = total("Avg", attribute, values, distinct=distinct)
    assert (average is None) == (not there)
    if average is not None:
        exact = sum(there) / len(there)
        assert abs(Fraction(average) - exact) <= abs(exact) / 10**37


@given(values=st.lists(DIGITS, min_size=1, max_size=20))
def test_whole_numbers_stay_whole(values: list[int]) -> None:
    """The sum of whole numbers is an ``int``, of any size, and their average the nearest ``float``."""
    attribute = models.IntegerAttribute()
    found = total("Sum", attribute, values)
    assert type(found) is int
    assert found == sum(values)
    assert total("Avg", attribute, values) == float(Fraction(sum(values), len(values)))
    assert total("Min", attribute, values) == min(values)
    assert total("Max", attribute, values) == max(values)


@given(values=st.lists(st.text(max_size=3), min_size=1))
def test_text_is_compared_by_its_bytes(values: list[str]) -> None:
    """The smallest string has the smallest UTF-8 bytes, as in a key of DynamoDB."""
    attribute = models.UnicodeAttribute()
    assert total("Min", attribute, values) == min(values, key=str.encode)
    assert total("Max", attribute, values) == max(values, key=str.encode)


def test_floats_are_added_by_what_they_show() -> None:
    """A ``NumberAttribute`` returns an ``int`` for an integer sum, and otherwise the ``float`` of the exact sum."""
    attribute = models.NumberAttribute()
    assert repr(total("Sum", attribute, [0.1, 0.2])) == "0.3"
    assert repr(total("Sum", attribute, [0.5, 1.5, 10**20])) == "100000000000000000002"
    assert repr(total("Avg", attribute, [0.5, 1.5])) == "1.0"


@pytest.mark.parametrize(
    ("function", "attribute", "given_value", "expected"),
    [
        ("Sum", models.IntegerAttribute(), 0, "0"),
        ("Sum", models.DecimalAttribute(), 0, "Decimal('0')"),
        ("Sum", models.NumberAttribute(), 0.5, "0.5"),
        ("Avg", models.IntegerAttribute(), 0, "0.0"),
        ("Avg", models.DecimalAttribute(), "1.5", "Decimal('1.5')"),
        ("Min", models.UnicodeAttribute(), "none", "'none'"),
        ("Max", models.DateAttribute(), "2024-01-01", "datetime.date(2024, 1, 1)"),
        ("Max", models.IntegerAttribute(), None, "None"),
    ],
)
def test_a_default_has_the_type_of_the_result(function: Any, attribute: Any, given_value: Any, expected: str) -> None:
    """A default for a missing result is converted like the result."""
    assert repr(checked_default(function, attribute, given_value)) == expected


@pytest.mark.parametrize("value", ["x", "NaN", True, [1]])
def test_a_default_of_another_kind_is_refused(value: Any) -> None:
    """A default that is no number cannot stand for a sum."""
    with pytest.raises(InvalidValue):
        checked_default("Sum", models.IntegerAttribute(), value)
