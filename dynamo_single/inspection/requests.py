"""A request that was sent, in words for people: the operation, the index, its keys without secrets, what it cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from msgspec import Struct

from dynamo_single.costs import Cost
from dynamo_single.inspection.masking import Masks
from dynamo_single.inspection.secrets import masked_text
from dynamo_single.orm.schema.encoding.secrets import MASK
from dynamo_single.table import single_key
from dynamo_single.table.items import Parameters
from dynamo_single.table.listeners import SentRequest

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
    partition, sort = single_key.key_of(key)
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
