"""Comparisons without regard to case: by a folded copy of a text, or by a key that holds its canonical form.

DynamoDB compares bytes, so there is no third way. This module must not know plans or requests.
"""

from __future__ import annotations

from typing import Any

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import Compare, Condition
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CanonicalAttribute


def folded(field: Any, lookup: str, operator: str, value: Any) -> Condition:
    """A text compared by its folded form; raises ``NotSupported`` if the model keeps none."""
    attribute, name = field.attribute, field.attname
    if attribute.key_kind != "text":
        raise NotSupported(f"{name}__{lookup} is not supported: {name} is no text, and only text has case.")
    text = attribute.prepare(value)
    copy = copy_of(field)
    if copy is not None:
        return Compare(copy.name, operator, copy.folded(text))
    if operator == "exact" and _is_in_canonical_key(field):
        return Compare(name, "canonical", text)
    ways_out = [f"add {name}_folded = models.CanonicalAttribute(source={name!r}), which it compares then"]
    if operator == "exact":
        ways_out.append(f"put {{{name}:canonical}} into a key")
    raise NotSupported(
        f"{name}__{lookup} is not supported: DynamoDB compares bytes. Keep a folded copy: {', or '.join(ways_out)}."
    )


def copy_of(field: Any) -> CanonicalAttribute | None:
    """The copy that says most about a text: the one of which less was taken away."""
    copies = [
        attribute
        for attribute in registry.attributes_of(field.model).values()
        if isinstance(attribute, CanonicalAttribute) and attribute.source == field.attname
    ]
    return min(copies, key=lambda copy: copy.fold != "canonical", default=None)


def _is_in_canonical_key(field: Any) -> bool:
    layout = registry.layout_of(field.model)
    parts = (part for key in layout.keys for part in (*key.partition.parts, *key.sort.parts))
    return any(part.name == field.attname and part.spec == "canonical" for part in parts)
