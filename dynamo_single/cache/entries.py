"""What the cache stores: the items of an entry, of its parts and of the generations, and when an entry counts.

An entry carries the number of the generation in which it was written. Clearing begins a higher generation, below which
no entry counts any more; nothing has to be deleted. Values only: this module sends nothing and must not know Django's
cache interface.
"""

from __future__ import annotations

import hmac
import math
import pickle
import secrets
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac
from msgspec import Struct

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue, ItemTooLarge
from dynamo_single.orm.conditions.terms import Condition, Not, Or, Stored, join
from dynamo_single.orm.requests.actions import ITEM_MISSING, Item, ItemKey, Put
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.requests.expressions import ExpressionBuilder
from dynamo_single.orm.schema.keys.codecs import codec_for
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import names
from dynamo_single.table.request import MAX_DIGITS, MAX_ITEM_SIZE, PARTITION_KEY_LIMIT, AttributeValue, Request

# Signatures of cache entries: only what somebody wrote who knows ``SECRET_KEY`` is unpickled.
#
# A signature is an HMAC of the entry's key, of its write and of the whole pickled value, so that no value can be put
# under another key. It does not cover how long the entry is valid, which ``touch()`` changes; integers, to which
# DynamoDB adds, have none. Values only: this module sends nothing.

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


# No model's class is called like these, so that no model's Scan takes them for its own.
ENTRY_TYPE = "Cache.Entry"
PART_TYPE = "Cache.Part"
GENERATIONS_TYPE = "Cache.Generations"

GENERATION = "generation"
VALID_UNTIL = "validUntil"
WRITE_ID = "writeId"
NUMBER = "number"
VALUE = "value"
PARTS = "parts"
#: The highest generation that was ever begun, of the whole cache or of one version.
LATEST = "latest"

ENTRY_PARTITION = "CACHE#{name}#{key}"
ENTRY_SORT_KEY = "#ENTRY"
GENERATIONS_PARTITION = "CACHE#{name}"
GENERATIONS_SORT_KEY = "#GENERATIONS"
PART_SORT_KEY = "#PART#{write_id}#{number}"
#: The templates of all keys of the cache; no model may have one that meets them.
KEYS = (
    (ENTRY_PARTITION, ENTRY_SORT_KEY),
    (ENTRY_PARTITION, PART_SORT_KEY),
    (GENERATIONS_PARTITION, GENERATIONS_SORT_KEY),
)

#: Integers below this count in DynamoDB's own numbers, which are exact to 38 digits.
NUMBER_LIMIT = 10**MAX_DIGITS
#: The most parts of an entry, which have numbers of five digits.
MAX_PARTS = 100_000
#: The bytes of one part: an item, less than what its keys and names may take.
PART_SIZE = MAX_ITEM_SIZE - 2 * PARTITION_KEY_LIMIT

_TEXTS = {"name": codec_for("text"), "key": codec_for("text")}
_ENTRY = Template.parse(ENTRY_PARTITION).bind(_TEXTS)
_GENERATIONS = Template.parse(GENERATIONS_PARTITION).bind(_TEXTS)
#: The longest name of an attribute in bytes (AWS: "Quotas in Amazon DynamoDB", attribute names).
_LONGEST_NAME = 255


