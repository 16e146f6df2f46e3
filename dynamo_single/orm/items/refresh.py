"""Reading an object again, whole or some attributes of it, by Django's rules of ``refresh_from_db()``.

Other attributes keep their values and their state at the first read, which conditions of a later save use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any

from django.core.exceptions import FieldDoesNotExist

from dynamo_single.exceptions import InvalidValue, NotSupported, UnknownField
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import index_keys, index_names, is_same, known_names, stored_name
from dynamo_single.orm.items.encodings import Encodings
from dynamo_single.orm.items.stored import object_values
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.reading.single import get_items
from dynamo_single.orm.requests.actions import Item, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.references import declared_children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names as physical
from dynamo_single.table.flow import run
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from dynamo_single.orm.items import form as item_forms
else:
    item_forms = LazyModule("dynamo_single.orm.items.form")

# Partially loaded objects: which attributes ``only()`` and ``defer()`` name, and reading the rest later. One GetItem
# loads the rest of an object. A write does this first, because keys and unique values need the whole object. This
# module must not know plans or querysets.


def named_fields(model: type[DynamoModel], names: Sequence[object], method: str) -> list[str]:
    """The fields that ``only()`` or ``defer()`` were given, each by the name that Django counts by."""
    found = [_field(model, name, method) for name in names]
    return [field.name for field in found if field is not None]


def _field(model: Any, name: object, method: str) -> Any:
    """The field that a name means; ``None`` for a part of another object, which ``defer()`` leaves as it is.

    The app reads a referenced object whole, even if ``only()`` names a part of it.
    """
    meta = model._meta
    if name == "pk":
        return meta.pk
    first, _, rest = str(name).partition("__")
    try:
        field = meta.get_field(first)
    except FieldDoesNotExist:
        field = None
    if field is None or not field.concrete:
        known = ", ".join(each.name for each in meta.concrete_fields)
        raise UnknownField(f"{meta.label} has no attribute {first!r} for {method}(). It has {known}.")
    if not rest:
        return field
    if field.is_relation:
        _check_path(field.related_model, rest, method)
        return field if method == "only" else None
    raise NotSupported(
        f"{method}({name!r}) is not supported: DynamoDB reads the attributes of one item, each of them whole. "
        f"Name {first!r}."
    )


def _check_path(model: type[DynamoModel], path: str, method: str) -> None:
    """Raise for an unknown attribute of a referenced object."""
    if not hasattr(model, "_options"):
        return  # a model in SQL; its fields are Django's
    _field(model, path, method)


def attributes_to_load(
    model: type[DynamoModel],
    loading: tuple[Set[str], bool],
    followed: Iterable[str] = (),
    lookups: Iterable[object] = (),
) -> set[str] | None:
    """Return the attributes to read, from Django's state of ``only()`` and ``defer()``; ``None`` for all of them.

    A reference that ``prefetch_related`` (``lookups``) follows is included; a reference that ``select_related`` follows
    (``followed``) must be, or ``UnknownField`` is raised, as Django raises ``FieldError``.
    """
    names, defer = loading
    if not names:
        return None
    fields = model._meta.concrete_fields
    kept = {field.name for field in fields if (field.name not in names) == defer}
    for name in (path.partition("__")[0] for path in followed):
        if name not in kept:
            raise UnknownField(
                f"{model._meta.label}.{name} cannot be both deferred and followed by select_related(): name it in "
                "only(), or leave it out of defer()."
            )
    kept |= {getattr(lookup, "prefetch_through", str(lookup)).partition("__")[0] for lookup in lookups}
    return {name for field in fields if field.name in kept for name in attributes_of(field)}


def attributes_of(field: Any) -> tuple[str, ...]:
    """Return the attributes of a field: several, for an identity of several attributes."""
    return field.names if isinstance(field, IdentityField) else (field.attname,)


def references_among(model: type[DynamoModel], names: Iterable[str]) -> set[str]:
    """Return the references among some attributes."""
    return {field.attname for field in model._meta.concrete_fields if field.is_relation}.intersection(names)


def missing_attributes(obj: DynamoModel) -> set[str]:
    """The attributes that the object does not have yet."""
    return {name for name in registry.attributes_of(type(obj)) if name not in obj.__dict__}


def is_partial(obj: DynamoModel) -> bool:
    """Return whether the object is only partially loaded."""
    return isinstance(obj._stored, PartialItem)


def changed_in_memory(obj: DynamoModel) -> set[str]:
    """Return the unsaved attributes: those that the program has set since the last read or write."""
    return set() if obj._stored is None else changed_attributes(obj, obj._stored)


def changed_attributes(obj: DynamoModel, item: Item) -> set[str]:
    """Return the attributes of an object that differ from an item; for a part of one, also those that it lacks."""
    form, values, encodings = item_forms.form_of(type(obj)), obj.__dict__, Encodings()
    held = decode.values_of(type(obj), item, form.compared)
    read = item.names if isinstance(item, PartialItem) else None
    found = set()
    for name, attribute in form.attributes.items():
        if name not in values or attribute.computed:
            continue  # neither read nor set
        try:
            if read is not None and form.stored[name] not in read:
                same = False
            elif attribute.document:
                same = form.is_same_document(attribute, values[name], item, encodings)
            else:
                same = is_same(attribute, attribute.prepare(values[name]), held[name])
        except InvalidValue:
            same = False
        if not same:
            found.add(name)
    return found


def clear_attribute(obj: DynamoModel, name: str) -> None:
    """Remove the value of an attribute from an object, as if it were not loaded."""
    del obj.__dict__[name]
    before = obj._stored
    if before is None:
        return
    stored = stored_name(type(obj), name)
    read = before.names if is_partial(obj) else {*known_names(type(obj)), *before}
    kept = {each: value for each, value in before.items() if each != stored}
    obj._stored = PartialItem(kept, frozenset(read) - {stored})


async def acomplete(obj: DynamoModel, named: Collection[str] = ()) -> bool:
    """Read the rest of an object that was read in part: one GetItem, strongly consistent; ``True`` if it was sent.

    Attributes that were neither set in memory nor ``named`` are updated from the item. Set attributes still count as
    changed from the earlier read, so that the app detects conflicts with another process's change. Raises the model's
    ``DoesNotExist``.
    """
    before = obj._stored
    if not is_partial(obj):
        return False
    kept = changed_in_memory(obj).union(named)
    decode.update_from(obj, await decode.areload(obj), kept)
    obj._stored = _as_read(type(obj), before, obj._stored, kept)
    return True


def complete(obj: Any, named: Collection[str] = ()) -> bool:
    """``acomplete()`` in this thread."""
    return run(acomplete(obj, named))


def _as_read(model: type[DynamoModel], before: PartialItem, fresh: decode.Item, kept: Collection[str]) -> decode.Item:
    """A fresh item with some attributes as they were read before, if they were."""
    item = dict(fresh)
    for stored in before.names.intersection(stored_name(model, name) for name in kept):
        if stored in before:
            item[stored] = before[stored]
        else:
            item.pop(stored, None)
    return item


async def refresh(obj: DynamoModel, fields: Iterable[str] | None, queryset: Any) -> None:
    """Read an object again: one strongly consistent GetItem, or what ``queryset`` sends.

    ``fields`` are the names of the attributes to update from the item, and of relations, whose cache is cleared; the
    default is all loaded attributes. Without attribute names it does not send a request. If a named attribute is not
    loaded yet, it loads all missing attributes.
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
        _take(obj, await decode.areload(obj), obj.get_deferred_fields())
        return
    if queryset is not None and named is not None:
        # As in Django, named fields take precedence over only() and defer().
        queryset = queryset.defer(None)
    if queryset is None:
        fresh = await decode.areload(obj)
    else:
        fresh = await queryset._one({"pk": obj.pk})
    if named is None and not is_partial(fresh):
        decode.update_from(obj, fresh, ())
    else:
        read = object_values(fresh).keys()
        _take(obj, fresh, read if named is None else named & read)
    _renew_references(obj, fresh, named)
    if named is None:
        obj._prefetched_objects_cache = {}
        _forget_those_that_refer(obj, (each.get_accessor_name() for each in obj._meta.related_objects))
    obj._state.adding = False


