"""A job: what somebody wants to be done with many objects, and how much of it is."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from dynamo_single import models

#: Seconds for which a job can be resumed.
KEPT = 24 * 60 * 60
#: Failures that a job names.
TOLD = 100


class AdminJob(models.Model):
    """An action on objects of one model, by their keys; ``position`` is how many of them are done.

    A user's jobs are one partition, in the order in which they were begun. DynamoDB deletes a job some time after it
    expires.
    """

    user_key = models.UnicodeAttribute(_("user"))
    job_id = models.IdAttribute(kind="ulid")
    label = models.UnicodeAttribute(_("model"))
    action = models.UnicodeAttribute(_("action"))
    keys: Any = models.JSONAttribute(_("objects"))
    position = models.IntegerAttribute(_("done"), default=0)
    failures: Any = models.JSONAttribute(_("failures"), default=list)
    failed = models.IntegerAttribute(_("failed"), default=0)
    created_at = models.TimestampAttribute(_("created"), auto_now_add=True)
    expires_at = models.TTLAttribute(_("expires"), null=False)
    version = models.VersionAttribute()

    class Keys:
        primary = models.Key("ADMINJOB#{user_key}", "{job_id}")

    class Meta:
        app_label = "dynamo_single"
        verbose_name = _("job")
        verbose_name_plural = _("jobs")

    @property
    def total(self) -> int:
        """How many objects there are."""
        return len(self.keys)

    @property
    def left(self) -> int:
        """How many of them are not done yet."""
        return max(self.total - self.position, 0)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.position >= self.total
