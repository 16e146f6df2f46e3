"""One object's write as a value: its own actions, under which conditions, and what is written along with them.

``together`` makes it and ``sending`` sends it. This module must not know how an item is computed.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.effects.effect import Along, Subject, Transition
from dynamo_single.orm.effects.terms import Conditions
from dynamo_single.orm.effects.write_errors import (
    claim_lost,
    exists_error,
    is_gone,
    not_met,
    stale,
    stored_instead,
    unmet_error,
    was_retried,
)
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.serialization import Values, is_same_item
from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.orm.requests.actions import Action, Item, ItemKey, Put, key_of
from dynamo_single.orm.requests.block import Entry, combined
from dynamo_single.orm.requests.changes import Change, unmet
from dynamo_single.orm.schema import registry


class Write(Struct, frozen=True, eq=False):
    """What is sent for one object.

    ``alias`` is the table's. ``own`` are the actions on its own items, two for a move; ``along`` is what each effect
    adds. ``changes`` are made by DynamoDB of what is stored. ``values`` are what the object's attributes are once it is
    written. ``target`` is the object as it is to be, where its ``pk`` changes. ``size`` are the bytes that its item has
    then, if they were counted.
    """

    transition: Transition
    alias: str
    own: tuple[Action, ...]
    conditions: Conditions
    along: tuple[Along, ...] = ()
    changes: tuple[Change, ...] = ()
    values: Values = field(default_factory=dict)
    target: Subject | None = None
    size: int = 0

    @property
    def actions(self) -> list[Action]:
        """Everything to send, each item once, the object's own first."""
        if not self.along:
            return list(self.own)
        return combined((*self.own, *(action for each in self.along for action in each.actions)))

    @property
    def touched(self) -> tuple[Item, ...]:
        """Every item that changes, as it is and as it will be; the object's own come last."""
        own = (self.transition.before, self.transition.after)
        return (*(item for each in self.along for item in each.touched), *(item for item in own if item is not None))

    def stored_after(self, answer: Item | None) -> Item:
        """The object's item once the write is sent; ``answer`` is what DynamoDB says that it holds.

        Without an answer nobody knows what DynamoDB's own changes gave: they count as not read.
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
        """What an ``atomic()`` block keeps of it."""
        after = self.transition.after
        measured = (after, self.size) if after is not None and self.size else None
        named = self.transition.subject.naming()
        until = min((each.until for each in self.along if each.until is not None), default=None)
        return Entry(named, tuple(self.actions), self.touched, self.explain, undo, measured, until)

    def explain(self, action: Action, found: Item | None) -> Exception:
        """The error for a refused action, from the item that DynamoDB found in its place."""
        if any(action.key == each.key for each in self.own):
            return self._own_error(action, found)
        for each in reversed(self.along):
            error = each.explain(action, found)
            if error is not None:
                return error
        return claim_lost(self.transition.subject)

    def _own_error(self, action: Action, found: Item | None) -> Exception:
        subject, before = self.transition.subject, self.transition.before
        if isinstance(action, Put):
            return exists_error(self.target or subject, found)
        broken = self.conditions.broken_by(found, registry.layout_of(subject.model))
        if found and broken == "demanded":
            return not_met(subject, self.conditions.terms.demanded, found)
        if found and broken == "needed" and (missing := unmet(self.changes, found)) is not None:
            return unmet_error(subject, missing, found)
        return stale(subject, found, before)

    @property
    def is_move(self) -> bool:
        """Whether the object gets another primary key: its new item, and the deletion of the old one."""
        return len(self.own) > 1

    def carried_out(self, error: Exception, *, unanswered: ItemKey | None = None) -> Item | None:
        """The object's item, if an earlier attempt of this write was carried out and its answer lost; empty for none.

        What was found has to be what was to be written. Where another writer must not do the same unnoticed, under a
        version or a caller's terms, it has to have been an attempt of the same request; and a move has to have been
        tried by the same object: ``unanswered`` is the key that it was to get, by a request without an answer.
        """
        before, after = self.transition.before, self.transition.after
        if self.changes:
            return None
        if after is None:
            return {} if is_gone(error) and was_retried(error) else None
        if not self.is_move and (before is None or self._is_held()) and not was_retried(error):
            return None
        # A request that is sent again has its token, so that DynamoDB answers as it did.
        if self.is_move and (unanswered != key_of(after) or not is_gone(error, place=1)):
            return None
        found = stored_instead(error)
        form = form_of(self.transition.subject.model)
        automatic = () if before is None else [form.stored[name] for name in form.automatic]
        same = bool(found) and is_same_item(after, found or {}, form.model, apart_from=automatic)
        return found if same else None

    def _is_held(self) -> bool:
        """Whether the write must not be taken for another's that did the same."""
        computed = self.conditions.computed is not EVERYTHING
        return computed or bool(self.conditions.terms) or any(each.exclusive for each in self.along)
