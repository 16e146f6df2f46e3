"""Determine the attribute of a model that reads the stored values of one name."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from msgspec import Struct

from dynamo_single.contrib.inspection.names import literal
from dynamo_single.table.request import StoredValue

_SECOND: Final = r"\d{4}-\d\d-\d\d%s\d\d:\d\d:\d\d"
#: The formats of ``TimestampAttribute(stored_as=...)``, the common ones first.
_FORMATS: Final = {
    "iso": re.compile(_SECOND % "T" + r"\.\d{3}Z"),
    "pynamodb": re.compile(_SECOND % "T" + r"\.\d{6}\+0000"),
    **{
        f"%Y-%m-%d{between}%H:%M:%S{fraction}{zone}": re.compile(
            _SECOND % between + (r"\.\d{6}" if fraction else "") + re.escape(zone)
        )
        for between in "T "
        for fraction in ("", ".%f")
        for zone in ("Z", "+00:00", "+0000", "")
    },
}
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")
_OFFSET: Final = re.compile(r"(Z|[+-]\d\d:?\d\d)\Z")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BOOLEAN_NAME: Final = re.compile(r"(is|has|can|was)[A-Z_]|.*(ed|able|active)\Z")
#: Numbers of seconds, or thousands of milliseconds, between 2001 and 2096.
_SECONDS: Final = (10**9, 4 * 10**9)
#: The attributes of the other types of DynamoDB.
_BY_TYPE: Final = {
    "BOOL": "BooleanAttribute",
    "M": "MapAttribute",
    "L": "ListAttribute",
    "SS": "UnicodeSetAttribute",
    "NS": "NumberSetAttribute",
    "B": "BinaryAttribute",
    "BS": "BinarySetAttribute",
}


class Found(Struct, frozen=True):
    """An attribute: its class in ``models``, its options as source, and notes on uncertain details.

    ``kind`` is empty if no attribute reads all of the values.
    """

    kind: str
    options: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def find(name: str, values: Sequence[StoredValue], *, missing: int, in_key: bool = False) -> Found:
    """Return the attribute for the values of one name; ``missing`` is the number of items without it.

    With ``in_key`` the strings must not change, because a key repeats them.
    """
    types = Counter(next(iter(value)) for value in values)
    nulls = types.pop("NULL", 0)
    notes = [f"{nulls} of the values are NULL, which is read as None"] if nulls else []
    options = {"null": "True"} if missing or nulls or not types else {}
    if len(types) > 1:
        counted = ", ".join(f"{kind} {number}" for kind, number in sorted(types.items()))
        return Found("", {}, (f"its values have several types ({counted}), which no attribute reads",))
    if not types:
        return Found("UnicodeAttribute", options, (*notes, "no value is known"))
    (kind,) = types
    inner = [value[kind] for value in values if kind in value]
    if kind == "S":
        found = _of_texts(inner, in_key=in_key)
    elif kind == "N":
        found = _of_numbers(name, inner, in_key=in_key)
    else:
        found = Found(_BY_TYPE[kind], {"null": "True"} if kind in ("SS", "NS", "BS") else {})
    return Found(found.kind, {**found.options, **options}, (*notes, *found.notes))


def _of_texts(texts: Sequence[str], *, in_key: bool) -> Found:
    if all(_ISO.fullmatch(each) and _reads(datetime.fromisoformat, each) for each in texts):
        return _of_moments(texts, in_key=in_key)
    if all(_DATE.fullmatch(each) and _reads(date.fromisoformat, each) for each in texts):
        return Found("DateAttribute")
    if all(map(_UUID.fullmatch, texts)):
        return Found("UUIDAttribute")
    if not in_key and all(each[:1] in ("{", "[") and _reads(json.loads, each) for each in texts):
        return Found("JSONAttribute", {"stored_as": '"text"'})
    return Found("UnicodeAttribute")


def _of_moments(texts: Sequence[str], *, in_key: bool) -> Found:
    for stored_as, pattern in _FORMATS.items():
        if all(map(pattern.fullmatch, texts)):
            return Found("TimestampAttribute", {"stored_as": literal(stored_as)})
    if in_key:
        return Found("UnicodeAttribute", {}, ("datetimes in several formats, which a key contains as they are stored",))
    notes = () if all(map(_OFFSET.search, texts)) else ("some have no time zone and are read as UTC",)
    return Found(
        "TimestampAttribute", {"stored_as": '"iso"'}, ("datetimes in several formats; this is written", *notes)
    )


def _of_numbers(name: str, texts: Sequence[str], *, in_key: bool) -> Found:
    numbers = [Decimal(each) for each in texts]
    if not all(each == each.to_integral_value() for each in numbers):
        return Found("DecimalAttribute")
    low, high = _SECONDS
    if not in_key:
        if all(low < each < high for each in numbers):
            return Found(
                "TimestampAttribute",
                {"stored_as": '"seconds"'},
                ("IntegerAttribute() if these are no seconds since 1970",),
            )
        if all(low * 1000 < each < high * 1000 for each in numbers):
            return Found(
                "TimestampAttribute",
                {"stored_as": '"milliseconds"'},
                ("IntegerAttribute() if these are no milliseconds since 1970",),
            )
    notes = []
    if set(numbers) <= {0, 1} and _BOOLEAN_NAME.match(name):
        notes.append('only 0 and 1: BooleanAttribute(stored_as="number")?')
    if name.lower() == "version":
        notes.append("VersionAttribute() if every write of the other program increments it")
    return Found("IntegerAttribute", {}, tuple(notes))


def _reads(read: Callable[[str], object], text: str) -> bool:
    """Return whether a function accepts a string."""
    try:
        read(text)
    except (ValueError, RecursionError):
        return False
    return True
