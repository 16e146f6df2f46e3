"""Reads of the table as it is, an item, a page of a partition or a search of all keys, and descriptions of requests.

A search reads a limited number of items. A request is described by its operation, its index, its keys without secrets
and its cost.
"""

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
from dynamo_single.table import names
from dynamo_single.table.redirects import SentRequest
from dynamo_single.table.request import Parameters, Request, Response, inserted_item
from dynamo_single.table.shaped import joined
from dynamo_single.table.shaped.written_keys import sent_key
from dynamo_single.table.table import Table, get_table, translator_of

#: The items of a partition on one page.
PAGE: Final = 100
#: The most items that one search reads. The next search continues there.
BUDGET: Final = 2000
_STEP: Final = 1000
# This is no path of a module: with another salt, the addresses that were shown before are invalid.
_SALT: Final = "dynamo_single.doctor.places"


class Place(Struct, frozen=True):
    """The position at which reading continues, bound to its query."""

    asked: tuple[str, ...]
    key: dict[str, Any]

    def text(self) -> str:
        """Return the position for an address. It is encrypted, so that users cannot read or forge keys."""
        return cursors.encrypt_value([list(self.asked), self.key], _SALT)

    @classmethod
    def of(cls, text: str, asked: Sequence[str]) -> Self:
        """Return the position in a text; raise ``InvalidCursor`` if it is invalid or of another query."""
        of, key = cursors.decrypt_value(text, _SALT)
        if of != list(asked):
            raise InvalidCursor(f"This place is in another list. {cursors.BEGIN_AGAIN}")
        return cls(tuple(asked), key)


class Page(Struct, frozen=True):
    """Some items, how many were read for them, and the position of the next page, ``None`` at the end."""

    items: tuple[Item, ...]
    read: int
    units: float
    after: str | None


def item_at(table: Table, key: ItemKey) -> Item | None:
    """Return one item: a strongly consistent GetItem."""
    params = {"Key": item_key(key), "ConsistentRead": True}
    found: Item | None = table.send(Request("GetItem", params)).get("Item")
    return found


def partition(table: Table, index: str | None, value: str, *, after: str = "", newest: bool = False) -> Page:
    """Return a page of a partition in the order of its sort keys: one eventually consistent Query of ``PAGE`` items.

    ``newest`` reads it from its end. In a table whose key is only ``id``, it returns the record with that ``id``: one
    GetItem.
    """
    if index is None and table.settings.key == "id":
        item = item_at(table, joined.record_key(value))
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
    return _page(table.send(Request("Query", _located(params, index, after, asked))), asked)


def beginning_with(table: Table, index: str | None, text: str, *, after: str = "") -> Page:
    """Return items whose partition key begins with a text: Scans of at most ``BUDGET`` items in total, unordered.

    DynamoDB does not filter them, because the numbers in its response would reveal how many hidden items exist.
    """
    asked = ("beginning", table.settings.alias, index or "", text)
    name = names.PARTITION_KEY if index is None else names.index_partition(index)
    items: list[Item] = []
    read, units, place = 0, 0.0, None
    for answer in table.pages(Request("Scan", _located({"Limit": _STEP}, index, after, asked))):
        page = _page(answer, asked)
        items += [item for item in page.items if item[name].get("S", "").startswith(text)]
        read, units, place = read + page.read, units + page.units, page.after
        if read >= BUDGET:
            break
    return Page(tuple(items), read, units, place)


def _located(params: dict[str, object], index: str | None, after: str, asked: Sequence[str]) -> dict[str, object]:
    located = params if index is None else {**params, "IndexName": index}
    return {**located, "ExclusiveStartKey": Place.of(after, asked).key} if after else located


def _page(answer: Response, asked: tuple[str, ...]) -> Page:
    last = answer.get("LastEvaluatedKey")
    return Page(
        tuple(answer.get("Items", ())),
        int(answer.get("ScannedCount", len(answer.get("Items", ())))),
        float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)),
        None if last is None else Place(asked, last).text(),
    )


#: The keys of one request that are shown. The others are only counted.
_SHOWN: Final = 3
_PLACEHOLDER: Final = re.compile(r"[#:]\w+")


class ShownRequest(Struct, frozen=True):
    """A request with its cost; ``what`` is empty if keys are not to be shown."""

    operation: str
    index: str
    what: str
    cost: Cost


def shown_request(alias: str, sent: SentRequest, masks: Masks, *, with_keys: bool) -> ShownRequest:
    """Return the description of a request."""
    what = "; ".join(_keys(alias, sent, masks)) if with_keys else ""
    return ShownRequest(sent.operation, str(sent.params.get("IndexName", "")), what, Cost.of(sent))


def _keys(alias: str, sent: SentRequest, masks: Masks) -> Iterator[str]:
    params: Mapping[str, Any] = sent.params
    if condition := params.get("KeyConditionExpression"):
        yield _condition(alias, condition, params, masks)
    if filtered := params.get("FilterExpression"):
        # A filter may compare with any value of an item.
        written = _PLACEHOLDER.sub(lambda found: _name(found[0], params) if found[0][0] == "#" else "…", filtered)
        yield _("filter %(condition)s") % {"condition": written}
    found = [*_items(params)]
    yield from (_key(alias, key, masks) for key in found[:_SHOWN])
    if len(found) > _SHOWN:
        left = len(found) - _SHOWN
        yield ngettext("and %(number)d more", "and %(number)d more", left) % {"number": left}


def _items(params: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the keys of the items in a request."""
    for name in ("Key", "Item"):
        if name in params:
            yield params[name]
    for asked in (params.get("RequestItems") or {}).values():
        yield from asked.get("Keys", ()) if isinstance(asked, Mapping) else (_written(each) for each in asked)
    for action in params.get("TransactItems", ()):
        yield _written(action)
    for _table, item in filter(None, map(inserted_item, params.get("Statements", ()))):
        yield item


def _written(action: Mapping[str, Any]) -> Mapping[str, Any]:
    (parameters,) = action.values()
    found: Mapping[str, Any] = parameters.get("Key") or parameters.get("Item") or {}
    return found


def _key(alias: str, key: Item, masks: Masks) -> str:
    partition, sort = sent_key(key, get_table(alias).name, translator_of)
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
        # The partition key comes first.
        first = texts.get(next(iter(_PLACEHOLDER.findall(condition.partition("=")[2])), ""), "")
        return repr(text if text == first else masks.sort_key(alias, first, text))

    return _PLACEHOLDER.sub(word, condition)


def _name(placeholder: str, params: Parameters) -> str:
    return str(params.get("ExpressionAttributeNames", {}).get(placeholder, placeholder))
