"""Every lookup on every type of attribute: its meaning in Python, and its support here.

One table of values and queries: the reference page shows the planner's result, and the contract tests compare the
engine's results with ``expected()``.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from dynamo_single import models
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.schema.keys.codecs import canonical
from tests.docs.pages import ROOT, table
from tests.unit.declaring import declare, forgotten

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
SECONDS = timedelta(seconds=1)


@dataclass(frozen=True)
class Column:
    """A type of attribute: some values, the first of which is queried, and another value."""

    make: Callable[..., Any]
    values: tuple[Any, ...]
    other: Any
    #: DynamoDB's name of the type.
    type: str = "S"
    #: Values that a value of this type can contain, and its prefix.
    member: Any = None
    #: The same value written in another case.
    respelled: Any = None
    #: A case-insensitive copy next to the attribute, which replaces it in keys.
    copied: bool = False


COLUMNS = {
    "text": Column(models.UnicodeAttribute, ("abc", "abd", "ABC", "b", "é𝄞"), "zz", member="bc", respelled="ABc"),
    "text and copy": Column(
        models.UnicodeAttribute, ("Abc", "abd", "ABC", "xabc", "É"), "zz", member="BC", respelled="aBC", copied=True
    ),
    "number": Column(models.DecimalAttribute, (Decimal("1.5"), Decimal(-2), Decimal(10), Decimal(0)), Decimal(7), "N"),
    "boolean": Column(models.BooleanAttribute, (True, False), False, "BOOL"),
    "timestamp": Column(
        models.TimestampAttribute,
        (NOON, NOON.replace(hour=0), NOON.replace(hour=0) - SECONDS, NOON.replace(year=2023, day=28), NOON + SECONDS),
        NOON.replace(year=2000),
        "N",
    ),
    "date": Column(
        models.DateAttribute,
        (date(2024, 2, 29), date(2024, 3, 1), date(2023, 12, 31), date(1999, 2, 2)),
        date(2000, 1, 1),
    ),
    "time": Column(models.TimeAttribute, (time(9, 30), time(9, 30, 0, 5), time(9), time(23, 59, 59, 999999)), time(1)),
    "duration": Column(
        models.DurationAttribute,
        (timedelta(hours=1), timedelta(hours=1, microseconds=5), timedelta(days=-1), timedelta(0), timedelta(days=9)),
        timedelta(1),
        "N",
    ),
    "UUID": Column(models.UUIDAttribute, tuple(uuid.UUID(int=n) for n in (5, 1, 9)), uuid.UUID(int=7)),
    "JSON": Column(models.JSONAttribute, ({"a": 1}, [1, 2], "text"), {"a": 2}),
    "map": Column(models.MapAttribute, ({"a": 1, "b": None}, {"a": 1}, {"c": [1]}, {}), {"z": 1}, "M", member="a"),
    "list": Column(models.ListAttribute, ([1, "a"], ["a"], [[1]], []), [9], "L", member="a"),
    "set": Column(models.UnicodeSetAttribute, ({"a", "b"}, {"a"}, {"c"}), {"z"}, "SS", member="a"),
    "binary": Column(models.BinaryAttribute, (b"ab", b"abc", b"\xff", b"b"), b"z", "B", member=b"b"),
}


def size(value: Any) -> Any:
    """Return the size of a value in DynamoDB; ``None`` if it has none."""
    if isinstance(value, str):
        return len(value.encode("utf-16-le")) // 2
    return len(value) if isinstance(value, bytes | list | dict | set) else None


def order(value: Any) -> Any:
    """Return the sort value: bytes for strings, and a string for UUIDs."""
    return value.encode() if isinstance(value, str) else str(value) if isinstance(value, uuid.UUID) else value


@dataclass(frozen=True)
class Lookup:
    """A query about an attribute: the conditions for a column by suffix, and the matching values."""

    conditions: Callable[[Column], dict[str, Any]]
    holds: Callable[[Column, Any], Any]


def simple(suffix: str, holds: Callable[[Column, Any], Any], value: Callable[[Column], Any] | None = None) -> Lookup:
    """Return a lookup with one condition, by default on the column's first value."""
    return Lookup(lambda column: {suffix: (value or first)(column)}, holds)


def first(column: Column) -> Any:
    """Return the queried value."""
    return column.values[0]


