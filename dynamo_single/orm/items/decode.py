"""From a stored item to an object, or to the values of some attributes.

This module sends one kind of request only: reading an object again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import DEFERRED
from django.db.models.signals import post_init, pre_init

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import UnexpectedItem
from dynamo_single.orm.items.encode import possible_keys
from dynamo_single.orm.items.page_readers import PageReader, objects_reader
from dynamo_single.orm.items.readers import object_reader, values_reader
from dynamo_single.orm.items.stored import object_values
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.reading.single import get_items, has_expired
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import pending_put
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, Subject, fact
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.fields.fetching import ObjectState
from dynamo_single.orm.schema.keys.values import named
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import outside_run, run
from dynamo_single.table.request import NewItem, StoredValue
from dynamo_single.table.shown_keys import key_text, shown_shape
from dynamo_single.table.table import get_table

Item = NewItem


def values_of(model: Subject, item: Mapping[str, StoredValue], stored: frozenset[str] | None = None) -> dict[str, Any]:
    """The Python values of an item, by attribute; what the item lacks has the attribute's default, or ``None``.

    A partially read item has only the loaded attributes. ``stored`` contains the physical names of the attributes to
    decode; by default all.
    """
    if isinstance(item, PartialItem):
        stored = item.names if stored is None else item.names & stored
    return values_reader(model, stored)(item)


def check_type(model: type[DynamoModel], item: Item) -> None:
    """Raise ``UnexpectedItem`` if an item is another model's."""
    item_type = item.get(names.ITEM_TYPE, {}).get("S")
    if item_type != model._options.item_type:
        is_named = names.PARTITION_KEY in item  # rows may not have read it
        partition, sort = (item.get(name, {}).get("S", "") for name in (names.PARTITION_KEY, names.SORT_KEY))
        key = key_text(model._options.alias, (partition, sort))
        raise UnexpectedItem(
            f"{f'The item {key}' if is_named else 'An item among the rows'} has {_found_type(model, item_type)}, and "
            f"{model._meta.label} reads {model._options.item_type!r}. Something else wrote into this model's keys"
            f"{'.' if is_named else ': reading the objects names the item.'}{_taken_over(model, item_type)}"
        )


def _found_type(model: type[DynamoModel], item_type: str | None) -> str:
    """Return the type of an item by the table's own name of the attribute."""
    name = shown_shape(model._options.alias).type_attribute
    if name is not None:
        return f"{name} {item_type!r}"
    return "a key of no model" if item_type is None else f"a key of {item_type!r}"


def _taken_over(model: type[DynamoModel], item_type: str | None) -> str:
    """Return the fix for an item of another system."""
    alias = model._options.alias
    shape = table_settings(alias).shape
    if not (shape.is_own or shape.by_prefix):
        return f" Set DYNAMO_SINGLE[{alias!r}]['FOREIGN'] to 'skip' to leave such items out."
    if item_type is not None or shape.is_own:
        return ""
    return f" manage.py dynamo_rebuild --alias {alias} takes over records that another system has written."


def instance(model: Any, item: Item) -> Any:
    """The object of an item; raises ``UnexpectedItem`` if the item is another model's.

    For a partially read item it has the loaded attributes, and loads the others on access.
    """
    return _instance(model, item) if isinstance(item, PartialItem) else reader_of(model)(item)


def _instance(model: Any, item: Item) -> Any:
    check_type(model, item)
    if model._has_from_db:
        return _from_db(model, item)
    return _made(model, values_of(model, item), item, DEFAULT_DB_ALIAS)


@fact
def reader_of(binding: ModelBinding) -> Callable[[Item], Any]:
    """Return a function that creates the object of a whole item; it raises as ``instance()``."""
    careful = partial(_instance, binding.model)
    return careful if binding.model._has_from_db else object_reader(binding, careful)


def page_reader(
    model: type[DynamoModel], read: Sequence[str], *, keyed: bool = False, by: str = ""
) -> PageReader | None:
    """Return a function that creates the objects of whole pages, of which the physical names in ``read`` were read, or
    everything.

    ``keyed`` and ``by`` are those of ``objects_reader()``. Returns ``None`` for a model that creates objects itself,
    and for items that need another decoder.
    """
    return None if model._has_from_db else objects_reader(model, read, keyed=keyed, by=by)


def page_objects(reader: PageReader, items: Sequence[object]) -> list[Any] | None:
    """Return the objects or rows of a page's items; ``None`` if the caller must create each separately.

    This is necessary for an unusual item, or if signals have receivers.
    """
    try:
        return reader.make(items)
    except Exception:
        # An attribute of a project may raise anything. The app then creates each object separately, and the unusual
        # item raises an error with its key.
        return None


def object_of_values(
    model: type[DynamoModel], db: str | None, field_names: Sequence[str], values: Sequence[object]
) -> Any:
    """The object of the values that some fields have in the table: what ``from_db()`` does unless it is overridden."""
    attributes = registry.attributes_of(model)
    given = zip(field_names, values, strict=True)
    held = {name: value for name, value in given if name in attributes and value is not DEFERRED}
    return _made(model, held, getattr(values, "item", None), db)


