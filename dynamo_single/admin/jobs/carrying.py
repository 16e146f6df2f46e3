"""A job's next batches: the objects are read, the user's rights are asked for each, and what is refused is noted."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext as _

from dynamo_single import clock
from dynamo_single.admin import trash
from dynamo_single.admin.errors import REFUSALS, in_words
from dynamo_single.admin.jobs.models import KEPT, TOLD, AdminJob
from dynamo_single.admin.kinds import DynamoModelAdmin
from dynamo_single.orm.schema.kinds import DynamoModel

#: What can be done in batches, and the permission that a model's admin is asked for.
ACTIONS: Final = {"delete": "delete", "purge": "hard_delete", "restore": "restore"}
#: Objects of one batch, which are read by one request.
BATCH: Final = 25
#: Seconds after which no further batch is begun for one request of a browser.
SECONDS: Final = 2.0


def begin(request: HttpRequest, modeladmin: DynamoModelAdmin, action: str, keys: Sequence[str]) -> AdminJob:
    """Store a job: one PutItem. Nothing is done yet."""
    return AdminJob.objects.create(
        user_key=str(request.user.pk),
        label=modeladmin.opts.label_lower,
        action=action,
        keys=[*keys],
        expires_at=clock.now() + timedelta(seconds=KEPT),
    )


def is_allowed(request: HttpRequest, modeladmin: DynamoModelAdmin, action: str, obj: DynamoModel | None = None) -> bool:
    """Whether the user may do it now, at all or with an object."""
    return bool(getattr(modeladmin, f"has_{ACTIONS[action]}_permission")(request, obj))


def carry_on(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> None:
    """Do the next batches, for about ``SECONDS``; how far the job is, is stored after each.

    A batch is a BatchGetItem, what each object takes, and an UpdateItem; to delete, each takes what the question before
    a deletion takes as well, for the rights to what goes along. What is not there any more counts as done, so that a
    batch whose end was not stored can be done again. Raises ``StaleObject`` if another tab carries it on too.
    """
    begun = time.monotonic()
    while not job.is_done:
        _batch(request, modeladmin, job)
        if time.monotonic() - begun >= SECONDS:
            return


def _batch(request: HttpRequest, modeladmin: Any, job: AdminJob) -> None:
    wanted = job.keys[job.position : job.position + BATCH]
    manager = getattr(modeladmin.model, "all_objects", modeladmin.model._default_manager)
    found = {str(obj.pk): obj for obj in manager.filter(pk__in=wanted)}
    try:
        for key in wanted:
            if key in found and _is_left(job.action, found[key]):
                _do(request, modeladmin, job, found[key])
            job.position += 1
    finally:
        job.save()


def _is_left(action: str, obj: DynamoModel) -> bool:
    """Whether an object is still to be done: an earlier try of the batch, or somebody else, may have done it."""
    return not trash.has_trash(type(obj)) or trash.is_deleted(obj) == (action != "delete")


def _do(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob, obj: Any) -> None:
    if not is_allowed(request, modeladmin, job.action, obj):
        _note(job, obj, _("You may not do this with it."))
        return
    if job.action != "restore" and (lacking := modeladmin.get_deleted_objects([obj], request)[2]):
        _note(job, obj, _("You may not delete what goes along: %(names)s.") % {"names": ", ".join(sorted(lacking))})
        return
    # A deletion changes the object, and what is refused is not logged.
    known = copy.copy(obj)
    try:
        if job.action == "restore":
            obj.restore()
            modeladmin.log_change(request, obj, str(trash.RESTORED))
        else:
            modeladmin.delete_model(request, obj)
            modeladmin.log_deletions(request, [known])
    except REFUSALS as refusal:
        _note(job, known, in_words(request, refusal))


def _note(job: AdminJob, obj: DynamoModel, text: str) -> None:
    """What is refused stays, is named to who looks, and holds up nothing else."""
    job.failed += 1
    if len(job.failures) < TOLD:
        job.failures = [*job.failures, [str(obj.pk), str(obj), text]]
