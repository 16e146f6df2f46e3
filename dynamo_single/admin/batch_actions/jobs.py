"""Run jobs: create one, claim its next batch, run and record it, and skip damaged jobs.

A batch calls the hooks of Django's action. The app logs damaged jobs, and pages do not show them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin.utils import model_ngettext
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from dynamo_single import clock
from dynamo_single.admin import trash
from dynamo_single.admin.batch_actions.deletion_log import complete_log, log_deletions, remaining_rows
from dynamo_single.admin.batch_actions.models import CLAIM_TIME, LIFETIME, MAX_MESSAGES, AdminJob
from dynamo_single.admin.errors import REFUSALS, UNAVAILABLE, is_developer, user_message
from dynamo_single.admin.types import DynamoModelAdmin
from dynamo_single.exceptions import StillReferenced, UnexpectedItem, UnreadableItem
from dynamo_single.orm.items import decode
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table
from dynamo_single.transactions import atomic

logger = logging.getLogger("dynamo_single.admin")

#: The actions that can be run in batches, with the permission that the model's admin checks.
ACTIONS: Final = {"delete": "delete", "purge": "hard_delete", "restore": "restore"}


def is_allowed(request: HttpRequest, modeladmin: DynamoModelAdmin, action: str, obj: DynamoModel | None = None) -> bool:
    """Return whether the user may run the action now, generally or on an object."""
    return bool(getattr(modeladmin, f"has_{ACTIONS[action]}_permission")(request, obj))


class Batch:
    """The next objects of a job, and the hooks for them.

    Objects that are gone, or that ``get_queryset()`` no longer returns, count as done. If the user may not change an
    object, or its write fails, the job records a failure and continues with the others.
    """

    def __init__(self, request: HttpRequest, modeladmin: Any, job: AdminJob, keys: Sequence[str]) -> None:
        self._request = request
        self._admin = modeladmin
        self._job = job
        self._keys = keys
        self._noted: set[str] = set()

    def run(self) -> None:
        """Run the action, and add the number of processed objects to ``job.position``.

        If a hook raises an error, ``job.stopped`` contains it, and the job keeps the remaining objects. It raises
        errors of an unavailable table.
        """
        left: list[str] = []
        try:
            self._run()
        except UNAVAILABLE:
            raise
        except Exception as error:
            logger.exception("A job of %s stopped.", self._admin)
            self._job.stopped = self._words(error)
            left = [key for key in self._left_keys() if key not in self._noted]
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
            # Another process may have restored others since their permissions were checked.
            checked = {*_keys_of(objects)} - self._noted
            for obj in self._left():
                if str(obj.pk) in checked:
                    self._act_alone(_subset(objects, [obj]))

    def _act_alone(self, alone: Any) -> None:
        name = str(alone[0])
        try:
            self._act(alone)
        except UNAVAILABLE:
            raise
        except REFUSALS as refusal:
            self._note(alone[0], user_message(self._request, refusal), name)

    def _act(self, objects: Any) -> None:
        """Call the hooks in Django's order, unless there are no objects."""
        if not objects:
            return
        if self._job.action == "restore":
            for obj in filter(self._job.may_restore, objects):
                obj.restore()
                self._admin.log_change(self._request, obj, str(trash.RESTORED))
            return
        with log_deletions(self._request, self._admin, self._job.action):
            self._admin.log_deletions(self._request, objects)
            self._admin.delete_queryset(self._request, objects)

    def _left_keys(self) -> Sequence[str]:
        """Return the keys of the remaining objects, or all keys if the project's queryset raises an error."""
        try:
            return _keys_of(self._left())
        except UNAVAILABLE:
            raise
        except Exception:
            return self._keys

    def _left(self) -> Any:
        return remaining_rows(self._request, self._admin, self._job.action, self._keys)

    def _allowed(self, objects: Any) -> Any:
        """Return the objects that the user may change, and record the others as failures."""
        allowed = _subset(objects, [obj for obj in objects if self._may(obj)])
        if not allowed or self._job.action == "restore":
            return allowed
        if not any(self._admin.get_deleted_objects(allowed, self._request)[2:]):
            return allowed
        # References protect some of them. The user can still delete the others.
        return _subset(allowed, [obj for obj in allowed if self._may_go(_subset(allowed, [obj]))])

    def _may(self, obj: DynamoModel) -> bool:
        if is_allowed(self._request, self._admin, self._job.action, obj):
            return True
        self._note(obj, _("You do not have permission to do this."))
        return False

    def _may_go(self, alone: Any) -> bool:
        lacking, protecting = self._admin.get_deleted_objects(alone, self._request)[2:]
        if lacking:
            names = ", ".join(sorted(map(str, lacking)))
            self._note(
                alone[0], _("You do not have permission to delete these related objects: %(names)s.") % {"names": names}
            )
        elif protecting:
            refusal = StillReferenced(f"{alone[0]} is referred to: {', '.join(map(str, protecting))}", set())
            self._note(alone[0], user_message(self._request, refusal))
        return not lacking and not protecting

    def _note(self, obj: DynamoModel, text: str, name: str = "") -> None:
        self._noted.add(str(obj.pk))
        self._job.failed += 1
        if len(self._job.failures) < MAX_MESSAGES:
            self._job.failures = [*self._job.failures, [str(obj.pk), name or str(obj), text]]

    def _words(self, error: Exception) -> str:
        """Return the message of a validation or permission error, otherwise the type of the error."""
        if isinstance(error, ValidationError):
            return " ".join(map(str, error.messages))
        if isinstance(error, PermissionDenied):
            return str(error) or _("You do not have permission to do this.")
        kind = type(error).__name__
        return f"{kind}: {error}" if is_developer(self._request.user) else kind


