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
    """The task that writes an attribute where it is missing; none if nothing says what, or another command does."""
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


def to_count(label: str, name: str, attribute: StoredAttribute) -> str:
    """What to do about a counter; empty for another attribute."""
    if not attribute.counted:
        return ""
    return f"{name} counts {attribute.counted}: manage.py dynamo_rebuild {label} counts those that are there."


def needless(snapshot: Snapshot, name: str) -> tuple[Task, ...]:
    """What releases the claims that nobody needs any more, of the rules that name an attribute."""
    return tuple(needless_claims(snapshot, rule) for rule in snapshot.unique if name in rule.names)


def released(before: Snapshot, after: Snapshot, name: str) -> tuple[Task, ...]:
    """What releases the claims that are under an attribute's former physical name."""
    return tuple(released_claims(before, after, rule) for rule in before.unique if name in rule.names)


def undone(before: Snapshot, after: Snapshot, old: str, new: str) -> tuple[Task, ...]:
    """What takes another physical name out again that no item has for good yet."""
    return (*needless(before, old), dropped_attribute(after, before, new), *released(after, before, new))
