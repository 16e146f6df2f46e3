"""What operations on attributes have done to items: the passes that fill, copy, release and take out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import NOT_PROVIDED

from dynamo_single.item_migrations.online import Task
from dynamo_single.item_migrations.online.changes.attributes import dropped_attribute, filled_attribute
from dynamo_single.item_migrations.online.changes.claims import needless_claims, released_claims
from dynamo_single.item_migrations.online.changes.copies import filled_copy
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.item_migrations.stored import StoredAttribute

#: Gives an attribute's value of the other values of an item, by the attributes' names of then.
Compute = Callable[[Mapping[str, Any]], Any]


def computed_of(stored: StoredAttribute) -> frozenset[str]:
    """What an attribute is computed of."""
    return frozenset({f"attribute:{stored.source}"} if stored.source else ())


def filled(after: Snapshot, name: str, default: object, compute: Compute | None) -> tuple[Task, ...]:
    """The task that writes an attribute where it is missing; none if nothing says what, or it is counted."""
    attribute = after.attributes[name]
    if attribute.counted:
        return ()
    if attribute.copied:
        return (filled_copy(after, name),)
    if attribute.source:
        return (filled_attribute(after, name),)
    if compute is None and default is NOT_PROVIDED and attribute.absent is not None:
        default = attribute.value(None)
    if compute is None and default in (NOT_PROVIDED, None):
        return ()
    given = compute or (lambda values: default() if callable(default) else default)
    return (filled_attribute(after, name, given),)


def counting(attribute: StoredAttribute) -> str:
    """What a line about an operation adds where something is counted."""
    if attribute.checked:
        return "; those who refer are counted at --finish"
    return "; it is counted at --finish" if attribute.counted else ""


def needless(snapshot: Snapshot, name: str) -> tuple[Task, ...]:
    """What releases the claims that nobody needs any more, of the rules that name an attribute."""
    return tuple(needless_claims(snapshot, rule) for rule in snapshot.unique if name in rule.names)


def released(before: Snapshot, after: Snapshot, name: str) -> tuple[Task, ...]:
    """What releases the claims that are under an attribute's former physical name."""
    return tuple(released_claims(before, after, rule) for rule in before.unique if name in rule.names)


def undone(before: Snapshot, after: Snapshot, old: str, new: str) -> tuple[Task, ...]:
    """What takes another physical name out again that no item has for good yet."""
    return (*needless(before, old), dropped_attribute(after, before, new), *released(after, before, new))
