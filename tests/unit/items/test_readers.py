"""A compiled reader has the results and errors of each attribute for any stored value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pynamodb import attributes as pynamodb

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.items.readers import absent_value, row_reader, value_reader, values_reader
from dynamo_single.orm.schema import registry
from tests.catalog.models import Sample
from tests.unit.declaring import declare, forgotten

TEXTS = st.text(max_size=5) | st.sampled_from(["1E3", "2026-11-22", "{", "b3f0c5de-7f6e-4f2b-9a0e-3f0e7d1c2a11", "{"])
NUMBERS = (
    st.integers(-(10**40), 10**40).map(str)
    | st.decimals(allow_nan=True, allow_infinity=True).map(str)
    | st.sampled_from(["1E3", "1.0", "1.5E-7", "-0", "9" * 39, "1763771234567", "99999999999999999"])
)
SCALARS = st.one_of(
    st.fixed_dictionaries({"S": TEXTS}),
    st.fixed_dictionaries({"N": NUMBERS}),
    st.fixed_dictionaries({"BOOL": st.booleans()}),
    st.fixed_dictionaries({"NULL": st.just(True)}),
    st.fixed_dictionaries({"B": st.binary(max_size=3)}),
    st.fixed_dictionaries({"SS": st.lists(TEXTS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"NS": st.lists(st.integers().map(str), min_size=1, max_size=3)}),
    st.fixed_dictionaries({"BS": st.lists(st.binary(max_size=3), min_size=1, max_size=3)}),
)
STORED = st.recursive(
    SCALARS,
    lambda inner: (
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"M": st.dictionaries(st.text(max_size=3), inner, max_size=3)})
    ),
    max_leaves=5,
)
ATTRIBUTES = registry.attributes_of(Sample)
ITEMS = st.fixed_dictionaries({}, optional={each.attr_name: STORED for each in ATTRIBUTES.values()})


def one_by_one(item: dict[str, Any], names: Any = None) -> dict[str, Any]:
    """The values as each attribute reads its own."""
    return {
        name: absent_value(each) if each.attr_name not in item else each.from_attribute_value(item[each.attr_name])
        for name, each in ATTRIBUTES.items()
        if names is None or each.attr_name in names
    }


def outcome(read: Any, *arguments: Any) -> str:
    """The values with their types, or the refusal."""
    try:
        return repr(read(*arguments))
    except InvalidValue as error:
        return f"refused: {error}"


@given(ITEMS)
def test_a_reader_of_all_attributes_agrees_with_each_of_them(item: dict[str, Any]) -> None:
    """The values have the same types, or the error is the same."""
    assert outcome(values_reader(Sample), item) == outcome(one_by_one, item)


@given(STORED, st.sampled_from(sorted(ATTRIBUTES)))
def test_a_reader_of_one_attribute_agrees_with_it(stored: dict[str, Any], name: str) -> None:
    """Any stored form of any attribute."""
    item = {ATTRIBUTES[name].attr_name: stored}
    assert outcome(value_reader(Sample, name), item) == outcome(ATTRIBUTES[name].from_attribute_value, dict(stored))


@given(ITEMS, st.sets(st.sampled_from(sorted(each.attr_name for each in ATTRIBUTES.values()))))
def test_a_partial_reader_gives_what_was_read_only(item: dict[str, Any], names: set[str]) -> None:
    """An attribute that was not read has no value."""
    assert outcome(values_reader(Sample, frozenset(names)), item) == outcome(one_by_one, item, names)


def test_a_row_has_the_order_that_was_asked_for() -> None:
    """A name may occur twice."""
    item = {"text": {"S": "a"}, "integer": {"N": "5"}}
    assert row_reader(Sample, ["integer", "text", "integer"])(item) == (5, "a", 5)


def test_an_error_of_a_reader_has_no_other_one_as_its_context() -> None:
    """The internal error of the quick way is hidden."""
    with pytest.raises(InvalidValue) as caught:
        values_reader(Sample)({"integer": {"S": "x"}})
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("name", "peer", "values"),
    [
        ("text", pynamodb.UnicodeAttribute(), st.text()),
        ("integer", pynamodb.NumberAttribute(), st.integers(1 - 10**37, 10**37)),
        ("flag", pynamodb.BooleanAttribute(), st.booleans()),
        ("blob", pynamodb.BinaryAttribute(legacy_encoding=False), st.binary()),
        ("words", pynamodb.UnicodeSetAttribute(), st.sets(st.text(), min_size=1)),
        ("numbers", pynamodb.NumberSetAttribute(), st.sets(st.integers(1 - 10**37, 10**37), min_size=1)),
    ],
)
def test_a_reader_gives_what_pynamodb_reads(name: str, peer: Any, values: Any) -> None:
    """Both read the stored value of PynamoDB's attribute the same way."""

    @given(values)
    def agree(value: Any) -> None:
        stored = {peer.attr_type: peer.serialize(value)}
        read = value_reader(Sample, name)({ATTRIBUTES[name].attr_name: stored})
        assert read == peer.deserialize(stored[peer.attr_type])

    agree()


def test_a_decimal_keeps_its_digits() -> None:
    """Zeros at the end too."""
    with forgotten():
        model = declare("Weighed", ("W#{w}", "#X"), w=models.IdAttribute(), weight=models.DecimalAttribute())
        assert str(value_reader(model, "weight")({"weight": {"N": "1.500"}})) == "1.500"


@pytest.mark.parametrize(
    ("stored", "expected"), [("1.5", "1.50"), ("2", "2.00"), ("1.005", "1.00"), ("1E+20", "1" + "0" * 20 + ".00")]
)
def test_a_decimal_has_the_declared_places(stored: str, expected: str) -> None:
    """DynamoDB omits trailing zeros, and an older item's value is rounded."""
    assert str(value_reader(Sample, "decimal")({ATTRIBUTES["decimal"].attr_name: {"N": stored}})) == expected
