"""Signatures of cache entries: only what somebody wrote who knows ``SECRET_KEY`` is unpickled.

A signature is an HMAC of the entry's key, of its write and of the whole pickled value, so that no value can be put
under another key. It does not cover how long the entry is valid, which ``touch()`` changes; integers, to which DynamoDB
adds, have none. Values only: this module sends nothing.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from hashlib import sha256
from typing import Final

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from dynamo_single.orm.conditions.terms import Condition, Stored
from dynamo_single.orm.requests.actions import Item
from dynamo_single.table.items import AttributeValue

SIGNER: Final = "signer"
SIGNATURE: Final = "signature"


def signed(said: str, pickled: bytes) -> AttributeValue:
    """The attributes that sign a value; ``said`` is what else has to stay as it is."""
    secret = settings.SECRET_KEY
    return {SIGNER: {"S": _signer(secret)}, SIGNATURE: {"B": _signature(secret, said, pickled)}}


def is_genuine(head: Item, said: str, pickled: bytes) -> bool:
    """Whether ``SECRET_KEY``, or one of ``SECRET_KEY_FALLBACKS``, signed this value."""
    signer = head.get(SIGNER, {}).get("S")
    signature = bytes(head.get(SIGNATURE, {}).get("B", b""))
    return any(
        _signer(secret) == signer and constant_time_compare(_signature(secret, said, pickled), signature)
        for secret in _secrets()
    )


def has_signer() -> Condition:
    """The condition that an entry says that it was signed with one of the keys that count now."""
    return Stored(SIGNER, "in", tuple({"S": _signer(secret)} for secret in _secrets()))


def _secrets() -> tuple[str | bytes, ...]:
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@lru_cache(maxsize=32)
def _signer(secret: str | bytes) -> str:
    """Tells keys apart and tells nothing of them."""
    return salted_hmac("dynamo_single.cache.signer", "", secret, algorithm="sha256").hexdigest()[:16]


@lru_cache(maxsize=32)
def _key(secret: str | bytes) -> bytes:
    return salted_hmac("dynamo_single.cache", "", secret, algorithm="sha256").digest()


def _signature(secret: str | bytes, said: str, pickled: bytes) -> bytes:
    spoken = said.encode()
    return hmac.new(_key(secret), b"%d:%s%s" % (len(spoken), spoken, pickled), sha256).digest()
