"""Writing objects: which actions a save or a deletion is made of, under which conditions, and sending them.

``items`` computes the items, ``failures`` says what went wrong. One action is one request; several are one transaction,
so that an object and its unique values change together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionFailed,
    ConditionNotMet,
    ItemTooLarge,
    NotSupported,
    StaleObject,
)
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.effects import child_counters, claims, copies, derived, together
from dynamo_single.orm.effects.sending import send
from dynamo_single.orm.effects.write_errors import (
    delete_error,
    insert_error,
    is_gone,
    stored_instead,
    update_error,
    was_retried,
)
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.partial import changed_in_memory, complete, is_partial
from dynamo_single.orm.items.serialization import (
    Values,
    automatic_names,
    automatic_values,
    computed_key,
    is_same,
    is_same_item,
    item_after,
    item_from,
    known_names,
    prepared_values,
    refuse_fixed,
    set_automatic,
    stored_name,
)
from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.orm.requests import block
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Check, Delete, Item, Put, Update, key_of
from dynamo_single.orm.requests.changes import Change, as_stored, needs
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.encoding.values import item_size
from dynamo_single.orm.write import assignments, computed_changes
from dynamo_single.table import names
from dynamo_single.table.limits import MAX_ITEM_SIZE


@copies.begun_anew
def insert(obj: Any, *, raw: bool = False, prepared: tuple[Item, Values] | None = None) -> None:
    """Write a new object: PutItem, or one transaction with its unique values and derived items; never over an item.

    An item that has expired counts as none. ``raw`` keeps automatic timestamps as they are given. ``prepared`` is what
    ``new_item`` gave.
    """
    model = type(obj)
    item, values = prepared or new_item(obj, raw=raw)
    try:
        explain = partial(insert_error, obj, item)
        together.send(obj, Put(item, claims.free(model)), None, item, explain, lenient=raw)
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


def new_item(obj: Any, *, raw: bool = False) -> tuple[Item, Values]:
    """The item and the values of an object that is to be created, which gets its identifier and automatic values."""
    complete(obj)
    _make_identity(obj)
    assignments.refuse_changes(obj, "A new object has none: give it a value.")
    if not raw:
        set_automatic(obj, add=True)
        obj.attribute_values.update(versions.next_values(type(obj), None))
    copies.fill(obj, lenient=raw)
    values = prepared_values(obj)
    return item_from(type(obj), values), values


@copies.begun_anew
def update(
    obj: Any,
    only: frozenset[str] | None = None,
    *,
    extra: Condition = EVERYTHING,
    condition: Condition = EVERYTHING,
    changes: Sequence[Change] = (),
    given: frozenset[str] = frozenset(),
    raw: bool = False,
    force: bool = False,
) -> None:
    """Write what changed since the object was read: UpdateItem, or one transaction if a unique value changed.

    Nothing is sent if nothing changed, but for a check of a ``condition``, the caller's. ``only`` names the attributes
    to look at; automatic timestamps always follow, and one that is named is written by itself, with its value if it is
    ``given``. ``extra`` has to hold of
    the stored item as well. ``changes`` are made besides those that attributes are set to. ``force`` computes every key
    anew also without a change, which fills an index that is younger than the item. An object that was read in part is
    read whole first, if there may be something to write.
    """
    model = type(obj)
    changes = (*changes, *assignments.of_object(obj, only))
    may_change = only is not None or force or changes or condition != EVERYTHING
    if is_partial(obj) and not may_change and not changed_in_memory(obj):
        return
    before = _stored_item(obj)
    copies.fill(obj, None if force else before, only, lenient=raw)
    held = hydration.values_of(model, before)
    left = computed_changes.attribute_names(model, changes)
    # Against what was read, not against the item: the default of a missing attribute is shown, and written only if it
    # is named.
    attributes = registry.attributes_of(model)
    changed = {
        name: value
        for name, value in prepared_values(obj, before, only, without=left).items()
        if not is_same(attributes[name], value, held[name])
        or (only is not None and value is not None and attributes[name].attr_name not in before)
    }
    if changes and not computed_changes.is_left_to_dynamodb(model, changes, changed, alone=block.current() is None):
        both = None if only is None else only | left
        computed_changes.compute(
            obj,
            changes,
            lambda unchanged: update(
                obj, both, extra=join((extra, unchanged)), condition=condition, given=given, raw=raw, force=force
            ),
        )
        return
    if not changed and not changes and not force and (only is None or not only & {*automatic_names(obj)}):
        if condition != EVERYTHING:
            _check(obj, before, condition)
        if obj._stored is None:
            _remember(obj, before, {})
        copies.complete(obj, _change_actions)
        return
    if not raw:
        refuse_fixed(model, changed)
        changed |= {name: value for name, value in automatic_values(obj, add=False).items() if name not in given}
    values = {**held, **changed}
    if computed_key(model, values) != key_of(before):
        other = next(name for name in model._identity if name in changed)
        raise NotSupported(
            f"{model._meta.label}: {', '.join(model._identity)} make up the primary key, which save() does not "
            f"change: move({other}=...) does, with everything else that is set. Nothing was written."
        )
    _save_changes(obj, before, values, changed, extra, condition, changes, raw=raw)


def _check(obj: Any, before: Item, condition: Condition) -> None:
    """Ask whether a stored object meets a condition, where there is nothing to write: one transaction."""
    action = Check(key_of(before), join((ITEM_EXISTS, condition)))
    explain = partial(update_error, obj, before, condition=condition)
    send(obj, [action], explain, lambda: [before])


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
        child_counters.catch_up(obj)
        copies.catch_up(obj, _change_actions)
    except AlreadyExists:
        stored = hydration.reload(obj)
        obj._stored = stored._stored
        # What is kept in step is so already; a fixture says how it was.
        for kept in (*registry.counters_of(type(obj)), *registry.copied_of(type(obj))):
            obj.attribute_values[kept.name] = stored.attribute_values[kept.name]
        update(obj, raw=True)
        return True
    return False


def delete(obj: Any, *, extra: Condition = EVERYTHING, condition: Condition = EVERYTHING) -> int:
    """Delete the item for good, with its unique values; the number of items deleted, 0 if there was none.

    ``condition`` is the caller's. An object that was read in part is read whole first.
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
    depends = {stored_name(model, name) for name in claims.unique_attributes(model)} | derived.stored_names(model)
    depends |= child_counters.references(model)
    if depends and hydration.has_expired(stored):
        depends.add(names.EXPIRES_AT)  # if another writer has prolonged it, its claims are to be given free
    if (depends or child_counters.counted(model)) and registry.layout_of(model).soft_delete:
        depends.add(names.DELETED_AT)
    unchanged = (as_stored(stored, name) for name in sorted(depends))
    conditions = (ITEM_EXISTS, *versions.conditions(model, stored), *unchanged, extra, condition)
    action = Delete(key_of(stored), join(conditions))
    try:
        together.send(obj, action, stored, None, partial(delete_error, obj, stored, condition=condition))
    except StaleObject as error:
        if not is_gone(error):
            raise
        if not was_retried(error):
            return 0
        # The first of botocore's attempts was carried out, and its answer lost.
    obj._stored = None
    return 1


