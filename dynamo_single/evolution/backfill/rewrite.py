"""Rewrite items: conditional updates from one item to another, index keys and copies.

The functions are pure. This module does not depend on the reason for a change. Each task of it updates one kind of
dependent attribute: the index keys of a snapshot, or copies of the current value of another object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynamo_single.evolution.backfill.work import Others, Task
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.items.encode import key_of_pk
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, as_read, key_of, type_condition
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CopiedAttribute
from dynamo_single.table import names

Stored = Mapping[str, Any]


def rewrite_actions(item: Item, after: Item, reads: Iterable[str], along: Sequence[Action] = ()) -> tuple[Action, ...]:
    """Return the actions that turn an item into another item with the same key, then the actions in ``along``.

    The actions are conditional on the attributes in ``reads`` (physical names), on all changed attributes, and on the
    type of the item. Without a write there are no actions, not even checks.
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
    return one is not None and (one == other or normalized_value(one) == normalized_value(other))


def with_value(item: Item, name: str, value: Stored | None) -> dict[str, Any]:
    """Return an item with another value of an attribute, or without the attribute."""
    found = {each: stored for each, stored in item.items() if each != name}
    return found if value is None else {**found, name: value}


def indexes_of(snapshot: Snapshot) -> frozenset[str]:
    """Return every index that a model's items have keys on."""
    found = {key.index for key in snapshot.keys.values()}
    return frozenset(found if snapshot.trash_index is None else {*found, snapshot.trash_index})


def index_attributes(indexes: Iterable[str]) -> frozenset[str]:
    """Return the physical names of the partition and sort keys of some indexes."""
    return frozenset(name for index in indexes for name in names.key_names(index))


def keys_naming(snapshot: Snapshot, name: str) -> frozenset[str]:
    """Return the indexes with a key that names an attribute."""
    keys = snapshot.keys.items()
    return frozenset(key.index for each, key in keys if name in snapshot.access_keys[each].named_attributes)


def with_index_keys(snapshot: Snapshot, indexes: frozenset[str], item: Item) -> dict[str, Any]:
    """Return an item with its keys on some indexes; a live item and an item in the trash have different keys.

    Raises ``EmptyKeyPart`` if a required attribute is missing, and ``InvalidValue`` for a value that fits no key.
    """
    pairs = index_attributes(indexes)
    found = {name: value for name, value in item.items() if name not in pairs}
    for name in _keys(snapshot, indexes, live=names.DELETED_AT not in item):
        attributes = {each: snapshot.attributes[each] for each in snapshot.access_keys[name].source_attributes}
        values = {each: stored.value(item.get(stored.stored)) for each, stored in attributes.items()}
        texts = snapshot.index_key(name, values)
        if texts is not None:
            found |= {each: {"S": text} for each, text in zip(snapshot.index_names(name), texts, strict=True)}
    return found


def index_key_sources(snapshot: Snapshot, indexes: frozenset[str]) -> frozenset[str]:
    """Return the physical names of all attributes that the keys on some indexes depend on."""
    keys = (*_keys(snapshot, indexes, live=True), *_keys(snapshot, indexes, live=False))
    variables = {each for name in keys for each in snapshot.access_keys[name].source_attributes}
    return frozenset({names.DELETED_AT, *(snapshot.attributes[each].stored for each in variables)})


def _keys(snapshot: Snapshot, indexes: frozenset[str], *, live: bool) -> list[str]:
    if not live:
        return [registry.TRASH] if snapshot.trash_index in indexes else []
    return [name for name, key in snapshot.keys.items() if key.index in indexes]


def rewrite_index_keys(after: Snapshot, indexes: Iterable[str], *, live: bool | None = None) -> Task:
    """Give every item its keys on some indexes by ``after``, and remove all other keys on them.

    ``live`` limits the task to live items or to items in the trash: while a key changes and the trash moves to another
    index, neither task may undo the other.

    Use it for an index that is new, has a changed key, or no longer has a key of the model. Items in the trash get the
    key of the trash, or none. Items without a value for a template get no key.
    """
    chosen = frozenset(indexes)
    reads = index_key_sources(after, chosen)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        if live is not None and live is (names.DELETED_AT in item):
            return ()
        return rewrite_actions(item, with_index_keys(after, chosen, item), reads)

    return Task(type_condition(after.item_type), change)


def fill_copy(after: Snapshot, name: str) -> Task:
    """Write a copy into every item that refers to a stored object, even in the trash, with the keys that contain it.

    The write is conditional on the current value of the source. The current model determines the key of the source. An
    item whose source is not stored is not changed; ``dynamo_verify`` reports it.
    """
    attribute = after.attributes[name]
    reference, _dot, copied = attribute.copied.partition(".")
    referring = after.attributes[reference].stored
    indexes = keys_naming(after, name)
    reads = {referring, attribute.stored, *(index_key_sources(after, indexes) if indexes else ())}

    def source_of(item: Item) -> ItemKey | None:
        stored = item.get(referring)
        copy = _copy(after, name)
        pk = None if stored is None else copy.reference_field.attribute.from_attribute_value(dict(stored))
        return None if pk is None else key_of_pk(copy.source_model, pk)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        key = source_of(item)
        source = None if key is None else others.get(key)
        if key is None or source is None:
            return ()
        wanted = with_value(item, attribute.stored, source.get(copied))
        wanted = with_index_keys(after, indexes, wanted)
        return rewrite_actions(item, wanted, reads, (Check(key, as_read(source, (copied,))),))

    def sources(item: Item) -> Iterable[ItemKey]:
        key = source_of(item)
        return () if key is None else (key,)

    return Task(type_condition(after.item_type), change, wanted=sources)


def _copy(after: Snapshot, name: str) -> CopiedAttribute:
    model = registry.model_of_type(after.alias, after.item_type)
    stored = after.attributes[name].stored
    found = (each for each in (() if model is None else registry.copied_of(model)) if each.attr_name == stored)
    copy = next(found, None)
    if copy is None:
        raise ConfigurationError(
            f"Cannot find the source of {stored!r} in {after.item_type}: no model still copies "
            f"{after.attributes[name].copied} into it. Deploy the code that has the copy, and run migrate "
            "with that code."
        )
    return copy
