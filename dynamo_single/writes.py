"""Writing objects: which actions a save or a deletion is made of, under which conditions, and sending them.

``items`` computes the items, ``failures`` says what went wrong. One action is one request; several are one transaction,
so that an object and its unique values change together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dynamo_single import derived, hydration, registry, uniqueness
from dynamo_single import layout as names
from dynamo_single.actions import ITEM_EXISTS, Action, Delete, Item, Put, Update, key_of
from dynamo_single.conditions import join
from dynamo_single.deferred import changed_in_memory, complete, is_partial
from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionFailed,
    ItemTooLarge,
    NotSupported,
    StaleObject,
)
from dynamo_single.failures import insert_error, is_gone, stale, stored_instead, update_error
from dynamo_single.items import (
    Values,
    automatic_names,
    automatic_values,
    computed_key,
    is_same,
    is_same_item,
    item_after,
    item_from,
    item_of,
    known_names,
    prepared_values,
    set_automatic,
    stored_name,
)
from dynamo_single.matching import matches
from dynamo_single.query import EVERYTHING, Condition, Stored
from dynamo_single.sending import send
from dynamo_single.values import MAX_ITEM_SIZE, item_size


def insert(obj: Any, *, raw: bool = False) -> None:
    """Write a new object: PutItem, or one transaction with its unique values and derived items; never over an item.

    An item that has expired counts as none. ``raw`` keeps automatic timestamps as they are given.
    """
    model = type(obj)
    complete(obj)
    _make_identity(obj)
    if not raw:
        set_automatic(obj, add=True)
    values = prepared_values(obj)
    item = item_from(model, values)
    actions = [Put(item, uniqueness.free(model)), *_following(model, None, item)]
    try:
        send(obj, actions, partial(insert_error, obj, item), partial(_touched, model, None, item))
    except AlreadyExists as error:
        cause = error.__cause__
        # The first of botocore's attempts was carried out, and its answer lost.
        if not (
            isinstance(cause, ConditionFailed)
            and cause.retried
            and cause.item is not None
            and is_same_item(item, cause.item, model)
        ):
            raise
    _remember(obj, item, values)


def update(
    obj: Any,
    only: frozenset[str] | None = None,
    *,
    extra: Condition = EVERYTHING,
    raw: bool = False,
    force: bool = False,
) -> None:
    """Write what changed since the object was read: UpdateItem, or one transaction if a unique value changed.

    Nothing is sent if nothing changed. ``only`` names the attributes to look at; automatic timestamps always follow,
    and one that is named is written by itself. ``extra`` has to hold of the stored item as well. ``force`` computes
    every key anew also without a change, which fills an index that is younger than the item. An object that was read in
    part is read whole first, if there may be something to write.
    """
    model = type(obj)
    if is_partial(obj) and only is None and not force and not changed_in_memory(obj):
        return
    before = _stored_item(obj)
    held = hydration.values_of(model, before)
    # Against what was read, not against the item: the default of a missing attribute is shown, and written only if it
    # is named.
    attributes = registry.attributes_of(model)
    changed = {
        name: value
        for name, value in prepared_values(obj, before, only).items()
        if not is_same(attributes[name], value, held[name])
        or (only is not None and value is not None and attributes[name].attr_name not in before)
    }
    if not changed and not force and (only is None or not only & {*automatic_names(obj)}):
        return
    if not raw:
        changed |= automatic_values(obj, add=False)
    values = {**held, **changed}
    if computed_key(model, values) != key_of(before):
        raise NotSupported(
            f"{model._meta.label}: {', '.join(model._identity)} make up the primary key and cannot change. Create a "
            "new object and delete this one."
        )
    _save_changes(obj, before, values, changed, extra)


def _stored_item(obj: Any) -> Item:
    try:
        if obj._stored is None:
            stored: Item = hydration.reload(obj)._stored
        else:
            complete(obj)
            stored = obj._stored
    except type(obj).DoesNotExist as error:
        raise StaleObject(
            f"{obj._meta.label} with pk {obj.pk!r} is not stored, so there is nothing to update; nothing was written."
        ) from error
    return stored


def _make_identity(obj: Any) -> None:
    """Give a copied object, whose ``pk`` was set to ``None``, an identifier of its own, as Django does."""
    for name in type(obj)._identity:
        field = obj._meta.get_field(name)
        if obj.attribute_values.get(name) is None and field.has_default():
            setattr(obj, name, field.get_default())


def replace(obj: Any) -> bool:
    """Write an object as it is given, whether or not it exists (fixtures); ``True`` if it did."""
    try:
        insert(obj, raw=True)
    except AlreadyExists:
        obj._stored = hydration.reload(obj)._stored
        update(obj, raw=True)
        return True
    return False


def delete(obj: Any, *, extra: Condition = EVERYTHING) -> int:
    """Delete the item for good, with its unique values; the number of items deleted, 0 if there was none.

    An object that was read in part is read whole first.
    """
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be deleted because it is not stored.")
    try:
        complete(obj)
    except model.DoesNotExist:
        return 0
    stored = obj._stored
    # The claims to free are those that this object knows of: another writer's rename, or restore, must not leave its
    # own behind.
    depends = {stored_name(model, name) for name in uniqueness.unique_attributes(model)} | derived.stored_names(model)
    if depends and registry.layout_of(model).soft_delete:
        depends.add(names.DELETED_AT)
    unchanged = (_as_stored(stored, name) for name in sorted(depends))
    action = Delete(key_of(stored), join((ITEM_EXISTS, *unchanged, extra)))
    try:
        actions = [action, *_following(model, stored, None)]
        send(obj, actions, lambda action, found: stale(obj, found), partial(_touched, model, stored, None))
    except StaleObject as error:
        if is_gone(error):
            return 0
        raise
    obj._stored = None
    return 1


def change(obj: Any, changes: Values, *, extra: Condition = EVERYTHING) -> None:
    """Set attributes of a stored object, with every key and unique value that depends on them: one request."""
    model = type(obj)
    before = obj._stored
    changes = {**changes, **automatic_values(obj, add=False)}
    _save_changes(obj, before, {**hydration.values_of(model, before), **changes}, changes, extra)


def only_if(obj: Any, condition: Condition, write: Callable[[Condition], bool]) -> bool:
    """Write under a condition on the stored item; ``False`` if the item does not meet it, or is gone.

    Where the item meets it but another writer was faster, the object is brought up to the item and written again.
    """
    for last_try in (False, False, True):
        try:
            return write(condition)
        except StaleObject as error:
            if is_gone(error):
                return False
            fresh = _reloaded(obj)
            if fresh is None or not matches(condition, fresh._stored, registry.layout_of(type(obj))):
                return False
            if last_try:
                raise
            hydration.follow(obj, fresh, changed_in_memory(obj))
    return False


def _reloaded(obj: Any) -> Any:
    try:
        return hydration.reload(obj)
    except type(obj).DoesNotExist:
        return None


def _save_changes(obj: Any, before: Item, values: Values, changed: Values, extra: Condition) -> None:
    item = item_after(type(obj), before, values, changed)
    stored = _send_changes(obj, before, item, extra)
    now_held = values if stored is item else hydration.values_of(type(obj), stored)
    _remember(obj, stored, {name: now_held[name] for name in changed})


def _send_changes(obj: Any, before: Item, item: Item, extra: Condition) -> Item:
    """Send the difference of two items of one key, if the first is still there; gives the item that is stored now."""
    model = type(obj)
    size = item_size(item)
    if size > MAX_ITEM_SIZE:
        raise ItemTooLarge(
            f"{model._meta.label} with pk {obj.pk!r} would have {size} bytes; DynamoDB stores {MAX_ITEM_SIZE} an item. "
            "Keep large contents elsewhere and store where they are, or divide them among several items."
        )
    key = key_of(before)
    known = known_names(model)
    changed = {name: value for name, value in item.items() if before.get(name) != value}
    removed = tuple(name for name in before if name in known and name not in item)
    if not changed and not removed:
        return item  # an automatic time that is the same to the millisecond
    condition = join((ITEM_EXISTS, *_conditions(model, before, item, {*changed, *removed}), extra))
    update = Update(key, set=changed, remove=removed, condition=condition)
    actions = [update, *_following(model, before, item)]
    try:
        send(obj, actions, partial(update_error, obj, item), partial(_touched, model, before, item))
    except StaleObject as error:
        # What was to be written is there already: an earlier attempt was carried out, and its answer lost.
        found = stored_instead(error)
        automatic = {stored_name(model, name) for name in automatic_names(obj)}
        if found is None or not is_same_item(item, found, model, apart_from=automatic):
            raise
        return found
    return item


def _following(model: Any, before: Item | None, after: Item | None) -> list[Action]:
    """What has to change with an item: ``None`` is one that is not there."""
    items = (derived.items_of(model, each, item_of) for each in (before, after))
    return [*uniqueness.actions(model, before, after), *derived.actions(*items)]


def _touched(model: Any, before: Item | None, after: Item | None) -> list[Item | None]:
    """Every item that a write changes, as it is and as it will be; the object's own new one last."""
    following = [item for each in (before, after) for item in derived.items_of(model, each, item_of).values()]
    return [*following, before, after]