def change(obj: Any, changes: Values, *, extra: Condition = EVERYTHING, condition: Condition = EVERYTHING) -> None:
    """Set attributes of a stored object, with every key and unique value that depends on them: one request."""
    model = type(obj)
    before = obj._stored
    changes = {**changes, **automatic_values(obj, add=False)}
    _save_changes(obj, before, {**hydration.values_of(model, before), **changes}, changes, extra, condition)


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


def _save_changes(
    obj: Any,
    before: Item,
    values: Values,
    changed: Values,
    extra: Condition,
    condition: Condition,
    changes: Sequence[Change] = (),
    *,
    raw: bool = False,
) -> None:
    model = type(obj)
    if not raw:
        counted = versions.next_values(model, before)
        values, changed = {**values, **counted}, {**changed, **counted}
    item = item_after(model, before, values, changed)
    along = copies.spread(obj, before, item, _change_actions)
    stored = _send_changes(obj, before, item, along, extra, condition, changes)
    now_held = values if stored is item else hydration.values_of(model, stored)
    left = computed_changes.attribute_names(model, changes) & now_held.keys()
    known: dict[str, Any] = {**stored, **copies.mark_after(along, before)}
    _remember(
        obj,
        PartialItem(known, stored.names) if isinstance(stored, PartialItem) else known,
        {name: now_held[name] for name in changed.keys() | left},
    )
    copies.finish(obj, along, _change_actions)


