"""Reads of the table as it is, an item, a page of a partition or a search of all keys, and descriptions of requests.

A search reads a limited number of items. A request is described by its operation, its index, its keys without secrets
and its cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from msgspec import Struct

from dynamo_single.admin.secrets import Masks
from dynamo_single.contrib.table_admin.masked_keys import masked_text
from dynamo_single.costs import Cost
from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.plan.plan import KeyCondition
from dynamo_single.orm.reading import cursors
from dynamo_single.orm.reading.single import stored_item
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table.flow import run
from dynamo_single.table.names import key_names
from dynamo_single.table.redirects import SentRequest
from dynamo_single.table.request import Parameters, Request, inserted_item
from dynamo_single.table.shaped import joined
from dynamo_single.table.shaped.written_keys import sent_key
from dynamo_single.table.table import Table, get_table, translator_of

#: The items of a partition on one page.
PAGE: Final = 50
#: The most items that a search reads for a page. The next search continues there.
BUDGET: Final = 2000
_STEP: Final = 1000
_FILTERED_STEP: Final = 250
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
    after: str | None


#: Takes an item, and returns whether it is part of the result.
Keep = Callable[[Item], bool]


class Asking(Struct, frozen=True):
    """A Query of a range, or a Scan for partition keys with a ``prefix``; ``index`` is ``None`` for the table."""

    table: Table
    index: str | None
    condition: KeyCondition | None
    prefix: str = ""
    newest: bool = False

    @property
    def bound_to(self) -> tuple[str, ...]:
        """The values that a position is bound to."""
        alias, index = self.table.settings.alias, self.index or ""
        if self.condition is None:
            return "beginning", alias, index, self.prefix
        condition = self.condition
        texts = condition.partition, condition.operator, *condition.operands
        return "partition", alias, index, *texts, "newest" if self.newest else ""

    @property
    def only_key(self) -> ItemKey | None:
        """The key of the only item of a partition, in a table whose key is only ``id``."""
        if self.condition is None or self.index is not None or self.table.settings.key != "id":
            return None
        if self.condition.operator == "=":
            return self.condition.partition, self.condition.operands[0]
        return joined.record_key(self.condition.partition)

    def request(self, after: str, limit: int | None) -> Request:
        """Return the request from a position, for ``limit`` items or as many as DynamoDB returns at a time."""
        params: dict[str, Any] = {} if limit is None else {"Limit": limit}
        if self.index is not None:
            params["IndexName"] = self.index
        if after:
            params["ExclusiveStartKey"] = Place.of(after, self.bound_to).key
        if self.condition is None:
            return Request("Scan", params)
        return Request(
            "Query", {**params, **_compared(self.index, self.condition), "ScanIndexForward": not self.newest}
        )

    def has(self, item: Item) -> bool:
        """Return whether an item of the response belongs to the result; only a Scan reads others."""
        if self.condition is not None:
            return True
        text: str = item[key_names(self.index)[0]].get("S", "")
        return text.startswith(self.prefix)

    def place_of(self, item: Item) -> str:
        """Return the position after an item."""
        keys = {*key_names(None), *key_names(self.index)}
        return Place(self.bound_to, {name: value for name, value in item.items() if name in keys}).text()


def page_of(asking: Asking, keep: Keep, *, after: str = "", is_filtered: bool = False) -> Page:
    """Return up to ``PAGE`` items that ``keep`` accepts, in the order of their sort keys.

    Sends one eventually consistent Query of ``PAGE`` items. If the page ``is_filtered``, Queries of 250 items until
    the page is full or ``BUDGET`` items were read. A search by a prefix sends Scans of 1,000 items in the same way:
    DynamoDB does not filter them, because the numbers in its response would reveal how many hidden items exist.

    In a table whose key is only ``id``, it returns the record with that ``id``: one GetItem.
    """
    if (key := asking.only_key) is not None:
        item = run(stored_item(asking.table, key))
        return Page(() if item is None or not keep(item) else (item,), 1, None)
    step = _STEP if asking.condition is None else _FILTERED_STEP if is_filtered else PAGE
    items: list[Item] = []
    read, place = 0, None
    for answer in asking.table.pages(asking.request(after, step)):
        found = answer.get("Items", ())
        read += int(answer.get("ScannedCount", len(found)))
        last = answer.get("LastEvaluatedKey")
        place = None if last is None else Place(asking.bound_to, last).text()
        for number, item in enumerate(found, 1):
            if not (asking.has(item) and keep(item)):
                continue
            items.append(item)
            if len(items) == PAGE and (number < len(found) or last is not None):
                return Page(tuple(items), read, asking.place_of(item))
        if read >= BUDGET or step == PAGE:
            break
    return Page(tuple(items), read, place)


def all_of(asking: Asking, keep: Keep, *, max_bytes: int) -> bool:
    """Pass the items of a range to ``keep`` until ``max_bytes`` were read; return whether it was the whole range.

    Sends a Query or Scan for each megabyte; the last response is used in full.
    """
    if (key := asking.only_key) is not None:
        if (item := run(stored_item(asking.table, key))) is not None:
            keep(item)
        return True
    size = 0
    for answer in asking.table.pages(asking.request("", None)):
        for item in answer.get("Items", ()):
            size += item_size(item)
            if asking.has(item):
                keep(item)
        if size >= max_bytes:
            return "LastEvaluatedKey" not in answer
    return True


def _compared(index: str | None, condition: KeyCondition) -> dict[str, Any]:
    partition, sort = key_names(index)
    names_, values = {"#p": partition}, {":p": {"S": condition.partition}}
    text = "#p = :p"
    if condition.operator:
        names_["#s"] = sort
        values |= {f":s{number}": {"S": operand} for number, operand in enumerate(condition.operands)}
        text += {
            "begins_with": " AND begins_with(#s, :s0)",
            "between": " AND #s BETWEEN :s0 AND :s1",
        }.get(condition.operator, f" AND #s {condition.operator} :s0")
    return {
        "KeyConditionExpression": text,
        "ExpressionAttributeNames": names_,
        "ExpressionAttributeValues": values,
    }


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
    return f"{shown} / {masks.key(alias, partition, sort)[1] if shown == partition else MASK}"


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
        return repr(text if text == first else masks.key(alias, first, text)[1])

    return _PLACEHOLDER.sub(word, condition)


def _name(placeholder: str, params: Parameters) -> str:
    return str(params.get("ExpressionAttributeNames", {}).get(placeholder, placeholder))
