"""Log in with external accounts: find the user for claims that an OAuth or OpenID Connect library has verified.

The library communicates with the provider and verifies the claims. This module decides which user has the account. An
account is linked only by a logged-in user, or by an e-mail address that is confirmed on both sides.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth import load_backend, login
from django.http import HttpRequest

from dynamo_single.contrib.accounts import ways
from dynamo_single.contrib.accounts.backends import EmailOrUsernameBackend
from dynamo_single.contrib.accounts.conf import account_settings
from dynamo_single.contrib.accounts.logins.identifiers import EMAIL, refuse_unused
from dynamo_single.contrib.accounts.models import AbstractUser, user_model
from dynamo_single.exceptions import ConfigurationError, InvalidValue, UniqueViolation

logger = logging.getLogger("accounts")


class NotLinked(Exception):
    """The external account does not belong to a user who can log in. The user has to log in first, then link it."""


def log_in(request: HttpRequest, provider: str, claims: Mapping[str, object]) -> AbstractUser:
    """Log in the user who has an external account, or link the account; return the user.

    ``claims`` are the claims of an ID token that the library has **verified**, or are built from the provider's API:
    ``sub``, and optionally ``iss``, ``email`` and ``email_verified``. Sends two GetItems and Django's writes.

    - If a user is already logged in, links the account: one more transaction. Raises ``UniqueViolation`` if another
      user has the account.
    - If no user has the account, links it to the user whose confirmed address the provider has verified too.
    - Raises ``NotLinked`` in any other case, and if the backend in the settings rejects the user.
    """
    subject = checked(provider, claims)
    path, backend = _backend()
    try:
        user: AbstractUser = user_model().objects.get_by_identity(provider, subject)
    except user_model().DoesNotExist:
        user = _linked(request, provider, subject, claims)
    else:
        if request.user.is_authenticated and request.user.pk != user.pk:
            label = user_model()._meta.label
            raise UniqueViolation(
                f"Another {label} has this account of {provider!r}.", label=label, field="identities", value=subject
            )
    if not backend.user_can_authenticate(user):
        logger.info("A login by %s was rejected: user %s may not log in.", provider, user.pk)
        raise NotLinked
    if not request.user.is_authenticated:
        login(request, user, backend=path)
    return user


def checked(provider: str, claims: Mapping[str, Any]) -> str:
    """Return the subject of the claims.

    Raises ``InvalidValue`` if ``LOGIN_WITH`` does not contain the provider, or the claims are from another issuer.
    """
    refuse_unused(provider, elsewhere=True)
    issuer, said = account_settings().providers[provider], claims.get("iss")
    # Google sometimes omits the scheme.
    if issuer is not None and said not in (issuer, issuer.removeprefix("https://")):
        raise InvalidValue(f"The issuer of the claims is {said!r}, but the issuer of {provider!r} is {issuer!r}.")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise InvalidValue("The claims do not contain sub, which identifies the account.")
    return subject


def _backend() -> tuple[str, EmailOrUsernameBackend]:
    """Return the path and the backend of this app or a subclass; other backends cannot load users of its sessions."""
    for path in settings.AUTHENTICATION_BACKENDS:
        backend = load_backend(path)
        if isinstance(backend, EmailOrUsernameBackend):
            return path, backend
    raise ConfigurationError(
        "No user can log in with an external account: AUTHENTICATION_BACKENDS does not name "
        "'dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend' or a class derived from it. Add it."
    )


def _linked(request: HttpRequest, provider: str, subject: str, claims: Mapping[str, object]) -> AbstractUser:
    user: Any = request.user
    if not user.is_authenticated:
        user = _holder(claims)
    if user is None:
        raise NotLinked
    ways.add_to(user, provider, subject)
    logger.info("An account of %s was linked to user %s.", provider, user.pk)
    found: AbstractUser = user
    return found


def _holder(claims: Mapping[str, object]) -> AbstractUser | None:
    """Return the active user with an address that both the provider and the user have confirmed: two GetItems.

    For an additional address or an address without a user, sends a GetItem, a Query and a GetItem.
    """
    address = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(address, str):
        return None
    try:
        user = user_model().objects.get_by_unique("email", address)
    except user_model().DoesNotExist:
        try:
            user = user_model().objects.get_by_login(EMAIL, address)
        except user_model().DoesNotExist:
            return None
    return user if user.is_active and user.has_confirmed(address) else None
