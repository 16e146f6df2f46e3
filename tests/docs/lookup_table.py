"""Which lookup is answered how, for an attribute of each type: found out by asking the planner."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import FieldError

from dynamo_single import planner, registry, where
from dynamo_single.exceptions import DynamoSingleError, NoAccessPattern
from dynamo_single.keys import Template, codec_for
from dynamo_single.options import AccessKey, ModelLayout
from dynamo_single.query import EVERYTHING, Query
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
    "in": lambda value: [value],
    "range": lambda value: (value, value),
    "isnull": lambda value: True,
    "has_key": lambda value: "a",
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
        listed = planner.plan(Query(keyed(name, "LISTED", "{sample_id}"), condition))
    except NoAccessPattern:
        listed = None
    except (DynamoSingleError, FieldError):
        return "-"
    in_partition = is_key(name, condition, "X#{name}", "{sample_id}")
    in_sort = is_key(name, condition, "X", "{name}#{sample_id}")
    if in_partition and in_sort:
        return "key"
    if in_partition or in_sort:
        return "partition" if in_partition else "sort key"
    return "-" if listed is None else "filter"


def is_key(name: str, condition: Any, partition: str, sort: str) -> bool:
    """Whether a key of these templates expresses the whole condition."""
    try:
        layout = keyed(name, partition.replace("name", name), sort.replace("name", name))
        return planner.plan(Query(layout, condition)).filter == EVERYTHING
    except DynamoSingleError:
        return False


def keyed(name: str, partition: str, sort: str) -> ModelLayout:
    """``Sample``'s layout with one index key, and nobody else in its table; every item has the attribute."""
    layout = registry.layout_of(Sample)
    codecs = {"sample_id": codec_for("text")}
    attribute = registry.attributes_of(Sample)[name]
    for spec in ("", "canonical"):
        if f"{{{name}:{spec}}}" in sort + partition or f"{{{name}}}" in sort + partition:
            codecs[name] = codec_for(attribute.key_kind or "none", spec)
            break
    key = AccessKey("key", "gs1", Template.parse(partition).bind(codecs), Template.parse(sort).bind(codecs))
    infos = {**layout.attributes, name: replace(layout.attributes[name], required=True)}
    return replace(layout, attributes=infos, indexes=(key,), neighbours=tuple)