def bounds(column: Column) -> tuple[Any, Any]:
    """The first two values, the lower one first."""
    low, high = column.values[:2]
    is_ordered = not isinstance(low, dict | list | set)
    return (high, low) if is_ordered and order(high) < order(low) else (low, high)


def key(column: Column) -> Any:
    """A map's key."""
    return "a"


def fold(value: Any) -> str:
    """Return the copy's form of a string."""
    return canonical(value)


LOOKUPS = {
    "exact": simple("", lambda c, v: v == first(c)),
    "in": simple("in", lambda c, v: v in (first(c), c.values[1]), lambda c: [first(c), c.values[1], c.other]),
    "lt": simple("lt", lambda c, v: order(v) < order(first(c))),
    "lte": simple("lte", lambda c, v: order(v) <= order(first(c))),
    "gt": simple("gt", lambda c, v: order(v) > order(first(c))),
    "gte": simple("gte", lambda c, v: order(v) >= order(first(c))),
    "range": simple("range", lambda c, v: order(bounds(c)[0]) <= order(v) <= order(bounds(c)[1]), bounds),
    "startswith": simple("startswith", lambda c, v: v[:1] == first(c)[:1], lambda c: prefix(first(c))),
    "contains": simple("contains", lambda c, v: c.member in v, lambda c: first(c) if c.member is None else c.member),
    "isnull": simple("isnull", lambda c, v: False, lambda c: True),
    "canonical": simple("canonical", lambda c, v: fold(v) == fold(c.respelled), lambda c: c.respelled or first(c)),
    "iexact": simple("iexact", lambda c, v: fold(v) == fold(c.respelled), lambda c: c.respelled or "a"),
    "icontains": simple("icontains", lambda c, v: fold(c.member) in fold(v), lambda c: c.member or "a"),
    "istartswith": simple("istartswith", lambda c, v: fold(v).startswith(fold(first(c))), lambda c: first(c) or "a"),
    "date": simple("date", lambda c, v: v.date() == first(c).date(), lambda c: NOON.date()),
    "date__lte": simple("date__lte", lambda c, v: v.date() <= first(c).date(), lambda c: NOON.date()),
    "year": simple("year", lambda c, v: v.year == 2024, lambda c: 2024),
    "year__lt": simple("year__lt", lambda c, v: v.year < 2024, lambda c: 2024),
    "year, month": Lookup(lambda c: {"year": 2024, "month": 2}, lambda c, v: (v.year, v.month) == (2024, 2)),
    "year, month, day": Lookup(
        lambda c: {"year": 2024, "month": 2, "day": 29}, lambda c, v: (v.year, v.month, v.day) == (2024, 2, 29)
    ),
    "month": simple("month", lambda c, v: False, lambda c: 2),
    "size": simple("size", lambda c, v: size(v) == size(first(c)), lambda c: size(first(c)) or 1),
    "size__gt": simple("size__gt", lambda c, v: size(v) > 1, lambda c: 1),
    "attribute_type": simple("attribute_type", lambda c, v: True, lambda c: c.type),
    "has_key": simple("has_key", lambda c, v: "a" in v, key),
    "has_keys": simple("has_keys", lambda c, v: {"a", "b"} <= set(v), lambda c: ["a", "b"]),
    "has_any_keys": simple("has_any_keys", lambda c, v: bool({"b", "c"} & set(v)), lambda c: ["b", "c"]),
    "path": simple("a", lambda c, v: isinstance(v, dict) and v.get("a") == 1, lambda c: 1),
    "position": simple("0", lambda c, v: isinstance(v, list) and v[:1] == ["a"], lambda c: "a"),
}


def prefix(value: Any) -> Any:
    """Return a prefix of a value, if it has one."""
    return value[:1] if isinstance(value, str | bytes) else value


def expected(lookup: str, name: str) -> list[str]:
    """The identifiers of the values that meet a lookup, by Python's own means."""
    column, question = COLUMNS[name], LOOKUPS[lookup]
    return [str(place) for place, value in enumerate(column.values) if question.holds(column, value)]


@contextmanager
def declared(name: str) -> Iterator[Any]:
    """A model with an attribute of this type: alone in the partition of one key and the sort key of another."""
    column = COLUMNS[name]
    with forgotten():
        yield _model(column, "", with_keys=True)


@contextmanager
def declared_canonical(name: str) -> Iterator[Any]:
    """Return the model with the canonical form in its keys."""
    with forgotten():
        yield _model(COLUMNS[name], ":canonical", with_keys=True)


