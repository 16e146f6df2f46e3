"""Accounts elsewhere as a way to log in: what an OAuth or OpenID Connect library has verified leads to a user here.

The library talks to the provider and checks what it says; this module decides whose account it is. It is linked by
somebody who is logged in, or by an e-mail address that is confirmed on both sides, and by nothing else.
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
    """Nobody here has the account, and nothing says whose it is: the user is to log in first, and to link it then."""


def log_in(request: HttpRequest, provider: str, claims: Mapping[str, object]) -> AbstractUser:
    """Log in whoever an account of a provider belongs to, or link it; the user.

    ``claims`` are those of an ID token that the library has **verified**, or made of what the provider's API says:
    ``sub``, and if they are there ``iss``, ``email`` and ``email_verified``. Two GetItems, and what Django writes.

    - Who is logged in already links the account: one transaction more. ``UniqueViolation`` if it is another user's.
    - An account that nobody has is linked to the user whose confirmed address the provider has confirmed too.
    - Anything else is ``NotLinked``, and so is a user who may not log in, as the backend of the settings says.
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
        logger.info("A login by %s was refused: user %s may not log in.", provider, user.pk)
        raise NotLinked
    if not request.user.is_authenticated:
        login(request, user, backend=path)
    return user


def checked(provider: str, claims: Mapping[str, Any]) -> str:
    """The subject, of a provider that people log in with and that the claims are from; else ``InvalidValue``."""
    refuse_unused(provider, elsewhere=True)
    issuer, said = account_settings().providers[provider], claims.get("iss")
    # Google leaves out the scheme at times.
    if issuer is not None and said not in (issuer, issuer.removeprefix("https://")):
        raise InvalidValue(f"These claims are from {said!r}, and {provider!r} is {issuer!r}.")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise InvalidValue("The claims have no sub, which identifies the account.")
    return subject


def _backend() -> tuple[str, EmailOrUsernameBackend]:
    """The backend that the settings name, this app's or one derived from it: sessions of any other are nobody's."""
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
    """The active user of an address that the provider has confirmed, and the user here too: two GetItems.

    For a further address, or nobody's, a GetItem, a Query and a GetItem.
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
