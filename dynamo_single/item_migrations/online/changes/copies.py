"""Copies of other objects' attributes written into items: each as its source has it at that moment."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.item_migrations.online.changes.rewriting import (
    pairs_follow_from,
    rewriting,
    with_pairs,
    with_value,
)
from dynamo_single.item_migrations.online.work import Others, Task
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.items.serialization import key_of_pk
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, as_read, of_type
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CopiedAttribute


def filled_copy(after: Snapshot, name: str) -> Task:
    """Write a copy into every item that refers to a stored object, in the trash too, with the keys that name it.

    The write holds only while the source has that value. Where the source lies, the model says as it is declared now;
    an item whose source is not stored is left alone, as ``dynamo_verify`` reports.
    """
    attribute = after.attributes[name]
    reference, _dot, copied = attribute.copied.partition(".")
    referring = after.attributes[reference].stored
    indexes = frozenset(key.index for each, key in after.keys.items() if name in after.access_keys[each].named)
    reads = {referring, attribute.stored, *(pairs_follow_from(after, indexes) if indexes else ())}

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
        wanted = with_pairs(after, indexes, wanted) if indexes else wanted
        return rewriting(item, wanted, reads, (Check(key, as_read(source, (copied,))),))

    def sources(item: Item) -> Iterable[ItemKey]:
        try:
            key = source_of(item)
        except InvalidValue:
            return ()  # the change says so
        return () if key is None else (key,)

    return Task(of_type(after.item_type), change, wanted=sources)


def _copy(after: Snapshot, name: str) -> CopiedAttribute:
    model = registry.model_of_type(after.alias, after.item_type)
    stored = after.attributes[name].stored
    found = (each for each in (() if model is None else registry.copied_of(model)) if each.attr_name == stored)
    copy = next(found, None)
    if copy is None:
        raise ConfigurationError(
            f"{after.item_type}: no model copies {after.attributes[name].copied} as {stored!r} any more, so that "
            "nobody can say where its source is. Deploy the code that does, and migrate with it."
        )
    return copy
