"""One pass encodes, measures and compares a document, with the results of separate passes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.documents import copied, encode, like, normalized_value
from dynamo_single.orm.schema.keys.values import from_attribute_value, to_attribute_value, value_size
from tests.catalog.models import Sample

#: Numbers in each spelling that Python has for them, near the limits too.
numbers = (
    st.integers(-3, 101)
    | st.sampled_from([10**37, 10**38, -(10**38), 10**40, 10**125, Decimal("1E+125"), Decimal("1E-130")])
    | st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e16, 1e-7, 123456.75, -2.5])
    | st.builds(Decimal, st.sampled_from(["0", "-0.0", "1.0", "1.50", "100", "1E+2", "0.000001", "1E-7", "12.34"]))
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
sets = (
    st.sets(texts, min_size=1, max_size=3)
    | st.frozensets(numbers, min_size=1, max_size=3)
    | st.sets(st.binary(max_size=2), min_size=1, max_size=3)
)
scalars = st.none() | st.booleans() | numbers | texts | st.binary(max_size=2) | sets
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(texts.filter(bool), inner, max_size=4)
        | st.dictionaries(texts.filter(bool), inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=14,
)


@given(documents)
def test_pass_gives_same_value_and_size(value: Any) -> None:
    stored, size, _ = encode(value, None, "data")

    assert stored == to_attribute_value(value)
    assert size == value_size(stored)


@given(documents, documents)
def test_equal_documents_keep_stored_form(value: Any, other: Any) -> None:
    """DynamoDB's equality counts, in any spelling."""
    for before in (to_attribute_value(other), to_attribute_value(value)):
        alike = normalized_value(to_attribute_value(value)) == normalized_value(before)
        assert (encode(value, before, "data")[0] is before) == alike


@given(documents, documents)
def test_compared_document_is_equal_to_encoded_one(value: Any, other: Any) -> None:
    """Parts of the stored form have the same meaning and size."""
    stored, size, _ = encode(value, to_attribute_value(other), "data")

    assert normalized_value(stored) == normalized_value(to_attribute_value(value))
    assert size == value_size(to_attribute_value(value))


