"""The system checks of accounts.

``check --deploy`` reports mistakes that matter only in production, and ``check --database`` also reads stored users.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning

from dynamo_single.contrib.accounts.conf import PHONE, account_settings
from dynamo_single.contrib.accounts.logins.identifiers import numbers_begin_with, phone_of
from dynamo_single.contrib.accounts.models import user_model

#: The maximum number of names in a message.
_SHOWN = 5
#: The limits of Django's security.W009 for SECRET_KEY.
_LEAST_LENGTH, _LEAST_CHARACTERS, _INSECURE = 50, 5, "django-insecure-"


def check_client_address(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """Return W001 if the client address is counted, and the settings do not define which header contains it."""
    found = account_settings()
    counts = found.lockout or found.mails_per_client is not None
    if not counts or "CLIENT_ADDRESS_HEADER" in getattr(settings, "ACCOUNTS", {}):
        return []
    return [
        Warning(
            "Failed logins and e-mails are counted by the connection's address. Behind a proxy or a Unix "
            "socket all visitors have the same address, so an attacker who guesses a user's password locks "
            "out this user.",
            hint="Set ACCOUNTS['CLIENT_ADDRESS_HEADER'] to the header that your proxy sets, or to None if visitors "
            "connect to Django directly.",
            id="accounts.W001",
        )
    ]


def check_phone_sender(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """Return W003 if users can log in with telephone numbers, and ``PHONE_SENDER`` is not set. Sends no request."""
    found = account_settings()
    if PHONE not in found.login_with or found.phone_sender is not None:
        return []
    return [
        Warning(
            f"ACCOUNTS['LOGIN_WITH'] contains '{PHONE}', but ACCOUNTS['PHONE_SENDER'] is not set: users cannot "
            "confirm a number, so the page to add one does not exist.",
            hint=(
                "Set ACCOUNTS['PHONE_SENDER'] to the path of a function that sends an SMS to a number, "
                "or silence this check if only your own code adds numbers."
            ),
            id="accounts.W003",
        )
    ]


def check_pepper_key(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """Return W004 for a weak key of ``peppers``; Django's security.W009 checks ``SECRET_KEY``."""
    found = account_settings()
    own = () if found.pepper_key is None else (found.pepper_key,)
    keys = {"PEPPER_KEY": own, "PEPPER_KEY_FALLBACKS": found.pepper_key_fallbacks}
    weak = [name for name, values in keys.items() if any(map(_is_weak, values))]
    return [
        Warning(
            f"ACCOUNTS['{name}'] has a weak key: it has fewer than {_LEAST_LENGTH} characters or {_LEAST_CHARACTERS} "
            f"different ones, or begins with '{_INSECURE}'. Anyone who has the table and guesses the key can try all "
            "short secrets.",
            hint='Generate a key with `python -c "import secrets; print(secrets.token_urlsafe(50))"`. Keep the former '
            "one in PEPPER_KEY_FALLBACKS until users have logged in.",
            id="accounts.W004",
        )
        for name in weak
        if found.secrets
    ]


def _is_weak(key: str) -> bool:
    return len(key) < _LEAST_LENGTH or len(set(key)) < _LEAST_CHARACTERS or key.startswith(_INSECURE)


def check_names(
    app_configs: Sequence[AppConfig] | None = None, databases: Sequence[str] | None = None, **kwargs: object
) -> list[CheckMessage]:
    """Return W002 for user names that are telephone numbers; their users cannot log in with them.

    Sends one Query for each character with which a number can begin, and for each further megabyte of users: at least
    4 Queries (plus signs and parentheses), or 24 with ``PHONE_REGION`` (digits too).
    """
    if not databases or PHONE not in account_settings().login_with:
        return []
    found = [
        user.username
        for first in numbers_begin_with()
        for user in user_model().objects.filter(username__startswith=first).iterator()
        if phone_of(user.username) is not None
    ]
    if not found:
        return []
    shown = ", ".join(map(repr, found[:_SHOWN])) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    return [
        Warning(
            f"{len(found)} user names look like telephone numbers: {shown}. A typed number finds a user only "
            "by the number, so that a name cannot imitate it, and these users cannot log in by name.",
            hint="Give them other names, and notify them.",
            id="accounts.W002",
        )
    ]
