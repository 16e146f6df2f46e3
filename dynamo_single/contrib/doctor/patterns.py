"""Access patterns: every key of every model, and the queries that it supports without reading further items.

The patterns are computed from the declarations, and can be drawn as an SVG picture: a box for the table and for each
index, and a row for each key. Each item type has one color on all pages and in all pictures. Text has the color of the
page, and fills are readable on a dark page too. This module sends no requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal
from zlib import crc32

from django.template.loader import render_to_string
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.items.unique_rules import rules_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.template import KeyPart
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.orm.schema.types import DynamoModel

Lookup = Literal["exact", "range", "startswith", "present", "filled"]

_SHOWN: Final[dict[Lookup, str]] = {
    "exact": "{}=…",
    "range": "{}__range=(…, …)",
    "startswith": "{}__startswith=…",
    "present": "{}__isnull=False",
    "filled": '{}__gt=""',
}


class Answer(Struct, frozen=True):
    """One query: a queryset's method, its conditions with their lookups, and its order. ``str()`` writes Python."""

    method: Literal["get", "filter"]
    conditions: tuple[tuple[str, Lookup], ...] = ()
    order: str = ""
    manager: Literal["objects", "deleted_objects"] = "objects"
    #: The further condition that a query needs on a conditional index.
    only: str = ""

    def __str__(self) -> str:
        each = (_SHOWN[lookup].format(name) for name, lookup in self.conditions)
        asked = ", ".join((*each, self.only) if self.only else each)
        query = f"{self.manager}.{self.method}({asked})" if asked else f"{self.manager}.all()"
        return f'{query}.order_by("{self.order}")' if self.order else query


class Pattern(Struct, frozen=True):
    """A key of a model with the queries that it supports; ``index`` is empty for the table's primary key."""

    label: str
    item_type: str
    name: str
    index: str
    partition: str
    sort: str
    answers: tuple[Answer, ...]


class IndexPatterns(Struct, frozen=True):
    """The patterns of the table, or of one of its indexes."""

    index: str
    patterns: tuple[Pattern, ...]


def patterns_of(model: type[DynamoModel]) -> tuple[Pattern, ...]:
    """Return the access patterns of one model: the primary key, then its indexes, its trash and its unique values."""
    layout = registry.layout_of(model)
    found = [_pattern(layout, key, tuple(_answers(layout, key))) for key in layout.keys]
    if layout.trash is not None:
        found.append(_pattern(layout, layout.trash, (Answer("filter", manager="deleted_objects"),)))
    for rule in rules_of(model):
        if rule.needs_claims:
            names = "#".join(attribute.attr_name for attribute in rule.attributes)
            values = "#".join(f"{{{a.name}:canonical}}" if a.canonical else f"{{{a.name}}}" for a in rule.attributes)
            answer = Answer("get", tuple((field, "exact") for field in rule.fields))
            partition = f"UNIQUE#{layout.item_type}#{names}#{values}"
            found.append(
                Pattern(
                    layout.label,
                    layout.item_type,
                    f"unique {', '.join(rule.fields)}",
                    "",
                    partition,
                    "#CLAIM",
                    (answer,),
                )
            )
    return tuple(found)


def patterns(alias: str = "default") -> tuple[Pattern, ...]:
    """Return the access patterns of all models of a table, sorted by their labels."""

    def label(model: Any) -> str:
        return str(model._meta.label)

    models = (model for model in registry.all_models() if model._options.alias == alias)
    return tuple(pattern for model in sorted(models, key=label) for pattern in patterns_of(model))


def by_index(found: Iterable[Pattern]) -> tuple[IndexPatterns, ...]:
    """Return the patterns grouped by index, the table first."""
    groups: dict[str, list[Pattern]] = {}
    for pattern in found:
        groups.setdefault(pattern.index, []).append(pattern)
    return tuple(
        IndexPatterns(index, tuple(sorted(groups[index], key=lambda each: (each.partition, each.sort))))
        for index in sorted(groups)
    )


def _pattern(layout: ModelLayout, key: AccessKey, answers: tuple[Answer, ...]) -> Pattern:
    index = key.index or ""
    return Pattern(layout.label, layout.item_type, key.name, index, key.partition.source, key.sort.source, answers)


