"""Writing objects: which actions a save or a deletion is made of, sending them, and saying what failed.

Every path computes keys in the same place, ``key_attributes``. One action is one request; several are one transaction,
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
    EmptyKeyPart,
    InvalidValue,
    ItemTooLarge,
    NotSupported,
    StaleObject,
    TransactionCancelled,
    UniqueViolation,
)
from dynamo_single.keys import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT, Template
from dynamo_single.options import AccessKey
from dynamo_single.query import And, Condition, Stored
from dynamo_single.table import get_table
from dynamo_single.values import MAX_ITEM_SIZE, item_size

Values = dict[str, Any]
#: Gives the error for the action that failed, from the item that DynamoDB found in its place.
Explain = Callable[[Action, Item | None], Exception]


# from an object to an item


def prepared_values(obj: Any, before: Item | None = None) -> Values:
    """The object's values in their stored Python form; raises ``InvalidValue`` for the first that is wrong.

    What a stored item lacked ``before`` may stay missing: the attribute may be younger than the item.
    """
    values: Values = {}
    for name, attribute in registry.attributes_of(type(obj)).items():
        try:
            values[name] = attribute.prepare(obj.attribute_values.get(name))
        except InvalidValue as error:
            raise InvalidValue(f"{obj._meta.label}: {error}") from error
        if values[name] is None and not attribute.null and (before is None or attribute.attr_name in before):
            raise InvalidValue(f"{obj._meta.label}: {name} is missing: it takes {attribute.expects}, or null=True.")
    return values


def attributes_item(model: Any, values: Values) -> dict[str, dict[str, Any]]:
    """The model's own attributes as they are stored; ``None`` is left out."""
    return {
        attribute.attr_name: attribute.to_attribute_value(values[name])
        for name, attribute in registry.attributes_of(model).items()
        if values[name] is not None
    }


def key_attributes(model: Any, values: Values) -> dict[str, dict[str, Any]]:
    """The index keys that the values give: those of a live object, or the trash's for a deleted one."""
    layout = registry.layout_of(model)
    if values.get(registry.DELETED_AT) is not None:
        keys: Sequence[AccessKey] = () if layout.trash is None else (layout.trash,)
    else:
        keys = layout.indexes
    found: dict[str, dict[str, Any]] = {}
    for key in keys:
        texts = _index_key(model, key, values)
        if texts is not None and key.index is not None:
            found[names.index_partition(key.index)] = {"S": texts[0]}
            found[names.index_sort(key.index)] = {"S": texts[1]}
    return found


def _index_key(model: Any, key: AccessKey, values: Values) -> tuple[str, str] | None:
    """Both halves of an index key, or neither: a part that is missing leaves the item out of the index."""
    infos = registry.layout_of(model).attributes
    for name in key.variables:
        if values.get(name) is None or values[name] == "":
            if infos[name].required:
                raise EmptyKeyPart(
                    f"{model._meta.label}: {name} is empty, and the key {key.name} on {key.index} needs it. Give "
                    f"{name} a value, or declare it blank=True to leave objects without one out of that index."
                )
            return None
    return _render(model, key.partition, values, PARTITION_KEY_LIMIT), _render(model, key.sort, values, SORT_KEY_LIMIT)


def _render(model: Any, template: Template, values: Mapping[str, Any], limit: int) -> str:
    try:
        return template.render(values, limit=limit)
    except InvalidValue as error:
        raise type(error)(f"{model._meta.label}: {error}") from error


def computed_key(model: Any, values: Mapping[str, Any]) -> ItemKey:
    """The primary key that the values give; raises ``EmptyKeyPart`` by the missing attribute's name."""
    primary = registry.layout_of(model).primary
    return (
        _render(model, primary.partition, values, PARTITION_KEY_LIMIT),
        _render(model, primary.sort, values, SORT_KEY_LIMIT),
    )


def primary_key(obj: Any) -> dict[str, str]:
    """The object's key as its values give it, by physical name."""
    partition, sort = computed_key(type(obj), obj.attribute_values)
    return {names.PARTITION_KEY: partition, names.SORT_KEY: sort}


