"""The values of items as a table of columns: typed by the model, with the stored value next to a datetime.

This module sends no requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from dynamo_single.contrib.table_admin.item_view import short
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table import names
from dynamo_single.table.request import StoredValue

#: The most columns of a page. The other attributes of a row are counted.
MAX_COLUMNS: Final = 8

_OWN: Final = frozenset({names.CREATED_AT, names.CREATED_BY, names.UPDATED_AT, names.DELETED_AT, names.VERSION})


class Cell(Struct, frozen=True):
    """A value as a template shows it, and as it is stored."""

    text: object = ""
    stored: str = ""


def moment_of(model: Any, name: str, value: StoredValue) -> datetime | None:
    """Return the datetime that an attribute stores, by its stored name; ``None`` if it does not store one.

    Without a model, only the time of expiry is known to be one.
    """
    found = _typed(model, name, value)
    if not isinstance(found, datetime):
        return None
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError:
        return None


def cell(model: Any, name: str, value: StoredValue) -> Cell:
    """Return a value of an item: datetimes and durations as such, with the stored value."""
    stored = short(value)
    found = _typed(model, name, value)
    if isinstance(found, datetime):
        # A template localizes it, unless a time zone moves it out of Python's years.
        return Cell(found if 1 < found.year < 9999 else str(found), stored)
    return Cell(str(found), stored) if isinstance(found, timedelta) else Cell(stored)


def columns_of(items: Iterable[Mapping[str, StoredValue]]) -> list[str]:
    """Return the most common attributes of some items, at most ``MAX_COLUMNS``, with the app's own at the end."""
    counted = Counter(name for item in items for name in item)
    found = sorted(counted, key=lambda name: (name in _OWN, -counted[name], name))
    return found[:MAX_COLUMNS]


def cells_of(model: Any, item: Mapping[str, StoredValue], columns: Sequence[str]) -> tuple[list[Cell], int]:
    """Return the cells of an item for these columns, and the number of the other attributes."""
    found = [cell(model, name, item[name]) if name in item else Cell() for name in columns]
    return found, len(item.keys() - {*columns})


def _typed(model: Any, name: str, value: StoredValue) -> object:
    """Return the Python value of a datetime or a duration; ``None`` for other and unreadable values."""
    if value == {"S": MASK}:
        return None
    attribute = _by_stored_name(model).get(name)
    ((kind, held),) = value.items()
    try:
        if attribute is not None and attribute.attr_type == kind:
            found = attribute.deserialize(held)
            return found if isinstance(found, datetime | timedelta) else None
        if model is None and name == names.EXPIRES_AT and kind == "N":
            return datetime.fromtimestamp(int(held), UTC)
    except (ArithmeticError, DynamoSingleError, OSError, TypeError, ValueError):
        return None
    return None


def _by_stored_name(model: Any) -> Mapping[str, Any]:
    if model is None:
        return {}
    return {attribute.attr_name: attribute for attribute in registry.attributes_of(model).values()}
