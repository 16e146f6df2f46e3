"""Moving an object to another primary key: the new item, the old one's deletion and all that follows, at once.

This module must not know how actions are sent. Objects that refer to the moved one are not moved along: where there are
any, it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models.signals import post_save, pre_save

from dynamo_single.exceptions import AlreadyExists, NoAccessPattern, NotSupported, TransactionCancelled
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.effects import claims, copies, together
from dynamo_single.orm.effects.write_errors import delete_error, insert_error
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.partial import complete
from dynamo_single.orm.items.serialization import (
    Values,
    automatic_names,
    automatic_values,
    computed_key,
    is_same,
    is_same_item,
    item_after,
    known_names,
    prepared_values,
    refuse_fixed,
    stored_name,
)
from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Delete, Item, Put, key_of
from dynamo_single.orm.requests.changes import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import declared
from dynamo_single.orm.write import assignments, save
from dynamo_single.table import names

#: What an object's attributes and its related objects are.
_State = tuple[dict[str, Any], dict[str, Any]]
_VISIBILITIES: tuple[Visibility, ...] = ("all", "live", "deleted")


class Movable:
    """The methods of a model."""

    def move(self, **changes: Any) -> None:
        """Set attributes and store the object under the primary key that they give, in one transaction with its claims.

        What else was set goes along. ``AlreadyExists`` if there is an item, ``StaleObject`` if another writer changed
        this one, ``NotSupported`` if objects that a key finds refer to it: one Query for each such reference before.
        """
        move(self, changes)

    async def amove(self, **changes: Any) -> None:
        """``move()`` in a thread."""
        await sync_to_async(self.move)(**changes)

    move.alters_data = amove.alters_data = True  # type: ignore[attr-defined]  # templates call neither


def move(obj: Any, changes: Mapping[str, Any]) -> None:
    """Set attributes and store the object under the key that they give: one transaction; a save if that is its own.

    Nothing is overwritten, and the old item has to be as it was read. If it fails, the object is as it was.
    """
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be moved because it is not stored.")
    unknown = sorted(changes.keys() - model._settable())
    if unknown:
        raise TypeError(f"{model._meta.object_name}.move() got an unexpected keyword argument {unknown[0]!r}.")
    complete(obj)
    before = _state(obj)
    try:
        for name, value in changes.items():
            setattr(obj, name, value)
        pre_save.send(sender=model, instance=obj, raw=False, using=None, update_fields=None)
        assignments.refuse_changes(obj, "move() puts a new item, for which it is not computed: save() it before.")
        identity = prepared_values(obj, obj._stored, model._identity)
        if computed_key(model, identity) == key_of(obj._stored):
            save.update(obj)
        else:
            _move(obj, _state(obj), before)
    except BaseException:
        _set_state(obj, before)
        raise
    post_save.send(sender=model, instance=obj, created=False, update_fields=None, raw=False, using=None)


def _state(obj: Any) -> _State:
    return dict(obj.attribute_values), dict(obj._state.fields_cache)


def _set_state(obj: Any, state: _State) -> None:
    obj.attribute_values, obj._state.fields_cache = dict(state[0]), dict(state[1])


@copies.begun_anew
def _move(obj: Any, wanted: _State, as_it_was: _State) -> None:
    """Send the move to what ``wanted`` says; it changes nothing of the object before it is sent."""
    model, before = type(obj), obj._stored
    _set_state(obj, wanted)
    values, item = _new_item(obj)
    target = hydration.instance(model, item)
    # What is told of the old item is told with its ``pk``, and a block that is discarded leaves the object as it was.
    _set_state(obj, as_it_was)
    _refuse_orphans(obj)
    put = Put(item, claims.free(model))
    delete = Delete(key_of(before), join((ITEM_EXISTS, *_as_read(model, before))))
    try:
        together.send(obj, put, before, item, partial(_error, obj, target, before), beside=(delete,))
    except AlreadyExists as error:
        # An earlier attempt was carried out, and its answer lost.
        found = _moved_already(obj, item, error)
        if found is None:
            raise
        item = {name: dict(value) for name, value in found.items()}
        values = hydration.values_of(model, item)
    _set_state(obj, wanted)
    obj._prefetched_objects_cache = {}
    save._remember(obj, item, values)


def _new_item(obj: Any) -> tuple[Values, hydration.Item]:
    """What the object will hold, and its item; what the model does not know of the old item goes along."""
    model, before = type(obj), obj._stored
    copies.fill(obj, before)
    held = hydration.values_of(model, before)
    attributes = registry.attributes_of(model)
    values = prepared_values(obj, before)
    changed = {name: value for name, value in values.items() if not is_same(attributes[name], value, held[name])}
    refuse_fixed(model, changed)
    changed |= automatic_values(obj, add=False)
    changed |= versions.next_values(model, before)
    values = {**held, **changed}
    item = item_after(model, before, values, changed)
    foreign = {name: dict(value) for name, value in before.items() if name not in known_names(model)}
    return values, {**foreign, **item}


def _as_read(model: Any, before: Item) -> Iterator[Any]:
    """That the old item is as it was read, in everything: what another writer changed must not be lost."""
    for name in sorted({*before, *known_names(model)} - {names.PARTITION_KEY, names.SORT_KEY}):
        yield as_stored(before, name)


def _error(obj: Any, target: Any, before: Item, action: Action, found: Item | None) -> Exception:
    if isinstance(action, Put):
        return insert_error(target, target._stored, action, found)
    return delete_error(obj, before, action, found)


def _moved_already(obj: Any, item: Item, error: AlreadyExists) -> Item | None:
    """The item under the new key, if it is what was to be written and the old one is gone."""
    model = type(obj)
    cause = error.__cause__
    if not isinstance(cause, TransactionCancelled):
        return None
    there, old = (reason or {} for reason in cause.reasons[:2])
    found: Item | None = there.get("Item")
    is_gone = old.get("Code") == "ConditionalCheckFailed" and not old.get("Item")
    automatic = {stored_name(model, name) for name in automatic_names(obj)}
    same = found is not None and is_gone and is_same_item(item, found, model, apart_from=automatic)
    return found if same else None


def _refuse_orphans(obj: Any) -> None:
    """Refuse to move an object that others refer to by its ``pk``: one Query for one item for each reference."""
    for field, always in _references(type(obj)):
        for queryset in _found_by(field, obj.pk, always=always):
            if queryset.exists():
                label = obj._meta.label
                raise NotSupported(
                    f"{label} with pk {obj.pk!r} cannot move: {field.model._meta.label} objects refer to it by "
                    f"{field.name}, and would refer to nothing. Move or delete these first, or create another "
                    f"{label} for them; nothing was written."
                )


def _references(model: Any) -> Iterator[tuple[Any, bool]]:
    """The references to a model, and whether it has them as ``Children``; what follows from an object follows it."""
    owned = {children.field for children in declared(model)}
    for other in registry.all_models():
        for field in other._meta.concrete_fields:
            follows = other.derived_by in (field.name, field.attname)
            if field.is_relation and issubclass(model, field.related_model) and not follows:
                yield field, field in owned


def _found_by(field: Any, pk: Any, *, always: bool) -> Iterator[Any]:
    """Querysets of the objects with a reference, where a key has it; ``always`` for those that any key lists."""
    found = field.model._base_manager.filter(**{field.attname: pk})
    for visibility in _VISIBILITIES if registry.layout_of(field.model).soft_delete else _VISIBILITIES[1:2]:
        queryset = found.with_visibility(visibility)
        try:
            plan = queryset._plan()
        except NoAccessPattern:
            continue
        if always or plan.key is None or field.attname in plan.key.variables:
            yield queryset
            if visibility == "all":
                return
