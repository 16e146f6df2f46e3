"""Items as CSV or JSON lines, without masked attributes, for up to ``MAX_BYTES`` of items.

This module sends no requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dynamo_single.admin.viewing import spreadsheets
from dynamo_single.contrib.table_admin.item_view import ShownItem, binary_text
from dynamo_single.contrib.table_admin.own_names import stored_item
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table.request import StoredValue

#: The bytes of items that a download reads at most, and at most one response more. A larger one is cut.
MAX_BYTES: Final = 4 * 1024 * 1024

#: The model of an item, if any, and the item by the table's own names.
Written = tuple[Any, Mapping[str, StoredValue]]


def visible_of(alias: str, item: ShownItem) -> Mapping[str, StoredValue]:
    """Return an item by the table's own names without its masked attributes."""
    keys = [(key.index, key.partition, key.sort) for key in item.keys]
    own = {name: value for name, value in item.visible.items() if value != {"S": MASK}}
    return {name: value for name, value in stored_item(alias, own, keys).items() if value != {"S": MASK}}


def as_csv(items: Iterable[Written]) -> str:
    """Return a table with a column for each attribute, in the order of their first use."""
    found = [*items]
    columns = list(dict.fromkeys(name for _model, item in found for name in item))
    cells = ([_csv_cell(item[name]) if name in item else "" for name in columns] for _model, item in found)
    return spreadsheets.as_csv([[spreadsheets.quoted(name) for name in columns], *cells])


def as_json_lines(items: Iterable[Written]) -> str:
    """Return DynamoDB's JSON of each item in a line of its own."""
    return "".join(f"{json.dumps(item, ensure_ascii=False, default=binary_text)}\n" for _model, item in items)


def _csv_cell(value: StoredValue) -> str:
    ((kind, held),) = value.items()
    if kind == "S":
        return spreadsheets.quoted(held)
    if kind == "N":
        return str(held)  # a number is no formula, also a negative one
    if kind == "NULL":
        return ""
    return json.dumps(value if kind in ("M", "L") else held, ensure_ascii=False, default=binary_text)


#: The content type and the writer of each form.
WRITERS: Final[Mapping[str, tuple[str, Callable[[Iterable[Written]], str]]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "jsonl": ("application/jsonl; charset=utf-8", as_json_lines),
}