def types_of(value: Any) -> Any:
    """A document with the types of everything in it."""
    if isinstance(value, dict):
        return type(value), {name: types_of(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [types_of(each) for each in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted((type(each).__name__, str(each)) for each in value)
    return type(value), str(value)


@given(documents)
def test_copy_is_what_reading_gives(value: Any) -> None:
    stored, _, is_as_read = encode(value, None, "data")

    if is_as_read and isinstance(value, dict | list | set):
        assert types_of(copied(value)) == types_of(from_attribute_value(stored))
    if types_of(from_attribute_value(stored)) != types_of(value):
        assert not is_as_read


class Text(str):
    pass


#: Values that another pass rejects, or accepts although their type is not built in.
ODD: list[Any] = [
    {"a": {"b": [object()]}},
    {"a": {1: "x"}},
    {"a": {"": "x"}},
    {"a": "\ud800"},
    {"\ud800": 1},
    {"a": {"a b": [float("nan")]}},
    {"a": 10**5000},
    {"a": Decimal("1." + "1" * 38)},
    {"a": set()},
    {"a": {1, "x"}},
    {"a": {"b": Text("x"), Text("c"): bytearray(b"x"), "d": memoryview(b"y")}},
]


@pytest.mark.parametrize("value", ODD, ids=map(str, range(len(ODD))))
def test_odd_value_is_worded_as_before(value: Any) -> None:
    """Each path that an error has leads to the value."""

    def result(call: Any) -> Any:
        try:
            return call()
        except InvalidValue as error:
            return str(error), error.__cause__ is None or type(error.__cause__).__name__

    before = to_attribute_value({"a": {"b": "x"}})
    expected = result(lambda: to_attribute_value(value, path="data"))
    assert result(lambda: encode(value, None, "data")[0]) == expected
    assert result(lambda: encode(value, before, "data")[0]) == expected


def test_document_ends_at_32_levels() -> None:
    value: Any = "x"
    for _ in range(32):
        value = [value]
    assert encode(value, None, "data")[0] == to_attribute_value(value)
    with pytest.raises(InvalidValue, match="deeper than 32 levels"):
        encode([value], None, "data")


def test_document_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["a"] = [value]
    with pytest.raises(InvalidValue, match="deeper than 32 levels"):
        encode(value, None, "data")


def containers(value: Any) -> Iterator[int]:
    """Return the identities of every mutable part of a document."""
    if isinstance(value, dict | list | set):
        yield id(value)
        for each in value.values() if isinstance(value, dict) else value:
            yield from containers(each)


@given(st.dictionaries(texts.filter(bool), documents, max_size=3), st.lists(documents, max_size=3))
def test_nothing_mutable_is_shared(data: Any, things: Any) -> None:
    """The stored form and the copy do not contain a map, list or set of the value."""
    for attribute, value in ((Sample.data, data), (Sample.things, things)):
        before = attribute.to_attribute_value(value)
        found: Any = attribute.encoded(value)
        assert found.stored == before
        assert not {*containers(value)} & {*containers(found.stored)}
        assert not {*containers(value)} & {*containers(found.value)}
        assert attribute.encoded(value, before).stored is before


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.floats(-1e17, 1e17)
    | st.sampled_from([Decimal("1.50"), Decimal("1E+400"), Decimal("1E+3"), Decimal("0.10")])
    | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(texts | st.integers(0, 12) | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values, json_values)
def test_json_is_encoded_as_its_prepared_value(value: Any, other: Any) -> None:
    attribute: Any = Sample.json
    prepared = attribute.prepare(value)
    expected = None if prepared is None else {"S": attribute.encode(prepared)}

    found = attribute.encoded(deepcopy(value))
    assert (found.stored, types_of(found.value)) == (expected, types_of(prepared))
    before = attribute.encoded(other).stored
    if before is not None and expected is not None:
        assert (attribute.encoded(value, before).stored is before) == (expected == before)


@pytest.mark.parametrize("text", ['{"b": 1, "a": 2}', '{"a":2,"b":1}', '{"a": 2.0, "b": 1}'])
def test_json_of_another_writer_is_unchanged(text: str) -> None:
    """Its order and spelling do not matter."""
    attribute: Any = Sample.json
    before = {"S": text}
    assert attribute.encoded(attribute.from_attribute_value(before), before).stored is before
    assert attribute.encoded({"a": 2, "b": True}, before).stored is not before


class ShoutingMap(models.MapAttribute[Any]):
    """A custom map that is stored in capitals."""

    def encode(self, value: Any) -> Any:
        return super().encode({name.upper(): each for name, each in value.items()})

    def decode(self, inner: Any) -> Any:
        return {name.lower(): each for name, each in super().decode(inner).items()}


def test_map_of_a_project_is_encoded_by_it() -> None:
    attribute = ShoutingMap()
    before = {"M": {"A": {"N": "1"}}}
    assert attribute.encoded({"a": 1}).stored == before
    assert attribute.encoded({"a": 1}, before).stored is before
    assert attribute.encoded({"a": True}, before).value == {"a": True}


def test_missing_stored_value_is_like_none() -> None:
    assert like({"N": "1"}, None) == {"N": "1"}


def test_unchanged_document_has_its_decimal_places() -> None:
    """The declared places apply to the comparison."""

    class Line:
        price = models.DecimalAttribute(max_digits=3, decimal_places=2)

    attribute: Any = models.ListAttribute(schema=Line)
    before = attribute.encoded([{"price": 1}]).stored
    found = attribute.encoded([{"price": 0.99609375}], before)
    assert found.stored is before
    attribute.check_whole(found.value)
