"""The write of one object as a value, and the errors for a write that DynamoDB refuses.

``compose`` creates the value and ``send`` sends it. This module does not depend on the computation of an item.
"""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import ObjectDoesNotExist
from msgspec import Struct, field

from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionFailed,
    ConditionNotMet,
    InvalidValue,
    StaleObject,
    TransactionCancelled,
)
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored
from dynamo_single.orm.conditions.wording import condition_text
from dynamo_single.orm.effects.base import SideWrites, Subject, Transition, WriteConditions
from dynamo_single.orm.items import decode
from dynamo_single.orm.items import version as items_version
from dynamo_single.orm.items.encode import Values, is_same_item, known_names
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.requests.actions import Action, Item, ItemKey, Put, key_of
from dynamo_single.orm.requests.atomic_block import Entry, combine_actions
from dynamo_single.orm.requests.updates import Change, Place, stored_value_at, unmet_change
from dynamo_single.orm.schema import registry
from dynamo_single.table import names
from dynamo_single.table.lease import Lease
from dynamo_single.table.shown_keys import shown_shape

# The errors of a failed write, built from the action that failed and the item that DynamoDB returned.


def conflicting_item(error: Exception) -> Item | None:
    """Return the stored item that a condition failed on; ``None`` if there was none."""
    cause = error.__cause__
    if isinstance(cause, ConditionFailed):
        return cause.item
    if isinstance(cause, TransactionCancelled) and cause.reasons:
        if isinstance(error, AlreadyExists):
            # The object of a sharded model may exist in another shard.
            return next((item for reason in cause.reasons if (item := (reason or {}).get("Item"))), None)
        return (cause.reasons[0] or {}).get("Item")
    return None


def is_gone(error: Exception, *, place: int = 0) -> bool:
    """Return whether a write failed because the item of the action at ``place`` does not exist; the object's own is
    the first."""
    cause = error.__cause__
    if isinstance(cause, ObjectDoesNotExist):
        return True
    if isinstance(cause, TransactionCancelled):
        reason = cause.reasons[place] if len(cause.reasons) > place else None
        return reason is not None and reason.get("Code") == "ConditionalCheckFailed" and not reason.get("Item")
    return isinstance(cause, ConditionFailed) and not cause.item


def was_retried(error: Exception) -> bool:
    """Return whether the app sent the request more than once, so that an earlier attempt may have succeeded."""
    return isinstance(error.__cause__, ConditionFailed) and error.__cause__.retried


def exists_error(subject: Subject, found: Item | None) -> AlreadyExists:
    """The error for a creation whose key is taken."""
    trash = " It is in the trash: restore it or delete it permanently." if names.DELETED_AT in (found or {}) else ""
    return AlreadyExists(f"{subject.name} already exists. Nothing was written.{trash} Load it to change it.")


def unmet_error(subject: Subject, change: Change, item: Item) -> InvalidValue:
    """The error for a change that an item does not support, because an operand is missing or has another type."""
    name, model = subject.name, subject.model
    needed = next(_comparison(condition) for condition in change.needs() if not matches(condition, item))
    held = stored_value_at(item, Place(needed.name, needed.path))
    names_of = {info.stored: each for each, info in registry.layout_of(model).attributes.items()}
    place = "__".join(map(str, (names_of[needed.name], *needed.path)))
    if held is None:
        return InvalidValue(
            f"{name} has no {place}, which {change.source_text} needs. Nothing was written. Set it to a value first."
        )
    return InvalidValue(
        f"{name} holds {place} as {next(iter(held))}, and {change.source_text} needs "
        f"{needed.operands[0]['S']}; nothing was "
        "written. Set it to a value that fits."
    )


def _comparison(need: Condition) -> Stored:
    """Return the comparison of a condition, without its alternative that the path is missing."""
    return need if isinstance(need, Stored) else need.children[-1]  # type: ignore[union-attr, return-value]  # one Or


def claim_error(subject: Subject) -> StaleObject:
    """The error for a claim that no longer belongs to the object."""
    return StaleObject(
        f"{subject.name}: another object now has one of its unique values. Nothing was written. Reload it."
    )


def condition_error(subject: Subject, condition: Condition, found: Item | None) -> ConditionNotMet | StaleObject:
    """The error for a condition of the caller that the stored item does not meet."""
    if not found:
        return stale_error(subject, found, None)
    demanded = condition_text(condition, registry.layout_of(subject.model))
    return ConditionNotMet(
        f"{subject.name} does not meet the condition of the write, {demanded}. Nothing was written.",
        current=decode.instance(subject.model, {name: dict(value) for name, value in found.items()}),
    )


def stale_error(subject: Subject, found: Item | None, before: Item | None) -> StaleObject:
    """The error for an object that another process changed or deleted since it was read as ``before``."""
    if not found:
        return StaleObject(f"{subject.name} was deleted since it was read. Nothing was written.")
    before, model = before or {}, subject.model
    expected, version = (items_version.version_of(model, item) for item in (before, found))
    if (names.DELETED_AT in found) != (names.DELETED_AT in before):
        state = "moved to the trash" if names.DELETED_AT in found else "restored from the trash"
        return StaleObject(
            f"{subject.name} was {state} since it was read. Nothing was written. Reload it.",
            expected=expected,
            found=version,
        )
    name_of = shown_shape(model._options.alias).name_of
    others = sorted({name_of(name) for name in known_names(model) if found.get(name) != before.get(name)})
    return StaleObject(
        f"{subject.name} was changed by another process since it was read ({', '.join(others)}). Nothing was written. "
        "Reload it and make the change again.",
        expected=expected,
        found=version,
    )


