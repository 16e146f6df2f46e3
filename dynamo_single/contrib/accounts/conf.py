"""Read and validate the setting ``ACCOUNTS``: a frozen value, cached until the setting changes.

This module must not depend on users, requests or forms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec

from django.conf import settings
from django.core.signals import setting_changed
from msgspec import Struct, field

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.setting_values import BOOLEAN, POSITIVE, SECONDS, Reader, or_none, read_values

EMAIL = "email"
USERNAME = "username"
PHONE = "phone"
KINDS = (EMAIL, USERNAME, PHONE)
#: The kinds that can have a separate secret. A new password of the account removes all of them.
SECRET_KINDS = (PHONE, USERNAME, EMAIL)
#: The minimum length of a secret. The limits of ``lockout`` make it impractical to guess.
SHORTEST_SECRET = 6
#: The maximum length of a secret.
LONGEST_SECRET = 128
#: The built-in providers of external accounts, and the issuers of their ID tokens. GitHub does not issue ID tokens.
#: https://accounts.google.com/.well-known/openid-configuration
KNOWN_PROVIDERS: Mapping[str, str | None] = {"google": "https://accounts.google.com", "github": None}

_PROVIDER = re.compile(r"[a-z][a-z0-9_]{0,28}")
_REGION = re.compile(r"[A-Z]{2}")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class AccountSettings(Struct, frozen=True):
    """The keys of ``ACCOUNTS`` in lower case; delays and lifetimes are seconds."""

    login_with: tuple[str, ...] = (EMAIL, USERNAME)
    unconfirmed_may_log_in: bool = False
    confirmation_lifetime: float = 3 * 24 * 3600.0
    unconfirmed_lifetime: float | None = 7 * 24 * 3600.0
    lockout: bool = True
    free_failures: int = 5
    first_delay: float = 5.0
    longest_delay: float = 900.0
    account_failures: int = 50
    address_failures: int = 100
    mails_per_address: int | None = 5
    mails_per_client: int | None = 100
    client_address_header: str | None = None
    providers: Mapping[str, str | None] = field(default_factory=lambda: KNOWN_PROVIDERS)
    phone_region: str | None = None
    phone_sender: str | None = None
    pepper_key: str | None = None
    pepper_key_fallbacks: tuple[str, ...] = ()
    secrets: Mapping[str, int] = field(default_factory=dict)
    trusted_proxies: int = 1

    def __repr__(self) -> str:
        """Return a string without values: error reports show local variables, and the keys are secret."""
        return "AccountSettings(...)"


def account_settings() -> AccountSettings:
    """Return the values of ``ACCOUNTS``; raise ``ConfigurationError`` with the name of an invalid key."""
    return _read()


@lru_cache(maxsize=1)
def _read() -> AccountSettings:
    declared = getattr(settings, "ACCOUNTS", {})
    if not isinstance(declared, Mapping):
        raise ConfigurationError(
            f"ACCOUNTS must be a dict such as {{'LOGIN_WITH': ['{EMAIL}', '{USERNAME}']}}, not a "
            f"{type(declared).__name__}."
        )
    values = read_values(declared, _READERS, "ACCOUNTS[{!r}]".format, secret=_SECRET)
    found = AccountSettings(**values)
    unknown = [each for each in found.login_with if each not in KINDS and each not in found.providers]
    if unknown:
        raise ConfigurationError(
            f"ACCOUNTS['LOGIN_WITH'] contains {', '.join(map(repr, unknown))}, but allows only "
            f"{', '.join(map(repr, KINDS))}, and the providers {', '.join(map(repr, found.providers))}. Add other "
            "providers with their issuers to ACCOUNTS['PROVIDERS']."
        )
    if found.first_delay > found.longest_delay:
        raise ConfigurationError(
            f"ACCOUNTS['FIRST_DELAY'] is {found.first_delay:g} seconds, more than ACCOUNTS['LONGEST_DELAY'], which is "
            f"{found.longest_delay:g}."
        )
    unused = [each for each in found.secrets if each not in found.login_with]
    if unused:
        raise ConfigurationError(
            f"ACCOUNTS['SECRETS'] contains {', '.join(map(repr, unused))}, but ACCOUNTS['LOGIN_WITH'] does "
            "not allow logins with it."
        )
    if PHONE in found.login_with and find_spec("phonenumbers") is None:
        raise ConfigurationError(
            f"ACCOUNTS['LOGIN_WITH'] contains '{PHONE}', but the library that parses telephone numbers is not "
            "installed. Run pip install dynamo-single[phone]."
        )
    if found.unconfirmed_lifetime is not None and found.unconfirmed_lifetime < found.confirmation_lifetime:
        raise ConfigurationError(
            f"ACCOUNTS['UNCONFIRMED_LIFETIME'] is {found.unconfirmed_lifetime:g} seconds, less than "
            f"ACCOUNTS['CONFIRMATION_LIFETIME'], which is {found.confirmation_lifetime:g}."
        )
    return found


def _forget(*, setting: str, **_: object) -> None:
    if setting == "ACCOUNTS":
        _read.cache_clear()


setting_changed.connect(_forget, dispatch_uid="accounts.conf")


def _identifiers(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not value or len(set(value)) != len(value):
        raise ValueError
    if not all(isinstance(kind, str) for kind in value):
        raise ValueError
    return tuple(value)


def _providers(value: object) -> Mapping[str, str | None]:
    if not isinstance(value, Mapping) or not set(value).isdisjoint(KINDS):
        raise ValueError
    for name, issuer in value.items():
        if not (isinstance(name, str) and _PROVIDER.fullmatch(name)) or not isinstance(issuer, str | None):
            raise ValueError
    return {**KNOWN_PROVIDERS, **value}


def _key(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _keys(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError
    return tuple(map(_key, value))


def _secrets(value: object) -> Mapping[str, int]:
    if not isinstance(value, Mapping) or not set(value) <= {*SECRET_KINDS}:
        raise ValueError
    if not all(type(least) is int and SHORTEST_SECRET <= least <= LONGEST_SECRET for least in value.values()):
        raise ValueError
    return {**value}


def _region(value: object) -> str | None:
    if value is not None and not (isinstance(value, str) and _REGION.fullmatch(value)):
        raise ValueError
    return value


def _path(value: object) -> str | None:
    if value is not None and not (isinstance(value, str) and "." in value):
        raise ValueError
    return value


def _header(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _HEADER.fullmatch(value):
        raise ValueError
    return value


_READERS: dict[str, Reader] = {
    "ACCOUNT_FAILURES": POSITIVE,
    "ADDRESS_FAILURES": POSITIVE,
    "CLIENT_ADDRESS_HEADER": (_header, "None or a header's name such as 'X-Forwarded-For'"),
    "CONFIRMATION_LIFETIME": SECONDS,
    "FIRST_DELAY": SECONDS,
    "FREE_FAILURES": POSITIVE,
    "LOCKOUT": BOOLEAN,
    "LOGIN_WITH": (_identifiers, f"a list of some of {', '.join(map(repr, KINDS))} and providers"),
    "LONGEST_DELAY": SECONDS,
    "MAILS_PER_ADDRESS": or_none(POSITIVE),
    "MAILS_PER_CLIENT": or_none(POSITIVE),
    "PEPPER_KEY": or_none((_key, "a non-empty string")),
    "PEPPER_KEY_FALLBACKS": (_keys, "a list of former keys, each a non-empty string"),
    "PHONE_REGION": (_region, "None or the two letters of a country such as 'US'"),
    "PHONE_SENDER": (_path, "None or the path of a function such as 'mysite.sms.send'"),
    "PROVIDERS": (_providers, "a dict of names such as 'work' and their issuers such as 'https://login.example.com'"),
    "SECRETS": (
        _secrets,
        f"a dict of some of {', '.join(map(repr, SECRET_KINDS))} and the minimum length of the secret, "
        f"{SHORTEST_SECRET} to {LONGEST_SECRET}",
    ),
    "TRUSTED_PROXIES": POSITIVE,
    "UNCONFIRMED_LIFETIME": or_none(SECONDS),
    "UNCONFIRMED_MAY_LOG_IN": BOOLEAN,
}
#: The keys whose values must not appear in a message.
_SECRET = frozenset({"PEPPER_KEY", "PEPPER_KEY_FALLBACKS"})
