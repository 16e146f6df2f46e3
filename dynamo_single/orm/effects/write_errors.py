"""What a failed write says: from the action that failed and the item that DynamoDB found in its place.

This module makes errors; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionFailed,
    ConditionNotMet,
    InvalidValue,
    StaleObject,
    TransactionCancelled,
    UniqueViolation,
)
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored
from dynamo_single.orm.conditions.wording import word
from dynamo_single.orm.effects import claims
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.serialization import known_names
from dynamo_single.orm.requests.actions import Action, Check, Delete, Item, Put, Update, key_of
from dynamo_single.orm.requests.changes import Change, Place, find, unmet
from dynamo_single.orm.schema import registry
from dynamo_single.table import names


def stored_instead(error: Exception) -> Item | None:
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
    if isinstance(cause, ObjectDoesNotExist):
        return True
    if isinstance(cause, TransactionCancelled):
        first = (cause.reasons or (None,))[0]
        return first is not None and first.get("Code") == "ConditionalCheckFailed" and not first.get("Item")
    return isinstance(cause, ConditionFailed) and not cause.item


def was_retried(error: Exception) -> bool:
    """Whether the one request was sent more than once, so that an earlier attempt may have been carried out."""
    return isinstance(error.__cause__, ConditionFailed) and error.__cause__.retried


def insert_error(obj: Any, item: Item, action: Action, found: Item | None) -> Exception:
    """The error for a creation whose key, or one of whose unique values, is taken."""
    if isinstance(action, Put) and action.key == key_of(item):
        trash = " It is in the trash: restore it or delete it for good." if names.DELETED_AT in (found or {}) else ""
        return AlreadyExists(
            f"{obj._meta.label} with pk {obj.pk!r} exists already; nothing was written.{trash} Load it to change it."
        )
    return _violation(obj, item, action)


def update_error(
    obj: Any,
    item: Item,
    action: Action,
    found: Item | None,
    *,
    before: Item | None = None,
    extra: Condition = EVERYTHING,
    condition: Condition = EVERYTHING,
    changes: Sequence[Change] = (),
) -> Exception:
    """The error for a change of an item that is not as it was read, or one of whose new unique values is taken.

    ``before`` is what was read, if the object may know something later by now; ``condition`` is the caller's, ``extra``
    a queryset's; ``changes`` are those that DynamoDB was to make.
    """
    if not isinstance(action, Update | Check):
        return _violation(obj, item, action)
    layout = registry.layout_of(type(obj))
    if not found or action.key != key_of(item) or not matches(extra, found, layout):
        return stale(obj, found, before)
    if not matches(condition, found, layout):
        return not_met(obj, condition, found)
    missing = unmet(changes, found)
    return stale(obj, found, before) if missing is None else unmet_error(obj, missing, found)


def delete_error(
    obj: Any, before: Item, action: Action, found: Item | None, *, condition: Condition = EVERYTHING
) -> Exception:
    """The error for a deletion of an item that is not as it was read, or does not meet the caller's condition."""
    if action.key != key_of(before):
        return _claim_lost(obj)
    if isinstance(action, Delete | Check) and found and not matches(condition, found, registry.layout_of(type(obj))):
        return not_met(obj, condition, found)
    return stale(obj, found, before)


def unmet_error(obj: Any, change: Change, item: Item) -> InvalidValue:
    """The error for a change that means nothing for an item, since what it is made of is not there."""
    name = f"{obj._meta.label} with pk {obj.pk!r}"
    needed = next(_comparison(condition) for condition in change.needs() if not matches(condition, item))
    held = find(item, Place(needed.name, needed.path))
    names_of = {attribute.attr_name: each for each, attribute in registry.attributes_of(type(obj)).items()}
    place = "__".join(map(str, (names_of[needed.name], *needed.path)))
    if held is None:
        return InvalidValue(
            f"{name} has no {place}, which {change.said} needs; nothing was written. Set it to a value first."
        )
    return InvalidValue(
        f"{name} holds {place} as {next(iter(held))}, and {change.said} needs {needed.operands[0]['S']}; nothing was "
        "written. Set it to a value that fits."
    )


def _comparison(need: Condition) -> Stored:
    """What a need says of a place, without the alternative that nothing is there."""
    return need if isinstance(need, Stored) else need.children[-1]  # type: ignore[union-attr, return-value]  # one Or


def _violation(obj: Any, item: Item, action: Action) -> Exception:
    model = type(obj)
    for rule, key in claims.claims_of(model, item).items():
        values = rule.values(item)
        if key == action.key and values is not None:
            constraint = f" ({rule.name})" if rule.name else ""
            return UniqueViolation(
                f"Another {model._meta.label} has {rule.worded(values)}{constraint}; nothing was written.",
                label=model._meta.label,
                field=", ".join(rule.fields),
                value=values[0] if len(values) == 1 else values,
                fields=rule.fields,
            )
    return _claim_lost(obj)


def _claim_lost(obj: Any) -> StaleObject:
    return StaleObject(
        f"{obj._meta.label} with pk {obj.pk!r}: a unique value that it holds belongs to another object by now; nothing "
        "was written. Reload it."
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


def stale(obj: Any, found: Item | None, before: Item | None = None) -> StaleObject:
    """The error for an object that the table holds otherwise than ``before``, as it was read, or no more."""
    label, pk = obj._meta.label, obj.pk
    if not found:
        return StaleObject(f"{label} with pk {pk!r} was deleted since it was read; nothing was written.")
    before = before or obj._stored or {}
    if (names.DELETED_AT in found) != (names.DELETED_AT in before):
        state = "moved to the trash" if names.DELETED_AT in found else "restored from the trash"
        return StaleObject(
            f"{label} with pk {pk!r} was {state} since it was read; nothing was written. Reload it.",
            expected=versions.of_item(type(obj), before),
            found=versions.of_item(type(obj), found),
        )
    known = known_names(type(obj))
    others = sorted(name for name in known if found.get(name) != before.get(name))
    expected, version = (versions.of_item(type(obj), item) for item in (before, found))
    return StaleObject(
        f"{label} with pk {pk!r} was changed by another writer since it was read ({', '.join(others)}); nothing was "
        "written. Reload it and make the change again.",
        expected=expected,
        found=version,
    )
