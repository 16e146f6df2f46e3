"""Writing objects: which actions a save or a deletion is made of, under which conditions, and sending them.

``items`` computes the items, ``failures`` says what went wrong. One action is one request; several are one transaction,
so that an object and its unique values change together or not at all.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynamo_single import derived, hydration, registry, uniqueness
from dynamo_single import layout as names
from dynamo_single.actions import ITEM_EXISTS, ITEM_MISSING, Action, Delete, Item, ItemKey, Put, Update
from dynamo_single.compiler import compile_action, compile_transaction
from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionFailed,
    ItemTooLarge,
    NotSupported,
    StaleObject,
    TransactionCancelled,
)
from dynamo_single.failures import found_nothing, insert_error, stale, update_error
from dynamo_single.items import (
    Values,
    automatic_values,
    computed_key,
    item_after,
    item_from,
    item_of,
    key_of,
    known_names,
    prepared_values,
    set_automatic,
    stored_name,
)
from dynamo_single.query import And, Condition, Stored
from dynamo_single.table import get_table
from dynamo_single.values import MAX_ITEM_SIZE, item_size

#: Gives the error for the action that failed, from the item that DynamoDB found in its place.
Explain = Callable[[Action, Item | None], Exception]


def insert(obj: Any) -> None:
    """Write a new object: PutItem, or one transaction with its unique values and derived items; never over an item."""
    model = type(obj)
    set_automatic(obj, add=True)
    values = prepared_values(obj)
    item = item_from(model, values)
    put = Put(item, ITEM_MISSING)
    claims = [uniqueness.put_claim(key, put.key) for key in uniqueness.claims_of(model, item).values()]
    actions = [put, *claims, *derived.actions({}, derived.items_of(model, item, item_of))]
    _send(obj, actions, lambda action, found: insert_error(obj, item, action, found))
    _remember(obj, item, values)


def update(obj: Any, only: frozenset[str] | None = None) -> None:
    """Write what changed since the object was read: UpdateItem, or one transaction if a unique value changed.

    Nothing is sent if nothing changed. ``only`` names the attributes to look at; automatic timestamps always follow.
    """
    model = type(obj)
    before = obj._stored if obj._stored is not None else hydration.reload(obj)._stored
    # Only the attributes that are to be saved: the others keep what the table holds.
    held = hydration.values_of(model, before)
    current = prepared_values(obj, before)
    changed = {
        name: value
        for name, value in current.items()
        if (only is None or name in only) and _differs(model, name, value, before)
    }
    if not changed:
        return
    changed |= automatic_values(obj, add=False)
    values = {**held, **changed}
    if computed_key(model, values) != key_of(before):
        raise NotSupported(
            f"{model._meta.label}: {', '.join(model._identity)} make up the primary key and cannot change. Create a "
            "new object and delete this one."
        )
    item = item_after(model, before, values, changed)
    _send_changes(obj, before, item)
    _remember(obj, item, changed)


def replace(obj: Any) -> bool:
    """Write an object whether or not it exists (fixtures); ``True`` if it did."""
    try:
        insert(obj)
    except AlreadyExists:
        obj._stored = hydration.reload(obj)._stored
        update(obj)
        return True
    return False


def delete(obj: Any) -> int:
    """Delete the item for good, with its unique values; the number of items deleted, 0 if there was none."""
    model = type(obj)
    stored = obj._stored
    if stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be deleted because it is not stored.")
    key = key_of(stored)
    claims = uniqueness.claims_of(model, stored)
    # The claims to free are those that this object knows of: another writer's rename must not leave its own behind.
    depends = {stored_name(model, name) for name in uniqueness.unique_attributes(model)} | derived.stored_names(model)
    unchanged = And(tuple(_as_stored(stored, name) for name in sorted(depends)))
    action = Delete(key, And((ITEM_EXISTS, unchanged)) if unchanged.children else ITEM_EXISTS)
    actions: list[Action] = [action, *(uniqueness.delete_claim(claim, key) for claim in claims.values())]
    actions += derived.actions(derived.items_of(model, stored, item_of), {})
    try:
        _send(obj, actions, lambda action, found: stale(obj, found))
    except StaleObject as error:
        cause = error.__cause__
        if isinstance(cause, ConditionFailed | TransactionCancelled) and found_nothing(cause):
            return 0
        raise
    obj._stored = None
    return 1


def change(obj: Any, changes: Values) -> None:
    """Set attributes of a stored object, with every key and unique value that depends on them: one request."""
    model = type(obj)
    before = obj._stored
    changes = {**changes, **automatic_values(obj, add=False)}
    item = item_after(model, before, {**hydration.values_of(model, before), **changes}, changes)
    _send_changes(obj, before, item)
    _remember(obj, item, changes)


def _send_changes(obj: Any, before: Item, item: Item) -> None:
    """Send the difference of two items of one key, under the condition that the first is still there."""
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
    old_claims, new_claims = uniqueness.claims_of(model, before), uniqueness.claims_of(model, item)
    condition = And((ITEM_EXISTS, *_conditions(model, before, {*changed, *removed}, old_claims, new_claims)))
    actions: list[Action] = [Update(key, set=changed, remove=removed, condition=condition)]
    for name in {**old_claims, **new_claims}:
        old, new = old_claims.get(name), new_claims.get(name)
        if new is not None and new != old:
            actions.append(uniqueness.put_claim(new, key))
        if old is not None and old != new:
            actions.append(uniqueness.delete_claim(old, key))
    if {*changed, *removed} & {*derived.stored_names(model), names.DELETED_AT}:
        following = (derived.items_of(model, each, item_of) for each in (before, item))
        actions += derived.actions(*following)
    _send(obj, actions, lambda action, found: update_error(obj, item, action, found))


def _conditions(
    model: Any, before: Item, touched: set[str], old_claims: dict[str, ItemKey], new_claims: dict[str, ItemKey]
) -> list[Condition]:
    """What has to be as it was read, for the keys and claims that are written to be right."""
    layout = registry.layout_of(model)
    as_before = {names.DELETED_AT} if layout.soft_delete else set()
    for key in (*layout.indexes, *((layout.trash,) if layout.trash else ())):
        if key.index and touched & {names.index_partition(key.index), names.index_sort(key.index)}:
            as_before |= {layout.attributes[name].stored for name in key.variables if name not in layout.identity}
    for name in {**old_claims, **new_claims}:
        if old_claims.get(name) != new_claims.get(name) or stored_name(model, name) in touched:
            as_before.add(stored_name(model, name))
    if touched & derived.stored_names(model):
        as_before |= derived.stored_names(model)
    return [_as_stored(before, stored) for stored in sorted(as_before)]


def _as_stored(item: Item, stored: str) -> Condition:
    return Stored(stored, "=", (item[stored],)) if stored in item else Stored(stored, "missing")


def _differs(model: Any, name: str, value: Any, before: Item) -> bool:
    attribute = registry.attributes_of(model)[name]
    new = None if value is None else attribute.to_attribute_value(value)
    old = before.get(attribute.attr_name)
    if new is None or old is None or attribute.attr_type not in {"SS", "NS", "BS", "N", "M", "L"}:
        return new != old
    # Sets have no order, and one number has several texts.
    return bool(attribute.from_attribute_value(dict(old)) != value)


def _remember(obj: Any, item: Mapping[str, Any], values: Values) -> None:
    obj._stored = dict(item)
    obj.attribute_values.update(values)


def _send(obj: Any, actions: Sequence[Action], explain: Explain) -> None:
    table = get_table(type(obj)._options.alias)
    try:
        if len(actions) == 1:
            table.send(compile_action(actions[0]))
        else:
            table.send(compile_transaction(actions, table.name, str(uuid.uuid4())))
    except ConditionFailed as error:
        raise explain(actions[0], error.item) from error
    except TransactionCancelled as error:
        for action, reason in zip(actions, error.reasons, strict=False):
            if reason is not None and reason.get("Code") == "ConditionalCheckFailed":
                raise explain(action, reason.get("Item")) from error
        raise
