"""What a failed write says: from the action that failed and the item that DynamoDB found in its place.

This module makes errors; it sends nothing.
"""

from __future__ import annotations

from typing import Any

from dynamo_single import hydration, registry, uniqueness
from dynamo_single import layout as names
from dynamo_single.actions import Action, Item, Put, Update, key_of
from dynamo_single.conditions import word
from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionFailed,
    ConditionNotMet,
    StaleObject,
    TransactionCancelled,
    UniqueViolation,
)
from dynamo_single.items import known_names
from dynamo_single.query import Condition


def stored_instead(error: StaleObject) -> Item | None:
    """The item that DynamoDB found in the place of the one to write, or ``None`` if there was none."""
    cause = error.__cause__
    if isinstance(cause, ConditionFailed):
        return cause.item
    if isinstance(cause, TransactionCancelled) and cause.reasons:
        return (cause.reasons[0] or {}).get("Item")
    return None


def is_gone(error: StaleObject) -> bool:
    """Whether the write failed because the item itself is not there any more."""
    cause = error.__cause__
    if isinstance(cause, TransactionCancelled):
        first = (cause.reasons or (None,))[0]
        return first is not None and first.get("Code") == "ConditionalCheckFailed" and not first.get("Item")
    return isinstance(cause, ConditionFailed) and not cause.item


def insert_error(obj: Any, item: Item, action: Action, found: Item | None) -> Exception:
    """The error for a creation whose key, or one of whose unique values, is taken."""
    if isinstance(action, Put) and action.key == key_of(item):
        trash = " It is in the trash: restore it or delete it for good." if names.DELETED_AT in (found or {}) else ""
        return AlreadyExists(
            f"{obj._meta.label} with pk {obj.pk!r} exists already; nothing was written.{trash} Load it to change it."
        )
    return _violation(obj, item, action)


def update_error(obj: Any, item: Item, action: Action, found: Item | None) -> Exception:
    """The error for a change of an item that is not as it was read, or one of whose new unique values is taken."""
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


def not_met(obj: Any, condition: Condition, found: Item | None) -> ConditionNotMet | StaleObject:
    """The error for a condition of the caller's that the stored item does not meet."""
    if not found:
        return stale(obj, found)
    model = type(obj)
    return ConditionNotMet(
        f"{model._meta.label} with pk {obj.pk!r} is not as the write demands, {word(condition)}; nothing was written.",
        current=hydration.instance(model, {name: dict(value) for name, value in found.items()}),
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
    known = known_names(type(obj))
    others = sorted(name for name in known if found.get(name) != before.get(name))
    return StaleObject(
        f"{label} with pk {pk!r} was changed by another writer since it was read ({', '.join(others)}); nothing was "
        "written. Reload it and make the change again."
    )
