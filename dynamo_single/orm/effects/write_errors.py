"""What a failed write says: from the action that failed and the item that DynamoDB found in its place.

This module makes errors; it sends nothing.
"""

from __future__ import annotations

from django.core.exceptions import ObjectDoesNotExist

from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionFailed,
    ConditionNotMet,
    InvalidValue,
    StaleObject,
    TransactionCancelled,
)
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Condition, Stored
from dynamo_single.orm.conditions.wording import word
from dynamo_single.orm.effects.effect import Subject
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.serialization import known_names
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.requests.changes import Change, Place, find
from dynamo_single.orm.schema import registry
from dynamo_single.table import names


def stored_instead(error: Exception) -> Item | None:
    """The item that DynamoDB found in the place of the one to write, or ``None`` if there was none."""
    cause = error.__cause__
    if isinstance(cause, ConditionFailed):
        return cause.item
    if isinstance(cause, TransactionCancelled) and cause.reasons:
        if isinstance(error, AlreadyExists):
            # The object of a sharded model may exist in another shard than that of the one to write.
            return next((item for reason in cause.reasons if (item := (reason or {}).get("Item"))), None)
        return (cause.reasons[0] or {}).get("Item")
    return None


def is_gone(error: Exception, *, place: int = 0) -> bool:
    """Whether a write failed because an item itself is not there (any more): the object's own, or that of another
    ``place`` among a transaction's actions."""
    cause = error.__cause__
    if isinstance(cause, ObjectDoesNotExist):
        return True
    if isinstance(cause, TransactionCancelled):
        reason = cause.reasons[place] if len(cause.reasons) > place else None
        return reason is not None and reason.get("Code") == "ConditionalCheckFailed" and not reason.get("Item")
    return isinstance(cause, ConditionFailed) and not cause.item


def was_retried(error: Exception) -> bool:
    """Whether the one request was sent more than once, so that an earlier attempt may have been carried out."""
    return isinstance(error.__cause__, ConditionFailed) and error.__cause__.retried


def exists_error(subject: Subject, found: Item | None) -> AlreadyExists:
    """The error for a creation whose key is taken."""
    trash = " It is in the trash: restore it or delete it for good." if names.DELETED_AT in (found or {}) else ""
    return AlreadyExists(f"{subject.name} exists already; nothing was written.{trash} Load it to change it.")


def unmet_error(subject: Subject, change: Change, item: Item) -> InvalidValue:
    """The error for a change that means nothing for an item, since what it is made of is not there."""
    name, model = subject.name, subject.model
    needed = next(_comparison(condition) for condition in change.needs() if not matches(condition, item))
    held = find(item, Place(needed.name, needed.path))
    names_of = {attribute.attr_name: each for each, attribute in registry.attributes_of(model).items()}
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


def claim_lost(subject: Subject) -> StaleObject:
    """The error for a claim that is not the object's any more."""
    return StaleObject(
        f"{subject.name}: a unique value that it holds belongs to another object by now; nothing was written. "
        "Reload it."
    )


def not_met(subject: Subject, condition: Condition, found: Item | None) -> ConditionNotMet | StaleObject:
    """The error for a condition of the caller's that the stored item does not meet."""
    if not found:
        return stale(subject, found, None)
    demanded = word(condition, registry.layout_of(subject.model))
    return ConditionNotMet(
        f"{subject.name} is not as the write demands, {demanded}; nothing was written.",
        current=hydration.instance(subject.model, {name: dict(value) for name, value in found.items()}),
    )


def stale(subject: Subject, found: Item | None, before: Item | None) -> StaleObject:
    """The error for an object that the table holds otherwise than ``before``, as it was read, or no more."""
    if not found:
        return StaleObject(f"{subject.name} was deleted since it was read; nothing was written.")
    before, model = before or {}, subject.model
    expected, version = (versions.of_item(model, item) for item in (before, found))
    if (names.DELETED_AT in found) != (names.DELETED_AT in before):
        state = "moved to the trash" if names.DELETED_AT in found else "restored from the trash"
        return StaleObject(
            f"{subject.name} was {state} since it was read; nothing was written. Reload it.",
            expected=expected,
            found=version,
        )
    others = sorted(name for name in known_names(model) if found.get(name) != before.get(name))
    return StaleObject(
        f"{subject.name} was changed by another writer since it was read ({', '.join(others)}); nothing was written. "
        "Reload it and make the change again.",
        expected=expected,
        found=version,
    )
