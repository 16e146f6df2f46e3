"""The counters of logins that failed, and of mails that were asked for. DynamoDB deletes them when they expire."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from dynamo_single import models


class AbstractLoginFailures(models.Model):
    """How often logging in failed within a day or an hour: for an identifier, an address, or one at the other.

    ``scope`` is a keyed hash, so that the table holds no address and nothing that somebody typed by mistake.
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
    """How many mails were asked for within an hour: by a client, or for an address.

    ``scope`` is a keyed hash, as that of ``AbstractLoginFailures``.
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
