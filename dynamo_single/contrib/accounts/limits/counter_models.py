"""The counters of failed logins and requested e-mails. DynamoDB deletes them when they expire."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from dynamo_single import models


class AbstractLoginFailures(models.Model):
    """A counter of failed logins within a day or an hour, for an identifier, a client address, or both together.

    ``scope`` is a keyed hash, so the table contains neither addresses nor passwords typed into the wrong field.
    """

    scope = models.UnicodeAttribute(max_length=64)
    failures = models.IntegerAttribute()
    last_failure = models.TimestampAttribute(attr_name="lastFailure")
    expires = models.TTLAttribute(null=False)

    class Keys:
        primary = models.Key("LOGINFAILURES#{scope}", "#METADATA")

    class Meta:
        abstract = True
        default_permissions = ()
        verbose_name = _("login failures")
        verbose_name_plural = _("login failures")

    def __str__(self) -> str:
        return self.scope


class AbstractMailsAsked(models.Model):
    """A counter of the e-mails that a client requested, or that were requested for an address, within an hour.

    ``scope`` is a keyed hash, as in ``AbstractLoginFailures``.
    """

    scope = models.UnicodeAttribute(max_length=64)
    mails = models.IntegerAttribute()
    expires = models.TTLAttribute(null=False)

    class Keys:
        primary = models.Key("MAILSASKED#{scope}", "#METADATA")

    class Meta:
        abstract = True
        default_permissions = ()
        verbose_name = _("mails asked")
        verbose_name_plural = _("mails asked")

    def __str__(self) -> str:
        return self.scope
