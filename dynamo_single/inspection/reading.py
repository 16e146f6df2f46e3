"""Reads of the table as it is: an item, a page of a partition, and a search of all keys with a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

from msgspec import Struct

from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.reading import cursors
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.table import names, single_key
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

#: Items of a partition that one page has.
PAGE: Final = 100
#: Items that one search reads at the most, whatever it finds; the next one goes on.
BUDGET: Final = 2000
_STEP: Final = 1000
_SALT: Final = "dynamo_single.inspection.places"


class Place(Struct, frozen=True):
    """Where reading goes on, bound to what was asked."""

    asked: tuple[str, ...]
    key: dict[str, Any]

    def text(self) -> str:
        """As an address carries it: nobody reads a key out of it, or makes one up."""
        return cursors.sealed([list(self.asked), self.key], _SALT)

    @classmethod
    def of(cls, text: str, asked: Sequence[str]) -> Self:
        """The place that a text names; raises ``InvalidCursor`` for another question's, or none of ours."""
        of, key = cursors.unsealed(text, _SALT)
        if of != list(asked):
            raise InvalidCursor(f"This place is in another list. {cursors.BEGIN_AGAIN}")
        return cls(tuple(asked), key)


class Page(Struct, frozen=True):
    """Some items, how many were read for them, and where reading goes on; ``None`` at the end."""

    items: tuple[Item, ...]
    read: int
    units: float
    after: str | None


def item_at(table: Table, key: ItemKey) -> Item | None:
    """One item: a strongly consistent GetItem."""
    params = {"Key": item_key(key), "ConsistentRead": True}
    found: Item | None = table.send(Request("GetItem", params)).get("Item")
    return found


def partition(table: Table, index: str | None, value: str, *, after: str = "", newest: bool = False) -> Page:
    """A page of a partition in the order of its sort keys: one Query of ``PAGE`` items, eventually consistent.

    ``newest`` reads it from its end. Of a table whose key is ``id`` alone it is the record of that ``id``: one GetItem.
    """
    if index is None and table.settings.key == "id":
        item = item_at(table, single_key.record_key(value))
        return Page(() if item is None else (item,), 1, 0.0, None)
    asked = ("partition", table.settings.alias, index or "", value, "newest" if newest else "")
    name = names.PARTITION_KEY if index is None else names.index_partition(index)
    params: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p",
        "ExpressionAttributeNames": {"#p": name},
        "ExpressionAttributeValues": {":p": {"S": value}},
        "Limit": PAGE,
        "ScanIndexForward": not newest,
    }
    return _page(table, "Query", _located(params, index, after, asked), asked)


def beginning_with(table: Table, index: str | None, text: str, *, after: str = "") -> Page:
    """Items whose partition key begins with a text: Scans of ``BUDGET`` items together at the most, in no order.

    DynamoDB filters nothing: what it says of a request would tell how many items there are that nobody may see.
    """
    asked = ("beginning", table.settings.alias, index or "", text)
    name = names.PARTITION_KEY if index is None else names.index_partition(index)
    params: dict[str, Any] = {
        "Limit": _STEP,
    }
    items: list[Item] = []
    read, units = 0, 0.0
    while True:
        page = _page(table, "Scan", _located(params, index, after, asked), asked)
        items += [item for item in page.items if item[name].get("S", "").startswith(text)]
        read, units, after = read + page.read, units + page.units, page.after or ""
        if page.after is None or read >= BUDGET:
            return Page(tuple(items), read, units, page.after)


def _located(params: dict[str, object], index: str | None, after: str, asked: Sequence[str]) -> dict[str, object]:
    located = params if index is None else {**params, "IndexName": index}
    return {**located, "ExclusiveStartKey": Place.of(after, asked).key} if after else located


def _page(table: Table, operation: str, params: dict[str, object], asked: tuple[str, ...]) -> Page:
    answer = table.send(Request(operation, params))
    last = answer.get("LastEvaluatedKey")
    return Page(
        tuple(answer.get("Items", ())),
        int(answer.get("ScannedCount", len(answer.get("Items", ())))),
        float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)),
        None if last is None else Place(asked, last).text(),
    )
