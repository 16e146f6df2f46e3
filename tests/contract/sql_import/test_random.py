"""Any rows become equal objects, for any way to read the database and any former table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils.ipv6 import clean_ipv6_address
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.table import Table
from dynamo_single.test_tables import contents
from tests.catalog.library import Aisle, Volume
from tests.catalog.models import Sample
from tests.contract.sql_import.conftest import OLD, Rows
from tests.contract.sql_import.test_import import MOMENT, refused
from tests.contract.tables import assert_consistent
from tests.deep import examples

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(bool), inner, max_size=3),
    max_leaves=6,
)
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
#: The values of each column; ``None`` is one of each.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "integer": st.integers(-(2**63) + 1, 2**63 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False, width=32)
    .map(lambda each: round(each, 6))
    .filter(lambda each: abs(each) < 1e15),
    "decimal": st.decimals(-(10**9), 10**9, places=2),
    "flag": st.booleans(),
    "moment": MOMENTS,
    "day": st.dates(),
    "time": st.times(),
    "duration": st.timedeltas(timedelta(days=-9000), timedelta(days=9000)),
    "token": st.uuids(),
    "json": JSON,
    "data": st.dictionaries(TEXTS.filter(bool), JSON, max_size=3),
    "things": st.lists(JSON, max_size=3),
    "words": st.lists(TEXTS.filter(bool), min_size=1, max_size=3, unique=True),
    "blob": st.binary(min_size=1, max_size=20),
    "address": st.ip_addresses().map(str),
}
ROW = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})
ROWS = st.dictionaries(TEXTS.filter(bool), ROW, min_size=1, max_size=5)


def as_stored(name: str, value: Any) -> Any:
    """A value of a row as the object has it."""
    if name == "moment" and value is not None:
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    if name == "address" and value is not None and ":" in value:
        # Django writes it into the row in this form: ``::ffff:0:0`` as ``::ffff:0.0.0.0``.
        return clean_ipv6_address(value)
    return set(value) if name == "words" and value is not None else value


def imported(**options: Any) -> None:
    """Import all."""
    options = {"modules": sorted(Rows.modules), **options}
    call_command("dynamo_import_sql", database=OLD, verbosity=0, **options)


@settings(max_examples=examples(3, 300))
@given(found=ROWS, introspects=st.booleans(), size=st.integers(1, 4))
def test_random_rows_become_equal_objects(
    rows: Rows, table: Table, found: dict[str, dict[str, Any]], introspects: bool, size: int
) -> None:
    """The values of each type are the row's; a second import in the other way finds no difference."""
    contents.restore(table, {})
    rows.of("Sample").delete()
    rows.add("Sample", *({"sample_id": pk, **row} for pk, row in found.items()))
    ways = [{"modules": [], "maps": ["catalog_order="]}, {}]
    imported(**ways[not introspects], chunk_size=size)
    for pk, row in found.items():
        obj = Sample.objects.get(pk=pk)
        assert {name: getattr(obj, name) for name in row} == {name: as_stored(name, row[name]) for name in row}
    imported(**ways[introspects], check=True)


VOLUMES = st.lists(
    st.fixed_dictionaries(
        {
            "aisle_id": st.sampled_from("abx"),
            "number": st.integers(0, 6),
            "isbn": st.none() | st.sampled_from("ijk"),
            "deleted_at": st.sampled_from([None, None, MOMENT]),
        }
    ),
    max_size=12,
)


@settings(max_examples=examples(3, 300))
@given(found=VOLUMES, size=st.integers(1, 5))
def test_random_relations_are_counted(rows: Rows, table: Table, found: list[dict[str, Any]], size: int) -> None:
    """The first of conflicting rows is stored; counters, claims and copies match the stored objects."""
    contents.restore(table, {})
    for name in ("Volume", "Aisle"):
        rows.of(name).delete()
    rows.add("Aisle", {"aisle_id": "a", "name": "A"}, {"aisle_id": "b", "name": "B", "deleted_at": MOMENT})
    given = {"title": "T", "created_at": MOMENT, "updated_at": MOMENT}
    rows.add("Volume", *({"id": n, **given, **row} for n, row in enumerate(found)))
    for _ in range(2):
        try:
            imported(chunk_size=size)
        except CommandError as error:
            assert "refused or stored with other values" in str(error)
        live = [each for each in Volume.all_objects.allow_scan() if not each.is_deleted]
        for aisle in Aisle.all_objects.allow_scan():
            assert aisle.volume_count == sum(each.aisle_id == aisle.pk for each in live)
        assert {each.pk for each in Volume.all_objects.allow_scan()} <= {
            f"{r['aisle_id']}~~{r['number']}" for r in found
        }
        assert_consistent()


def test_numbers_that_are_none_are_refused(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """DynamoDB has no infinity."""
    rows.add("Sample", {"sample_id": "a", "number": float("inf")})
    assert "refused: a: number: does not fit" in refused(capsys)
