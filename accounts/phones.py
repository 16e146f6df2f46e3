"""Telephone numbers in their one form, E.164, by Google's rules for every country (the ``phonenumbers`` library).

It is imported where telephone numbers are a way to log in, and must not know users.
https://www.itu.int/rec/T-REC-E.164
"""

from __future__ import annotations

import phonenumbers

#: What nobody types as a number, and a parser need not look at.
LONGEST = 40


def normal(text: str, region: str | None = None) -> str | None:
    """A number as ``+15550100``, or ``None`` for what does not read as one.

    Without a ``region``, such as ``"US"``, only numbers that begin with ``+`` do. Whether a number is in use nobody can
    tell by looking at it.
    """
    if len(text) > LONGEST:
        return None
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None
    if number.extension or not phonenumbers.is_possible_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
