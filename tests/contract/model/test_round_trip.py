"""Stored values are read unchanged, for every type of attribute."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.db.models import GenericIPAddressField
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.models import Sample
from tests.deep import examples

pytestmark = pytest.mark.usefixtures("table")


VALUES = {
    "text": st.text(max_size=30).filter(lambda text: text.isprintable()),
    "integer": st.integers(-(10**37), 10**37),
    "number": st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15, allow_subnormal=False).map(lambda f: round(f, 6)),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9),
    "flag": st.booleans(),
    "moment": st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)).map(
        lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    ),
    "day": st.dates(min_value=date(1, 1, 1)),
    "time": st.times(),
    "duration": st.timedeltas(),
    "slug": st.text("ab-_1", min_size=1),
    "url": st.sampled_from(["https://example.com/", "ftp://example.com/a?b=c#d"]),
    # In Django's one form: Python writes ::ffff:0:0 for ::ffff:0.0.0.0.
    "address": st.ip_addresses().map(str).map(GenericIPAddressField().to_python),
    "token": st.uuids(),
    "json": st.recursive(
        st.none() | st.booleans() | st.integers(-100, 100) | st.text(st.characters(codec="utf-8"), max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
        max_leaves=5,
    ).filter(lambda value: value is not None),
    "data": st.dictionaries(
        st.text("abc", min_size=1), st.integers().filter(lambda n: abs(n) < 10**30) | st.lists(st.booleans())
    ),
    "things": st.lists(st.integers(-5, 5) | st.just("x") | st.none()),
    "words": st.sets(st.text("abc", min_size=1), min_size=1),
    "numbers": st.sets(st.integers(-9, 9), min_size=1),
    "blobs": st.sets(st.binary(min_size=1, max_size=4), min_size=1),
    "blob": st.binary(min_size=1),
}


@given(values=st.fixed_dictionaries({}, optional=VALUES))
@settings(max_examples=examples(8, 60))
def test_what_is_saved_is_what_is_read(values: dict[str, Any]) -> None:
    """Every attribute type returns exactly the stored value."""
    sample = Sample.objects.create(sample_id=str(uuid.uuid4()), **values)
    found = Sample.objects.get(pk=sample.pk)
    assert {name: getattr(found, name) for name in values} == values
