"""Convert telephone numbers to E.164 with Google's rules for each country (the ``phonenumbers`` library).

The app imports this module only if users can log in with telephone numbers. It must not depend on users.
https://www.itu.int/rec/T-REC-E.164
"""

from __future__ import annotations

import re
from typing import Final

import phonenumbers

#: The maximum length of a typed number; longer strings are not parsed.
LONGEST = 40
#: First characters of numbers, in ASCII and full width. The check of user names queries by them.
_INTERNATIONAL: Final = "+\N{FULLWIDTH PLUS SIGN}(\N{FULLWIDTH LEFT PARENTHESIS}"
_DIGITS: Final = "0123456789" + "".join(chr(ord("\N{FULLWIDTH DIGIT ZERO}") + digit) for digit in range(10))
#: Digits and separators only, because the library also finds numbers inside longer strings.
_NUMBER: Final = re.compile(
    rf"(?=[{_INTERNATIONAL}{_DIGITS}])[(\uff08]?[+\uff0b]?(?:[\d\s()./\-\u2010-\u2015\u2212\uff08-\uff0f])*\d"
)


def beginnings(region: str | None = None) -> str:
    """Return the characters with which a telephone number can begin."""
    return _INTERNATIONAL if region is None else _INTERNATIONAL + _DIGITS


def normal(text: str, region: str | None = None) -> str | None:
    """Return a number in the format ``+15550100``, or ``None`` if the string is not a telephone number.

    Without a ``region`` such as ``"US"``, only strings that begin with ``+`` are numbers. The function cannot check
    whether a number is in use. A longer string that contains a number, such as a name, is not a number.
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
