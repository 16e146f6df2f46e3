"""Derived items, versions, and the checks of sharded models: effects that compare an item before and after a write.

A model lists the sources of its derived items in ``derived_from`` and creates them in ``derived_objects()``. The
transaction of their object writes and deletes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dynamo_single import clock
from dynamo_single.exceptions import ConfigurationError, InvalidValue, UniqueViolation
from dynamo_single.orm.conditions.terms import Condition, Or, Stored
from dynamo_single.orm.effects.base import Effect, Filling, SideWrites, Transition, liveness_names
from dynamo_single.orm.effects.write import exists_error
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.encode import Values, possible_keys
from dynamo_single.orm.items.expiry import free_key_condition
from dynamo_single.orm.items.form import item_of
from dynamo_single.orm.requests.actions import ITEM_MISSING, Action, Check, Delete, Item, ItemKey, Put, key_of
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes import CounterAttribute, VersionAttribute
from dynamo_single.orm.schema.keys.shards import Sharding, seconds
from dynamo_single.orm.schema.types import DynamoModel, all_plain
from dynamo_single.table import names
from dynamo_single.table.flow import call_sync

Items = Mapping[ItemKey, Item]


class Derived(Effect):
    """Writes and deletes the derived items of one model's objects."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.made_of = frozenset(source_names(model))
        self.watches = self.made_of | {names.DELETED_AT}

    async def side_writes(self, transition: Transition) -> SideWrites:
        """Return the items to put and to delete; it reads only what the model's ``derived_objects()`` reads."""
        before, after = transition.before, transition.after
        old, new = await self._items(before), await self._items(after)
        removed = liveness_names(self.model, before) if before is not None and after is None else set()
        return SideWrites(
            tuple(derived_actions(self.model, old, new)),
            self.made_of | removed,
            (*old.values(), *new.values()),
            partial(_refusal_error, transition),
        )

    async def _items(self, item: Item | None) -> Items:
        # A project's method may block.
        if all_plain(self.model, ("derived_objects",)):
            return derived_items(self.model, item)
        return await call_sync(partial(derived_items, self.model, item))


def source_names(model: type[DynamoModel]) -> set[str]:
    """Return the physical names of the attributes that the model's derived items depend on.

    Raises ``ConfigurationError`` for a name that is not an attribute, and for counters and versions, which change
    without a read of the object.
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
                f"{model._meta.label}.derived_from names {name!r}, which changes without a read or write of "
                "the object. Derived objects would not be updated."
            )
    found = {attributes[name].attr_name for name in model.derived_from}
    return {*found, names.EXPIRES_AT} if found and registry.layout_of(model).expires else found


def derived_items(model: type[DynamoModel], item: Item | None) -> Items:
    """Return the derived items of a stored item; empty for an item in the trash or ``None``."""
    if item is None or names.DELETED_AT in item or not model.derived_from:
        return {}
    stored: Any = dict(item)
    found = [dict(item_of(each)) for each in decode.instance(model, stored).derived_objects()]
    for each in found:
        if names.EXPIRES_AT in item:
            each[names.EXPIRES_AT] = dict(item[names.EXPIRES_AT])
    return {key_of(each): each for each in found}


def derived_actions(model: type[DynamoModel], old: Items, new: Items) -> list[Action]:
    """Return the actions that turn the ``old`` items into the ``new`` ones; skip unchanged items.

    It writes an item with an exclusive owner only if it is free or already belongs to the object.
    """
    written: list[Action] = []
    for key, item in new.items():
        if old.get(key) != item:
            holder = _exclusive_owner(model, item)
            written.append(Put(item) if holder is None else Put(item, Or((free_key_condition(holder[0]), holder[1]))))
    for key, item in old.items():
        if key not in new:
            holder = _exclusive_owner(model, item)
            written.append(Delete(key) if holder is None else Delete(key, Or((ITEM_MISSING, holder[1]))))
    return written


def _exclusive_owner(model: type[DynamoModel], item: Item) -> tuple[Any, Condition] | None:
    """Return the model of an item with an exclusive owner, and the condition that the owner is unchanged."""
    found: Any = registry.model_of_type(model._options.alias, item[names.ITEM_TYPE]["S"])
    if found is None or not found.derived_exclusive:
        return None
    stored = found._meta.get_field(found.derived_by).attribute.attr_name
    return found, Stored(stored, "=", (dict(item[stored]),))


def _refusal_error(transition: Transition, action: Action, found: Item | None) -> Exception | None:
    """Return the error for an item of another object; ``None`` if another action failed."""
    model = transition.subject.model
    if (
        transition.after is None
        or not isinstance(action, Put)
        or (holder := _exclusive_owner(model, action.item)) is None
    ):
        return None
    other, label = (
        decode.instance(holder[0], {name: {**value} for name, value in action.item.items()}),
        model._meta.label,
    )
    fields = tuple(other._identity)
    values = tuple(getattr(other, name) for name in fields)
    return UniqueViolation(
        f"Another {label} has {secrecy.worded(model, fields, values)}. Nothing was written.",
        label=label,
        field=", ".join(fields),
        value=values[0] if len(values) == 1 else values,
        fields=fields,
    )


class Version(Effect):
    """The version of one model's objects: every write sets the next one, on the condition that it is unchanged."""

    always = True

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.watches = frozenset({version.version_stored(model)})

    def values_of_each_write(self, before: Item | None) -> Values:
        """The next version."""
        return version.next_values(self.model, before)

    async def side_writes(self, transition: Transition) -> SideWrites:
        """Return the condition that the version is unchanged."""
        held = self.watches if transition.before is not None else frozenset()
        return SideWrites(as_read=held, exclusive=True)


class Shards(Effect):
    """Checks that a new object of a sharded model has one key only.

    The number of shards changes with time, so an identity can have several keys. A creation writes the item under one
    of them and checks the others in the same transaction. The time of an object must not be later than the schedule of
    shards that every process has read: see ``orm/rollout/knowledge``.
    """

    def __init__(self, model: type[DynamoModel], sharding: Sharding) -> None:
        self.model, self.sharding = model, sharding
        self.layout = registry.layout_of(model)
        attributes = self.layout.attributes
        self.watches = frozenset({attributes[sharding.attribute].stored, attributes[sharding.at].stored})

    async def values_from_others(self, filling: Filling) -> Values:
        """Record the shards before the model's first item, by a GetItem and a PutItem; return no values."""
        await knowledge.begin(self.layout)
        return {}

    async def side_writes(self, transition: Transition) -> SideWrites | None:
        """Return the checks of a new item: one for each other key that its identity can have."""
        before, after = transition.before, transition.after
        if after is None or (before is not None and key_of(before) == key_of(after)):
            return None
        values = decode.values_of(self.model, after)
        at = values[self.sharding.at]
        if seconds(at) > clock.timestamp() + knowledge.AHEAD:
            raise InvalidValue(
                f"{self.model._meta.label}: {self.sharding.at} is {at}, which is in the future. It determines "
                "the shard, and the number of shards at that time is not known yet. Set it to the current "
                "time or to a time in the past."
            )
        own = {key_of(after)} if before is None else {key_of(after), key_of(before)}
        others = possible_keys(self.model, {**values, self.sharding.at: None})
        checks = tuple(Check(key, free_key_condition(self.model)) for key in others if key not in own)
        return SideWrites(checks, explain=partial(_schedule_error, transition, checks))


def _schedule_error(
    transition: Transition, checks: Sequence[Check], action: Action, found: Item | None
) -> Exception | None:
    is_own = any(action.key == check.key for check in checks)
    return exists_error(transition.subject, found) if is_own else None
