"""Run one batch of a job by the hooks that Django's action calls."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from dynamo_single.admin import trash
from dynamo_single.admin.errors import REFUSALS, in_words, is_developer
from dynamo_single.admin.jobs.left import logged_if_deleted, rows_left
from dynamo_single.admin.jobs.models import TOLD, AdminJob
from dynamo_single.admin.kinds import DynamoModelAdmin
from dynamo_single.admin.unavailable import UNAVAILABLE
from dynamo_single.exceptions import StillReferenced
from dynamo_single.orm.schema.kinds import DynamoModel

logger = logging.getLogger("dynamo_single.admin")

#: What can be done in batches, and the permission that a model's admin is asked for.
ACTIONS: Final = {"delete": "delete", "purge": "hard_delete", "restore": "restore"}


def is_allowed(request: HttpRequest, modeladmin: DynamoModelAdmin, action: str, obj: DynamoModel | None = None) -> bool:
    """Whether the user may do it now, at all or with an object."""
    return bool(getattr(modeladmin, f"has_{ACTIONS[action]}_permission")(request, obj))


class Batch:
    """The next objects of a job, and the hooks that are called with them.

    Objects that are gone, or that ``get_queryset()`` does not return any more, are treated as done. An object that the
    user may not change, or whose write is refused, is noted and does not stop the others.
    """

    def __init__(self, request: HttpRequest, modeladmin: Any, job: AdminJob, keys: Sequence[str]) -> None:
        self._request = request
        self._admin = modeladmin
        self._job = job
        self._keys = keys
        self._noted: set[str] = set()

    def run(self) -> None:
        """Run the action, and add the objects that are done to ``job.position``.

        If a hook raises an error, ``job.stopped`` says so, and the objects that are still there stay to be done. Errors
        of a table that is not available are raised.
        """
        left: list[str] = []
        try:
            self._run()
        except UNAVAILABLE:
            raise
        except Exception as error:
            logger.exception("A job of %s stopped.", self._admin)
            self._job.stopped = self._words(error)
            left = [key for key in _keys_of(self._left()) if key not in self._noted]
        job, done = self._job, [key for key in self._keys if key not in left]
        if left:
            job.keys = [*job.keys[: job.position], *done, *left, *job.keys[job.position + len(self._keys) :]]
        job.position += len(done)

    def _run(self) -> None:
        objects = self._allowed(self._left())
        try:
            self._act(objects)
        except UNAVAILABLE:
            raise
        except REFUSALS:
            for obj in self._left():
                if str(obj.pk) not in self._noted:
                    self._act_alone(_some(objects, [obj]))

    def _act_alone(self, alone: Any) -> None:
        name = str(alone[0])
        try:
            self._act(alone)
        except UNAVAILABLE:
            raise
        except REFUSALS as refusal:
            self._note(alone[0], in_words(self._request, refusal), name)

    def _act(self, objects: Any) -> None:
        """Call the hooks in Django's order, unless there are no objects."""
        if not objects:
            return
        if self._job.action == "restore":
            for obj in objects:
                obj.restore()
                self._admin.log_change(self._request, obj, str(trash.RESTORED))
            return
        with logged_if_deleted(self._request, self._admin, self._job.action):
            self._admin.log_deletions(self._request, objects)
            self._admin.delete_queryset(self._request, objects)

    def _left(self) -> Any:
        return rows_left(self._request, self._admin, self._job.action, self._keys)

    def _allowed(self, objects: Any) -> Any:
        """Return the objects that the user may change, and note the others."""
        allowed = _some(objects, [obj for obj in objects if self._may(obj)])
        if not allowed or self._job.action == "restore":
            return allowed
        if not any(self._admin.get_deleted_objects(allowed, self._request)[2:]):
            return allowed
        # One of them is kept, and does not stop the others.
        return _some(allowed, [obj for obj in allowed if self._may_go(_some(allowed, [obj]))])

    def _may(self, obj: DynamoModel) -> bool:
        if is_allowed(self._request, self._admin, self._job.action, obj):
            return True
        self._note(obj, _("You may not do this with it."))
        return False

    def _may_go(self, alone: Any) -> bool:
        lacking, protecting = self._admin.get_deleted_objects(alone, self._request)[2:]
        if lacking:
            names = ", ".join(sorted(map(str, lacking)))
            self._note(alone[0], _("You may not delete what goes along: %(names)s.") % {"names": names})
        elif protecting:
            refusal = StillReferenced(f"{alone[0]} is referred to: {', '.join(map(str, protecting))}", set())
            self._note(alone[0], in_words(self._request, refusal))
        return not lacking and not protecting

    def _note(self, obj: DynamoModel, text: str, name: str = "") -> None:
        self._noted.add(str(obj.pk))
        self._job.failed += 1
        if len(self._job.failures) < TOLD:
            self._job.failures = [*self._job.failures, [str(obj.pk), name or str(obj), text]]

    def _words(self, error: Exception) -> str:
        """Return the project's own words if it raised them for people, else the kind of error."""
        if isinstance(error, ValidationError):
            return " ".join(map(str, error.messages))
        if isinstance(error, PermissionDenied):
            return str(error) or _("You may not do this with it.")
        kind = type(error).__name__
        return f"{kind}: {error}" if is_developer(self._request.user) else kind


def _some(queryset: Any, objects: Sequence[DynamoModel]) -> Any:
    """The queryset of some of its objects, which are not read again."""
    if len(objects) == len(queryset):
        return queryset
    found = queryset.filter(pk__in=[obj.pk for obj in objects])
    found._result_cache = [*objects]
    return found


def _keys_of(objects: Any) -> list[str]:
    return [str(obj.pk) for obj in objects]