def read_rest(objects: Sequence[DynamoModel]) -> None:
    """Load missing attributes of objects of one model: one BatchGetItem for each hundred, strongly consistent.

    A missing object stays unchanged.
    """
    keys = {key_of(obj._stored): obj for obj in objects if obj._stored is not None}
    if not keys:
        return
    model = type(objects[0])
    found = run(get_items(get_table(model._options.alias), list(keys)))
    for key, item in found.items():
        _take(keys[key], decode.instance(model, item), keys[key].get_deferred_fields())


def _attributes(obj: DynamoModel, fields: Iterable[str]) -> set[str]:
    meta = obj._meta
    found = (meta.pk if name == "pk" else meta.get_field(name) for name in fields)
    return {name for field in found for name in attributes_of(field)}


def _forgotten(obj: DynamoModel, given: Collection[str]) -> set[str]:
    """Clear the caches of named relations from other objects to this one, and return their names."""
    cache = getattr(obj, "_prefetched_objects_cache", {})
    relations = {children.name for children in declared_children(type(obj))} | cache.keys()
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
    """Clear or replace the cached objects of reloaded references."""
    for field in obj._meta.concrete_fields:
        if not field.is_relation or field.attname not in fresh.__dict__ or (named and field.attname not in named):
            continue
        if field.is_cached(fresh):
            field.set_cached_value(obj, field.get_cached_value(fresh))
        elif field.is_cached(obj):
            field.delete_cached_value(obj)


def _take(obj: DynamoModel, fresh: DynamoModel, names: Collection[str]) -> None:
    """Update some attributes of an object and their computed values from a fresh read; keep the others."""
    model = type(obj)
    attributes = registry.attributes_of(model)
    taken = {*names, *(copy.name for copy in registry.copies_of(model) if copy.source in names)}
    taken &= fresh.__dict__.keys()
    for name in taken:
        if attributes[name].computed:
            obj.__dict__[name] = fresh.__dict__[name]
        else:
            setattr(obj, name, fresh.__dict__[name])
    obj._stored = _mixed(model, obj._stored, fresh._stored, taken)


def _mixed(model: type[DynamoModel], old: Item | None, fresh: Item, taken: Collection[str]) -> Item:
    """Return the object's former item, with the attributes ``taken`` from a fresh read."""
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
    # With the last attribute the object has its whole item, including attributes outside the model.
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
