"""Random values where model_bakery's own generators need a bound that attributes may lack."""

from __future__ import annotations

import random
import string
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from dynamo_single import clock

#: The length of a text whose attribute has no bound.
LENGTH: Final = 20


def text(max_length: int | None) -> str:
    """Return letters, as many as the attribute allows, at most ``LENGTH``."""
    return "".join(random.choices(string.ascii_letters, k=min(max_length or LENGTH, LENGTH)))  # noqa: S311 - no secret


def email() -> str:
    """Return an address of a domain that does not exist."""
    return f"{text(None).lower()}@example.com"


def slug() -> str:
    """Return lower-case letters."""
    return text(None).lower()


def url() -> str:
    """Return an address of a host that does not exist."""
    return f"https://example.com/{slug()}"


def nothing() -> None:
    """Return ``None`` for an attribute that the app sets: an identity, a copy, an author."""


def decimal(max_digits: int | None, decimal_places: int | None) -> Decimal:
    """Return a number with the digits that the attribute allows."""
    places = decimal_places or 0
    digits = min(max_digits or LENGTH, LENGTH)
    return Decimal(random.randrange(10**digits)).scaleb(-places)  # noqa: S311 - as above


def moment() -> datetime:
    """Return the current time in milliseconds, as DynamoDB stores it."""
    found = clock.now()
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


def document(attribute: Any) -> Any:
    """Return an empty map or list; a schema's required values are given by the test."""
    return [] if attribute.attr_type == "L" else {}


def members(attribute: Any) -> set[Any]:
    """Return a set of one member."""
    member: Any = {"SS": text(None), "NS": random.randrange(1000), "BS": b"x"}[attribute.attr_type]  # noqa: S311
    return {member}


text.required = ["max_length"]  # type: ignore[attr-defined]  # model_bakery reads it
decimal.required = ["max_digits", "decimal_places"]  # type: ignore[attr-defined]  # as above
document.required = ["attribute"]  # type: ignore[attr-defined]  # as above
members.required = ["attribute"]  # type: ignore[attr-defined]  # as above
