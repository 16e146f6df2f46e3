"""The stored item of an object, as the received bytes: as nested dicts it would need six times the memory.

A write, or access to a missing attribute, decodes it. Most objects of a list never need this. This module does not send
requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.bindings import Rollout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.answers import item_of
from dynamo_single.table.request import NewItem, StoredValue
from dynamo_single.table.table import ShapedTable, get_table

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


def _item(model: type[DynamoModel], text: bytes) -> NewItem:
    """Return an item by the app's own names; its table may have others."""
    item: Any = item_of(text)
    table = get_table(model._options.alias)
    if isinstance(table, ShapedTable):
        item = table.translator.read(item)
    found: NewItem = item
    return found


def pickled_state(obj: DynamoModel, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an object with its item by the app's own names, for a process with other settings."""
    if NAME in state and isinstance(get_table(obj._options.alias), ShapedTable):
        state[NAME] = obj._stored
    return state


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
            held = instance.__dict__[NAME] = _item(owner, held)
        elif type(held) is PartialBytes:
            held = instance.__dict__[NAME] = PartialItem(_item(owner, held.text), held.names)
        if held is not None and (rollouts := bindings.generation.rollouts):
            held = instance.__dict__[NAME] = _with_current_names(rollouts.get(owner._meta.concrete_model), held)
        return held

    def __set__(self, instance: object, item: Mapping[str, StoredValue] | None) -> None:
        instance.__dict__[NAME] = item


def _with_current_names(rollout: Rollout | None, held: Any) -> Any:
    """Return an item by the current names; a process may have read it by the other name of a pair.

    A write sets both names, or removes the old one, so an item with the old name has the current value there.
    """
    known = held.names if isinstance(held, PartialItem) else held.keys()
    twins = () if rollout is None else rollout.twins
    former = {twin.other: twin.used for twin in twins if not twin.is_before and twin.other in known}
    if not former:
        return held
    both = {*former, *former.values()}
    kept = {name: value for name, value in held.items() if name not in both}
    kept |= {new: held[old] for old, new in former.items() if old in held}
    if isinstance(held, PartialItem):
        return PartialItem(kept, held.names.difference(former).union(former.values()))
    return kept


# The values of an object: they are in its ``__dict__``, as for Django's models. ``vars(obj)`` therefore shows them. An
# attribute without a value in the object has no entry.


def object_values(obj: DynamoModel) -> dict[str, object]:
    """Return the object's values by attribute, as a new dict without missing values."""
    found = obj.__dict__
    return {name: found[name] for name in registry.attributes_of(type(obj)) if name in found}


def set_object_values(obj: DynamoModel, values: Mapping[str, object]) -> None:
    """Set the values of an object's attributes, and remove all other values."""
    for name in registry.attributes_of(type(obj)):
        obj.__dict__.pop(name, None)
    obj.__dict__.update(values)


class AttributeValues(MutableMapping[str, Any]):
    """PynamoDB's ``attribute_values``: an object's values by attribute. Setting one here sets it on the object."""

    __slots__ = ("_names", "_values")

    def __init__(self, obj: DynamoModel) -> None:
        self._values: dict[str, Any] = obj.__dict__
        self._names = registry.attributes_of(type(obj))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        if name not in self._names:
            raise KeyError(name)
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(name)
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name in self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))
