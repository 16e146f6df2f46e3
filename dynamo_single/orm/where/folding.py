"""Comparisons without regard to case: by a folded copy of a text, or by a key or a claim that holds its canonical form.

DynamoDB compares bytes, so there is no third way. This module must not know plans or requests.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import And, Compare, Condition, Or
from dynamo_single.orm.conditions.wording import FILTER_IN_PYTHON, sentence
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CanonicalAttribute
from dynamo_single.orm.schema.attributes.canonical import FOLDS
from dynamo_single.orm.schema.encoding.values import checked_text
from dynamo_single.orm.schema.kinds import DynamoModel

if TYPE_CHECKING:
    from dynamo_single.orm.schema.fields.fields import DynamoField

#: What a copy is compared by, in the place of the text itself.
_BY_COPY = {"iexact": "exact", "icontains": "contains", "istartswith": "startswith"}
#: The types of DynamoDB that hold texts, or numbers that are written as texts.
_SEARCHED = ("S", "N", "SS", "NS")


def folded(field: DynamoField, lookup: str, operator: str, value: object) -> Condition:
    """A text compared by its folded form; raises ``NotSupported`` if the model keeps none."""
    attribute, name = field.attribute, field.attname
    if attribute.key_kind != "text":
        exact = f"use {name} without __iexact, or " if operator == "exact" else ""
        raise NotSupported(
            f"{name}__{lookup} is not supported: {name} is no text, and only text has case. "
            f"{sentence(exact + FILTER_IN_PYTHON)}."
        )
    text = attribute.prepare(value)
    copy = copy_of(field)
    if copy is not None:
        return Compare(copy.name, operator, copy.folded(text))
    if operator == "exact" and (attribute.canonical or _is_in_canonical_key(field)):
        return Compare(name, "canonical", text)
    ways_out = [f"add {name}_folded = models.CanonicalAttribute(source={name!r}), which it compares then"]
    if operator == "exact":
        ways_out.append(f"put {{{name}:canonical}} into a key")
    raise NotSupported(
        f"{name}__{lookup} is not supported: DynamoDB compares bytes. Keep a folded copy: "
        f"{', or '.join(ways_out)}. Otherwise {FILTER_IN_PYTHON}."
    )


def in_memory(field: DynamoField, lookup: str, value: object) -> Condition:
    """A part of a text, of a number as it is written, or of a member of a set, compared in Python.

    A folded copy finds what the text itself would not, such as what is written without its accents. A comparison that
    a key can answer is left to the copy alone.
    """
    attribute, name = field.attribute, field.attname
    if attribute.attr_type not in _SEARCHED:
        raise NotSupported(
            f"{name}__{lookup} is not supported: {name} has the type {type(attribute).__name__}, which contains no "
            f"text. {sentence(FILTER_IN_PYTHON)}."
        )
    text = checked_text(str(value), path=name)
    copy = copy_of(field) if attribute.key_kind == "text" and lookup in _BY_COPY else None
    folded_text = "" if copy is None else copy.folded(text)
    if copy is None or not folded_text:
        return Compare(name, lookup, text)
    of_copy = Compare(copy.name, _BY_COPY[lookup], folded_text)
    return Or((of_copy, Compare(name, lookup, text))) if lookup == "icontains" else of_copy


def copy_of(field: Any) -> CanonicalAttribute | None:
    """The copy that says most about a text: the one of which less was taken away."""
    copies = [
        attribute
        for attribute in registry.attributes_of(field.model).values()
        if isinstance(attribute, CanonicalAttribute) and attribute.source == field.attname
    ]
    folds = list(FOLDS)
    return min(copies, key=lambda copy: folds.index(copy.fold), default=None)


def _is_in_canonical_key(field: Any) -> bool:
    layout = registry.layout_of(field.model)
    parts = (part for key in layout.keys for part in (*key.partition.parts, *key.sort.parts))
    return any(part.name == field.attname and part.bound.spec == "canonical" for part in parts)


def canonically(model: type[DynamoModel], condition: Condition) -> Condition:
    """A queryset's condition with equality of the texts whose canonical form is an identity: compared by that form.

    These are parts ``{name:canonical}`` of the primary key, and ``canonical=True`` attributes that a key has so. Within
    a negation the text itself is compared, as DynamoDB does it.
    """
    names = identifying(model)
    return _canonically(names, condition) if names else condition


def _canonically(names: frozenset[str], condition: Condition) -> Condition:
    if isinstance(condition, And | Or):
        return type(condition)(tuple(_canonically(names, child) for child in condition.children))
    if not isinstance(condition, Compare) or condition.operator != "exact" or condition.path:
        return condition
    return replace(condition, operator="canonical") if condition.attribute in names and condition.value else condition


@cache
def identifying(model: type[DynamoModel]) -> frozenset[str]:
    """The texts of a model whose canonical form is an identity: equality with them is without regard to case."""
    layout = registry.layout_of(model)
    primary = (*layout.primary.partition.parts, *layout.primary.sort.parts)
    found = {part.name for part in primary if part.bound.spec == "canonical"}
    for name, attribute in registry.attributes_of(model).items():
        if attribute.unique and attribute.canonical and _is_in_canonical_key(attribute.field):
            found.add(name)
    return frozenset(found)
