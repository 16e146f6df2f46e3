"""Access patterns: every key of every model, and the queries that it answers without reading more than it gives back.

Worked out of the declarations. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions import indexes
from dynamo_single.orm.items.unique_rules import rules_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.encoding.keys import KeyPart
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout

Lookup = Literal["exact", "range", "startswith", "present", "filled"]

_SHOWN: Final[dict[Lookup, str]] = {
    "exact": "{}=…",
    "range": "{}__range=(…, …)",
    "startswith": "{}__startswith=…",
    "present": "{}__isnull=False",
    "filled": '{}__gt=""',
}


class Answer(Struct, frozen=True):
    """One query: a queryset's method, the conditions with their lookups, and the order; shown as Python writes it."""

    method: Literal["get", "filter"]
    conditions: tuple[tuple[str, Lookup], ...] = ()
    order: str = ""
    manager: Literal["objects", "deleted_objects"] = "objects"
    #: What else has to be asked for, of an index that holds only what meets a condition.
    only: str = ""

    def __str__(self) -> str:
        each = (_SHOWN[lookup].format(name) for name, lookup in self.conditions)
        asked = ", ".join((*each, self.only) if self.only else each)
        query = f"{self.manager}.{self.method}({asked})" if asked else f"{self.manager}.all()"
        return f'{query}.order_by("{self.order}")' if self.order else query


class Pattern(Struct, frozen=True):
    """A key of a model with the queries that it answers; ``index`` is empty for the table's own."""

    label: str
    item_type: str
    name: str
    index: str
    partition: str
    sort: str
    answers: tuple[Answer, ...]


class IndexPatterns(Struct, frozen=True):
    """What lies in the table, or in one of its indexes."""

    index: str
    patterns: tuple[Pattern, ...]


def patterns_of(model: type[DynamoModel]) -> tuple[Pattern, ...]:
    """The access patterns of one model: the table's key first, then its indexes, the trash and its unique values."""
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
    """The access patterns of all models of a table, by their labels."""

    def label(model: Any) -> str:
        return str(model._meta.label)

    models = (model for model in registry.all_models() if model._options.alias == alias)
    return tuple(pattern for model in sorted(models, key=label) for pattern in patterns_of(model))


def by_index(found: Iterable[Pattern]) -> tuple[IndexPatterns, ...]:
    """The patterns by the index that they lie in, the table first."""
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
    """The queries of a key. Items that lack a part of an index's key are not in it: these have to be left out."""
    optional = [name for name in key.variables if not layout.attributes[name].required]
    for answer in _of_parts(layout, key):
        named = {name for name, _ in answer.conditions}
        missing: list[tuple[str, Lookup]] = [
            (name, "filled" if layout.attributes[name].is_text else "present") for name in optional if name not in named
        ]
        only = "" if key.condition is None else indexes.worded(key.condition)
        yield replace(answer, conditions=(*answer.conditions, *missing), only=only)


def _of_parts(layout: ModelLayout, key: AccessKey) -> Iterator[Answer]:
    """An object, a partition in its order, and the parts of one that its sort key names."""
    known: list[tuple[str, Lookup]] = [(name, "exact") for name in key.partition.variables]
    if key.index is None:
        yield Answer("get", tuple((name, "exact") for name in layout.identity))
    # Several parts of one reference's identity are given by it.
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
    """Whether a part is there only to tell objects apart that are equal in front of it."""
    return part.name in layout.identity and part is key.sort.parts[-1]