class Entry(Struct, frozen=True):
    """A value as it is to be written; ``valid_until`` is epoch milliseconds, ``None`` for ever."""

    key: ItemKey
    generation: int
    value: Any
    valid_until: int | None

    def items(self, *, split: bool, signs: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The entry's item, and its parts if it is too large for one; ``ItemTooLarge`` unless ``split``."""
        head = {
            **_keyed(self.key, ENTRY_TYPE),
            GENERATION: {"N": str(self.generation)},
            WRITE_ID: {"S": secrets.token_hex(8)},
            **expiry(self.valid_until),
        }
        stored = _stored(self.value)
        if signs and VALUE in stored:
            head |= signed(_said(head), stored[VALUE]["B"])
        size = item_size({**head, **stored})
        if size <= MAX_ITEM_SIZE:
            return {**head, **stored}, []
        if not split:
            raise ItemTooLarge(
                f"The cache entry {self.key[0]!r} has {size} bytes; DynamoDB stores {MAX_ITEM_SIZE} in one item. Cache "
                'less, or set OPTIONS["LARGE_VALUES"] of this cache to "split", which stores it in several items.'
            )
        pickled = stored[VALUE]["B"]
        chunks = [pickled[start : start + PART_SIZE] for start in range(0, len(pickled), PART_SIZE)]
        head[PARTS] = {"N": str(len(chunks))}
        parts = [
            {**_keyed(key, PART_TYPE), VALUE: {"B": chunk}, **_time_to_live(self.valid_until)}
            for key, chunk in zip(part_keys(head), chunks, strict=True)
        ]
        return head, parts


def entry_key(name: str, key: str) -> ItemKey:
    """The key of an entry; ``InvalidValue`` if it is longer than DynamoDB takes."""
    return _ENTRY.render({"name": name, "key": key}, limit=PARTITION_KEY_LIMIT), ENTRY_SORT_KEY


def generations_key(name: str) -> ItemKey:
    """The key of the one item that says which generations a cache and its versions are in."""
    return _GENERATIONS.render({"name": name}, limit=PARTITION_KEY_LIMIT), GENERATIONS_SORT_KEY


class NotGenuine(Exception):
    """An entry's value is not what was signed; never leaves the cache."""


class Damaged(NotGenuine):
    """An item of the cache lacks an attribute, or has one of another type; never leaves the cache."""


def part_keys(head: Item) -> list[ItemKey]:
    """The keys of the parts of an entry: none if its value stands in the entry itself; ``Damaged`` if nobody knows."""
    if PARTS not in head:
        return []
    count, partition = _number(head, PARTS), head[names.PARTITION_KEY]["S"]
    write_id = head.get(WRITE_ID, {}).get("S")
    if write_id is None or not 0 < count <= MAX_PARTS:
        raise Damaged
    return [(partition, PART_SORT_KEY.format(write_id=write_id, number=f"{number:05d}")) for number in range(count)]


def generation_of(item: Item | None, version: int | None) -> int:
    """The generation that entries of a version are written in; nothing was ever cleared if there is no item.

    ``Damaged`` if the item does not say it.
    """
    said = (name for name in (GENERATION, _version_attribute(version)) if name in (item or {}))
    return max((_number(item or {}, name) for name in said), default=0)


def generation_begun(name: str) -> Put:
    """What replaces a damaged item of generations: all versions begin a generation that none of them had."""
    later = {"N": str(now() + 1)}
    return Put({**_keyed(generations_key(name), GENERATIONS_TYPE), GENERATION: later, LATEST: later})


def begin_generation(name: str, version: int | None = None) -> Request:
    """The request that begins another generation of one version, or of all of them."""
    attribute = GENERATION if version is None else _version_attribute(version)
    if len(attribute.encode()) > _LONGEST_NAME:
        raise InvalidValue(f"The version {version!r} is too long: its name would have over {_LONGEST_NAME} bytes.")
    builder = ExpressionBuilder()
    latest = builder.name(LATEST)
    # Counted from the time on, so that a cache whose generations were lost never begins one that it had before.
    following = f"if_not_exists({latest}, {builder.value({'N': str(now())})}) + {builder.value({'N': '1'})}"
    item_type = f"{builder.name(names.ITEM_TYPE)} = {builder.value({'S': GENERATIONS_TYPE})}"
    text = f"SET {latest} = {following}, {builder.name(attribute)} = {following}, {item_type}"
    key = item_key(generations_key(name))
    return Request("UpdateItem", {"Key": key, "UpdateExpression": text, **builder.params()})


def _version_attribute(version: int | None) -> str:
    return f"version:{version}"


def expiry(valid_until: int | None) -> dict[str, dict[str, str]]:
    """The attributes that say how long an entry is valid: exactly, and for DynamoDB's time to live."""
    return {} if valid_until is None else {VALID_UNTIL: {"N": str(valid_until)}, **_time_to_live(valid_until)}


def _time_to_live(valid_until: int | None) -> dict[str, dict[str, str]]:
    return {} if valid_until is None else {names.EXPIRES_AT: {"N": str(math.ceil(valid_until / 1000))}}


def now() -> int:
    """The time in epoch milliseconds."""
    return int(clock.timestamp() * 1000)


def is_live(generation: int, *, signs: bool) -> Condition:
    """The condition that an entry is of this generation or a later one, and valid; and signed, or a number.

    A damaged entry, which lacks what an entry needs or has it as another type, does not count.
    """
    ahead = Stored(VALID_UNTIL, ">", ({"N": str(now())},))
    current = Stored(GENERATION, ">=", ({"N": str(generation)},))
    valid = (current, _is(WRITE_ID, "S"), Or((Stored(VALID_UNTIL, "missing"), ahead)))
    other: Condition = Or((_is(VALUE, "B"), _is(PARTS, "N")))
    if signs:
        other = join((has_signer(), _is(SIGNATURE, "B"), other))
    return join((*valid, Or((_is(NUMBER, "N"), other))))


def _is(name: str, kind: str) -> Condition:
    """The condition that an attribute is there, and of one of DynamoDB's types."""
    return Stored(name, "type", ({"S": kind},))


def is_not_later(generation: int) -> Condition:
    """The condition that no entry of a later generation would be replaced; one that is damaged has none."""
    return Or((ITEM_MISSING, Not(_is(GENERATION, "N")), Stored(GENERATION, "<=", ({"N": str(generation)},))))


def countable(delta: int) -> Condition:
    """The condition that an entry is an integer which stays one when ``delta`` is added."""
    if delta < 0:
        return Stored(NUMBER, ">", ({"N": str(-NUMBER_LIMIT - delta)},))
    return Stored(NUMBER, "<", ({"N": str(NUMBER_LIMIT - delta)},))


def value_of(head: Item, parts: Iterable[Item] = (), *, signs: bool) -> object:
    """The value of an entry, with its parts in order if it has any.

    ``NotGenuine`` if nobody signed it, ``Damaged`` if it has none.
    """
    if NUMBER in head:
        return number_of(head)
    try:
        pieces: Sequence[Any] = [part[VALUE]["B"] for part in parts] if PARTS in head else [head[VALUE]["B"]]
    except KeyError as error:
        raise Damaged from error
    pickled = b"".join(map(bytes, pieces))
    if signs and not is_genuine(head, _said(head), pickled):
        raise NotGenuine
    return pickle.loads(pickled)  # noqa: S301 - signed, or the project trusts whoever may write into the table


def _said(head: Item) -> str:
    """What a signature covers beside the value: where the entry is, and which write made it."""
    return f"{head[names.PARTITION_KEY]['S']} {head[WRITE_ID]['S']}"


def number_of(head: Item) -> int:
    """The integer of an entry that is one; ``Damaged`` if it is none."""
    return _number(head, NUMBER)


def _number(item: Item, name: str) -> int:
    try:
        return int(item[name]["N"])
    except (KeyError, ValueError) as error:
        raise Damaged from error


def _stored(value: object) -> dict[str, Any]:
    # Not True and False, which are integers to Python and would come back as 1 and 0.
    if type(value) is int and abs(value) < NUMBER_LIMIT:
        return {NUMBER: {"N": str(value)}}
    return {VALUE: {"B": pickle.dumps(value, pickle.HIGHEST_PROTOCOL)}}


def _keyed(key: ItemKey, item_type: str) -> dict[str, dict[str, str]]:
    return {names.PARTITION_KEY: {"S": key[0]}, names.SORT_KEY: {"S": key[1]}, names.ITEM_TYPE: {"S": item_type}}
