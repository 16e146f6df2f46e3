"""What the table holds, read with one Scan."""

from __future__ import annotations

from typing import Any

from dynamo_single.table import Request, Table
from dynamo_single.verification import verify


def stored(table: Table) -> dict[str, dict[str, Any]]:
    """Every item of the table by its partition key."""
    return {item["pk"]["S"]: item for item in table.send(Request("Scan"))["Items"]}


def everything(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Every item of the table by its whole key."""
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in table.send(Request("Scan"))["Items"]}


def as_stored(table: Table) -> list[dict[str, Any]]:
    """Every item as it lies in the table, whatever its key is."""
    items: list[dict[str, Any]] = Table(table.settings).send(Request("Scan"))["Items"]
    return items


def claims(table: Table) -> dict[str, str]:
    """The unique claims in the table: each one's key, and its owner's partition key."""
    return {key: item["ownerPk"]["S"] for key, item in stored(table).items() if key.startswith("UNIQUE#")}


def assert_consistent(alias: str = "default") -> None:
    """Every item of the table fits the others: claims and owners, keys, what follows from objects."""
    assert [str(finding) for finding in verify(alias)] == []
