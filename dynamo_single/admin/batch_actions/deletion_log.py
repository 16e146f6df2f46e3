"""The objects that an action still has to process, and the log entries of the processed ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest

from dynamo_single.admin import history, trash

#: The visibility of the objects of each action, for models with a trash.
_STATES: Final = {"delete": "live", "purge": "deleted", "restore": "deleted"}


def remaining_rows(request: HttpRequest, modeladmin: Any, action: str, keys: Collection[str]) -> Any:
    """Return an evaluated queryset of the objects that the action has not processed yet.

    Sends a strongly consistent BatchGetItem for each hundred keys. The queryset does not contain objects that
    ``get_queryset()`` filters out.
    """
    queryset = modeladmin.get_queryset(request).all()
    if trash.has_trash(modeladmin.model):
        queryset = queryset.with_visibility(_STATES[action])
    found = queryset.order_by().consistent().filter(pk__in=[*keys])
    len(found)
    return found


@contextmanager
def log_deletions(request: HttpRequest, modeladmin: Any, action: str) -> Iterator[None]:
    """Write the log entries of the deletions in the block after the deletions.

    Django logs first, and does not remove an entry if the deletion fails. If the block raises an error, the function
    reads the remaining objects, and writes the entries of the others.
    """
    with history.defer_entries(request) as entries:
        try:
            yield
        except Exception:
            keys = entries.keys_of(modeladmin.model)
            left = remaining_rows(request, modeladmin, action, keys) if keys else ()
            entries.write(request, {(type(obj), str(obj.pk)) for obj in left})
            raise
        entries.write(request)


def complete_log(request: HttpRequest, modeladmin: Any, action: str, keys: Collection[str], since: datetime) -> None:
    """Log the work of a process that stopped before it logged it.

    Sends a BatchGetItem for each hundred keys, and a Query of the user's log entries since ``since``. If any are
    missing, it sends a Query of each such object's entries, a BatchGetItem for the objects, and a PutItem each.

    It omits objects that the log shows as another user's work. Nothing else stores who deleted an object: if code
    outside the admin has deleted an object in the meantime, the log shows it as the user's. The entry of a permanently
    deleted object has the key as its name.
    """
    flag = history.CHANGE if action == "restore" else history.DELETION
    left = {str(obj.pk) for obj in remaining_rows(request, modeladmin, action, keys)}
    unlogged = {*keys} - left - history.keys_of_user(request, modeladmin.model, flag, since)
    unlogged -= history.keys_of_others(request, modeladmin.model, unlogged, flag, since)
    every = getattr(modeladmin.model, "all_objects", modeladmin.model._default_manager)
    found = {str(obj.pk): obj for obj in every.filter(pk__in=[*unlogged]).consistent()} if unlogged else {}
    for key in sorted(unlogged):
        obj = found.get(key)
        if action == "restore":
            if obj is not None and not trash.is_deleted(obj):
                modeladmin.log_change(request, obj, str(trash.RESTORED))
        elif obj is None:
            message = str(trash.DELETED) if action == "purge" else ""
            history.write_deletion(request, modeladmin.model, key, key, message)
        elif trash.is_deleted(obj) and obj.deleted_at >= since:
            history.write_deletion(request, modeladmin.model, key, str(obj), str(trash.MOVED))