def _subset(queryset: Any, objects: Sequence[DynamoModel]) -> Any:
    """Return a queryset of some of its objects, without reading them again."""
    if len(objects) == len(queryset) and all(one is other for one, other in zip(objects, queryset, strict=True)):
        return queryset
    found = queryset.filter(pk__in=[obj.pk for obj in objects])
    found._result_cache = [*objects]
    return found


def _keys_of(objects: Any) -> list[str]:
    return [str(obj.pk) for obj in objects]


#: The most objects of one batch, which one request reads.
BATCH_SIZE: Final = 25
#: The number of seconds after which one browser request starts no further batch.
MAX_SECONDS: Final = 2.0


def create_job(
    request: HttpRequest, modeladmin: DynamoModelAdmin, action: str, keys: Sequence[str], **within: datetime
) -> AdminJob:
    """Store a new job: one PutItem."""
    return AdminJob.objects.create(
        user_key=str(request.user.pk),
        label=modeladmin.opts.label_lower,
        action=action,
        keys=[*keys],
        expires_at=clock.now() + timedelta(seconds=LIFETIME),
        **within,
    )


def create_undo(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> AdminJob:
    """Store a job that restores what another job deleted: one PutItem.

    It leaves out recorded failures, and objects that were deleted before that job began or after it ended: another user
    deleted them. The clocks of two machines may differ by ``CLAIM_TIME``.
    """
    failures = {key for key, _name, _text in job.failures}
    return create_job(
        request,
        modeladmin,
        "restore",
        [key for key in job.keys if key not in failures],
        deleted_from=job.created_at - CLAIM_TIME,
        deleted_until=(job.finished_at or clock.now()) + CLAIM_TIME,
    )


def queue(site: Any, job: AdminJob, arguments: Mapping[str, str]) -> bool:
    """Pass a job to the site's worker, and return whether it has one.

    Sends a TransactWriteItems for the job and its task. The task contains ``queued_at``, so that a later task replaces
    it. Raises ``StaleObject`` if another process has changed the job.
    """
    before = job.queued_at
    with atomic():
        job.queued_at = clock.now()
        if not site.enqueue_job({**arguments, "queued_at": queue_mark(job)}):
            job.queued_at = before
            return False
        job.stopped = None
        job.save()
    return True


def queue_mark(job: AdminJob) -> str:
    """Return the time at which a job was queued, as its task contains it."""
    return "" if job.queued_at is None else job.queued_at.isoformat(timespec="milliseconds")


def run_batches(
    request: HttpRequest,
    modeladmin: DynamoModelAdmin,
    job: AdminJob,
    *,
    seconds: float | None = None,
    refusal: Callable[[], str] = str,
) -> None:
    """Run the next batches for about ``MAX_SECONDS``, or until one raises an error.

    ``refusal`` returns the reason why the job may not continue, or an empty string. It is called before each batch.

    An UpdateItem claims the first batch. Each batch sends a BatchGetItem and the requests of the hooks. Then an
    UpdateItem records it as done and claims the next one. The function does nothing if another process has claimed the
    batch. It raises ``StaleObject`` if another process claims it in the meantime, or if this process took longer than
    its claim.
    """
    if not job.remaining or job.is_claimed:
        return
    lapsed: datetime | None = job.claimed_at
    job.stopped = refusal() or None
    if job.stopped:
        job.save()
        return
    job.claimed_at = clock.now()
    job.save()
    if lapsed is not None:
        complete_log(request, modeladmin, job.action, _claim_next(job), lapsed)
    earlier = [*messages.get_messages(request)]
    end, goes_on = time.monotonic() + (MAX_SECONDS if seconds is None else seconds), True
    while goes_on:
        Batch(request, modeladmin, job, _claim_next(job)).run()
        keep_messages(request, job, len(earlier))
        goes_on = not job.is_done and not job.stopped and time.monotonic() < end
        if goes_on:
            job.stopped = refusal() or None
            goes_on = not job.stopped
        job.claimed_at = clock.now() if goes_on else None
        job.finished_at = clock.now() if job.is_done else None
        job.save()
    for each in earlier:
        messages.add_message(request, each.level, each.message, each.extra_tags)
    if job.is_done:
        _send_message(request, modeladmin, job)


def _claim_next(job: AdminJob) -> list[str]:
    return list(job.keys[job.position : job.position + BATCH_SIZE])


def keep_messages(request: HttpRequest, job: AdminJob, earlier: int = 0) -> None:
    """Move the messages of the project's own code to the job: a session cannot store those of 5,000 objects."""
    request.__dict__.pop("_said_of_trash", None)
    said: list[list[str]] = job.said or []
    for message in [*messages.get_messages(request)][earlier:]:
        entry = [message.level_tag, str(message)]
        if entry not in said and len(said) < MAX_MESSAGES:
            said = [*said, entry]
    job.said = said or None


def _send_message(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> None:
    """Call ``message_user()`` as Django's action does at the end."""
    count = job.total - job.failed
    if not count:
        return
    if job.action == "restore":
        text = _("Restored %(count)d %(items)s.")
    elif job.action == "delete" and trash.has_trash(modeladmin.model):
        text = _("Moved %(count)d %(items)s to the trash.")
    else:
        text = _("Successfully deleted %(count)d %(items)s.")
    found = {"count": count, "items": model_ngettext(modeladmin.opts, count)}
    modeladmin.message_user(request, text % found, messages.SUCCESS)


#: The errors of reading an item that is not a valid job.
DAMAGE_ERRORS: Final = (UnexpectedItem, UnreadableItem)


def log_damaged(user_key: str, job_id: str) -> None:
    """Log that a job is damaged, and how to continue."""
    logger.error(
        "The job pk='ADMINJOB#%s', sk=%r is damaged and cannot be resumed. Choose the objects again that are left, and "
        "delete the item.",
        user_key,
        job_id,
    )


def undamaged_jobs(jobs: Iterable[AdminJob]) -> list[AdminJob]:
    """Return the undamaged jobs."""
    found = []
    for job in jobs:
        if job.is_damaged:
            log_damaged(*_key(job))
        else:
            found.append(job)
    return found


def newest_jobs(user_key: str, most: int) -> list[AdminJob]:
    """Return the newest readable jobs of a user, up to ``most``: one Query of up to a megabyte."""
    partition = registry.layout_of(AdminJob).primary.partition.render({"user_key": user_key})
    params: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p",
        "ExpressionAttributeNames": {"#p": names.PARTITION_KEY},
        "ExpressionAttributeValues": {":p": {"S": partition}},
        "ScanIndexForward": False,
        "Limit": most,
    }
    found = []
    for item in get_table(AdminJob._options.alias).send(Request("Query", params))["Items"]:
        try:
            job = decode.instance(AdminJob, item)
        except DAMAGE_ERRORS:
            log_damaged(user_key, key_of(item)[1])
        else:
            found += undamaged_jobs([job] if decode.is_live(AdminJob, item) else [])
    return found


def _key(job: AdminJob) -> tuple[str, str]:
    """Return the user and the job from the item's key, since its attributes may be damaged."""
    partition, sort = key_of(job._stored or {})
    return partition.partition("#")[2], sort
