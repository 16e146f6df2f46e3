"""Items that follow from an object: they are written, replaced and deleted in the object's own transaction.

A model names what they are made of in ``derived_from`` and makes them in ``derived_objects()``. This module compares
the items before and after a write; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dynamo_single.exceptions import ConfigurationError, UniqueViolation
from dynamo_single.orm.conditions.terms import Condition, Or, Stored
from dynamo_single.orm.effects.effect import Along, Effect, Transition, standing
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.expiry import free
from dynamo_single.orm.items.form import item_of
from dynamo_single.orm.requests.actions import ITEM_MISSING, Action, Delete, Item, ItemKey, Put, key_of
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes import CounterAttribute, VersionAttribute
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.owners import all_plain
from dynamo_single.table import names
from dynamo_single.table.flow import local

Items = Mapping[ItemKey, Item]


class Derived(Effect):
    """The items that follow from one model's objects."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.made_of = frozenset(stored_names(model))
        self.watches = self.made_of | {names.DELETED_AT}

    async def follow(self, transition: Transition) -> Along:
        """Items to put and to delete; what the model's ``derived_objects()`` reads is its own matter."""
        before, after = transition.before, transition.after
        old, new = await self._items(before), await self._items(after)
        removed = standing(self.model, before) if before is not None and after is None else set()
        return Along(
            tuple(actions(self.model, old, new)),
            self.made_of | removed,
            (*old.values(), *new.values()),
            partial(_explained, transition),
        )

    async def _items(self, item: Item | None) -> Items:
        # A project's own may wait.
        if all_plain(self.model, ("derived_objects",)):
            return items_of(self.model, item)
        return await local(partial(items_of, self.model, item))


def stored_names(model: type[DynamoModel]) -> set[str]:
    """The physical names of the attributes that the model's derived items are made of.

    Raises ``ConfigurationError`` for what is no attribute, and for what changes without anybody reading the object.
    """
    attributes = registry.attributes_of(model)
    for name in model.derived_from:
        if name not in attributes:
            raise ConfigurationError(
                f"{model._meta.label}.derived_from names {name!r}, which is no attribute. It has "
                f"{', '.join(attributes)}."
            )
        if isinstance(attributes[name], CounterAttribute | VersionAttribute):
            raise ConfigurationError(
                f"{model._meta.label}.derived_from names {name!r}, which counts without reading or writing the object, "
                "so that what is derived would not follow."
            )
    found = {attributes[name].attr_name for name in model.derived_from}
    return {*found, names.EXPIRES_AT} if found and registry.layout_of(model).expires else found


def items_of(model: type[DynamoModel], item: Item | None) -> Items:
    """The items that follow from a stored one: none from one that is deleted, or not there."""
    if item is None or names.DELETED_AT in item or not model.derived_from:
        return {}
    stored: Any = dict(item)
    found = [dict(item_of(each)) for each in hydration.instance(model, stored).derived_objects()]
    for each in found:
        if names.EXPIRES_AT in item:
            each[names.EXPIRES_AT] = dict(item[names.EXPIRES_AT])
    return {key_of(each): each for each in found}


def actions(model: type[DynamoModel], old: Items, new: Items) -> list[Action]:
    """What turns the one set of items into the other; an item that stays as it was is not touched.

    One that belongs to one object only is put where nobody has it, and deleted if it is the object's own.
    """
    written: list[Action] = []
    for key, item in new.items():
        if old.get(key) != item:
            holder = _holder(model, item)
            written.append(Put(item) if holder is None else Put(item, Or((free(holder[0]), holder[1]))))
    for key, item in old.items():
        if key not in new:
            holder = _holder(model, item)
            written.append(Delete(key) if holder is None else Delete(key, Or((ITEM_MISSING, holder[1]))))
    return written


def _holder(model: type[DynamoModel], item: Item) -> tuple[Any, Condition] | None:
    """The model of an item that belongs to one object only, and the condition that it is this one's; else ``None``."""
    found: Any = registry.model_of_type(model._options.alias, item[names.ITEM_TYPE]["S"])
    if found is None or not found.derived_exclusive:
        return None
    stored = found._meta.get_field(found.derived_by).attribute.attr_name
    return found, Stored(stored, "=", (dict(item[stored]),))


def _explained(transition: Transition, action: Action, found: Item | None) -> Exception | None:
    """The error for an item that is another object's; ``None`` if that is not what was refused."""
    model = transition.subject.model
    if transition.after is None or not isinstance(action, Put) or (holder := _holder(model, action.item)) is None:
        return None
    other, label = (
        hydration.instance(holder[0], {name: {**value} for name, value in action.item.items()}),
        model._meta.label,
    )
    fields = tuple(other._identity)
    values = tuple(getattr(other, name) for name in fields)
    return UniqueViolation(
        f"Another {label} has {secrecy.worded(model, fields, values)}; nothing was written.",
        label=label,
        field=", ".join(fields),
        value=values[0] if len(values) == 1 else values,
        fields=fields,
    )
