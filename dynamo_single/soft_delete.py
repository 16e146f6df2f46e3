"""Soft delete: into the trash and out of it, each in one request or one transaction.

A deleted item keeps its attributes and its place in the table; it loses its live index keys and its unique claims, and
gains the trash's key, so that live listings never read it and the trash is a Query.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from dynamo_single import hydration, registry, writes
from dynamo_single.exceptions import StaleObject


def delete(obj: Any) -> tuple[int, dict[str, int]]:
    """Move an object to the trash; one that is there already, or gone, is left alone and not counted."""
    label = obj._meta.label
    if obj._stored is None:
        raise ValueError(f"{obj._meta.object_name} object can't be deleted because it is not stored.")
    attribute = registry.attributes_of(type(obj))[registry.DELETED_AT]
    try:
        changed = _change(obj, attribute.prepare(timezone.now()))
    except type(obj).DoesNotExist:
        changed = False
    return int(changed), {label: int(changed)}


def restore(obj: Any) -> None:
    """Bring an object back from the trash; a live one is left alone."""
    _change(obj, None)


def _change(obj: Any, deleted_at: Any) -> bool:
    """Set or clear ``deleted_at``; ``False`` if it was so already.

    If another writer was faster, the object is read again and the step repeated once on what is there now: putting
    something in the trash depends on nothing that a reader could have seen differently.
    """
    for last_try in (False, True):
        if (obj._stored.get(obj._meta.get_field(registry.DELETED_AT).attribute.attr_name) is None) == (
            deleted_at is None
        ):
            setattr(obj, registry.DELETED_AT, hydration.values_of(type(obj), obj._stored)[registry.DELETED_AT])
            return False
        try:
            writes.change(obj, {registry.DELETED_AT: deleted_at})
        except StaleObject:
            if last_try:
                raise
            obj._stored = hydration.reload(obj)._stored
        else:
            return True
    return False
