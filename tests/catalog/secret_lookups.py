"""Lookups of every path to a secret of a safe, with values that fit and that do not."""

from __future__ import annotations

from typing import Any

from tests.catalog.safes import VALUES, WRONG, Safe
from tests.deep import IS_DEEP

#: Lookups whose value is no value of the attribute.
OTHERS = {"attribute_type", "has_key", "has_keys", "has_any_keys", "isnull"}
LOOKUPS = sorted(
    {
        *(lookup for field in Safe._meta.concrete_fields for lookup in type(field).get_lookups()),
        *("", "exact", "a", "a__gte", "0", "0__exact", "year__gte", "date__lt", "foo"),
    }
    - OTHERS
)
LOOKUPS = [each for each in LOOKUPS if not each.startswith("size")]
#: Parts of datetimes, which Django reads as numbers.
PARTS = {
    *("date", "time", "year", "iso_year", "month", "day", "week", "week_day", "iso_week_day"),
    *("quarter", "hour", "minute", "second"),
}
PATHS = [
    *(name for name in VALUES if name != "parent_id"),
    *("parent", "folded", "drawn", "papers__apiKey", "papers__deep__0__password", "contents__place"),
]


def value_of(path: str, lookup: str) -> list[Any]:
    """Return values to compare a path with by a lookup."""
    own = VALUES.get(path, "swordfish")
    if lookup.partition("__")[0] in PARTS:
        return ["swordfish", own.isoformat() if hasattr(own, "isoformat") else own]
    if lookup.endswith(("in", "range")):
        return [[own, own], ["swordfish", b"swordfish"]]
    return [own, *WRONG] if IS_DEEP else [own, "swordfish", object]


def conditions_on(path: str) -> list[dict[str, Any]]:
    """Return a condition for each lookup of a path and each value."""
    return [{f"{path}{'__' * bool(lookup)}{lookup}": value} for lookup in LOOKUPS for value in value_of(path, lookup)]
