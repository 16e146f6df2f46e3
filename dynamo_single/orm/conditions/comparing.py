"""Compare Python values as SQL compares its own: numbers, datetimes in any time zone, and text by code points.

This module knows neither expressions nor items.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any
from uuid import UUID

from dynamo_single import clock

#: The operators of orderings.
ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}


def comparable(value: Any) -> Any:
    """Return a form of a value that compares across types, such as a float with a decimal."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, datetime.datetime):
        return clock.in_utc(value)
    if isinstance(value, datetime.date):
        return clock.in_utc(datetime.datetime.combine(value, datetime.time()))
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value


def hashable(value: Any) -> Hashable:
    """Return a form of a value for groups and distinct values: equal values have equal forms."""
    if isinstance(value, dict):
        return ("M", frozenset((key, _member(each)) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return ("L", tuple(map(_member, value)))
    if isinstance(value, set | frozenset):
        return frozenset(map(hashable, value))
    found: Hashable = comparable(value)
    return found


def _member(value: Any) -> Hashable:
    """Return the same for a member: a truth value in a document is no number."""
    return ("BOOL", value) if isinstance(value, bool) else hashable(value)


def is_equal(one: Any, other: Any) -> bool | None:
    """Return whether two values are equal; ``None`` if one is missing."""
    if one is None or other is None:
        return None
    return bool(hashable(one) == hashable(other))


def is_ordered(operator: str, one: Any, other: Any) -> bool | None:
    """Return the result of an ordering; ``None`` if a value is missing, ``False`` between types without an order."""
    if one is None or other is None:
        return None
    try:
        return ORDERINGS[operator](comparable(one), comparable(other))
    except TypeError:
        return False


def sort_key(value: Any) -> Any:
    """Return a key by which values of one type sort, or values of several in an order of the types."""
    found = comparable(value)
    if isinstance(found, bool | int | Decimal):
        return (0, found)
    if isinstance(found, str):
        return (1, found)
    return (2, str(hashable(found))) if isinstance(found, dict | list | tuple | set | frozenset) else (3, found)
