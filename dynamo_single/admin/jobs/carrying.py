"""Run a job: claim its next batch, run it, and record it as done."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.contrib import messages
from django.contrib.admin.utils import model_ngettext
from django.http import HttpRequest
from django.utils.translation import gettext as _

from dynamo_single import clock
from dynamo_single.admin import trash
from dynamo_single.admin.jobs.batches import Batch
from dynamo_single.admin.jobs.left import complete_log
from dynamo_single.admin.jobs.models import KEPT, TOLD, AdminJob
from dynamo_single.admin.kinds import DynamoModelAdmin

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


def carry_on(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> None:
    """Run the next batches for about ``SECONDS``, or until one raises an error.

    An UpdateItem claims the first batch. Each batch is a BatchGetItem and the requests of the hooks; then an UpdateItem
    records it as done, and claims the next one. Does not do anything if another process has claimed the batch. Raises
    ``StaleObject`` if another process claims it in between, or if this one was slower than its claim lasts.
    """
    if not job.left or job.is_claimed:
        return
    lapsed: datetime | None = job.claimed_at
    job.claimed_at, job.stopped = clock.now(), None
    job.save()
    if lapsed is not None:
        complete_log(request, modeladmin, job.action, _next(job), lapsed)
    earlier = [*messages.get_messages(request)]
    begun, goes_on = time.monotonic(), True
    while goes_on:
        Batch(request, modeladmin, job, _next(job)).run()
        _keep_messages(request, job, len(earlier))
        goes_on = not job.is_done and not job.stopped and time.monotonic() - begun < SECONDS
        job.claimed_at = clock.now() if goes_on else None
        job.save()
    for each in earlier:
        messages.add_message(request, each.level, each.message, each.extra_tags)
    if job.is_done:
        _tell(request, modeladmin, job)


def _next(job: AdminJob) -> list[str]:
    return list(job.keys[job.position : job.position + BATCH])


def _keep_messages(request: HttpRequest, job: AdminJob, earlier: int) -> None:
    """Move the messages of the project's own code to the job: a session cannot hold those of 5,000 objects."""
    request.__dict__.pop("_said_of_trash", None)
    said: list[list[str]] = job.said or []
    for message in [*messages.get_messages(request)][earlier:]:
        entry = [message.level_tag, str(message)]
        if entry not in said and len(said) < TOLD:
            said = [*said, entry]
    job.said = said or None


def _tell(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> None:
    """Call ``message_user()`` as Django's action does at its end."""
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
