"""The table's contents, read with one Scan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.test import override_settings

from dynamo_single.contrib.doctor import verify
from dynamo_single.table import Request, Table


def stored(table: Table) -> dict[str, dict[str, Any]]:
    """Every item of the table by its partition key."""
    return {item["pk"]["S"]: item for item in table.send(Request("Scan"))["Items"]}


def everything(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Every item of the table by its whole key."""
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in table.send(Request("Scan"))["Items"]}


@contextmanager
def single_key_table(**changes: Any) -> Iterator[str]:
    """Return the alias of a second table with only the key ``id``; ``setup_table()`` creates it."""
    declared = settings.DYNAMO_SINGLE
    own = {**declared["default"], "TABLE_NAME": "products", "INDEXES": ["gs1", "gs2"], "KEY": "id", **changes}
    with override_settings(DYNAMO_SINGLE={**declared, "products": own}):
        yield "products"


def as_stored(table: Table) -> list[dict[str, Any]]:
    """Return every stored item, whatever its key is."""
    items: list[dict[str, Any]] = Table(table.settings).send(Request("Scan"))["Items"]
    return items


def claims(table: Table) -> dict[str, str]:
    """The unique claims in the table: each one's key, and its owner's partition key."""
    return {key: item["ownerPk"]["S"] for key, item in stored(table).items() if key.startswith("UNIQUE#")}


def assert_consistent(alias: str = "default") -> None:
    """Assert that all items are consistent: claims and owners, keys, and dependents."""
    assert [str(finding) for finding in verify(alias)] == []