class LoadedValues(tuple[Any, ...]):
    """The values that ``from_db()`` is given, with the item that they were read from."""

    item: Item


def _made(model: type[DynamoModel], values: dict[str, object], item: Item | None, db: str | None) -> DynamoModel:
    listened_to = pre_init.has_listeners(model) or post_init.has_listeners(model)
    if listened_to:
        outside_run(partial(pre_init.send, sender=model, args=(), kwargs={}))
    result = model.__new__(model)
    values["_state"] = state = ObjectState()
    state.adding = False
    state.db = db
    values["_stored"] = item
    # The values are the object's own dict, as with Django's models: it costs no second one, and vars() shows them.
    result.__dict__ = values
    if listened_to:
        outside_run(partial(post_init.send, sender=model, instance=result))
    return result


def _from_db(model: type[DynamoModel], item: Item) -> DynamoModel:
    """The object that a model's own ``from_db()`` makes of an item."""
    held = values_of(model, item)
    identity = model._meta.pk
    if isinstance(identity, IdentityField) and held.keys() >= set(identity.names):
        held[identity.attname] = identity.joined(held[name] for name in identity.names)
    names = [field.attname for field in model._meta.concrete_fields if field.attname in held]
    values = LoadedValues(held[name] for name in names)
    values.item = item
    result = outside_run(partial(model.from_db, DEFAULT_DB_ALIAS, names, values))
    if result._stored is None:  # a reader that created it from other values
        result._stored = item
        result._state.adding = False
    return result


async def areload(obj: DynamoModel) -> Any:
    """Read an object again, strongly consistent: one GetItem; raises the model's ``DoesNotExist``.

    For an object that may not be stored, one BatchGetItem reads every possible shard.

    Items that the ``atomic()`` block of this context writes whole are known, so it does not read them.
    """
    model = type(obj)
    await knowledge.ask(registry.layout_of(model))
    alias, keys = model._options.alias, _keys(obj)
    item = pending_put(alias, keys)
    if item is None:
        found = await get_items(get_table(alias), keys)
        # Of an expired object and a new object with its identity in another shard, it is the new object.
        item = next(iter(sorted(found.values(), key=has_expired)), None)
    if item is None:
        raise model.DoesNotExist(f"{named(obj)} is not stored, or no longer exists.")
    return instance(model, item)


def reload(obj: DynamoModel) -> Any:
    """``areload()`` in this thread."""
    return run(areload(obj))


def update_from(obj: Any, fresh: Any, changed: Collection[str]) -> None:
    """Update an object from a fresh read, except for values that were ``changed`` in memory and not saved yet.

    A changed document still differs from its state at the first read: another process's change to it is not a change of
    this object.
    """
    attributes = registry.attributes_of(type(obj))
    for name, value in object_values(fresh).items():
        if name in attributes and attributes[name].computed:
            obj.__dict__[name] = value
        elif name not in changed:
            setattr(obj, name, value)
    infos = registry.layout_of(type(obj)).attributes
    documents = [infos[name].stored for name in changed if name in attributes and attributes[name].document]
    obj._stored = _kept(obj._stored if documents else None, fresh._stored, documents)


def _kept(before: Any, fresh: Any, stored: Collection[str]) -> Any:
    """A fresh item with some attributes as they were read before, if they were."""
    known = () if before is None else before.names if isinstance(before, PartialItem) else stored
    kept = [name for name in stored if name in known]
    if not kept:
        return fresh
    item = {name: value for name, value in fresh.items() if name not in kept}
    item |= {name: before[name] for name in kept if name in before}
    return PartialItem(item, fresh.names) if isinstance(fresh, PartialItem) else item


def set_stored(obj: DynamoModel, item: Mapping[str, Any], values: Mapping[str, object]) -> None:
    """Record an object's stored item, and the values of its attributes there."""
    obj._stored = PartialItem(item, item.names) if isinstance(item, PartialItem) else dict(item)
    obj.__dict__.update(values)


def _keys(obj: DynamoModel) -> Sequence[ItemKey]:
    """Return the key that the object is stored under, or its possible keys."""
    if obj._stored is not None:
        return (key_of(obj._stored),)
    primary = registry.layout_of(type(obj)).primary
    if primary.sharding is not None:
        # Whatever its time: another object of the identity may have another time.
        return possible_keys(type(obj), {**obj.__dict__, primary.sharding.at: None})
    return ((primary.partition.render(obj.__dict__), primary.sort.render(obj.__dict__)),)


def is_live(model: type[DynamoModel], item: Mapping[str, StoredValue]) -> bool:
    """Return whether an item is neither in the trash nor expired."""
    if names.DELETED_AT in item:
        return False
    return registry.layout_of(model).expires is None or not has_expired(item)
