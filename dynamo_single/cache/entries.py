"""The stored items of the cache: entries, their parts, and generations.

An entry contains the number of its generation. Clearing the cache starts a higher generation, and the cache ignores
entries of lower generations, so it does not need to delete them.

The cache signs entries, and unpickles only signed values. The signature is an HMAC with ``SECRET_KEY`` of the entry's
key, of its write and of the complete pickled value, so no one can move a value to another key. It does not cover the
time of expiry, which ``touch()`` changes. Integers, to which DynamoDB adds, have no signature.

This module sends no requests, and must not depend on Django's cache interface.
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

SIGNER: Final = "signer"
SIGNATURE: Final = "signature"


def signed(said: str, pickled: bytes) -> AttributeValue:
    """Return the attributes that sign a value; ``said`` is the other text that must not change."""
    secret = settings.SECRET_KEY
    return {SIGNER: {"S": _signer(secret)}, SIGNATURE: {"B": _signature(secret, said, pickled)}}


def is_genuine(head: Item, said: str, pickled: bytes) -> bool:
    """Return whether ``SECRET_KEY`` or one of ``SECRET_KEY_FALLBACKS`` signed this value."""
    signer = head.get(SIGNER, {}).get("S")
    signature = bytes(head.get(SIGNATURE, {}).get("B", b""))
    return any(
        _signer(secret) == signer and constant_time_compare(_signature(secret, said, pickled), signature)
        for secret in _secrets()
    )


def has_signer() -> Condition:
    """Return the condition that an entry has a signature of a current key."""
    return Stored(SIGNER, "in", tuple({"S": _signer(secret)} for secret in _secrets()))


def _secrets() -> tuple[str | bytes, ...]:
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


@lru_cache(maxsize=32)
def _signer(secret: str | bytes) -> str:
    """Return an identifier of a key that does not reveal the key."""
    return salted_hmac("dynamo_single.cache.signer", "", secret, algorithm="sha256").hexdigest()[:16]


@lru_cache(maxsize=32)
def _key(secret: str | bytes) -> bytes:
    return salted_hmac("dynamo_single.cache", "", secret, algorithm="sha256").digest()


def _signature(secret: str | bytes, said: str, pickled: bytes) -> bytes:
    spoken = said.encode()
    return hmac.new(_key(secret), b"%d:%s%s" % (len(spoken), spoken, pickled), sha256).digest()


# No model's class has such a name, so that no model's Scan reads these items as its own.
ENTRY_TYPE = "Cache.Entry"
PART_TYPE = "Cache.Part"
GENERATIONS_TYPE = "Cache.Generations"

GENERATION = "generation"
VALID_UNTIL = "validUntil"
WRITE_ID = "writeId"
NUMBER = "number"
VALUE = "value"
PARTS = "parts"
#: The highest generation, for the whole cache or for one version.
LATEST = "latest"

ENTRY_PARTITION = "CACHE#{name}#{key}"
ENTRY_SORT_KEY = "#ENTRY"
GENERATIONS_PARTITION = "CACHE#{name}"
GENERATIONS_SORT_KEY = "#GENERATIONS"
PART_SORT_KEY = "#PART#{write_id}#{number}"
#: The templates of all keys of the cache. A model must not have keys that match them.
KEYS = (
    (ENTRY_PARTITION, ENTRY_SORT_KEY),
    (ENTRY_PARTITION, PART_SORT_KEY),
    (GENERATIONS_PARTITION, GENERATIONS_SORT_KEY),
)

#: The cache stores integers below this limit as DynamoDB numbers, which are exact to 38 digits.
NUMBER_LIMIT = 10**MAX_DIGITS
#: The most parts of an entry. Their numbers have five digits.
MAX_PARTS = 100_000
#: The bytes of one part: the largest item minus space for its keys and names.
PART_SIZE = MAX_ITEM_SIZE - 2 * PARTITION_KEY_LIMIT

_TEXTS = {"name": codec_for("text"), "key": codec_for("text")}
_ENTRY = Template.parse(ENTRY_PARTITION).bind(_TEXTS)
_GENERATIONS = Template.parse(GENERATIONS_PARTITION).bind(_TEXTS)
#: The most bytes of an attribute's name (AWS developer guide, "Quotas in Amazon DynamoDB", attribute names).
_LONGEST_NAME = 255


class Entry(Struct, frozen=True):
    """A value to write; ``valid_until`` is in epoch milliseconds, or ``None`` for no expiry."""

    key: ItemKey
    generation: int
    value: Any
    valid_until: int | None

    def items(self, *, split: bool, signs: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the entry's item and the parts of a large value; raise ``ItemTooLarge`` if it must not be split."""
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
    """Return the key of an entry; raise ``InvalidValue`` if it is too long for DynamoDB."""
    return _ENTRY.render({"name": name, "key": key}, limit=PARTITION_KEY_LIMIT), ENTRY_SORT_KEY


def generations_key(name: str) -> ItemKey:
    """Return the key of the item that contains the generations of a cache and of its versions."""
    return _GENERATIONS.render({"name": name}, limit=PARTITION_KEY_LIMIT), GENERATIONS_SORT_KEY


class NotGenuine(Exception):
    """An entry's value does not match its signature. This exception stays inside the cache."""


class Damaged(NotGenuine):
    """An item of the cache lacks an attribute, or has one of another type. This exception stays inside the cache."""


def part_keys(head: Item) -> list[ItemKey]:
    """Return the keys of an entry's parts, none if the entry contains the value; raise ``Damaged`` if unknown."""
    if PARTS not in head:
        return []
    count, partition = _number(head, PARTS), head[names.PARTITION_KEY]["S"]
    write_id = head.get(WRITE_ID, {}).get("S")
    if write_id is None or not 0 < count <= MAX_PARTS:
        raise Damaged
    return [(partition, PART_SORT_KEY.format(write_id=write_id, number=f"{number:05d}")) for number in range(count)]


