"""Reading an object again, whole or some attributes of it, by Django's rules of ``refresh_from_db()``.

What is not asked for stays as it is in the object, and as it was read: a later save is held to that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from dynamo_single.orm.items import hydration, partial
from dynamo_single.orm.items.held import values_held
from dynamo_single.orm.items.serialization import index_keys, index_names, known_names, stored_name
from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.orm.reading.single import get_items
from dynamo_single.orm.requests.actions import Item, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import declared
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names as physical
from dynamo_single.table.flow import run
from dynamo_single.table.table import get_table


async def refresh(obj: DynamoModel, fields: Iterable[str] | None, queryset: Any) -> None:
    """Read an object again: one strongly consistent GetItem, or what ``queryset`` sends.

    ``fields`` are the names of the attributes that follow the item, and of relations, which forget what they read;
    without, that is all that is read. Nothing is sent if no attribute is named. Where those that are named were not
    read yet, all that were not are read along.
    """
    named = None
    if fields is not None:
        given = set(fields)
        if any("__" in name for name in given):
            # In Django's words.
            raise ValueError("Found '__' in fields argument. Relations and transforms are not allowed in fields.")
        named = _attributes(obj, given - _forgotten(obj, given))
        if not named:
            return
    if named is not None and queryset is None and named <= obj.get_deferred_fields():
        _take(obj, await hydration.reloaded(obj), obj.get_deferred_fields())
        return
    if queryset is not None and named is not None:
        # As in Django, what is named goes before what only() and defer() leave out.
        queryset = queryset.defer(None)
    if queryset is None:
        fresh = await hydration.reloaded(obj)
    else:
        fresh = await queryset._one({"pk": obj.pk})
    if named is None and not partial.is_partial(fresh):
        hydration.follow(obj, fresh, ())
    else:
        read = values_held(fresh).keys()
        _take(obj, fresh, read if named is None else named & read)
    _renew_references(obj, fresh, named)
    if named is None:
        obj._prefetched_objects_cache = {}
        _forget_those_that_refer(obj, (each.get_accessor_name() for each in obj._meta.related_objects))
    obj._state.adding = False


def read_rest(objects: Sequence[DynamoModel]) -> None:
    """Read what some objects of one model have not got yet: one BatchGetItem for each hundred, strongly consistent.

    An object that is gone stays as it is.
    """
    keys = {key_of(obj._stored): obj for obj in objects if obj._stored is not None}
    if not keys:
        return
    model = type(objects[0])
    found = run(get_items(get_table(model._options.alias), list(keys)))
    for key, item in found.items():
        _take(keys[key], hydration.instance(model, item), keys[key].get_deferred_fields())


def _attributes(obj: DynamoModel, fields: Iterable[str]) -> set[str]:
    meta = obj._meta
    found = (meta.pk if name == "pk" else meta.get_field(name) for name in fields)
    return {name for field in found for name in partial.attributes_of(field)}


def _forgotten(obj: DynamoModel, given: Collection[str]) -> set[str]:
    """Those of some names that are of relations of other objects to this one, of which the objects are forgotten."""
    cache = getattr(obj, "_prefetched_objects_cache", {})
    relations = {children.name for children in declared(type(obj))} | cache.keys()
    relations |= {each.get_accessor_name() or "" for each in obj._meta.related_objects}
    for name in relations.intersection(given):
        cache.pop(name, None)
    _forget_those_that_refer(obj, given)
    return relations.intersection(given)


def _forget_those_that_refer(obj: DynamoModel, names: Collection[str] | Iterable[object]) -> None:
    """Let the other sides of one-to-one relations forget the object that they found."""
    wanted = set(names)
    for each in obj._meta.related_objects:
        if each.one_to_one and each.get_accessor_name() in wanted and each.is_cached(obj):
            each.delete_cached_value(obj)


def _renew_references(obj: Any, fresh: object, named: Collection[str] | None) -> None:
    """Let references that were read again forget their objects, or have those that came along."""
    for field in obj._meta.concrete_fields:
        if not field.is_relation or field.attname not in fresh.__dict__ or (named and field.attname not in named):
            continue
        if field.is_cached(fresh):
            field.set_cached_value(obj, field.get_cached_value(fresh))
        elif field.is_cached(obj):
            field.delete_cached_value(obj)


def _take(obj: DynamoModel, fresh: DynamoModel, names: Collection[str]) -> None:
    """Let some attributes of an object follow a fresh reading, with what is computed of them; the others stay."""
    model = type(obj)
    attributes = registry.attributes_of(model)
    taken = {*names, *(copy.name for copy in registry.copies_of(model) if copy.source in names)}
    taken &= fresh.__dict__.keys()
    for name in taken:
        if attributes[name].computed:
            obj.__dict__[name] = fresh.__dict__[name]
        else:
            setattr(obj, name, fresh.__dict__[name])
    old, new = hydration.of_one_version(model, obj._stored, fresh._stored)
    obj._stored = _mixed(model, old, new, taken)


def _mixed(model: type[DynamoModel], old: Item | None, fresh: Item, taken: Collection[str]) -> Item:
    """The item that an object knows of: as it was read, but for what is ``taken`` from a fresh reading."""
    stored = {stored_name(model, name) for name in taken} | _keys_made_of(model, taken)
    if isinstance(fresh, PartialItem):
        stored &= fresh.names
    if old is None:
        stored |= {physical.PARTITION_KEY, physical.SORT_KEY, physical.ITEM_TYPE}
        old = PartialItem({}, ())
    kept = {name: value for name, value in old.items() if name not in stored}
    item = {**kept, **{name: fresh[name] for name in stored if name in fresh}}
    if not isinstance(old, PartialItem):
        return item
    read = old.names | stored
    if isinstance(fresh, PartialItem) or not known_names(model) - index_names(model) <= read:
        return PartialItem({name: dict(value) for name, value in item.items()}, read)
    # With the last attribute the object has all of its item: what belongs to no attribute comes along.
    return {**{name: value for name, value in fresh.items() if name not in read}, **item}


def _keys_made_of(model: type[DynamoModel], names: Collection[str]) -> set[str]:
    """The physical names of the index keys that some attributes are parts of, or decide about."""
    live, trash = index_keys(model)
    decided = registry.DELETED_AT in names
    return {
        name
        for each in (*live, *trash)
        for name in each.pair
        if decided or not {part for part, _ in each.needs}.isdisjoint(names)
    }