def _change_actions(obj: Any, changes: Values) -> tuple[list[Action], Item]:
    """What sets attributes of a stored object, as actions that are not sent, and its item as it is then."""
    model = type(obj)
    before = obj._stored
    changes = {**changes, **automatic_values(obj, add=False), **versions.next_values(model, before)}
    item = item_after(model, before, {**hydration.values_of(model, before), **changes}, changes)
    update = _update_action(obj, before, item, EVERYTHING, ())
    return ([] if update is None else [update, *together.actions(model, before, item)]), item


def _update_action(obj: Any, before: Item, item: Item, extra: Condition, changes: Sequence[Change]) -> Update | None:
    """The difference of two items of one key, on the condition that the first is still there; ``None`` if none is."""
    model = type(obj)
    size = item_size(item)
    if size > MAX_ITEM_SIZE:
        raise ItemTooLarge(
            f"{model._meta.label} with pk {obj.pk!r} would have {size} bytes; DynamoDB stores {MAX_ITEM_SIZE} an item. "
            "Keep large contents elsewhere and store where they are, or divide them among several items."
        )
    known = known_names(model)
    changed = {name: value for name, value in item.items() if before.get(name) != value}
    removed = tuple(name for name in before if name in known and name not in item)
    if not changed and not removed and not changes:
        return None
    unchanged = together.conditions(model, before, item, {*changed, *removed})
    condition = join((ITEM_EXISTS, *unchanged, needs(changes), extra))
    return Update(key_of(before), set=changed, remove=removed, changes=tuple(changes), condition=condition)


def _send_changes(
    obj: Any,
    before: Item,
    item: Item,
    along: copies.Spread,
    extra: Condition,
    asked: Condition,
    changes: Sequence[Change],
) -> Item:
    """Send the difference of two items of one key, if the first is still there; gives the item that is stored now.

    ``changes`` are made by DynamoDB besides; ``asked`` is the caller's condition, ``along`` the copies that follow.
    """
    update = _update_action(obj, before, item, join((extra, asked)), changes)
    if update is None:
        if asked != EVERYTHING:
            _check(obj, before, asked)
        return item  # an automatic time that is the same to the millisecond
    explain = partial(update_error, obj, item, before=before, extra=extra, condition=asked, changes=changes)
    try:
        answer = together.send(obj, copies.with_mark(update, along, before), before, item, explain, spread=along)
    except (StaleObject, ConditionNotMet) as error:
        demanded = (*versions.conditions(type(obj), before), extra, asked)
        found = _written_already(obj, item, error, only_if_retried=join(demanded) != EVERYTHING)
        if found is None or changes:
            raise
        return found
    return computed_changes.remembered(obj, item, changes, None if answer is None else answer.get("Attributes"))


def _written_already(
    obj: Any, item: Item, error: StaleObject | ConditionNotMet, *, only_if_retried: bool
) -> Item | None:
    """The stored item, if it is what was to be written: an earlier attempt was carried out, and its answer lost.

    Where another writer must not do the same unnoticed, that has to have been an attempt of the same request.
    """
    if only_if_retried and not was_retried(error):
        return None
    found = stored_instead(error)
    model = type(obj)
    automatic = {stored_name(model, name) for name in automatic_names(obj)}
    return found if found is not None and is_same_item(item, found, model, apart_from=automatic) else None


def _remember(obj: Any, item: Mapping[str, Any], values: Values) -> None:
    obj._stored = item if isinstance(item, PartialItem) else dict(item)
    obj.attribute_values.update(values)
