"""The model of a Celery result."""

from __future__ import annotations

from dynamo_single import models
from dynamo_single.conf import alias_of_own_models


class StoredResult(models.Model):
    """A value that Celery stores under a key: a task's result, a group, or the number of finished parts of a chord."""

    key = models.UnicodeAttribute()
    content = models.BinaryAttribute(null=True)
    parts = models.IntegerAttribute(default=0)
    expires = models.TTLAttribute(null=True)

    class Keys:
        primary = models.Key("CELERY#{key}", "#METADATA")

    class Meta:
        item_type = "CeleryResult"
        table = alias_of_own_models()
        verbose_name = "Celery result"

    def __str__(self) -> str:
        return self.key
