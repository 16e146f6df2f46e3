"""What users log in with: the kinds of identifiers, and the attribute that each one is.

It knows no models, so that the models and their managers can both use it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from dynamo_single.contrib.accounts import conf
from dynamo_single.exceptions import InvalidValue

#: The kinds of identifiers that follow from the user's own attributes, and the attribute that each one is.
EMAIL = "EMAIL"
USERNAME = "USERNAME"
PHONE = "PHONE"
ATTRIBUTES = {EMAIL: "email", USERNAME: "username", PHONE: "phone"}
#: The attribute that has the hash of a kind's own secret, for the kinds that can have one.
SECRETS = {USERNAME: "username_secret", PHONE: "phone_secret", EMAIL: "email_secret"}


def member_of(provider: str, subject: str) -> str:
    """How a user holds an account elsewhere."""
    return f"{provider}#{subject}"


def parted(member: str) -> tuple[str, str]:
    """The provider and the subject of what a user holds."""
    provider, _, subject = member.partition("#")
    return provider, subject


def read(typed: str) -> tuple[str, str]:
    """What kind of identifier somebody typed, and how it is stored. Sends nothing.

    No text is of two kinds: what has an ``@`` is an e-mail address, what reads as a telephone number is one where these
    are a way to log in, and anything else is a user name.
    """
    if "@" in typed:
        return EMAIL, typed
    number = phone_of(typed)
    return (USERNAME, typed) if number is None else (PHONE, number)


def phone_of(typed: str) -> str | None:
    """A telephone number as it is stored; ``None`` for anything else, and where nobody logs in with one."""
    settings = conf.account_settings()
    if conf.PHONE not in settings.login_with:
        return None
    found: str | None = _phones().normal(typed, settings.phone_region)
    return found


def numbers_begin_with() -> str:
    """What a text begins with that reads as a telephone number, where people log in with these."""
    found: str = _phones().beginnings(conf.account_settings().phone_region)
    return found


def _phones() -> Any:
    # Not every project has the library that knows the world's numbers.
    return import_module("dynamo_single.contrib.accounts.logins.phones")


def refuse_unused(kind: str, *, elsewhere: bool = False) -> None:
    """Raise ``InvalidValue`` for what ``LOGIN_WITH`` does not have; with ``elsewhere`` also for what is no provider."""
    settings = conf.account_settings()
    if kind not in settings.login_with or (elsewhere and kind not in settings.providers):
        raise InvalidValue(f"Logins with {kind!r} are disabled: ACCOUNTS['LOGIN_WITH'] does not contain it.")


class Identified(Protocol):
    """Somebody who is known by identifiers."""

    def has_identifier(self, kind: str, identifier: str) -> bool:
        """Whether the identifier of this kind is theirs, whatever its case."""


class Identifying(Protocol):
    """A way to log in: whose it is, and what is typed."""

    user_id: str
    identifier: str
