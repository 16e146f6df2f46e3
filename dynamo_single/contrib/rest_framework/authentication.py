"""Authentication by tokens: ``"DEFAULT_AUTHENTICATION_CLASSES"`` in ``REST_FRAMEWORK``."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.utils.translation import gettext as _
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed

from dynamo_single.contrib.rest_framework.models import Token


class TokenAuthentication(authentication.TokenAuthentication):  # type: ignore[misc]  # the package has no types
    """Authenticate by ``Authorization: Token ...`` with a string from ``Token.objects.issue()``: two GetItems."""

    model = Token

    def authenticate_credentials(self, key: str) -> tuple[Any, Token]:
        """Return the user and the token; raise ``AuthenticationFailed`` if there is no valid token."""
        token = Token.objects.of_text(key)
        try:
            user = None if token is None else token.user
        except ObjectDoesNotExist:
            user = None
        if token is None or user is None or not user.is_active:
            # The same message for all cases, so that nobody learns which users exist.
            raise AuthenticationFailed(_("Invalid token."))
        return user, token
