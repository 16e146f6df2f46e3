"""Damaged items: each attribute of an item missing, or of another DynamoDB type, as a wrong write could leave it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from dynamo_single.table import Request, Table
from tests.deep import examples

#: A value of each DynamoDB type, the most likely mistakes first.
VALUES: dict[str, Any] = {
    "S": "damaged",
    "N": "7",
    "M": {"damaged": {"S": "damaged"}},
    "NULL": True,
    "B": b"damaged",
    "BOOL": True,
    "L": [{"S": "damaged"}],
    "SS": ["damaged"],
    "NS": ["7"],
    "BS": [b"damaged"],
}
#: As many of the types as a test tries.
KINDS = tuple(VALUES)[: examples(2, len(VALUES))]
KEYS = ("pk", "sk")


def damages(
    item: dict[str, Any], *, leave: Collection[str] = (), types: Collection[str] = KINDS
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an item in each damaged state, with its problem; keys and the attributes in ``leave`` are unchanged."""
    for name in sorted(item.keys() - {*KEYS, *leave}):
        yield f"without {name}", {each: value for each, value in item.items() if each != name}
        for kind in types:
            if kind not in item[name]:
                yield f"{name} as {kind}", {**item, name: {kind: VALUES[kind]}}


def store(table: Table, item: dict[str, Any]) -> None:
    """Write an item as another program would."""
    table.send(Request("PutItem", {"Item": item}))


def items_of(table: Table, item_type: str) -> list[dict[str, Any]]:
    """Return the items of a type."""
    found = [each for page in table.pages(Request("Scan")) for each in page["Items"]]
    return [each for each in found if each.get("itemType") == {"S": item_type}]
