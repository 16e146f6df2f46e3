"""Soft delete: into the trash and out of it, each in one request or one transaction.

A deleted item keeps its attributes and its place in the table; it loses its live index keys and its unique claims, and
gains the trash's key, so that live listings never read it and the trash is a Query.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from dynamo_single import hydration, layout, registry, writes
from dynamo_single.deferred import changed_in_memory, complete
from dynamo_single.exceptions import StaleObject
from dynamo_single.failures import is_gone
from dynamo_single.query import EVERYTHING, Condition
from dynamo_single.signals import post_restore, post_soft_delete

#: How often a step is begun anew because another writer was faster.
ATTEMPTS = 3


def delete(obj: Any, *, extra: Condition = EVERYTHING) -> tuple[int, dict[str, int]]:
    """Move an object to the trash; one that is there already, or gone, is left alone and not counted.

    One request or transaction, and one GetItem before it if the object is in the trash as far as it knows.
    """
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be deleted because it is not stored.")
    try:
        done = _change(obj, timezone.now(), extra)
    except model.DoesNotExist:
        done = False
    if done:
        post_soft_delete.send(sender=model, instance=obj)
    return int(done), {model._meta.label: int(done)}


def restore(obj: Any) -> bool:
    """Bring an object back from the trash; ``False`` for a live one, which is left alone.

    Raises the model's ``DoesNotExist`` if it is gone for good, ``UniqueViolation`` if a value of its was taken.
    """
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be restored because it is not stored.")
    done = _change(obj, None, EVERYTHING)
    if done:
        post_restore.send(sender=model, instance=obj)
    return done


def _change(obj: Any, deleted_at: datetime | None, extra: Condition) -> bool:
    """Set or clear ``deleted_at``; ``False`` if it is so already.

    What the object remembers may be outdated: where it says that there is nothing to do, and where another writer was
    faster, the item is read again. Changes of the object that are not saved stay as they are.
    """
    is_fresh = complete(obj)
    for attempt in range(ATTEMPTS):
        if (layout.DELETED_AT in obj._stored) == (deleted_at is not None):
            if is_fresh:
                return False
            _read_again(obj)
            is_fresh = True
            if (layout.DELETED_AT in obj._stored) == (deleted_at is not None):
                return False
        try:
            writes.change(obj, {registry.DELETED_AT: deleted_at}, extra=extra)
        except StaleObject as error:
            if extra != EVERYTHING or (attempt == ATTEMPTS - 1 and not is_gone(error)):
                raise
            _read_again(obj)
            is_fresh = True
        else:
            return True
    return False


def _read_again(obj: Any) -> None:
    changed = changed_in_memory(obj) - {registry.DELETED_AT}
    hydration.follow(obj, hydration.reload(obj), changed)