def generation_of(item: Item | None, version: int | None) -> int:
    """Return the generation in which entries of a version are written: 0 if the cache was never cleared.

    Raises ``Damaged`` if the item cannot be read.
    """
    said = (name for name in (GENERATION, _version_attribute(version)) if name in (item or {}))
    return max((_number(item or {}, name) for name in said), default=0)


def generation_begun(name: str) -> Put:
    """Return the item that replaces a damaged item of generations. It starts a new generation for all versions."""
    later = {"N": str(now() + 1)}
    return Put({**_keyed(generations_key(name), GENERATIONS_TYPE), GENERATION: later, LATEST: later})


def begin_generation(name: str, version: int | None = None) -> Request:
    """Return the request that starts a new generation of one version, or of all versions."""
    attribute = GENERATION if version is None else _version_attribute(version)
    if len(attribute.encode()) > _LONGEST_NAME:
        raise InvalidValue(f"The version {version!r} is too long: its name would have over {_LONGEST_NAME} bytes.")
    builder = ExpressionBuilder()
    latest = builder.name(LATEST)
    # Generations count from the current time, so that a cache whose generations were lost never reuses one.
    following = f"if_not_exists({latest}, {builder.value({'N': str(now())})}) + {builder.value({'N': '1'})}"
    item_type = f"{builder.name(names.ITEM_TYPE)} = {builder.value({'S': GENERATIONS_TYPE})}"
    text = f"SET {latest} = {following}, {builder.name(attribute)} = {following}, {item_type}"
    key = item_key(generations_key(name))
    return Request("UpdateItem", {"Key": key, "UpdateExpression": text, **builder.params()})


def _version_attribute(version: int | None) -> str:
    return f"version:{version}"


def expiry(valid_until: int | None) -> dict[str, dict[str, str]]:
    """Return the attributes for the expiry of an entry: the exact time, and the one for DynamoDB's time to live."""
    return {} if valid_until is None else {VALID_UNTIL: {"N": str(valid_until)}, **_time_to_live(valid_until)}


def _time_to_live(valid_until: int | None) -> dict[str, dict[str, str]]:
    return {} if valid_until is None else {names.EXPIRES_AT: {"N": str(math.ceil(valid_until / 1000))}}


def now() -> int:
    """Return the current time in epoch milliseconds."""
    return int(clock.timestamp() * 1000)


def is_live(generation: int, *, signs: bool) -> Condition:
    """Return the condition that an entry is of this or a later generation, valid, and signed or a number.

    An entry that lacks a required attribute, or has it as another type, does not meet the condition.
    """
    ahead = Stored(VALID_UNTIL, ">", ({"N": str(now())},))
    current = Stored(GENERATION, ">=", ({"N": str(generation)},))
    valid = (current, _is(WRITE_ID, "S"), Or((Stored(VALID_UNTIL, "missing"), ahead)))
    other: Condition = Or((_is(VALUE, "B"), _is(PARTS, "N")))
    if signs:
        other = join((has_signer(), _is(SIGNATURE, "B"), other))
    return join((*valid, Or((_is(NUMBER, "N"), other))))


def _is(name: str, kind: str) -> Condition:
    """Return the condition that an attribute exists and has one of DynamoDB's types."""
    return Stored(name, "type", ({"S": kind},))


def is_not_later(generation: int) -> Condition:
    """Return the condition that no entry of a later generation is replaced; a damaged entry has no generation."""
    return Or((ITEM_MISSING, Not(_is(GENERATION, "N")), Stored(GENERATION, "<=", ({"N": str(generation)},))))


def countable(delta: int) -> Condition:
    """Return the condition that an entry is an integer, and still one after ``delta`` is added."""
    if delta < 0:
        return Stored(NUMBER, ">", ({"N": str(-NUMBER_LIMIT - delta)},))
    return Stored(NUMBER, "<", ({"N": str(NUMBER_LIMIT - delta)},))


def value_of(head: Item, parts: Iterable[Item] = (), *, signs: bool) -> object:
    """Return the value of an entry, with its parts in order if it has any.

    Raises ``NotGenuine`` if it is not signed, and ``Damaged`` if it has no value.
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
    return pickle.loads(pickled)  # noqa: S301   # signed, or the project trusts every writer of the table


def _said(head: Item) -> str:
    """Return the text that a signature covers besides the value: the entry's key, and the write that created it."""
    return f"{head[names.PARTITION_KEY]['S']} {head[WRITE_ID]['S']}"


def number_of(head: Item) -> int:
    """Return the integer of an entry; raise ``Damaged`` if it is not an integer."""
    return _number(head, NUMBER)


def _number(item: Item, name: str) -> int:
    try:
        return int(item[name]["N"])
    except (KeyError, ValueError) as error:
        raise Damaged from error


def _stored(value: object) -> dict[str, Any]:
    # Excludes True and False, which Python treats as integers: the cache would return 1 and 0.
    if type(value) is int and abs(value) < NUMBER_LIMIT:
        return {NUMBER: {"N": str(value)}}
    return {VALUE: {"B": pickle.dumps(value, pickle.HIGHEST_PROTOCOL)}}


def _keyed(key: ItemKey, item_type: str) -> dict[str, dict[str, str]]:
    return {names.PARTITION_KEY: {"S": key[0]}, names.SORT_KEY: {"S": key[1]}, names.ITEM_TYPE: {"S": item_type}}
