"""Telephone numbers in their one form, E.164, by Google's rules for every country (the ``phonenumbers`` library).

It is imported where telephone numbers are a way to log in, and must not know users.
https://www.itu.int/rec/T-REC-E.164
"""

from __future__ import annotations

import re
from typing import Final

import phonenumbers

#: What nobody types as a number, and a parser need not look at.
LONGEST = 40
#: What a number may begin with, so that those who have one as a name can be looked for: ASCII's, and their wide forms.
_INTERNATIONAL: Final = "+\N{FULLWIDTH PLUS SIGN}(\N{FULLWIDTH LEFT PARENTHESIS}"
_DIGITS: Final = "0123456789" + "".join(chr(ord("\N{FULLWIDTH DIGIT ZERO}") + digit) for digit in range(10))
#: Digits and what people put between them, and nothing else: the library looks for numbers within a text.
_NUMBER: Final = re.compile(
    rf"(?=[{_INTERNATIONAL}{_DIGITS}])[(\uff08]?[+\uff0b]?(?:[\d\s()./\-\u2010-\u2015\u2212\uff08-\uff0f])*\d"
)


def beginnings(region: str | None = None) -> str:
    """What a text begins with that reads as a number."""
    return _INTERNATIONAL if region is None else _INTERNATIONAL + _DIGITS


def normal(text: str, region: str | None = None) -> str | None:
    """A number as ``+15550100``, or ``None`` for what does not read as one.

    Without a ``region``, such as ``"US"``, only numbers that begin with ``+`` do. Whether a number is in use nobody can
    tell by looking at it. A text that has a number in it, such as a name, is none.
    """
    text = text.strip()
    if len(text) > LONGEST or not _NUMBER.fullmatch(text):
        return None
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if number.extension or not phonenumbers.is_possible_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