def _conditions(model: Any, before: Item, after: Item, written: set[str]) -> list[Condition]:
    """What has to be as it was read, for the keys, the claims and the derived items that are written to be right."""
    layout = registry.layout_of(model)
    as_before = {names.DELETED_AT} if layout.soft_delete else set()
    for key in layout.index_keys:
        if key.index and written & {names.index_partition(key.index), names.index_sort(key.index)}:
            as_before |= {layout.attributes[name].stored for name in key.variables if name not in layout.identity}
    as_before |= uniqueness.depends_on(model, before, after)
    as_before |= {stored_name(model, name) for name in uniqueness.unique_attributes(model)} & written
    if written & derived.stored_names(model):
        as_before |= derived.stored_names(model)
    for copy in registry.copies_of(model):
        pair = {copy.attr_name, stored_name(model, copy.source)}
        # If only one of them changes, the other one has to be what it goes with.
        as_before |= pair - written if pair & written else set()
    return [_as_stored(before, stored) for stored in sorted(as_before)]


def _as_stored(item: Item, stored: str) -> Condition:
    return Stored(stored, "=", (item[stored],)) if stored in item else Stored(stored, "missing")


def _remember(obj: Any, item: Mapping[str, Any], values: Values) -> None:
    obj._stored = dict(item)
    obj.attribute_values.update(values)
