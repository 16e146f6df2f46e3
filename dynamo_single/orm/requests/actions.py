"""The values that a write passes through: what is done to one item, in the item's own names and values.

Each action becomes one request, or one entry of a transaction. Nothing here does I/O or knows models.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from dynamo_single.orm.conditions.terms import EVERYTHING, And, Condition, Stored
from dynamo_single.orm.requests.updates import Change, as_stored
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import names
from dynamo_single.table.request import Item as Item

#: The strings of an item's partition key and sort key.
ItemKey = tuple[str, str]

#: The conditions that the key has no item, and that it has one.
ITEM_MISSING = Stored(names.PARTITION_KEY, "missing")
ITEM_EXISTS = Stored(names.PARTITION_KEY, "exists")
_KEY: Final = frozenset({names.PARTITION_KEY, names.SORT_KEY})


def key_of(item: Item) -> ItemKey:
    """The key of an item."""
    return item[names.PARTITION_KEY]["S"], item[names.SORT_KEY]["S"]


def type_condition(item_type: str) -> Condition:
    """The items of one type, in the trash as well as live."""
    return Stored(names.ITEM_TYPE, "=", ({"S": item_type},))


def as_read(item: Item, stored: Iterable[str]) -> Condition:
    """The condition that an item is there, and some attributes of it are as they were read; its key always is."""
    read = [as_stored(item, name) for name in sorted({*stored} - _KEY)]
    return And((ITEM_EXISTS, *read)) if read else ITEM_EXISTS


class Put(Struct, frozen=True):
    """Write a whole item, replacing the item under its key."""

    item: Item
    condition: Condition = EVERYTHING
    _size: int = 0

    def __eq__(self, other: object) -> bool:
        # Whether the bytes were counted yet makes no difference.
        return isinstance(other, Put) and (self.item, self.condition) == (other.item, other.condition)

    @property
    def key(self) -> ItemKey:
        """The item's own key."""
        return key_of(self.item)

    @property
    def size(self) -> int:
        """The item's bytes, counted once: a transaction has a limit on its items, and each item has one."""
        if not self._size:
            force_setattr(self, "_size", item_size(self.item))
        return self._size


class Update(Struct, frozen=True):
    """Change attributes of an item.

    ``add`` adds to a number or to a set, ``discard`` takes members out of a set, ``changes`` are what else DynamoDB
    makes of the item itself. DynamoDB makes the item if there is none, unless ``condition`` forbids it.
    """

    key: ItemKey
    set: Item = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    add: Item = field(default_factory=dict)
    discard: Item = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    condition: Condition = EVERYTHING


class Delete(Struct, frozen=True):
    """Remove an item; there being none is no error, unless ``condition`` makes it one."""

    key: ItemKey
    condition: Condition = EVERYTHING


class Check(Struct, frozen=True):
    """Let a transaction pass only if an item meets a condition."""

    key: ItemKey
    condition: Condition


Action = Put | Update | Delete | Check
