"""Attribute values and Python values are converted without loss, or rejected."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.values import (
    from_attribute_value,
    item_size,
    number_to_text,
    short_integer,
    split_number,
    text_to_number,
    to_attribute_value,
)

numbers = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-(10**27), 10**27), st.integers(-90, 80)
    ),
)
texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.one_of(st.none(), st.booleans(), numbers, texts, st.binary())
sets = st.one_of(
    st.frozensets(texts, min_size=1), st.frozensets(numbers, min_size=1), st.frozensets(st.binary(), min_size=1)
)
documents = st.recursive(
    st.one_of(scalars, sets), lambda inner: st.lists(inner) | st.dictionaries(texts.filter(bool), inner), max_leaves=12
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, {"NULL": True}),
        (True, {"BOOL": True}),
        (0, {"N": "0"}),
        (-7, {"N": "-7"}),
        (Decimal("1.00"), {"N": "1"}),
        (Decimal("-0.0"), {"N": "0"}),
        (0.1, {"N": "0.1"}),
        (1500.0, {"N": "1500"}),
        (Decimal("1E+50"), {"N": "1E+50"}),
        (Decimal("0.00000012"), {"N": "1.2E-7"}),
        (Decimal("0.0000012"), {"N": "0.0000012"}),
        ("", {"S": ""}),
        (b"\x00", {"B": b"\x00"}),
        ((1, "a"), {"L": [{"N": "1"}, {"S": "a"}]}),
        ({"a": {"b": None}}, {"M": {"a": {"M": {"b": {"NULL": True}}}}}),
        ({"b", "a"}, {"SS": ["a", "b"]}),
        ({10, 9, Decimal("0.5")}, {"NS": ["0.5", "9", "10"]}),
        ({0.1, Decimal("0.1")}, {"NS": ["0.1"]}),
        ({b"b", b"a"}, {"BS": [b"a", b"b"]}),
    ],
)
def test_value_is_written(value: Any, expected: dict[str, Any]) -> None:
    """Each kind of Python value has one attribute value."""
    assert to_attribute_value(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "no NaN"),
        (float("inf"), "no NaN"),
        (Decimal("-Infinity"), "no NaN"),
        (10**126, "too large"),
        pytest.param(10**5000, "too large", id="5000 digits"),
        (Decimal("1E+126"), "out of range"),
        (Decimal("1E-131"), "out of range"),
        (Decimal("1." + "1" * 38), "39 significant digits"),
        (set(), "no empty set"),
        ({1, "a"}, "only text, only numbers or only bytes"),
        ({True, 2}, "only text, only numbers or only bytes"),
        ("\ud800", "lone surrogate"),
        ({1: "a"}, "the key 1 is not text"),
        (object(), "cannot be stored in a document"),
    ],
)
def test_value_is_refused(value: Any, message: str) -> None:
    """A value that DynamoDB cannot store exactly raises an error with the reason."""
    with pytest.raises(InvalidValue, match=message):
        to_attribute_value(value)


def test_refusal_names_the_place_in_the_document() -> None:
    """An error leads to the element inside the document."""
    document = {"price": [1, 2, {"a b": object()}]}
    with pytest.raises(InvalidValue, match=r"^data\.price\[2\]\['a b'\]: object"):
        to_attribute_value(document, path="data")


def test_nesting_ends_at_32_levels() -> None:
    """32 nested lists are stored, and one more raises an error."""
    value: Any = "x"
    for _ in range(32):
        value = [value]
    assert from_attribute_value(to_attribute_value(value)) == value
    with pytest.raises(InvalidValue, match="deeper than 32 levels"):
        to_attribute_value([value])


@given(documents)
def test_documents_come_back(value: Any) -> None:
    """Every stored document is read as an equal one."""
    assert from_attribute_value(to_attribute_value(value)) == value


@given(numbers)
def test_numbers_come_back_exactly(number: int | Decimal) -> None:
    """A number keeps its exact value, and a whole one in plain writing is an int."""
    back = text_to_number(number_to_text(number))
    assert back == number
    assert not isinstance(back, float)
    assert isinstance(back, int) or "." in number_to_text(number) or "E" in number_to_text(number)


@given(st.floats(-1e100, 1e100, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-100))
def test_floats_keep_their_written_value(number: float) -> None:
    """A float is stored as written, so that the same float is read."""
    assert float(text_to_number(number_to_text(number))) == number


@given(numbers, numbers)
def test_different_numbers_have_different_texts(first: int | Decimal, second: int | Decimal) -> None:
    """Two strings are the same only if the numbers are equal."""
    assert first == second or number_to_text(first) != number_to_text(second)


@given(st.integers(-(10**40), 10**40) | st.integers(-10, 10).map(lambda digit: digit * 10**37))
def test_whole_numbers_are_split_as_decimals_are(number: int) -> None:
    try:
        expected = split_number(Decimal(number))
    except InvalidValue:
        with pytest.raises(InvalidValue):
            split_number(number)
        with pytest.raises(InvalidValue):
            number_to_text(number)
    else:
        assert split_number(number) == expected
        assert Decimal(number_to_text(number)) == number


@given(st.one_of(numbers, st.text("-0123456789.E ²", max_size=42), st.booleans(), st.floats(), st.none()))
def test_short_integer_is_what_int_and_decimal_read(value: Any) -> None:
    found = short_integer(value)

    if found is not None:
        assert type(value) in (int, str)
        assert found == int(value) == Decimal(value)
        assert split_number(found) == split_number(Decimal(value))


@given(numbers, st.booleans())
def test_size_of_a_number_is_that_of_its_significant_digits(number: int | Decimal, plain: bool) -> None:
    text = format(Decimal(number), "f") if plain else str(Decimal(number))
    digits = "".join(map(str, Decimal(text).as_tuple().digits)).strip("0")
    negative = bool(digits) and Decimal(text).is_signed()

    assert item_size({"": {"N": text}}) == (len(digits) + 1) // 2 + 1 + negative


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({}, 0),
        ({"ab": {"S": "é"}}, 4),
        ({"a": {"N": "0"}}, 2),
        ({"a": {"N": "12"}}, 3),
        ({"a": {"N": "-123"}}, 5),
        ({"a": {"N": "1000"}}, 3),
        ({"a": {"NULL": True}}, 2),
        ({"a": {"BOOL": False}}, 2),
        ({"a": {"B": b"1234"}}, 5),
        ({"a": {"L": []}}, 4),
        ({"a": {"L": [{"S": "xyz"}, {"BOOL": True}]}}, 10),
        ({"a": {"M": {"bc": {"S": "xyz"}}}}, 10),
        ({"a": {"SS": ["x", "yz"]}}, 4),
        ({"a": {"NS": ["1", "100"]}}, 5),
    ],
)
def test_item_size(item: dict[str, Any], size: int) -> None:
    """Sizes follow AWS's rule: UTF-8, half a byte a digit, three bytes a list or map, one an element."""
    assert item_size(item) == size


def test_unknown_type_is_refused() -> None:
    """The error names the unknown type."""
    with pytest.raises(InvalidValue, match="'X' is not a type of DynamoDB"):
        from_attribute_value({"X": 1})
