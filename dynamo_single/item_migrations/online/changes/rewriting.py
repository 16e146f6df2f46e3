"""One item turned into another: the update that does it, under the condition of all that it follows from.

Pure. This module must not know what the item is turned into, or why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.conditions.matching import normal
from dynamo_single.orm.requests.actions import Action, Check, Item, Update, as_read, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.table import names

Stored = Mapping[str, Any]


def rewriting(item: Item, after: Item, reads: Iterable[str], along: Sequence[Action] = ()) -> tuple[Action, ...]:
    """The actions that turn an item into another one under the same key, with what is written ``along`` with it.

    They hold only while the attributes in ``reads``, physical names, and those that are written are as they were read,
    and the item is of the same type. Nothing if nothing is to be written: checks alone are no work.
    """
    given = {name: value for name, value in after.items() if not _is_same(item.get(name), value)}
    removed = tuple(name for name in item if name not in after)
    condition = as_read(item, {*reads, *given, *removed, names.ITEM_TYPE})
    if given or removed:
        return (Update(key_of(item), set=given, remove=removed, condition=condition), *along)
    if all(isinstance(each, Check) for each in along):
        return ()
    return (Check(key_of(item), condition), *along)


def _is_same(one: Stored | None, other: Stored) -> bool:
    return one is not None and (one == other or normal(one) == normal(other))


def with_value(item: Item, name: str, value: Stored | None) -> dict[str, Any]:
    """An item with another value of an attribute, or without it."""
    found = {each: stored for each, stored in item.items() if each != name}
    return found if value is None else {**found, name: value}


def indexes_of(snapshot: Snapshot) -> frozenset[str]:
    """Every index that the items of a model have keys on."""
    found = {key.index for key in snapshot.keys.values()}
    return frozenset(found if snapshot.trash_index is None else {*found, snapshot.trash_index})


def with_pairs(snapshot: Snapshot, indexes: frozenset[str], item: Item) -> dict[str, Any]:
    """An item with the keys on some indexes that its attributes give: those of a live one, or the trash's.

    Raises ``EmptyKeyPart`` where one is missing that has to be there, and ``InvalidValue`` where a key takes no value.
    """
    pairs = {name for index in indexes for name in (names.index_partition(index), names.index_sort(index))}
    found = {name: value for name, value in item.items() if name not in pairs}
    for name in _keys(snapshot, indexes, live=names.DELETED_AT not in item):
        attributes = {each: snapshot.attributes[each] for each in snapshot.access_keys[name].made_of}
        values = {each: stored.value(item.get(stored.stored)) for each, stored in attributes.items()}
        texts = snapshot.index_key(name, values)
        if texts is not None:
            found |= {each: {"S": text} for each, text in zip(snapshot.index_names(name), texts, strict=True)}
    return found


def pairs_follow_from(snapshot: Snapshot, indexes: frozenset[str]) -> frozenset[str]:
    """The physical names of all that keys on some indexes follow from."""
    keys = (*_keys(snapshot, indexes, live=True), *_keys(snapshot, indexes, live=False))
    variables = {each for name in keys for each in snapshot.access_keys[name].made_of}
    return frozenset({names.DELETED_AT, *(snapshot.attributes[each].stored for each in variables)})


def _keys(snapshot: Snapshot, indexes: frozenset[str], *, live: bool) -> list[str]:
    if not live:
        return [registry.TRASH] if snapshot.trash_index in indexes else []
    return [name for name, key in snapshot.keys.items() if key.index in indexes]
