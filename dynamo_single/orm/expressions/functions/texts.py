"""Django's text functions. Positions are numbered from 1, as in SQL; case and length follow Unicode.

A value that is no text is written as text first. Results are at most ``MAX_TEXT`` characters long.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.db.models.functions import (
    MD5,
    SHA1,
    SHA224,
    SHA256,
    SHA384,
    SHA512,
    Chr,
    Concat,
    Left,
    Length,
    Lower,
    LPad,
    LTrim,
    Ord,
    Repeat,
    Replace,
    Reverse,
    Right,
    RPad,
    RTrim,
    StrIndex,
    Substr,
    Trim,
    Upper,
)
from django.db.models.functions.text import ConcatPair

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.expressions.evaluation import arguments, evaluate, function
from dynamo_single.orm.expressions.functions.casting import as_text
from dynamo_single.orm.expressions.scope import Expression, Scope
from dynamo_single.table.request import MAX_ITEM_SIZE

#: DynamoDB stores no longer text, and ``Repeat()`` could otherwise fill the memory.
MAX_TEXT = MAX_ITEM_SIZE


def _bounded(length: int) -> int:
    if length > MAX_TEXT:
        raise NotSupported(
            f"Cannot compute text of {length} characters in memory: DynamoDB stores at most {MAX_TEXT} bytes in "
            "an item. Pass a smaller number to Repeat(), LPad() or RPad()."
        )
    return max(length, 0)


@evaluate.register(ConcatPair)
@evaluate.register(Concat)
def _concatenated(expression: Expression, scope: Scope) -> Any:
    # Django's Concat() treats a missing value as an empty string on every database.
    return "".join("" if each is None else as_text(each) for each in arguments(expression, scope))


@function(Lower)
def _lower(value: Any) -> str:
    return as_text(value).lower()


@function(Upper)
def _upper(value: Any) -> str:
    return as_text(value).upper()


@function(Length)
def _length(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else len(as_text(value))


@function(Left, name="LEFT")
def _left(value: Any, length: int) -> str:
    return as_text(value)[: max(length, 0)]


@function(Right, name="RIGHT")
def _right(value: Any, length: int) -> str:
    return as_text(value)[-length:] if length > 0 else ""


@function(Substr, name="SUBSTR")
def _substring(value: Any, position: int, length: int | None = None) -> str:
    text = as_text(value)
    start = position - 1 if position > 0 else max(len(text) + position, 0)
    return text[start:] if length is None else text[start : start + max(length, 0)]


@function(LTrim)
def _left_trimmed(value: Any) -> str:
    return as_text(value).lstrip(" ")


@function(RTrim)
def _right_trimmed(value: Any) -> str:
    return as_text(value).rstrip(" ")


@function(Trim)
def _trimmed(value: Any) -> str:
    return as_text(value).strip(" ")


def _padding(text: str, length: int, fill: str) -> str:
    missing = _bounded(length) - len(text)
    return (fill * (missing // len(fill) + 1))[:missing] if missing > 0 and fill else ""


@function(LPad)
def _left_padded(value: Any, length: int, fill: str = " ") -> str:
    text = as_text(value)
    return (_padding(text, length, fill) + text)[: max(length, 0)]


@function(RPad)
def _right_padded(value: Any, length: int, fill: str = " ") -> str:
    text = as_text(value)
    return (text + _padding(text, length, fill))[: max(length, 0)]


@function(Repeat)
def _repeated(value: Any, number: int) -> str:
    text = as_text(value)
    _bounded(len(text) * max(number, 0))
    return text * max(number, 0)


@function(Replace)
def _replaced(value: Any, old: Any, new: Any = "") -> str:
    text, old, new = as_text(value), as_text(old), as_text(new)
    if not old:
        return text
    _bounded(len(text) + text.count(old) * max(len(new) - len(old), 0))
    return text.replace(old, new)


@function(Reverse)
def _turned(value: Any) -> str:
    return as_text(value)[::-1]


@function(StrIndex)
def _position(value: Any, part: Any) -> int:
    return as_text(value).find(as_text(part)) + 1


@function(Chr, name="CHAR")
def _character(code: int) -> str:
    return chr(code)


@function(Ord, name="UNICODE")
def _code(value: Any) -> int | None:
    text = as_text(value)
    return ord(text[0]) if text else None


def _hashing(name: str) -> Any:
    def digest(value: Any) -> str:
        data = value if isinstance(value, bytes) else as_text(value).encode()
        return hashlib.new(name, data, usedforsecurity=False).hexdigest()

    return digest


for _kind, _algorithm in (
    (MD5, "md5"),
    (SHA1, "sha1"),
    (SHA224, "sha224"),
    (SHA256, "sha256"),
    (SHA384, "sha384"),
    (SHA512, "sha512"),
):
    function(_kind)(_hashing(_algorithm))
