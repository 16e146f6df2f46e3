"""Convert numbers and binary values to strings with the same order, and back.

Above the table, every key is a string. A bound of a range is the string of a value, perhaps with a character after it
that sorts directly above the value or above all strings that begin with it.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

from dynamo_single.conf.shapes import KeyType
from dynamo_single.exceptions import NotSupported
from dynamo_single.table.masking import ESCAPE
from dynamo_single.table.request import MAX_DIGITS, MAX_EXPONENT, StoredValue


class Unstorable(NotSupported):
    """A string cannot be a key of the table, whose keys are numbers or binary; no item has such a key."""


_BIAS: Final = 500
_NINES: Final = str.maketrans("0123456789", "9876543210")
#: The last code point, with which the upper bounds of ranges end.
_LAST: Final = "\U0010ffff"
_NUMBER: Final = re.compile(r"(?:o|p(\d{3})(\d+)|n(\d{3})(\d+)~)", re.ASCII)
_HIGHEST: Final = f"9.{'9' * (MAX_DIGITS - 1)}E+{MAX_EXPONENT}"
_DIGITS: Final = Context(prec=MAX_DIGITS, Emin=-130, Emax=MAX_EXPONENT)
#: The smallest number above zero (AWS: "Supported data types and naming rules in Amazon DynamoDB", Number).
_SMALLEST: Final = "1E-130"


def number_text(negative: bool, digits: str, exponent: int) -> str:
    """Return the string of a number by its sign, its significant digits, and the exponent of the first one."""
    if not digits:
        return "o"
    if negative:
        # The tilde lets a longer, hence lower, negative number sort in front of a shorter one.
        return f"n{999 - exponent - _BIAS:03d}{digits.translate(_NINES)}~"
    return f"p{exponent + _BIAS:03d}{digits}"


@lru_cache(maxsize=1024)
def text_of_number(stored: str) -> str:
    """Return the string of a number as DynamoDB returns it."""
    number = Decimal(stored)
    sign, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    return number_text(bool(sign), written.rstrip("0"), len(written) - 1 + int(exponent))


@lru_cache(maxsize=1024)
def number_of_text(text: str) -> str:
    """Return the number of a string or of a bound; raise ``Unstorable`` for other strings."""
    if not text or text == ESCAPE:
        return f"-{_HIGHEST}"
    if text.startswith((_LAST, ESCAPE, "\U0010fffe")):
        return _HIGHEST
    found = _NUMBER.match(text)
    rest = text if found is None else text[found.end() :]
    if found is None or rest not in ("", ESCAPE, _LAST):
        raise Unstorable(
            f"{text!r} is not a number, but this key of the table is. The table cannot store items of the app itself, "
            "such as claims. Compare the key by =, <, > or a range."
        )
    number = _decimal(found)
    if rest:
        # The next number that DynamoDB's digits can express is directly above.
        return str(number.next_plus(_DIGITS)) if number else _SMALLEST
    return f"{number:f}" if -20 < number.adjusted() < MAX_DIGITS else str(number)


def is_number_text(text: str) -> bool:
    """Return whether a string is that of a number in a key."""
    return _NUMBER.fullmatch(text) is not None


def _decimal(found: re.Match[str]) -> Decimal:
    if found[0] == "o":
        return Decimal(0)
    negative = found[3] is not None
    exponent = (999 - int(found[3]) if negative else int(found[1])) - _BIAS
    digits = found[4].translate(_NINES) if negative else found[2]
    return Decimal((int(negative), tuple(map(int, digits)), exponent - len(digits) + 1))


def key_text(value: StoredValue) -> str:
    """Return a stored key as the string that the app uses, which sorts as DynamoDB sorts the key."""
    ((kind, inner),) = value.items()
    if kind == "N":
        return text_of_number(inner)
    return bytes(inner).hex() if kind == "B" else str(inner)


def key_value(value: StoredValue, kind: KeyType) -> StoredValue:
    """Return the string of a key as DynamoDB stores it in a key attribute; raise ``Unstorable`` if it cannot."""
    if kind == "S" or "S" not in value:
        return value
    text: Any = value["S"]
    return {"N": number_of_text(text)} if kind == "N" else {"B": _binary(text)}


def _binary(text: str) -> bytes:
    """Return the binary value of a string or of a bound."""
    end = b""
    if text.endswith(ESCAPE):
        text, end = text[:-1], b"\x00"  # directly above a value is the value and the lowest byte
    elif text.endswith(_LAST):
        text, end = text[:-1], b"\xff" * 8
    try:
        return bytes.fromhex(text) + end
    except ValueError:
        raise Unstorable(
            f"{text!r} is not a binary value, but this key of the table is. The table cannot store items of the app "
            "itself, such as claims."
        ) from None
