"""The kinds of identifiers that users log in with, and the user's attribute for each kind.

This module does not depend on models, so both the models and their managers can import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from dynamo_single.contrib.accounts import conf
from dynamo_single.exceptions import InvalidValue

#: The kinds of identifiers that are attributes of the user, and the name of each attribute.
EMAIL = "EMAIL"
USERNAME = "USERNAME"
PHONE = "PHONE"
ATTRIBUTES = {EMAIL: "email", USERNAME: "username", PHONE: "phone"}
#: The attribute with the hash of a kind's separate secret, for the kinds that can have a secret.
SECRETS = {USERNAME: "username_secret", PHONE: "phone_secret", EMAIL: "email_secret"}


def member_of(provider: str, subject: str) -> str:
    """Return the element of ``identities`` for an external account."""
    return f"{provider}#{subject}"


def parted(member: str) -> tuple[str, str]:
    """Return the provider and the subject of an element of ``identities``."""
    provider, _, subject = member.partition("#")
    return provider, subject


def read(typed: str) -> tuple[str, str]:
    """Return the kind of a typed identifier, and its stored value. Does not send a request.

    A string with an ``@`` is an e-mail address. A string that reads as a telephone number is a number if users can log
    in with numbers. Any other string is a user name.
    """
    if "@" in typed:
        return EMAIL, typed
    number = phone_of(typed)
    return (USERNAME, typed) if number is None else (PHONE, number)


def phone_of(typed: str) -> str | None:
    """Return the stored value of a telephone number.

    Returns ``None`` for any other string, or if users cannot log in with telephone numbers.
    """
    settings = conf.account_settings()
    if conf.PHONE not in settings.login_with:
        return None
    found: str | None = _phones().normal(typed, settings.phone_region)
    return found


def numbers_begin_with() -> str:
    """Return the characters with which a telephone number can begin; requires the ``phonenumbers`` library."""
    found: str = _phones().beginnings(conf.account_settings().phone_region)
    return found


def _phones() -> Any:
    # Not every project installs the library that parses telephone numbers.
    return import_module("dynamo_single.contrib.accounts.logins.phones")


def refuse_unused(kind: str, *, elsewhere: bool = False) -> None:
    """Raise ``InvalidValue`` if ``LOGIN_WITH`` does not contain the kind.

    With ``elsewhere``, the kind must also be a provider of external accounts.
    """
    settings = conf.account_settings()
    if kind not in settings.login_with or (elsewhere and kind not in settings.providers):
        raise InvalidValue(f"Logins with {kind!r} are disabled: ACCOUNTS['LOGIN_WITH'] does not contain it.")


class Identified(Protocol):
    """A user who has identifiers."""

    def has_identifier(self, kind: str, identifier: str) -> bool:
        """Return whether the user has this identifier of this kind, ignoring case."""


class Identifying(Protocol):
    """A login method: the user it belongs to, and the identifier that the user types."""

    user_id: str
    identifier: str
