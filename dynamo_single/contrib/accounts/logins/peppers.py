"""Hash secrets that are short enough to be guessed, such as PINs, with a key that is not in the table.

From its hash alone a PIN of six digits is found by a million attempts. Here an HMAC comes before Django's hasher, so
that neither the table nor a backup of it is enough to try them. The HMAC covers the user and the kind, so that a hash
that is copied to another user opens nothing. The stored text is ``peppered$<id of the key>$<Django's hash>``; a hash
without a key, from before, stays valid. This module sends no requests and must not depend on the models.
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
    """Return the text to store for a secret: one password hash. ``about`` names the user and the kind."""
    key = next(_keys())
    return f"{_MARKER}${_id_of(key)}${make_password(_keyed(key, about, raw))}"


@sensitive_variables("raw", "typed", "keys")
def is_right(about: str, raw: str, stored: str, renew: Callable[[str], None]) -> bool:
    """Return whether ``raw`` is the secret that was stored: one password hash, whatever is wrong.

    ``renew`` is called with the text to store instead if the secret is right, and its key or hasher is not the current
    one; that is one hash more. If it raises an error of the database, a warning is logged, and the secret stays right:
    the next call renews it.
    """
    keys = {_id_of(key): key for key in _keys()}
    key_id, encoded = _parted(stored)
    typed = raw
    if key_id is not None and key_id in keys:
        typed = _keyed(keys[key_id], about, raw)
    elif key_id is not None:
        encoded = stored  # no hasher reads it, so that Django spends the time of one hash
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
        return  # Another process changed the secret first, and that one stays.
    except (DatabaseError, InvalidValue) as error:
        # The error's own text may contain values of the user.
        logger.warning(
            "Cannot renew the hash of a secret of %s: %s. The secret stays valid, and the next login renews its hash.",
            about,
            type(error).__name__,
        )


def _keys() -> Iterator[str | bytes]:
    """Yield the key that peppers what is written, and the others by which stored hashes are checked."""
    own = account_settings()
    if own.pepper_key is not None:
        yield own.pepper_key
    else:
        yield settings.SECRET_KEY
    yield from (*own.pepper_key_fallbacks, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def _parted(stored: str) -> tuple[str | None, str]:
    """Return the id of the key and Django's hash; ``None`` as the id of a hash that has no key."""
    marker, _, rest = stored.partition("$")
    if marker != _MARKER:
        return None, stored
    key_id, _, encoded = rest.partition("$")
    return key_id, encoded


@lru_cache(maxsize=32)
def _id_of(key: str | bytes) -> str:
    """Return what tells keys apart and reveals nothing of them."""
    return salted_hmac(f"{_SALT}.id", "", key, algorithm="sha256").hexdigest()[:16]


def _keyed(key: str | bytes, about: str, raw: str) -> str:
    return salted_hmac(_SALT, f"{len(about)}:{about}{raw}", key, algorithm="sha256").hexdigest()
