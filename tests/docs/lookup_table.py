"""Every lookup on every type of attribute: what it means in Python, and what becomes of it here.

One table of values and questions: the reference page shows what the planner does with them, and the contract tests
hold each answer of the engine against ``expected()``.
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
    """A type of attribute: some values, the first of which is asked for, and a value that is not among them."""

    make: Callable[..., Any]
    values: tuple[Any, ...]
    other: Any
    #: DynamoDB's name of the type.
    type: str = "S"
    #: What a value of this type can be asked whether it contains, and what it can start with.
    member: Any = None
    #: The same value written in another case.
    respelled: Any = None
    #: A copy without case stands beside the attribute, and in its place in the keys.
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
    """The size of a value as DynamoDB counts it; ``None`` if it has none."""
    if isinstance(value, str):
        return len(value.encode("utf-16-le")) // 2
    return len(value) if isinstance(value, bytes | list | dict | set) else None


def order(value: Any) -> Any:
    """What values sort by: texts by their bytes, UUIDs as text."""
    return value.encode() if isinstance(value, str) else str(value) if isinstance(value, uuid.UUID) else value


@dataclass(frozen=True)
class Lookup:
    """A question about an attribute: the conditions for a column, by suffix, and which values meet it."""

    conditions: Callable[[Column], dict[str, Any]]
    holds: Callable[[Column, Any], Any]


def simple(suffix: str, holds: Callable[[Column, Any], Any], value: Callable[[Column], Any] | None = None) -> Lookup:
    """A lookup of one condition, about the column's first value unless another is given."""
    return Lookup(lambda column: {suffix: (value or first)(column)}, holds)


def first(column: Column) -> Any:
    """The value that is asked for."""
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
    """A text as its copy has it."""
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
    """What a value starts with, if it can be cut."""
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
    """The same with the canonical form in the keys."""
    with forgotten():
        yield _model(COLUMNS[name], ":canonical", with_keys=True)


@contextmanager
def declared_nullable(name: str) -> Iterator[Any]:
    """A model with an attribute of this type that may be missing, and no key but its own."""
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
    """The queryset that asks a question; refused at once, or when it is planned."""
    conditions = LOOKUPS[lookup].conditions(COLUMNS[name])
    return model.objects.filter(**{f"value__{suffix}".rstrip("_"): given for suffix, given in conditions.items()})


#: By which key each question is asked, and what it is when that key expresses the whole of it.
KEYS = ("by_partition", "by_sort", "primary")


def by_key(model: Any, lookup: str, name: str, key: str) -> Any | None:
    """The queryset by one key; ``None`` where it is refused, or where that key does not answer it."""
    try:
        queryset = ask(model, lookup, name).using_index(key)
        queryset.explain()
    except DynamoSingleError:
        return None
    is_path = "path=('" in repr(state_of(queryset).where)
    # In a document, a name that is no lookup is a step of a path.
    return queryset if not is_path or lookup in ("path", "position") else None


def in_key(queryset: Any) -> bool:
    """Whether the key conditions express the whole question; the item's type may be left to a filter."""
    return queryset is not None and not set(re.findall("attribute='([a-z]+)'", repr(queryset._plan().filter)))


#: What is asked of a model with a key of its own kind.
CANONICAL = ("canonical", "text")


def models_of(lookup: str, name: str) -> Any:
    """The model to ask."""
    return declared_canonical(name) if (lookup, name) == CANONICAL else declared(name)


def cell(lookup: str, name: str) -> str:
    """``key`` (partition or sort key), ``sort key``, ``partition``, ``filter``, or ``-`` where it is refused."""
    return _cells()[lookup, name]


@cache
def _cells() -> dict[tuple[str, str], str]:
    """Each cell; a model is declared for each column, since that takes longer than all questions to it."""
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
    """The table as the page has it: to read that takes no planning, so that tests can be listed by it."""
    found = table(ROOT / "docs/reference/lookups.md", "Lookups and types")
    return [[cell.replace("\N{EN DASH}", "-") for cell in row] for row in found]


def answered() -> list[tuple[str, str]]:
    """The lookups and columns that the page has an answer for."""
    cells = [(row[0].strip("`"), dict(zip(COLUMNS, row[1:], strict=True))) for row in shown()]
    return [(lookup, name) for lookup, row in cells for name, said in row.items() if said != "-"]


def rows() -> list[list[str]]:
    """The page's table as it has to be: a lookup, and what becomes of it for each type."""
    return [[f"`{lookup}`", *(cell(lookup, name) for name in COLUMNS)] for lookup in LOOKUPS]
