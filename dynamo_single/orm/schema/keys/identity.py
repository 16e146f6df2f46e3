"""The text of an object's identity: the values of its primary key, joined so that a URL can carry them.

This module handles strings only; the layout determines the attributes of an identity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.values import checked_text

_JOINT = "~~"
_SAFE = re.compile(r"[A-Za-z0-9._-]*")
_UNSAFE = re.compile(rb"[^A-Za-z0-9._-]")
_PART = re.compile(r"(?:[A-Za-z0-9._-]|~[0-9A-F]{2})*")
_ESCAPED = re.compile(rb"~([0-9A-F]{2})")


class NoIdentity(InvalidValue):
    """A value that is no object's identity: nothing is stored under a key that would be made of a part of it."""


def join_identity(texts: Sequence[str]) -> str:
    """Join the strings of a primary key's values; a single string is unchanged, several use RFC 3986's unreserved
    characters."""
    if not texts:
        raise InvalidValue("An identity has at least one value.")
    if len(texts) == 1:
        return checked_text(texts[0])
    return _JOINT.join(map(_encode, texts))


def split_identity(text: str, count: int) -> tuple[str, ...]:
    """Return the ``count`` strings that ``join_identity`` joined, or reject an invalid identity."""
    if count == 1:
        return (checked_text(text),)
    parts = text.split(_JOINT)
    if len(parts) != count:
        raise InvalidValue(f"{text!r} is not an identity of {count} values joined by {_JOINT!r}; it has {len(parts)}.")
    return tuple(_decode(part, text) for part in parts)


def is_identity(text: str, count: int) -> bool:
    """Return whether ``join_identity`` could have created a string from ``count`` strings."""
    return text.count(_JOINT) == count - 1


def _encode(text: str) -> str:
    if _SAFE.fullmatch(text):
        return text
    return _UNSAFE.sub(lambda found: b"~%02X" % found[0][0], checked_text(text).encode()).decode()


def _decode(part: str, whole: str) -> str:
    if _SAFE.fullmatch(part):
        return part
    if not _PART.fullmatch(part):
        raise InvalidValue(f"{whole!r} is not an identity: only letters, digits, '.', '_', '-' and '~XX' are allowed.")
    try:
        text = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), part.encode()).decode()
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{whole!r} is not an identity: {part!r} does not spell UTF-8.") from error
    if _encode(text) != part:
        # Two spellings of one identity would be two URLs, and two cache entries, of one object.
        raise InvalidValue(f"{whole!r} is not an identity: {part!r} is spelled {_encode(text)!r}.")
    return text
