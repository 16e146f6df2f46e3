"""Filters on the attributes of items, applied to the shown values: a masked value does not meet any filter.

They are applied in memory after masking, so that neither a row nor a number in DynamoDB's response depends on a
secret. This module sends no requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from operator import eq, ge, gt, le, lt
from typing import Any, Final

from django.http import HttpRequest
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import get_current_timezone, is_naive
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from msgspec import Struct

from dynamo_single.admin.viewing.pages import Wrong
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table.request import StoredValue

#: The most filters of one page.
MAX_FILTERS: Final = 5
#: The most characters of a filter's attribute or value.
MAX_TEXT: Final = 1024

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "lt": lt,
    "le": le,
    "gt": gt,
    "ge": ge,
}
#: The comparisons in the user's language, by their names in the address.
LABELS: Final[Mapping[str, Any]] = {
    "eq": "=",
    "ne": "≠",
    "lt": "<",
    "le": "≤",
    "gt": ">",
    "ge": "≥",
    "begins": gettext_lazy("begins with"),
    "contains": gettext_lazy("contains"),
    "exists": gettext_lazy("exists"),
    "missing": gettext_lazy("is missing"),
}


class Filter(Struct, frozen=True):
    """One comparison: ``name`` is the stored name of an attribute, or a path into a map such as ``address.city``."""

    name: str
    operator: str
    value: str

    def meets(self, visible: Mapping[str, StoredValue], moment: Callable[[str, StoredValue], datetime | None]) -> bool:
        """Return whether the visible attributes of an item meet the filter; ``moment`` reads a stored datetime."""
        found = _at(visible, self.name)
        if found == {"S": MASK}:
            return False
        if self.operator in ("exists", "missing"):
            return (found is None) == (self.operator == "missing")
        if found is None:
            return self.operator == "ne"
        if self.operator == "ne":
            return not _compares("eq", found, self.value, moment(self.name, found))
        return _compares(self.operator, found, self.value, moment(self.name, found))


def filters_of(request: HttpRequest) -> tuple[Filter, ...]:
    """Return the filters in an address; raise ``Wrong`` for an unknown comparison, or for too many or too long ones."""
    lists = [request.GET.getlist(name) for name in ("f", "fop", "fv")]
    count = len(lists[0])
    if count > MAX_FILTERS or any(len(text) > MAX_TEXT for found in lists for text in found):
        raise Wrong(_("There are too many filters, or a filter is too long."))
    padded = [[*found, *[""] * (count - len(found))] for found in lists]
    filters = [
        Filter(name.strip(), operator or "eq", value)
        for name, operator, value in zip(*padded, strict=False)
        if name.strip()
    ]
    if any(each.operator not in LABELS for each in filters):
        raise Wrong(_("This comparison does not exist."))
    return tuple(filters)


def _at(item: Mapping[str, StoredValue], path: str) -> StoredValue | None:
    """Return the value at a path. The name of an attribute may itself contain dots."""
    if path in item:
        return item[path]
    name, separator, rest = path.partition(".")
    found = item.get(name, {}).get("M") if separator else None
    return None if found is None else _at(found, rest)


def _compares(operator: str, found: StoredValue, text: str, moment: datetime | None) -> bool:
    ((kind, held),) = found.items()
    if operator == "contains":
        return _contains(kind, held, text)
    if operator == "begins":
        return kind == "S" and str(held).startswith(text)
    if moment is not None and (compared := _moment(text)) is not None:
        return _ORDERS[operator](moment, compared)
    if kind == "N":
        number = _number(text)
        return number is not None and _ORDERS[operator](Decimal(held), number)
    if kind == "BOOL":
        return operator == "eq" and str(held).lower() == text.strip().lower()
    if kind == "NULL":
        return operator == "eq" and text.strip().lower() == "null"
    return kind == "S" and _ORDERS[operator](str(held), text)


def _contains(kind: str, held: Any, text: str) -> bool:
    if kind == "S":
        return text in held
    if kind in ("SS", "NS"):
        return text in held or any(_number(each) == _number(text) is not None for each in held if kind == "NS")
    if kind == "M":
        return text in held
    return kind == "L" and any(_compares("eq", each, text, None) for each in held if each != {"S": MASK})


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _moment(text: str) -> datetime | None:
    """Return a date or a time in the user's time zone; ``None`` for another text."""
    try:
        found = parse_datetime(text.strip())
        if found is None and (day := parse_date(text.strip())) is not None:
            found = datetime(day.year, day.month, day.day)
    except ValueError:
        return None
    if found is None:
        return None
    try:
        return (found.replace(tzinfo=get_current_timezone()) if is_naive(found) else found).astimezone(UTC)
    except OverflowError:
        return None