class Write(Struct, frozen=True, eq=False):
    """The complete request for one object.

    - ``own_actions`` contains the actions on the object's items, two for a move.
    - ``changes`` are changes that DynamoDB computes from the stored values.
    - ``values`` are the values of the object's attributes after the write.
    - ``moved_subject`` is the object with its new ``pk``, if that changes.
    - ``size`` is the size of the item in bytes; 0 if unknown.
    - ``lease`` is that of the binding that it was composed with; ``None`` if it does not depend on one.
    """

    transition: Transition
    alias: str
    own_actions: tuple[Action, ...]
    conditions: WriteConditions
    side_writes: tuple[SideWrites, ...] = ()
    changes: tuple[Change, ...] = ()
    values: Values = field(default_factory=dict)
    moved_subject: Subject | None = None
    size: int = 0
    lease: Lease | None = None

    @property
    def actions(self) -> list[Action]:
        """Everything to send, each item once, the object's own first."""
        if not self.side_writes:
            return list(self.own_actions)
        return combine_actions((*self.own_actions, *(action for each in self.side_writes for action in each.actions)))

    @property
    def written_items(self) -> tuple[Item, ...]:
        """All items that change, before and after the write; the object's own are last."""
        own = (self.transition.before, self.transition.after)
        return (
            *(item for each in self.side_writes for item in each.written_items),
            *(item for item in own if item is not None),
        )

    def stored_after(self, answer: Item | None) -> Item:
        """Return the object's item after the write; ``answer`` contains the attributes that DynamoDB returned.

        Without it the results of ``changes`` are unknown, and the app treats them as not loaded.
        """
        after = self.transition.after or {}
        changed = {change.place.name for change in self.changes}
        if not changed:
            return after
        kept = {name: dict(value) for name, value in after.items() if name not in changed}
        if answer is not None:
            return {**kept, **{name: dict(answer[name]) for name in changed if name in answer}}
        known = {*form_of(self.transition.subject.model).stored.values(), *after}
        return PartialItem(kept, known - changed)

    def entry(self, undo: Callable[[], None]) -> Entry:
        """Return the entry of the write in an ``atomic()`` block."""
        after = self.transition.after
        measured = (after, self.size) if after is not None and self.size else None
        named = self.transition.subject.naming()
        return Entry(named, tuple(self.actions), self.written_items, self.explain, undo, measured)

    def explain(self, action: Action, found: Item | None) -> Exception:
        """Return the error for a refused action; ``found`` is the stored item."""
        if any(action.key == each.key for each in self.own_actions):
            return self._own_error(action, found)
        for each in reversed(self.side_writes):
            error = each.explain(action, found)
            if error is not None:
                return error
        return claim_error(self.transition.subject)

    def _own_error(self, action: Action, found: Item | None) -> Exception:
        subject, before = self.transition.subject, self.transition.before
        if isinstance(action, Put):
            return exists_error(self.moved_subject or subject, found)
        broken = self.conditions.broken_by(found, registry.layout_of(subject.model))
        if found and broken == "demanded":
            return condition_error(subject, self.conditions.terms.demanded, found)
        if found and broken == "needed" and (missing := unmet_change(self.changes, found)) is not None:
            return unmet_error(subject, missing, found)
        return stale_error(subject, found, before)

    @property
    def is_move(self) -> bool:
        """Whether the write changes the object's primary key: it puts a new item and deletes the old one."""
        return len(self.own_actions) > 1

    def executed_item(self, error: Exception, *, unanswered: ItemKey | None = None) -> Item | None:
        """Return the object's item if an earlier attempt succeeded without a response; empty after a deletion.

        The stored item must equal the item to write. A write with a version or a caller's condition must also be a
        retry of the same request, because another process could have written the same item. A move must be a retry by
        the same object: ``unanswered`` is the key of its move without a response.
        """
        before, after = self.transition.before, self.transition.after
        if self.changes:
            return None
        if after is None:
            return {} if is_gone(error) and was_retried(error) else None
        if not self.is_move and (before is None or self._is_exclusive()) and not was_retried(error):
            return None
        # A repeated request has the same token, so DynamoDB returns the same response.
        if self.is_move and (unanswered != key_of(after) or not is_gone(error, place=1)):
            return None
        found = conflicting_item(error)
        form = form_of(self.transition.subject.model)
        automatic = () if before is None else [form.stored[name] for name in form.automatic]
        same = bool(found) and is_same_item(after, found or {}, form.model, apart_from=automatic)
        return found if same else None

    def _is_exclusive(self) -> bool:
        """Return whether an equal write of another process does not count as this one."""
        computed = self.conditions.computed is not EVERYTHING
        return computed or bool(self.conditions.terms) or any(each.exclusive for each in self.side_writes)
