"""Helpers for work on items: items without a model, their change, and the remaining items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dynamo_single.evolution.backfill import Options, Task, Work, type_condition
from dynamo_single.evolution.backfill.work import Others
from dynamo_single.orm.conditions.terms import join
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Item, Update, key_of
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.table import Request, Table
from tests.contract.damage import items_of

Items = dict[tuple[str, str], dict[str, Any]]

#: Small pages, so that there are many checkpoints.
SMALL = Options(segments=1, page=3)


def thing(number: int, /, **more: Any) -> dict[str, Any]:
    """An item with a number."""
    key = {"pk": {"S": f"THING#{number:06}"}, "sk": {"S": "#METADATA"}}
    return {**key, "itemType": {"S": "Thing"}, "number": {"N": str(number)}, **more}


def put(table: Table, *items: dict[str, Any]) -> None:
    """Store items."""
    for start in range(0, len(items), 25):
        writes = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        table.send(Request("BatchWriteItem", {"RequestItems": {table.name: writes}}))


def double(item: Item, others: Others) -> Sequence[Action]:
    """Store twice the number next to it."""
    wanted = {"N": str(2 * int(item["number"]["N"]))}
    if item.get("double") == wanted:
        return ()
    condition = join((ITEM_EXISTS, *(as_stored(item, name) for name in ("itemType", "number", "double"))))
    return (Update(key_of(item), set={"double": wanted}, condition=condition),)


DOUBLING = Work("shop", "0002_double", 0, "open", "Double the things", Task(type_condition("Thing"), double))


def work(change: Any, **more: Any) -> Work:
    """Return the work with another change."""
    return replace(DOUBLING, task=Task(type_condition("Thing"), change), **more)


def scanned(table: Table) -> Items:
    """Return every item of the table except checkpoints."""
    found: Items = {}
    params: dict[str, Any] = {"ConsistentRead": True}
    while True:
        answer = table.send(Request("Scan", params))
        for item in answer["Items"]:
            if item["itemType"] != {"S": "MigrationCheckpoint"}:
                found[item["pk"]["S"], item["sk"]["S"]] = item
        if "LastEvaluatedKey" not in answer:
            return found
        params["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def doubled(*numbers: int) -> Items:
    """Return the stored things after the work."""
    items = (thing(number, double={"N": str(2 * number)}) for number in numbers)
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}


def is_done(table: Table) -> list[bool]:
    """Return whether each started work is complete."""
    return [each["done"]["BOOL"] for each in items_of(table, "MigrationCheckpoint") if "holder" in each]
