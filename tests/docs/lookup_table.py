"""Which lookup is answered how, for an attribute of each type: found out by asking the planner."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import FieldError

from dynamo_single import planner, registry, where
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.keys import Template, codec_for
from dynamo_single.options import AccessKey
from dynamo_single.query import EVERYTHING, Compare, Condition, Plan, Query
from tests.catalog.models import Sample

#: The page's columns: an attribute of each type, and a value for it.
COLUMNS: dict[str, tuple[str, Any]] = {
    "text": ("text", "abc"),
    "number": ("decimal", Decimal("1.5")),
    "boolean": ("flag", True),
    "timestamp": ("moment", datetime(2025, 1, 1, tzinfo=UTC)),
    "date": ("day", date(2025, 1, 1)),
    "UUID": ("token", uuid.UUID(int=1)),
    "JSON": ("json", {"a": 1}),
    "map": ("data", {"a": 1}),
    "list": ("things", [1]),
    "set": ("words", {"a"}),
    "binary": ("blob", b"a"),
}
LOOKUPS = ("exact", "in", "lt", "lte", "gt", "gte", "range", "startswith", "contains", "isnull", "canonical", "has_key")
#: What the values of these lookups look like, where it is not the attribute's own value.
VALUES: dict[str, Any] = {
    "in": lambda value: [value, OTHERS.get(type(value), value)],
    "range": lambda value: (value, value),
    "isnull": lambda value: True,
    "has_key": lambda value: "a",
}
#: A second value of each type: one value alone is the same as ``exact``.
OTHERS: dict[type, Any] = {
    str: "abd",
    Decimal: Decimal(2),
    bool: False,
    datetime: datetime(2025, 1, 2, tzinfo=UTC),
    date: date(2025, 1, 2),
    uuid.UUID: uuid.UUID(int=2),
    dict: {"a": 2},
    list: [2],
    set: {"b"},
    bytes: b"b",
}
MEMBERS = {"things": 1, "words": "a"}


def rows() -> list[list[str]]:
    """The page's table: a lookup, and what becomes of it for each type."""
    return [[f"`{lookup}`", *(cell(lookup, *column) for column in COLUMNS.values())] for lookup in LOOKUPS]


def cell(lookup: str, name: str, value: Any) -> str:
    """``key`` (partition or sort key), ``sort key``, ``partition``, ``filter``, or ``-`` where it is refused."""
    given = MEMBERS.get(name, value) if lookup == "contains" else VALUES.get(lookup, lambda same: same)(value)
    try:
        condition = where.read_where(Sample, Sample.objects.filter(**{f"{name}__{lookup}": given}).query.where)
    except (DynamoSingleError, FieldError):
        return "-"
    if isinstance(condition, Compare) and condition.path:
        return "-"  # in a document, a name that is no lookup is a step of a path
    part = f"{{{name}:canonical}}" if lookup == "canonical" else f"{{{name}}}"
    in_partition = is_key(name, condition, f"X#{part}", "{sample_id}")
    in_sort = is_key(name, condition, "X", f"{part}#{{sample_id}}")
    if in_partition and in_sort:
        return "key"
    if in_partition or in_sort:
        return "partition" if in_partition else "sort key"
    return "filter" if plan(name, condition, "X", "{sample_id}") else "-"


def is_key(name: str, condition: Condition, partition: str, sort: str) -> bool:
    """Whether a key of these templates expresses the whole condition."""
    found = plan(name, condition, partition, sort)
    return found is not None and found.filter == EVERYTHING


def plan(name: str, condition: Condition, partition: str, sort: str) -> Plan | None:
    """How ``Sample`` would be read by one index key, with nobody else in its table; ``None`` if not by this key."""
    layout = registry.layout_of(Sample)
    attribute = registry.attributes_of(Sample)[name]
    templates = (Template.parse(partition), Template.parse(sort))
    try:
        codecs = {
            part.name: codec_for("text" if part.name == "sample_id" else attribute.key_kind or "document", part.spec)
            for template in templates
            for part in template.parts
        }
        key = AccessKey("key", "gs1", *(template.bind(codecs) for template in templates))
        infos = {**layout.attributes, name: replace(layout.attributes[name], required=True)}
        alone = replace(layout, attributes=infos, indexes=(key,), neighbours=tuple)
        return planner.plan(Query(alone, condition))
    except DynamoSingleError:
        return None
