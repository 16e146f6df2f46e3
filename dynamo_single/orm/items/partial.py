"""Objects that were read in part: which attributes ``only()`` and ``defer()`` name, and reading the rest later.

An object is completed by one GetItem, and before it is written, since its keys and unique values need all of it. This
module must not know plans or querysets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from typing import Any

from django.core.exceptions import FieldDoesNotExist

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.serialization import known_names, stored_name, touched
from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.fields import IdentityField
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.flow import run


def named(model: type[DynamoModel], names: Sequence[object], method: str) -> list[str]:
    """The fields that ``only()`` or ``defer()`` were given, each by the name that Django counts by."""
    found = [_field(model, name, method) for name in names]
    return [field.name for field in found if field is not None]


def _field(model: Any, name: object, method: str) -> Any:
    """The field that a name means; ``None`` for a part of another object, which ``defer()`` leaves as it is.

    An object that a reference leads to is read whole, also where ``only()`` names a part of it.
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
    """Raise for what is no attribute of an object that a reference leads to."""
    if not hasattr(model, "_options"):
        return  # a model in SQL; its fields are Django's
    _field(model, path, method)


def wanted(
    model: type[DynamoModel],
    loading: tuple[Set[str], bool],
    followed: Iterable[str] = (),
    lookups: Iterable[object] = (),
) -> set[str] | None:
    """The attributes that are to be read, by what Django has of ``only()`` and ``defer()``; ``None`` for all of them.

    A reference that ``prefetch_related`` (``lookups``) follows is one of them; one that ``select_related`` is to follow
    (``followed``) has to be, or ``UnknownField`` is raised, as Django raises ``FieldError``.
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
    """The attributes that a field is made of: several, for an identity of several."""
    return field.names if isinstance(field, IdentityField) else (field.attname,)


def references(model: type[DynamoModel], names: Iterable[str]) -> set[str]:
    """Those of some attributes that are references."""
    return {field.attname for field in model._meta.concrete_fields if field.is_relation}.intersection(names)


def missing(obj: DynamoModel) -> set[str]:
    """The attributes that the object does not have yet."""
    return {name for name in registry.attributes_of(type(obj)) if name not in obj.__dict__}


def is_partial(obj: DynamoModel) -> bool:
    """Whether there is more of the object's item than was read of it."""
    return isinstance(obj._stored, PartialItem)


def changed_in_memory(obj: DynamoModel) -> set[str]:
    """The attributes that were set since the object was read or written, and are not saved yet."""
    return touched(obj, hydration.values_of(type(obj), obj._stored)) if obj._stored is not None else set()


def forget(obj: DynamoModel, name: str) -> None:
    """Let an object be without the value of an attribute, as if that had not been read."""
    del obj.__dict__[name]
    before = obj._stored
    if before is None:
        return
    schema = registry.layout_of(type(obj)).schema
    if schema is not None and not schema.is_current(before):
        raise NotSupported(
            f"{type(obj)._meta.label}.{name} cannot be taken from an object whose item is of an earlier schema "
            "version: save() the object before."
        )
    stored = stored_name(type(obj), name)
    read = before.names if is_partial(obj) else {*known_names(type(obj)), *before}
    kept = {each: value for each, value in before.items() if each != stored}
    obj._stored = PartialItem(kept, frozenset(read) - {stored})


async def completed(obj: DynamoModel, named: Collection[str] = ()) -> bool:
    """Read the rest of an object that was read in part: one GetItem, strongly consistent; ``True`` if it was sent.

    What was not set in memory, nor is ``named``, follows the item. What was set still counts as changed from what was
    read before, so that another writer's change of it is noticed where it matters. Raises the model's
    ``DoesNotExist``.
    """
    before = obj._stored
    if not is_partial(obj):
        return False
    kept = changed_in_memory(obj).union(named)
    hydration.follow(obj, await hydration.reloaded(obj), kept)
    obj._stored = _as_read(type(obj), before, obj._stored, kept)
    return True


def complete(obj: Any, named: Collection[str] = ()) -> bool:
    """``completed()`` in this thread."""
    return run(completed(obj, named))


def _as_read(
    model: type[DynamoModel], before: PartialItem, fresh: hydration.Item, kept: Collection[str]
) -> hydration.Item:
    """A fresh item with some attributes as they were read before, if they were."""
    item = dict(fresh)
    for stored in before.names.intersection(stored_name(model, name) for name in kept):
        if stored in before:
            item[stored] = before[stored]
        else:
            item.pop(stored, None)
    return item
