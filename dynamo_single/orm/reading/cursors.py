"""Cursors: positions in the order of one query, as strings for URLs.

Django's signer signs a cursor, which belongs to its query and the model's keys. The app also encrypts it, because its
position may belong to an item outside the query, and keys may contain private values. Other modules encrypt their own
values the same way. This module does not send requests or depend on models.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core import signing
from django.utils.crypto import salted_hmac
from msgspec import Struct

from dynamo_single.exceptions import InvalidCursor
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.plan.plan import KeyCondition, Plan
from dynamo_single.orm.reading.positions import Position
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import MAX_SHARDS, shard_suffix
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import aead
else:
    aead = LazyModule("cryptography.hazmat.primitives.ciphers.aead")

SALT = "dynamo_single.cursors"
BEGIN_AGAIN = "Start again without a cursor."

#: The position after all shards, whatever their number is.
_END = -1
#: The number of characters of an invalid cursor that a message repeats.
_SHOWN = 20


class Cursor(Struct, frozen=True):
    """The page that begins after a position, or if it is ``backward`` the page that ends before it.

    ``finished`` contains the shards without further items in that direction.
    """

    position: Position
    backward: bool = False
    finished: frozenset[int] = frozenset()


def encode(cursor: Cursor, plan: Plan) -> str:
    """Return a cursor of a plan as a string, which is always the same for one ``SECRET_KEY``."""
    position = cursor.position
    place: list[Any] = [position.stream, position.sort, position.key, position.values]
    if plan.is_sharded:
        # The number of shards may grow before the cursor comes back, and these numbers do not change then.
        lasting = _lasting(plan)
        place[0] = lasting[position.stream] if position.stream < len(lasting) else _END
        place.append(f"{sum(1 << lasting[stream] for stream in cursor.finished):x}")
    return encrypt_value([*_fingerprint(plan), int(cursor.backward), *place])


def decode(text: str, plan: Plan) -> Cursor:
    """Return the cursor of a string; raises ``InvalidCursor`` if it is of another query or of another site."""
    label, keys, query, backward, stream, sort, key, values, *finished = decrypt_value(text)
    ours = _fingerprint(plan)
    if label != ours[0]:
        raise InvalidCursor(f"This cursor is for objects of {label}, not of {ours[0]}. {BEGIN_AGAIN}")
    if query != ours[2]:
        raise InvalidCursor(
            f"This cursor of {label} belongs to a different query. Use it with the same filters, values, "
            f"order and manager. {BEGIN_AGAIN}"
        )
    if keys != ours[1]:
        raise InvalidCursor(
            f"The keys of {label} for this query have changed since the cursor was created. {BEGIN_AGAIN}"
        )
    streams: frozenset[int] = frozenset()
    if plan.is_sharded:
        lasting = _lasting(plan)
        if stream != _END and stream not in lasting:
            raise InvalidCursor(f"This cursor of {label} belongs to shards that are no longer recorded. {BEGIN_AGAIN}")
        stream = len(lasting) if stream == _END else lasting.index(stream)
        done = int(finished[0], 16)
        streams = frozenset(number for number, each in enumerate(lasting) if done >> each & 1)
    return Cursor(Position(stream, sort, (key[0], key[1]) if key else None, tuple(values)), bool(backward), streams)


def _lasting(plan: Plan) -> list[int]:
    """Return a number for each stream of a plan of shards, which does not change if there are more shards."""
    partitions = dict.fromkeys(_whole(condition) for condition in plan.conditions)
    places = {partition: number for number, partition in enumerate(partitions)}
    return [places[_whole(each)] * (MAX_SHARDS + 1) + each.place for each in plan.conditions]


def _whole(condition: KeyCondition) -> str:
    """Return the partition that a shard is a part of."""
    return condition.partition.removesuffix(shard_suffix(condition.place))


def _fingerprint(plan: Plan) -> tuple[str, str, str]:
    """Return the binding of a cursor: the model, its keys and the query, without the expiry time of items."""
    query = plan.query
    # A rename may have ended since the planning of the query: the plan of the next page uses the current names.
    layout = registry.layout_of(registry.model_of(query.layout)) if query.layout.twins else query.layout
    asked = (
        lower(query.where, layout),
        [(order.attribute, order.descending) for order in query.ordering],
        query.visibility,
        query.using_index,
        query.without,
        plan.forward,
    )
    return plan.layout.label, _digest(_way(plan, layout)), _digest(asked)


def _way(plan: Plan, layout: ModelLayout, *, within: bool = False) -> tuple[object, ...]:
    """Return how a plan is read. The number of shards may grow, except ``within`` a union, which numbers them."""
    conditions = [(each.partition, each.operator, each.operands) for each in plan.conditions]
    if plan.is_sharded and not within:
        conditions = list(dict.fromkeys((_whole(each), each.operator, each.operands) for each in plan.conditions))
    parts = [_way(part, layout, within=True) for part in plan.parts]
    return plan.kind, plan.merge, list(_key(plan.key, layout)), conditions, plan.keys, parts


def _key(key: AccessKey | None, layout: ModelLayout) -> Iterator[object]:
    if key is None:
        return
    yield key.name, key.index, key.partition.source, key.sort.source
    for name in key.variables:
        info = layout.attributes[name]
        yield info.stored, info.type, info.kind


def _digest(value: object) -> str:
    return signing.b64_encode(hashlib.sha256(repr(value).encode()).digest()[:12]).decode()


def _signer(secret: str | bytes, salt: str) -> signing.Signer:
    # A full stop needs no escaping in an address.
    return signing.Signer(key=secret, sep=".", salt=salt, fallback_keys=[])


def encrypt_value(value: list[object], salt: str = SALT) -> str:
    """Return a JSON value encrypted and signed for one ``salt``; an equal value gives an equal string."""
    data = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    secret = settings.SECRET_KEY
    return _signer(secret, salt).sign(signing.b64_encode(_seal(zlib.compress(data.encode(), 9), secret)).decode())


def decrypt_value(text: object, salt: str = SALT) -> list[Any]:
    """Return the value of a string of ``encrypt_value()``; raises ``InvalidCursor`` for any other string."""
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            # Python can compare only ASCII strings with a signature.
            sealed = _signer(secret, salt).unsign(text if isinstance(text, str) and text.isascii() else "")
        except signing.BadSignature:
            continue
        found: list[Any] = json.loads(zlib.decompress(_unseal(signing.b64_decode(sealed.encode()), secret)))
        return found
    shown = repr(text if len(str(text)) <= _SHOWN else f"{str(text)[:_SHOWN]}...")
    raise InvalidCursor(
        f"{shown} is not a cursor of this site: someone changed it, made it up, or signed it with another "
        f"SECRET_KEY. {BEGIN_AGAIN}"
    )


def _seal(data: bytes, secret: str | bytes) -> bytes:
    """Encrypt without a nonce, so that equal data gives equal bytes (AES-SIV, RFC 5297)."""
    return _cipher(secret).encrypt(data, None)


def _unseal(sealed: bytes, secret: str | bytes) -> bytes:
    return _cipher(secret).decrypt(sealed, None)


def _cipher(secret: str | bytes) -> aead.AESSIV:
    return aead.AESSIV(salted_hmac(f"{SALT}.cipher", b"key", secret=secret, algorithm="sha512").digest())
