"""A prepared value is encoded and compared once, with the results of separate preparations."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.items.encode import attributes_item, is_same
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.schema import registry
from dynamo_single.table.masking import _escapes, escape
from tests.catalog.models import Sample

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
integers = st.integers(-3, 3) | st.integers(-(10**38) + 1, 10**38 - 1)
decimals = st.sampled_from([Decimal("0.0"), Decimal("1.00"), Decimal("1E+3"), Decimal(1000), Decimal("-0.5")])
moments = st.datetimes(
    datetime.datetime(1990, 1, 1),
    datetime.datetime(2030, 1, 1),
    timezones=st.sampled_from([datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))]),
)
documents = st.recursive(
    st.none()
    | st.booleans()
    | integers
    | decimals
    | texts
    | st.binary(max_size=3)
    | st.frozensets(integers, min_size=1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3),
    max_leaves=6,
)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | decimals | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "integer": integers,
    "number": integers.filter(lambda number: abs(number) < 10**15) | st.floats(-1e9, 1e9).map(lambda x: round(x, 3)),
    "decimal": decimals | integers.filter(lambda number: abs(number) < 10**10).map(Decimal),
    "flag": st.booleans(),
    "moment": moments,
    "day": st.dates(),
    "token": st.uuids(),
    "json": json,
    "data": st.dictionaries(texts.filter(bool), documents, max_size=3),
    "things": st.lists(documents, max_size=3),
    "words": st.sets(texts, max_size=3),
    "numbers": st.sets(integers | decimals, max_size=3),
    "blobs": st.sets(st.binary(max_size=2), max_size=3),
    "blob": st.binary(max_size=3),
}
samples = st.fixed_dictionaries({}, optional=VALUES)


def prepared(given: dict[str, Any]) -> dict[str, Any]:
    """Return all attributes of a sample in their stored form."""
    return form_of(Sample).prepared({"sample_id": "s", **given}, None)


@given(samples)
def test_prepared_values_are_written_as_any_values_are(given: dict[str, Any]) -> None:
    values = prepared(given)
    attributes = registry.attributes_of(Sample)

    assert attributes_item(Sample, values) == {
        attribute.attr_name: attribute.to_attribute_value(values[name])
        for name, attribute in attributes.items()
        if values[name] is not None
    }


@given(samples, samples, st.booleans())
def test_difference_is_what_would_be_stored_otherwise(mine: Any, read: Any, alike: bool) -> None:
    """The comparison uses DynamoDB's equality."""
    held, form = prepared(read), form_of(Sample)
    values = prepared({**read, **{name: mine[name] for name in list(mine)[:2]}} if alike else mine)
    attributes, before = registry.attributes_of(Sample), attributes_item(Sample, held)

    def meant(name: str, value: Any) -> Any:
        return None if value is None else normalized_value(attributes[name].to_attribute_value(value))

    otherwise = {name for name, value in values.items() if meant(name, value) != meant(name, held[name])}
    assert form.difference(values, held, before, named=False).keys() == otherwise
    assert {name for name in values if not is_same(attributes[name], values[name], held[name])} == otherwise


@given(st.text(), st.sampled_from(["", "#", "/", "-", "_", "~", "é", "!"]))
def test_what_needs_no_escaping_is_escaped_as_anything_else(text: str, terminator: str) -> None:
    assert escape(text, terminator) == text.translate(_escapes(terminator))