@contextmanager
def declared_nullable(name: str) -> Iterator[Any]:
    """Return a model with a nullable attribute of this type and only the primary key."""
    with forgotten():
        yield _model(COLUMNS[name], "", with_keys=False, null=True)


def _model(column: Column, spec: str, *, with_keys: bool, **options: Any) -> Any:
    in_key = "copy" if column.copied else "value"
    part = f"{{{in_key}{spec}}}"
    indexed = column.type in ("S", "N", "BOOL") and column.make is not models.JSONAttribute
    keys = {
        "by_partition": models.IndexKey("gs1", f"CELL#{part}", "{cell_id}"),
        "by_sort": models.IndexKey("gs2", "CELL", f"{part}#{{cell_id}}"),
    }
    copy = {"copy": models.CanonicalAttribute(source="value")} if column.copied else {}
    return declare(
        "Cell",
        ("CELL", "{cell_id}"),
        keys if indexed and with_keys else {},
        cell_id=models.UnicodeAttribute(),
        value=column.make(**options),
        **copy,
    )


def ask(model: Any, lookup: str, name: str) -> Any:
    """Return the queryset of a query; it raises an error immediately or in planning."""
    conditions = LOOKUPS[lookup].conditions(COLUMNS[name])
    return model.objects.filter(**{f"value__{suffix}".rstrip("_"): given for suffix, given in conditions.items()})


#: The key of each query, and the cell if that key expresses the whole query.
KEYS = ("by_partition", "by_sort", "primary")


def by_key(model: Any, lookup: str, name: str, key: str) -> Any | None:
    """Return the queryset with one key; ``None`` if it is rejected or unsupported."""
    try:
        queryset = ask(model, lookup, name).using_index(key)
        queryset.explain()
    except DynamoSingleError:
        return None
    is_path = "path=('" in repr(state_of(queryset).where)
    # In a document, a name that is no lookup is a step of a path.
    return queryset if not is_path or lookup in ("path", "position") else None


def in_key(queryset: Any) -> bool:
    """Return whether the key conditions express the whole query; a filter may check the type."""
    return queryset is not None and not set(re.findall("attribute='([a-z]+)'", repr(queryset._plan().filter)))


#: Queries for a model with a key of its own kind.
CANONICAL = ("canonical", "text")


def models_of(lookup: str, name: str) -> Any:
    """Return the model to query."""
    return declared_canonical(name) if (lookup, name) == CANONICAL else declared(name)


def cell(lookup: str, name: str) -> str:
    """Return ``key`` (partition or sort key), ``sort key``, ``partition``, ``filter``, or ``-`` if it is rejected."""
    return _cells()[lookup, name]


@cache
def _cells() -> dict[tuple[str, str], str]:
    """Return each cell; one model per column, because a declaration takes longer than its queries."""
    found = {}
    for name in COLUMNS:
        with declared(name) as model:
            found |= {(lookup, name): _cell(model, lookup, name) for lookup in LOOKUPS}
    lookup, name = CANONICAL
    with declared_canonical(name) as model:
        return found | {CANONICAL: _cell(model, lookup, name)}


def _cell(model: Any, lookup: str, name: str) -> str:
    by_partition, by_sort, listed = (by_key(model, lookup, name, key) for key in KEYS)
    if in_key(by_partition) and in_key(by_sort):
        return "key"
    if in_key(by_partition) or in_key(by_sort):
        return "partition" if in_key(by_partition) else "sort key"
    return "-" if listed is None else "filter"


def shown() -> list[list[str]]:
    """Return the page's table without planning, so that it can parametrize tests."""
    found = table(ROOT / "docs/reference/lookups.md", "Lookups and types")
    return [[cell.replace("\N{EN DASH}", "-") for cell in row] for row in found]


def answered() -> list[tuple[str, str]]:
    """Return the supported lookups and columns on the page."""
    cells = [(row[0].strip("`"), dict(zip(COLUMNS, row[1:], strict=True))) for row in shown()]
    return [(lookup, name) for lookup, row in cells for name, said in row.items() if said != "-"]


def rows() -> list[list[str]]:
    """Return the expected table: a lookup, and its support for each type."""
    return [[f"`{lookup}`", *(cell(lookup, name) for name in COLUMNS)] for lookup in LOOKUPS]
