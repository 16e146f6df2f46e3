"""Changes that DynamoDB cannot make by itself: they are computed here of what was read, and written if it still holds.

They are computed here where keys, unique values or other items depend on an attribute. This module must not know how
items are written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.matching import normal
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.effects.effect import Subject
from dynamo_single.orm.effects.together import depended_on, has_followers
from dynamo_single.orm.effects.write_errors import unmet_error
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.serialization import Values, index_names, touched
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.requests.changes import Change, as_stored, evaluate, operand_names, unmet
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.encoding.values import text_to_number
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.names import SCHEMA_VERSION

#: How often a change is computed again because another writer was faster.
ATTEMPTS = 8


def attribute_names(model: type[DynamoModel], changes: Collection[Change]) -> frozenset[str]:
    """The attributes that the changes change."""
    changed = {change.place.name for change in changes}
    attributes = registry.attributes_of(model) if changed else {}
    return frozenset(name for name, attribute in attributes.items() if attribute.attr_name in changed)


def is_left_to_dynamodb(
    model: type[DynamoModel], changes: Collection[Change], changed: Collection[str], *, alone: bool
) -> bool:
    """Whether DynamoDB can make the changes itself.

    ``changed`` are the attributes that get a value in the same write. A write that is ``alone`` is answered with the
    new values, unless other items change with it.
    """
    depended = depended_on(model)
    if any(change.computed for change in changes) or attribute_names(model, changes) & depended:
        return False
    if has_followers(model, changes, changed if alone else ()):
        return False
    return not alone or depended.isdisjoint(changed)


def compute(subject: Subject, changes: Sequence[Change], before: Item) -> tuple[Values, Condition]:
    """What the changes make of what was read, by attribute, and the condition that their operands are so still.

    Raises ``InvalidValue`` for a change that means nothing for the item.
    """
    missing = unmet(changes, before)
    if missing is not None:
        raise unmet_error(subject, missing, before)
    after = evaluate(changes, before)
    attributes = registry.attributes_of(subject.model)
    values = {
        name: _value(attribute, after[attribute.attr_name])
        for name, attribute in attributes.items()
        if attribute.attr_name in after
    }
    return values, join(as_stored(before, name) for name in sorted(operand_names(changes)))


def _value(attribute: Attribute, stored: Mapping[str, Any] | None) -> object:
    if stored is None:
        return None
    # A sum need not be what the attribute takes, as a whole number: then it is a wrong value, not a wrong item.
    is_sum = attribute.key_kind == "number"
    return attribute.prepare(text_to_number(stored["N"])) if is_sum else attribute.from_attribute_value(dict(stored))


def with_operands(model: type[DynamoModel], changes: Sequence[Change], before: Item, found: Item) -> Item | None:
    """What was read with the operands that were found in the table, to compute again; ``None`` if that must not be.

    An operand has to be what changed, and nobody else's version may be written over. The index keys go along with the
    operands: what another writer stored there is not what was read.
    """
    operands = operand_names(changes)
    if before.get(SCHEMA_VERSION) != found.get(SCHEMA_VERSION):
        return None
    if versions.is_outdated(model, before, found) or all(_is_same(before, found, name) for name in operands):
        return None
    attributes = registry.attributes_of(model)
    followers = (copy for copy in registry.copies_of(model) if attributes[copy.source].attr_name in operands)
    names = {*operands, *index_names(model), *(copy.attr_name for copy in followers)}
    mixed = {name: value for name, value in before.items() if name not in names}
    return {**mixed, **{name: found[name] for name in names if name in found}}


def operand_values(obj: DynamoModel, changes: Sequence[Change], read: Item, item: Item) -> Values:
    """What the operands are in an item, by attribute, for those that an object shows as they were ``read``."""
    operands, set_here = operand_names(changes), touched(obj, hydration.values_of(type(obj), read))
    held = hydration.values_of(type(obj), item)
    attributes = registry.attributes_of(type(obj))
    names = {name for name, each in attributes.items() if each.attr_name in operands} - set_here
    return {name: held[name] for name in names & obj.__dict__.keys()}


def _is_same(one: Item, other: Item, name: str) -> bool:
    return (name in one) == (name in other) and (name not in one or normal(one[name]) == normal(other[name]))