def stored_key(obj: Any) -> ItemKey:
    """The key that a stored object was read from or written to."""
    return _key_of(obj._stored)


def item_of(obj: Any) -> dict[str, dict[str, Any]]:
    """The whole item with its automatic timestamps, as PynamoDB's own writers put it. Sends nothing."""
    _pre_save(obj, add=obj._state.adding)
    return _item(type(obj), prepared_values(obj))


def _item(model: Any, values: Values) -> dict[str, dict[str, Any]]:
    partition, sort = computed_key(model, values)
    return {
        names.PARTITION_KEY: {"S": partition},
        names.SORT_KEY: {"S": sort},
        names.ITEM_TYPE: {"S": model._options.item_type},
        **key_attributes(model, values),
        **attributes_item(model, values),
    }


def _item_after(model: Any, before: Item, values: Values, changed: Values) -> dict[str, dict[str, Any]]:
    """The item with some attributes changed; the others stay to the letter, since sets and numbers have more spellings."""
    item = _item(model, values)
    for name in values:
        stored = _stored_name(model, name)
        if name not in changed and stored in before:
            item[stored] = dict(before[stored])
    return item


# the operations


def insert(obj: Any) -> None:
    """Write a new object: PutItem, or one transaction with its unique values and derived items; never over an item."""
    model = type(obj)
    _pre_save(obj, add=True)
    values = prepared_values(obj)
    item = _item(model, values)
    put = Put(item, ITEM_MISSING)
    claims = [uniqueness.put_claim(key, put.key) for key in uniqueness.claims_of(model, item).values()]
    actions = [put, *claims, *derived.actions({}, derived.items_of(model, item, item_of))]
    _send(obj, actions, lambda action, found: _insert_error(obj, item, action, found))
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
    changed |= _automatic(obj, add=False)
    values = {**held, **changed}
    if computed_key(model, values) != _key_of(before):
        raise NotSupported(
            f"{model._meta.label}: {', '.join(model._identity)} make up the primary key and cannot change. Create a "
            "new object and delete this one."
        )
    item = _item_after(model, before, values, changed)
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
    key = _key_of(stored)
    claims = uniqueness.claims_of(model, stored)
    # The claims to free are those that this object knows of: another writer's rename must not leave its own behind.
    depends = {_stored_name(model, name) for name in uniqueness.unique_attributes(model)} | derived.stored_names(model)
    unchanged = And(tuple(_as_stored(stored, name) for name in sorted(depends)))
    action = Delete(key, And((ITEM_EXISTS, unchanged)) if unchanged.children else ITEM_EXISTS)
    actions: list[Action] = [action, *(uniqueness.delete_claim(claim, key) for claim in claims.values())]
    actions += derived.actions(derived.items_of(model, stored, item_of), {})
    try:
        _send(obj, actions, lambda action, found: stale(obj, found))
    except StaleObject as error:
        cause = error.__cause__
        if isinstance(cause, ConditionFailed | TransactionCancelled) and _found_nothing(cause):
            return 0
        raise
    obj._stored = None
    return 1


def change(obj: Any, changes: Values) -> None:
    """Set attributes of a stored object, with every key and unique value that depends on them: one request."""
    model = type(obj)
    before = obj._stored
    changes = {**changes, **_automatic(obj, add=False)}
    item = _item_after(model, before, {**hydration.values_of(model, before), **changes}, changes)
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
    key = _key_of(before)
    known = _known_names(model)
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
    _send(obj, actions, lambda action, found: _update_error(obj, item, action, found))


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
        if old_claims.get(name) != new_claims.get(name) or _stored_name(model, name) in touched:
            as_before.add(_stored_name(model, name))
    if touched & derived.stored_names(model):
        as_before |= derived.stored_names(model)
    return [_as_stored(before, stored) for stored in sorted(as_before)]


def _as_stored(item: Item, stored: str) -> Condition:
    return Stored(stored, "=", (item[stored],)) if stored in item else Stored(stored, "missing")


def _stored_name(model: Any, name: str) -> str:
    return registry.layout_of(model).attributes[name].stored


