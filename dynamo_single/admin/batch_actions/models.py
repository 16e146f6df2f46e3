"""A job: an action on many objects, and its progress."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from dynamo_single import clock, models
from dynamo_single.conf import alias_of_own_models
from dynamo_single.orm.schema.attributes.references import ModelLabel

#: The seconds for which a user can resume a job.
LIFETIME = 24 * 60 * 60
#: The most failures, and messages of the project's own code, that a job stores.
MAX_MESSAGES = 100
#: The time after which another process may repeat a batch that a process claimed without recording its end.
CLAIM_TIME = timedelta(seconds=60)
#: The time after which a job that no worker has continued can be run on its page.
QUEUE_TIME = 2 * CLAIM_TIME


class AdminJob(models.Model):
    """An action on objects of one model, by their keys; ``position`` is the number of finished objects.

    ``claimed_at`` is when a process claimed the current batch. ``stopped`` contains the error that a batch raised, and
    ``said`` the messages of the project's own code, by level and text. ``queued_at`` is when the job was last passed to
    a worker, whose task contains the same time. ``needs_page`` is set if a worker lacked a part of a browser's request.
    ``finished_at`` is when the last batch ended. A job that undoes another one restores only what was deleted between
    ``deleted_from`` and ``deleted_until``.

    The jobs of a user are one partition, in the order of their creation. DynamoDB deletes a job some time after it
    expires.
    """

    user_key = models.UnicodeAttribute(_("user"))
    job_id = models.IdAttribute(kind="ulid")
    label = ModelLabel(_("model"))
    action = models.UnicodeAttribute(_("action"))
    keys: Any = models.JSONAttribute(_("objects"))
    position = models.IntegerAttribute(_("done"), default=0)
    failures: Any = models.JSONAttribute(_("failures"), default=list)
    failed = models.IntegerAttribute(_("failed"), default=0)
    claimed_at = models.TimestampAttribute(_("claimed"), null=True)
    stopped = models.UnicodeAttribute(_("stopped"), null=True, multiline=True)
    said: Any = models.JSONAttribute(_("messages"), null=True)
    queued_at = models.TimestampAttribute(null=True)
    needs_page = models.BooleanAttribute(null=True)
    finished_at = models.TimestampAttribute(null=True)
    deleted_from = models.TimestampAttribute(null=True)
    deleted_until = models.TimestampAttribute(null=True)
    created_at = models.TimestampAttribute(_("created"), auto_now_add=True)
    expires_at = models.TTLAttribute(_("expires"), null=False)
    version = models.VersionAttribute()

    class Keys:
        primary = models.Key("ADMINJOB#{user_key}", "{job_id}")

    class Meta:
        app_label = "dynamo_single"
        table = alias_of_own_models()
        verbose_name = _("job")
        verbose_name_plural = _("jobs")

    @property
    def is_damaged(self) -> bool:
        """Whether the item lacks an attribute that every job has."""
        needed = (self.user_key, self.job_id, self.label, self.action, self.created_at, self.expires_at)
        counts = (self.position, self.failed)
        return (
            None in needed or None in counts or not all(isinstance(each, list) for each in (self.keys, self.failures))
        )

    @property
    def total(self) -> int:
        """The number of objects."""
        return len(self.keys)

    @property
    def remaining(self) -> int:
        """The number of unfinished objects."""
        return max(self.total - self.position, 0)

    @property
    def is_done(self) -> bool:
        """Whether all objects are finished."""
        return self.position >= self.total

    @property
    def is_claimed(self) -> bool:
        """Whether a process is working on a batch and its claim has not expired.

        The clocks of two machines may differ in either direction.
        """
        return self.claimed_at is not None and abs(clock.now() - self.claimed_at) < CLAIM_TIME

    def may_restore(self, obj: Any) -> bool:
        """Return whether the job that this one undoes deleted an object; true if this job undoes none."""
        if self.deleted_from is None or self.deleted_until is None:
            return True
        moment = obj.deleted_at
        return isinstance(moment, datetime) and self.deleted_from <= moment <= self.deleted_until

    @property
    def is_queued(self) -> bool:
        """Whether a worker was given the job, and has continued it within ``QUEUE_TIME``."""
        if self.queued_at is None or self.stopped or self.is_done:
            return False
        latest = self.queued_at if self.claimed_at is None else max(self.queued_at, self.claimed_at)
        return clock.now() - latest < QUEUE_TIME
