"""Tables of other programs on the tests' engine: created, filled and read as stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from dynamo_single.conf.shapes import OWN
from dynamo_single.table import Request, Table
from dynamo_single.table.table import table_at

#: An index: its name, its keys as ``views:N``, and its projection.
Index = tuple[str, Sequence[str], Mapping[str, Any]]
ALL: Mapping[str, Any] = {"ProjectionType": "ALL"}


class OtherTable:
    """A table whose items another program writes."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @property
    def name(self) -> str:
        """The name in DynamoDB."""
        return self.table.name

    def put(self, *items: Mapping[str, Any]) -> None:
        """Store items in DynamoDB's JSON."""
        for item in items:
            self.table.send(Request("PutItem", {"Item": item}))

    def items(self) -> list[dict[str, Any]]:
        """Return all stored items in a fixed order."""
        pages = self.table.pages(Request("Scan", {"ConsistentRead": True}))
        return sorted(
            (_with_sorted_sets(item) for page in pages for item in page["Items"]),
            key=lambda item: json.dumps(item, sort_keys=True, default=str),
        )


@contextmanager
def other_table(
    table: Table,
    name: str,
    keys: Sequence[str],
    *,
    indexes: Sequence[Index] = (),
    local: Sequence[Index] = (),
    ttl: str | None = None,
) -> Iterator[OtherTable]:
    """Create a table with these keys on the engine of ``table``, and delete it after the block."""
    found = table_at(replace(table.settings, table_name=name, shape=OWN))
    every = {
        key.partition(":")[0]: key.partition(":")[2] or "S"
        for each in (keys, *(i[1] for i in (*indexes, *local)))
        for key in each
    }
    params: dict[str, Any] = {
        "KeySchema": _schema(keys),
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": kind} for key, kind in every.items()],
        "BillingMode": "PAY_PER_REQUEST",
    }
    for kind, declared in (("GlobalSecondaryIndexes", indexes), ("LocalSecondaryIndexes", local)):
        if declared:
            params[kind] = [
                {"IndexName": index, "KeySchema": _schema(each), "Projection": dict(projection)}
                for index, each, projection in declared
            ]
    found.send(Request("CreateTable", params))
    try:
        if ttl:
            enabled = {"Enabled": True, "AttributeName": ttl}
            found.send(Request("UpdateTimeToLive", {"TimeToLiveSpecification": enabled}))
        yield OtherTable(found)
    finally:
        found.send(Request("DeleteTable"))


def _schema(keys: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"AttributeName": key.partition(":")[0], "KeyType": kind}
        for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
    ]


def _with_sorted_sets(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item whose sets have an order, which DynamoDB does not keep."""
    return {
        name: {kind: sorted(held) if kind in ("SS", "NS", "BS") else held for kind, held in value.items()}
        for name, value in sorted(item.items())
    }
