"""Tokens by which the programs of users log in to an API."""

from __future__ import annotations

import binascii
import hashlib
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from dynamo_single import clock, models


class TokenQuerySet(models.QuerySet["Token"]):
    """The queryset of ``Token``."""

    def issue(self, user: Any, *, name: str = "", lifetime: timedelta | None = None) -> tuple[Token, str]:
        """Create a token, and return it with its text, which cannot be read again: one PutItem.

        It expires after ``lifetime``; without one it is valid until it is deleted.
        """
        secret = secrets.token_urlsafe(32)
        expires = None if lifetime is None else clock.now() + lifetime
        token = self.create(user=user, name=name, digest=_digest(secret), expires=expires)
        return token, f"{urlsafe_b64encode(token.pk.encode()).decode().rstrip('=')}.{secret}"

    def of_text(self, text: str) -> Token | None:
        """Return the token whose text this is: one GetItem; ``None`` if it is not valid."""
        head, _separator, secret = text.partition(".")
        try:
            pk = urlsafe_b64decode(head + "=" * (-len(head) % 4)).decode()
        except (binascii.Error, ValueError):
            return None
        token = self.consistent().filter(pk=pk).first() if pk and secret else None
        is_valid = token is not None and secrets.compare_digest(token.digest, _digest(secret))
        return token if is_valid else None


def _digest(secret: str) -> str:
    # The secret has 256 random bits, so a fast hash is enough.
    return hashlib.sha256(secret.encode()).hexdigest()


class Token(models.Model):
    """A token of a user. The table contains only a digest of its secret.

    The tokens of a user are one partition, which deleting the user deletes too.
    """

    user = models.ReferenceAttribute(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    token_id = models.IdAttribute(kind="nanoid")
    name = models.UnicodeAttribute(_("name"), blank=True, default="", max_length=100)
    digest = models.UnicodeAttribute(secret=True, editable=False, max_length=64)
    created = models.TimestampAttribute(_("created"), auto_now_add=True)
    expires = models.TTLAttribute(_("expires"), null=True)

    objects = models.Manager.from_queryset(TokenQuerySet)()

    class Keys:
        primary = models.Key("API_TOKENS#{user_id}", "{token_id}")

    class Meta:
        item_type = "APIToken"
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return self.name or self.token_id
