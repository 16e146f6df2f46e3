"""The item that an object was read from, as the bytes that came: as dicts of dicts it takes six times their memory.

It is decoded when a write, or an attribute that was not read, asks for it, and stays so: most objects of a list are
only looked at. This module sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.table.items import NewItem, StoredValue
from dynamo_single.table.pages import item_of

Item = NewItem

#: Where in an object's ``__dict__`` it lies.
NAME = "_stored"


class PartialBytes:
    """The bytes of an item of which only the attributes of some physical ``names`` were read."""

    __slots__ = ("names", "text")

    def __init__(self, text: bytes, names: frozenset[str]) -> None:
        self.text = text
        self.names = names

    def __reduce__(self) -> tuple[object, ...]:
        return PartialBytes, (self.text, self.names)


class StoredItem:
    """``obj._stored``: the item as it was last read or written; ``None`` for an object that is not stored yet."""

    def __get__(self, instance: object, owner: Any) -> Any:
        if instance is None:
            return self
        try:
            held = instance.__dict__[NAME]
        except KeyError:
            raise AttributeError(f"{owner.__name__} object has no attribute {NAME!r}") from None
        if type(held) is bytes:
            held = instance.__dict__[NAME] = item_of(held)
        elif type(held) is PartialBytes:
            held = instance.__dict__[NAME] = PartialItem(item_of(held.text), held.names)
        return held

    def __set__(self, instance: object, item: Mapping[str, StoredValue] | None) -> None:
        instance.__dict__[NAME] = item
