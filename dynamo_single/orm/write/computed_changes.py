"""Changes that DynamoDB cannot make by itself: they are computed here of what was read, and written if it is so still.

It is so where keys, unique values or other items depend on an attribute. Here too it is said what an object knows after
DynamoDB has changed it. This module must not know how items are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.matching import normal
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.effects.unique_rules import rules_of
from dynamo_single.orm.effects.write_errors import stored_instead, unmet_error
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.partial import changed_in_memory
from dynamo_single.orm.items.serialization import index_names, stored_name
from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.requests.changes import Change, as_stored, evaluate, operand_names, unmet
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.encoding.values import text_to_number

#: How often a change is computed anew because another writer was faster.
ATTEMPTS = 8


def depended_on(model: Any) -> frozenset[str]:
    """The attributes on which keys, unique values, copies or other items depend."""
    concrete = model._meta.concrete_model
    return _depended_on(concrete) | {copy.source.name for copy in registry.copied_from(concrete)}


@cache
def _depended_on(model: Any) -> frozenset[str]:
    layout = registry.layout_of(model)
    keys = {name for key in (layout.primary, *layout.index_keys) for name in key.variables}
    folded = {copy.source for copy in registry.copies_of(model)}
    references = {field.attname for field in model._meta.concrete_fields if field.is_relation}
    claimed = {stored for rule in rules_of(model) for stored in rule.stored_names}
    unique = {name for name, info in layout.attributes.items() if info.stored in claimed}
    follows = {*unique, *model.derived_from, registry.DELETED_AT}
    return frozenset({*keys, *folded, *references, *follows, *filter(None, (layout.expires,))})


def attribute_names(model: Any, changes: Collection[Change]) -> set[str]:
    """The attributes that the changes change."""
    changed = {change.place.name for change in changes}
    return {name for name, attribute in registry.attributes_of(model).items() if attribute.attr_name in changed}


def is_left_to_dynamodb(model: Any, changes: Collection[Change], changed: Collection[str], *, alone: bool) -> bool:
    """Whether DynamoDB can make the changes itself.

    ``changed`` are the attributes that get a value in the same write. A write that is ``alone`` is answered with the
    new values, unless other items change with it.
    """
    depended = depended_on(model)
    if any(change.computed for change in changes) or attribute_names(model, changes) & depended:
        return False
    return not alone or depended.isdisjoint(changed)


def compute(obj: Any, changes: Sequence[Change], write: Callable[[Condition], None]) -> None:
    """Set an object's attributes to what the changes make of what was read, and write, if the operands are so still.

    Where they are not, it is done again with those that DynamoDB found, without a further reading.
    """
    model = type(obj)
    held = dict(obj.attribute_values)
    set_here = changed_in_memory(obj)
    for attempt in range(1, ATTEMPTS + 1):
        before = obj._stored
        missing = unmet(changes, before)
        if missing is not None:
            obj.attribute_values = held
            raise unmet_error(obj, missing, before)
        done = False
        try:
            obj.attribute_values.update(_values(model, changes, before))
            write(join(as_stored(before, name) for name in sorted(operand_names(changes))))
            done = True
        except StaleObject as error:
            found = stored_instead(error)
            if found is None or attempt == ATTEMPTS or not _may_try_again(model, changes, before, found):
                raise
            operands = operand_names(changes)
            # With the keys that go with them: what another writer stored there is not what was read.
            obj._stored = _with(before, found, operands | index_names(model))
            # What the object shows goes along, or its next save() would write the former values back.
            now_held = hydration.values_of(model, obj._stored)
            read = {n for n, each in registry.attributes_of(model).items() if each.attr_name in operands} - set_here
            held.update((name, now_held[name]) for name in read & held.keys())
        finally:
            if not done:
                obj.attribute_values = dict(held)  # an attribute that was set to a change is so still
        if done:
            return


def _values(model: Any, changes: Sequence[Change], item: Item) -> dict[str, Any]:
    after = evaluate(changes, item)
    found = {}
    for name, attribute in registry.attributes_of(model).items():
        if attribute.attr_name in after:
            found[name] = _value(attribute, after[attribute.attr_name])
    return found


def _value(attribute: Attribute[Any], stored: Mapping[str, Any] | None) -> Any:
    if stored is None:
        return None
    # A sum need not be what the attribute takes, as a whole number: then it is a wrong value, not a wrong item.
    is_sum = attribute.key_kind == "number"
    return attribute.prepare(text_to_number(stored["N"])) if is_sum else attribute.from_attribute_value(dict(stored))


def _may_try_again(model: Any, changes: Sequence[Change], before: Item, found: Item) -> bool:
    """Whether an operand is what was changed, and nobody else's version is overwritten."""
    if versions.is_outdated(model, before, found):
        return False
    return any(not _is_same(before, found, name) for name in operand_names(changes))


def _is_same(one: Item, other: Item, name: str) -> bool:
    return (name in one) == (name in other) and (name not in one or normal(one[name]) == normal(other[name]))


def _with(item: Item, other: Item, names: Collection[str]) -> dict[str, Any]:
    """An item with some attributes as in another one."""
    mixed = {name: value for name, value in item.items() if name not in names}
    return {**mixed, **{name: other[name] for name in names if name in other}}


def remembered(obj: Any, item: Item, changes: Collection[Change], answer: Item | None) -> Item:
    """What an object knows of its item after a write: with the new values that DynamoDB answered.

    Without an answer, as in an ``atomic()`` block, nobody knows them yet: they are read when they are asked for.
    """
    changed = {change.place.name for change in changes}
    if not changed:
        return item
    if answer is not None:
        return _with(item, answer, changed)
    for name in attribute_names(type(obj), changes):
        obj.attribute_values.pop(name, None)
    known = {stored_name(type(obj), name) for name in registry.attributes_of(type(obj))} | item.keys()
    return PartialItem({name: dict(item[name]) for name in item if name not in changed}, known - changed)
