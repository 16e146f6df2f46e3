"""Write the attributes that put an object into the trash or restore it; the objects of one deletion share their values.

This module must not depend on how the objects of a deletion are found, or on how a concurrent change is handled.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.terms import Condition, Stored
from dynamo_single.orm.effects import sending
from dynamo_single.orm.effects.child_counters import Sums
from dynamo_single.orm.effects.compose import assigned, compose
from dynamo_single.orm.effects.effect import Subject
from dynamo_single.orm.effects.terms import NO_TERMS, Terms
from dynamo_single.orm.effects.together import effects_of
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.serialization import Values
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.block import Block, Entry
from dynamo_single.orm.requests.changes import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import Children
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.referrers import checked
from dynamo_single.orm.write import cascade
from dynamo_single.orm.write.cascade import Listing, Step
from dynamo_single.orm.write.save import assign, remember
from dynamo_single.table import names

#: The attributes that a restored object loses, if it has them.
MARKS = (registry.DELETED_AT, registry.DELETED_WITH, registry.PURGE_AT)


class Batch(Struct, frozen=True):
    """The values that the objects of one deletion share; ``mark`` identifies the object that was deleted itself."""

    mark: str
    moment: datetime
    purge_at: datetime | None

    @classmethod
    def begun_with(cls, obj: DynamoModel) -> Batch:
        """Return the batch of an object that is deleted now."""
        moment, after = clock.instant(), type(obj)._options.purge_after
        # Time to live has a resolution of seconds.
        purge_at = None if after is None else (moment + after + timedelta(seconds=1)).replace(microsecond=0)
        return cls(_mark(obj), moment, purge_at)

    @classmethod
    def of(cls, obj: Any) -> Batch:
        """Return the batch of an object in the trash, from its stored values."""
        values = hydration.values_of(type(obj), obj._stored)
        mark = values[registry.DELETED_WITH] or _mark(obj)
        return cls(mark, values[registry.DELETED_AT], values.get(registry.PURGE_AT))

    def changes(self, obj: DynamoModel, *, follows: bool) -> Values:
        """Return the values that put an object into the trash."""
        changes = {registry.DELETED_AT: self.moment, registry.DELETED_WITH: self.mark if follows else None}
        return changes | ({registry.PURGE_AT: self.purge_at} if _purges(obj) else {})

    def guard(self, obj: DynamoModel) -> Entry:
        """Return the check that the parent is in the trash with this batch, for a deletion of its children."""
        name = Subject(obj).name
        moment = registry.attributes_of(type(obj))[registry.DELETED_AT].to_attribute_value(self.moment)
        check = Check(key_of(obj._stored), Stored(names.DELETED_AT, "=", (moment,)))
        return cascade.guard(name, check, partial(_restored_meanwhile, name))

    def listings(self, children: Children) -> list[Listing]:
        """Return the listings of the children that are in the trash with this batch."""
        conditions = {registry.DELETED_WITH: self.mark, registry.DELETED_AT: self.moment}
        return [Listing(children, "deleted", conditions, is_in_trash)]


class Assignment(Step):
    """Set or remove the trash attributes of one object of several."""

    def __init__(self, obj: DynamoModel, values: Values, terms: Terms = NO_TERMS, held: Item | None = None) -> None:
        super().__init__(obj, terms)
        self.values = values
        #: The item whose counts of checked references the write is conditional on.
        self.held = held

    async def send(self, pending: Block | None) -> bool:
        """Send the write alone, or within a block."""
        write = None if self.held is None else await self.compose(pending)
        if write is None:
            await assign(self.obj, self.values, self.terms, pending)
        else:
            await remember(self.obj, write, await sending.deliver(self.obj, write))
        return True

    async def compose(self, pending: Block | None) -> Write | None:
        """Return the object's write, for a transaction with the other objects."""
        draft = assigned(self.obj, self.values)
        if self.held is not None:
            counts = [as_stored(self.held, name) for name, _ in checked(type(self.obj))]
            draft = replace(draft, computed=join(counts))
        effects = effects_of(type(self.obj))
        return await compose(self.obj, effects, draft, self.terms, pending=pending, absent=self.absent)

    async def remember(self, write: Write, stored: Item) -> None:
        """Update the object with what was stored."""
        await remember(self.obj, write, stored)


class Return(Assignment):
    """Remove the trash attributes of an object after all objects that were deleted with it.

    The write is conditional on the number of those objects, less the ones restored before it. So it does not leave an
    object in the trash that another deletion put there in the meantime.
    """

    def __init__(self, obj: DynamoModel, values: Values, terms: Terms) -> None:
        super().__init__(obj, values, terms)
        self.read: Item = obj._stored

    def held_to(self, entry: Entry, added: Sums) -> Entry:
        """Add the condition on the number to the entry; see ``Step``."""
        key = key_of(self.read)
        condition = cascade.as_counted(self.read, names.DELETED_ALONG, added.get(key, {}).get(names.DELETED_ALONG, 0))
        return replace(entry, actions=tuple(_with(action, key, condition) for action in entry.actions))

    async def send(self, pending: Block | None) -> bool:
        """Send the write alone, or within a block; return ``False`` if there is nothing to write."""
        write = await self.compose(pending)
        if write is None:
            return False
        condition = cascade.as_counted(self.read, names.DELETED_ALONG, 0)
        write = replace(write, own=tuple(_with(action, key_of(self.read), condition) for action in write.own))
        await self.remember(write, await sending.deliver(self.obj, write))
        return True

    async def remember(self, write: Write, stored: Item) -> None:
        """Update the object, which is no longer in the trash and has no number."""
        await super().remember(write, {name: value for name, value in stored.items() if name != names.DELETED_ALONG})


def _with(action: Action, key: ItemKey, condition: Condition) -> Action:
    if not isinstance(action, Update) or action.key != key:
        return action
    return replace(action, condition=join((action.condition, condition)))


def restored(obj: DynamoModel) -> Values:
    """Return the values that take an object out of the trash."""
    return {name: None for name in MARKS if name != registry.PURGE_AT or _purges(obj)}


def _restored_meanwhile(name: str, action: Action, found: Item | None) -> StaleObject:
    return StaleObject(
        f"Cannot delete all children of {name}: it was {'restored' if found else 'permanently deleted'} while it was "
        "deleted. The remaining children were not moved to the trash. Read it again and retry."
    )


def is_in_trash(obj: DynamoModel) -> bool:
    """Return whether an object was in the trash when it was read or written last."""
    return names.DELETED_AT in obj._stored


def _purges(obj: DynamoModel) -> bool:
    return type(obj)._options.purge_after is not None


def _mark(obj: DynamoModel) -> str:
    return f"{type(obj)._options.item_type}#{obj.pk}"
