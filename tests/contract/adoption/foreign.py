"""Tables of other programs: created and written without the app, and compared with their contents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.test import override_settings

from dynamo_single.table import Request, Table, get_table, schema

#: An item as DynamoDB stores it.
Stored = dict[str, Any]
ALIAS = "foreign"


@contextmanager
def foreign_table(**options: Any) -> Iterator[Foreign]:
    """Create another program's table next to the default one, with the shape in the options."""
    declared = settings.DYNAMO_SINGLE
    default = {name: value for name, value in declared["default"].items() if name in _KEPT}
    own = {**default, "TABLE_NAME": "foreign", "MIGRATIONS": "trust", "INDEXES": [], **options}
    with override_settings(DYNAMO_SINGLE={**declared, ALIAS: own}):
        table = get_table(ALIAS)
        schema.recreate(table)
        yield Foreign(table)


_KEPT = ("ENDPOINT_URL", "REGION", "TRANSPORT")


class Foreign:
    """The table as another program sees it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._client = Table(table.settings)

    def put(self, *items: Mapping[str, Any]) -> None:
        """Store items of plain strings and numbers."""
        for item in items:
            self._client.send(Request("PutItem", {"Item": stored(**item)}))

    def get(self, **key: Any) -> Stored | None:
        """The item under a key."""
        found: Stored | None = self._client.send(Request("GetItem", {"Key": stored(**key)})).get("Item")
        return found

    def items(self) -> list[Stored]:
        """Every item, in the order of their JSON."""
        pages = self._client.pages(Request("Scan"))
        found = [item for page in pages for item in page["Items"]]
        return sorted(found, key=lambda item: json.dumps(item, sort_keys=True, default=repr))


def stored(**values: Any) -> Stored:
    """Return DynamoDB's form of values: strings, numbers and binary."""
    return {name: _stored(value) for name, value in values.items()}


def _stored(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return {"B": value}
    return {"S": value} if isinstance(value, str) else {"N": str(value)}
