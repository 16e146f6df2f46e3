"""Reads of the table as it is: an item, a page of a partition, and a search of all keys with a budget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from msgspec import Struct

from dynamo_single.admin.secrets import Masks
from dynamo_single.contrib.table_admin.masked_keys import masked_text
from dynamo_single.costs import Cost
from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.reading import cursors
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table import id_tables, names
from dynamo_single.table.redirects import SentRequest
from dynamo_single.table.request import Parameters, Request
from dynamo_single.table.table import Table

#: Items of a partition that one page has.
PAGE: Final = 100
#: Items that one search reads at the most, whatever it finds; the next one goes on.
BUDGET: Final = 2000
_STEP: Final = 1000
_SALT: Final = "dynamo_single.contrib.doctor.places"


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
        item = item_at(table, id_tables.record_key(value))
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


# A request that was sent, in words for people: the operation, the index, its keys without secrets, what it cost.

#: Keys of one request that are shown before the rest is only counted.
_SHOWN: Final = 3
_PLACEHOLDER: Final = re.compile(r"[#:]\w+")


class ShownRequest(Struct, frozen=True):
    """A request with its cost; ``what`` is empty where keys are not to be shown."""

    operation: str
    index: str
    what: str
    cost: Cost


def shown_request(alias: str, sent: SentRequest, masks: Masks, *, with_keys: bool) -> ShownRequest:
    """What is shown of a request."""
    what = "; ".join(_keys(alias, sent, masks)) if with_keys else ""
    return ShownRequest(sent.operation, str(sent.params.get("IndexName", "")), what, Cost.of(sent))


def _keys(alias: str, sent: SentRequest, masks: Masks) -> Iterator[str]:
    params: Mapping[str, Any] = sent.params
    if condition := params.get("KeyConditionExpression"):
        yield _condition(alias, condition, params, masks)
    if filtered := params.get("FilterExpression"):
        # What is compared with may be anything that an item holds.
        written = _PLACEHOLDER.sub(lambda found: _name(found[0], params) if found[0][0] == "#" else "…", filtered)
        yield _("filter %(condition)s") % {"condition": written}
    found = [*_items(params)]
    yield from (_key(alias, key, masks) for key in found[:_SHOWN])
    if len(found) > _SHOWN:
        left = len(found) - _SHOWN
        yield ngettext("and %(number)d more", "and %(number)d more", left) % {"number": left}


def _items(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The keys of the items that a request names."""
    for name in ("Key", "Item"):
        if name in params:
            yield params[name]
    for asked in (params.get("RequestItems") or {}).values():
        yield from asked.get("Keys", ()) if isinstance(asked, Mapping) else (_written(each) for each in asked)
    for action in params.get("TransactItems", ()):
        yield _written(action)


def _written(action: Mapping[str, Any]) -> Mapping[str, Any]:
    (parameters,) = action.values()
    found: Mapping[str, Any] = parameters.get("Key") or parameters.get("Item") or {}
    return found


def _key(alias: str, key: Mapping[str, object], masks: Masks) -> str:
    partition, sort = id_tables.key_of(key)
    shown = masked_text(alias, partition, masks)
    return f"{shown} / {masks.sort_key(alias, partition, sort) if shown == partition else MASK}"


def _condition(alias: str, condition: str, params: Mapping[str, Any], masks: Masks) -> str:
    values = params.get("ExpressionAttributeValues", {})
    texts = {name: value.get("S", "…") for name, value in values.items()}
    shown = {name: masked_text(alias, text, masks) for name, text in texts.items()}
    is_secret = any(shown[name] != text for name, text in texts.items() if name in condition)

    def word(found: re.Match[str]) -> str:
        placeholder = found[0]
        if placeholder.startswith("#"):
            return _name(placeholder, params)
        text = shown.get(placeholder, "…")
        if text == texts.get(placeholder) and is_secret:
            return repr(MASK)
        # The partition comes first.
        first = texts.get(next(iter(_PLACEHOLDER.findall(condition.partition("=")[2])), ""), "")
        return repr(text if text == first else masks.sort_key(alias, first, text))

    return _PLACEHOLDER.sub(word, condition)


def _name(placeholder: str, params: Parameters) -> str:
    return str(params.get("ExpressionAttributeNames", {}).get(placeholder, placeholder))