def _known_names(model: Any) -> set[str]:
    """The physical names that this model writes; anything else in an item is somebody else's and stays."""
    layout = registry.layout_of(model)
    known = {info.stored for info in layout.attributes.values()}
    for key in (*layout.indexes, *((layout.trash,) if layout.trash else ())):
        if key.index:
            known |= {names.index_partition(key.index), names.index_sort(key.index)}
    return known


def _differs(model: Any, name: str, value: Any, before: Item) -> bool:
    attribute = registry.attributes_of(model)[name]
    new = None if value is None else attribute.to_attribute_value(value)
    old = before.get(attribute.attr_name)
    if new is None or old is None or attribute.attr_type not in {"SS", "NS", "BS", "N", "M", "L"}:
        return new != old
    # Sets have no order, and one number has several texts.
    return bool(attribute.from_attribute_value(dict(old)) != value)


def _pre_save(obj: Any, *, add: bool) -> None:
    for field in obj._meta.concrete_fields:
        if hasattr(field, "attribute"):
            field.pre_save(obj, add)


def _automatic_names(obj: Any) -> list[str]:
    return [f.attname for f in obj._meta.concrete_fields if getattr(f, "auto_now", False)]


def _automatic(obj: Any, *, add: bool) -> Values:
    """The attributes that follow every write, such as ``updated_at``."""
    values = {}
    for name in _automatic_names(obj):
        field = obj._meta.get_field(name)
        values[name] = field.attribute.prepare(field.pre_save(obj, add))
    return values


def _key_of(item: Item) -> ItemKey:
    return item[names.PARTITION_KEY]["S"], item[names.SORT_KEY]["S"]


def _remember(obj: Any, item: Mapping[str, Any], values: Values) -> None:
    obj._stored = dict(item)
    obj.attribute_values.update(values)


# sending and explaining


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


def _found_nothing(error: ConditionFailed | TransactionCancelled) -> bool:
    if isinstance(error, ConditionFailed):
        return not error.item
    return not any((reason or {}).get("Item") for reason in error.reasons)


def _insert_error(obj: Any, item: Item, action: Action, found: Item | None) -> Exception:
    if isinstance(action, Put) and action.key == _key_of(item):
        trash = " It is in the trash: restore it or delete it for good." if names.DELETED_AT in (found or {}) else ""
        return AlreadyExists(
            f"{obj._meta.label} with pk {obj.pk!r} exists already; nothing was written.{trash} Load it to change it."
        )
    return _violation(obj, item, action)


def _update_error(obj: Any, item: Item, action: Action, found: Item | None) -> Exception:
    return stale(obj, found) if isinstance(action, Update) else _violation(obj, item, action)


def _violation(obj: Any, item: Item, action: Action) -> Exception:
    model = type(obj)
    for name, key in uniqueness.claims_of(model, item).items():
        if key == action.key:
            attribute = registry.attributes_of(model)[name]
            value = attribute.from_attribute_value(dict(item[attribute.attr_name]))
            return UniqueViolation(
                f"Another {model._meta.label} has {name} {value!r}; nothing was written.",
                label=model._meta.label,
                field=name,
                value=value,
            )
    return StaleObject(
        f"{model._meta.label} with pk {obj.pk!r}: a unique value that it holds belongs to another object by now; "
        "nothing was written. Reload it."
    )


def stale(obj: Any, found: Item | None) -> StaleObject:
    """The error for an object that the table holds otherwise, or no more."""
    label, pk = obj._meta.label, obj.pk
    if not found:
        return StaleObject(f"{label} with pk {pk!r} was deleted since it was read; nothing was written.")
    before = obj._stored or {}
    if (names.DELETED_AT in found) != (names.DELETED_AT in before):
        state = "moved to the trash" if names.DELETED_AT in found else "restored from the trash"
        return StaleObject(f"{label} with pk {pk!r} was {state} since it was read; nothing was written. Reload it.")
    known = _known_names(type(obj))
    others = sorted(name for name in known if found.get(name) != before.get(name))
    return StaleObject(
        f"{label} with pk {pk!r} was changed by another writer since it was read ({', '.join(others)}); nothing was "
        "written. Reload it and make the change again."
    )