def _answers(layout: ModelLayout, key: AccessKey) -> Iterator[Answer]:
    """Yield the queries of a key. They must exclude items without a part of an index's key: those are not in it."""
    optional = [name for name in key.variables if not layout.attributes[name].required]
    for answer in _of_parts(layout, key):
        named = {name for name, _ in answer.conditions}
        missing: list[tuple[str, Lookup]] = [
            (name, "filled" if layout.attributes[name].is_text else "present") for name in optional if name not in named
        ]
        only = "" if key.condition is None else lowering.filter_text(key.condition)
        yield replace(answer, conditions=(*answer.conditions, *missing), only=only)


def _of_parts(layout: ModelLayout, key: AccessKey) -> Iterator[Answer]:
    """Yield the queries for an object, for a partition in its order, and for the parts that its sort key contains."""
    known: list[tuple[str, Lookup]] = [(name, "exact") for name in key.partition.variables]
    if key.index is None:
        yield Answer("get", tuple((name, "exact") for name in layout.identity))
    # One reference may contribute several parts of its identity.
    parts = [*{part.name: part for part in key.sort.parts if part.name not in key.partition.variables}.values()]
    if not parts and key.index is not None:
        yield Answer("filter", tuple(known))
    for part in parts:
        order = part.name if part.ordered else ""
        yield Answer("filter", tuple(known), order)
        if not _tells_apart(layout, key, part):
            if order:
                yield Answer("filter", (*known, (part.name, "range")), order)
            if layout.attributes[part.name].is_text and part.bound.prefixable:
                yield Answer("filter", (*known, (part.name, "startswith")))
        known.append((part.name, "exact"))


def _tells_apart(layout: ModelLayout, key: AccessKey, part: KeyPart) -> bool:
    """Return whether a part only distinguishes objects whose preceding parts are equal."""
    return part.name in layout.identity and part is key.sort.parts[-1]


#: Twelve colors that most people can distinguish, on light and dark pages; ``table.css`` refers to them by number.
COLORS: Final = (
    "#4e79a7",
    "#f28e2b",
    "#e15759",
    "#76b7b2",
    "#59a14f",
    "#edc948",
    "#b07aa1",
    "#ff9da7",
    "#9c755f",
    "#86bcb6",
    "#8cd17d",
    "#d37295",
)


def number_of(name: str) -> int:
    """Return the number of an item type's color."""
    return crc32(name.encode()) % len(COLORS)


def color_of(name: str) -> str:
    """Return an item type's color."""
    return COLORS[number_of(name)]


_CHARACTER: Final = 7.4
_ROW: Final = 24
_PADDING: Final = 12
_GAP: Final = 28


class _Row(Struct, frozen=True):
    """A key with its vertical position in pixels."""

    pattern: Pattern
    top: int
    middle: int
    color: str


class _Box(Struct, frozen=True):
    """The box of the table or of an index, with its rows."""

    title: str
    top: int
    height: int
    rows: tuple[_Row, ...]


def picture(indexes: Sequence[IndexPatterns]) -> str:
    """Return the SVG of some patterns, as wide as the longest keys. It contains no script and no style sheet."""
    found = [pattern for each in indexes for pattern in each.patterns]
    widths = [
        max((len(text) for text in texts), default=0) * _CHARACTER + 2 * _PADDING
        for texts in (
            [f"{pattern.label} {pattern.name}" for pattern in found],
            [pattern.partition for pattern in found],
            [pattern.sort for pattern in found],
        )
    ]
    boxes = []
    top = _PADDING
    for each in indexes:
        first = top + _ROW
        rows = tuple(
            _Row(pattern, first + number * _ROW, first + number * _ROW + _ROW // 2 + 4, color_of(pattern.item_type))
            for number, pattern in enumerate(each.patterns)
        )
        boxes.append(_Box(each.index, top, _ROW * (len(rows) + 1), rows))
        top += _ROW * (len(rows) + 1) + _GAP
    columns = [_PADDING, _PADDING + widths[0], _PADDING + widths[0] + widths[1]]
    width = columns[2] + widths[2] + _PADDING
    context = {"boxes": boxes, "columns": columns, "width": round(width), "height": top, "inner": width - 2 * _PADDING}
    return render_to_string("dynamo_single/admin/table/patterns.svg", context)
