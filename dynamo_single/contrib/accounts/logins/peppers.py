"""Hash secrets that are short enough to be guessed, such as PINs, with a key that is not in the table.

An attacker who has only the hash of a six-digit PIN needs at most a million attempts to find the PIN. Therefore an HMAC
with a key runs before Django's hasher: without the key, the table or a backup is not enough to try PINs. The HMAC
includes the user and the kind, so a hash that was copied to another user is not valid. The stored string is
``peppered$<id of the key>$<Django's hash>``. Older hashes without a key remain valid. This module does not send
requests and must not depend on the models.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.db import DatabaseError
from django.utils.crypto import salted_hmac
from django.views.decorators.debug import sensitive_variables

from dynamo_single.contrib.accounts.conf import account_settings
from dynamo_single.exceptions import ConditionNotMet, InvalidValue, StaleObject

logger = logging.getLogger("accounts")

_MARKER: Final = "peppered"
_SALT: Final = "accounts.peppers"


@sensitive_variables("raw", "key")
def hashed(about: str, raw: str) -> str:
    """Return the string to store for a secret: one password hash. ``about`` names the user and the kind."""
    key = next(_keys())
    return f"{_MARKER}${_id_of(key)}${make_password(_keyed(key, about, raw))}"


@sensitive_variables("raw", "typed", "keys")
def is_right(about: str, raw: str, stored: str, renew: Callable[[str], None]) -> bool:
    """Return whether ``raw`` is the stored secret: one password hash, also if the secret or its key is wrong.

    If the secret is right but its key or hasher is outdated, computes one more hash and passes the new string to
    ``renew``. If ``renew`` raises a database error, logs a warning and still returns ``True``; the next call renews the
    hash.
    """
    keys = {_id_of(key): key for key in _keys()}
    key_id, encoded = _parted(stored)
    typed = raw
    if key_id is not None and key_id in keys:
        typed = _keyed(keys[key_id], about, raw)
    elif key_id is not None:
        encoded = stored  # no hasher reads it, so Django takes the time of one hash
        logger.error(
            "Cannot check a secret of %s: the key %s that peppers it is not in the settings. Add the former key to "
            "ACCOUNTS['PEPPER_KEY_FALLBACKS'] or SECRET_KEY_FALLBACKS, or let the user set the secret again.",
            about,
            key_id,
        )
    outdated: list[str] = []
    if not check_password(typed, encoded, outdated.append):
        return False
    if outdated or key_id != next(iter(keys)):
        _renewed(about, renew, hashed(about, raw))
    return True


@sensitive_variables("text")
def _renewed(about: str, renew: Callable[[str], None], text: str) -> None:
    try:
        renew(text)
    except (ConditionNotMet, StaleObject):
        return  # Another process changed the secret first, and its secret stays.
    except (DatabaseError, InvalidValue) as error:
        # The error message can contain values of the user.
        logger.warning(
            "Cannot renew the hash of a secret of %s: %s. The secret stays valid, and the next login renews its hash.",
            about,
            type(error).__name__,
        )


def _keys() -> Iterator[str | bytes]:
    """Yield the key for new hashes first, then the former keys of stored hashes."""
    own = account_settings()
    if own.pepper_key is not None:
        yield own.pepper_key
    else:
        yield settings.SECRET_KEY
    yield from (*own.pepper_key_fallbacks, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def _parted(stored: str) -> tuple[str | None, str]:
    """Return the id of the key and Django's hash; the id is ``None`` for a hash without a key."""
    marker, _, rest = stored.partition("$")
    if marker != _MARKER:
        return None, stored
    key_id, _, encoded = rest.partition("$")
    return key_id, encoded


@lru_cache(maxsize=32)
def _id_of(key: str | bytes) -> str:
    """Return an id that distinguishes keys without revealing them."""
    return salted_hmac(f"{_SALT}.id", "", key, algorithm="sha256").hexdigest()[:16]


def _keyed(key: str | bytes, about: str, raw: str) -> str:
    return salted_hmac(_SALT, f"{len(about)}:{about}{raw}", key, algorithm="sha256").hexdigest()
