"""Pages of Query and Scan whose items are decoded into what their reader wants, and not into dicts of dicts.

A reader gives a ``PageForm`` along with its request. What it is given back is a ``TypedAnswer``; or the answer as a
plain dict, where the page is not as the form has it, or somebody else answered. This module must not know models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from dynamo_single.table.items import NewItem, Parameters
from dynamo_single.table.shapes import ITEM

Items = list[NewItem]

#: How an answer says that it holds binary values, which JSON has no form for, and how both begin.
_BINARY, _BEGINNING = (b'"B"', b'"BS"'), b'"B'

_decode = msgspec.json.Decoder().decode


class PageForm:
    """What the items of a page are decoded into: a type as msgspec takes it.

    ``is_raw`` says that the type leaves binary values as they came, inside documents for instance: a page that holds
    one is not decoded by this form.
    """

    __slots__ = ("_decode", "_is_raw")

    def __init__(self, item: Any, *, is_raw: bool) -> None:
        members = [("Items", list[item]), ("Count", int), ("ScannedCount", int)]
        optional = [(name, Any, msgspec.UNSET) for name in ("LastEvaluatedKey", "ConsumedCapacity")]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Page", [*members, *optional])).decode
        self._is_raw = is_raw

    def decoded(self, body: bytes) -> tuple[list[Any], dict[str, Any]] | None:
        """The items of an answer and its other members; ``None`` if the body is not of this form.

        What is no whole JSON, or holds fewer items than it says, is not either.
        """
        if self._is_raw and holds_binary(body):
            return None
        try:
            page: Any = self._decode(body)
            # What no member is made of was passed over without a look at its characters.
            if not body.isascii():
                body.decode()
        except (ValueError, RecursionError):
            return None
        if len(page.Items) != page.Count:
            return None
        said = {"Count": page.Count, "ScannedCount": page.ScannedCount}
        for name in ("LastEvaluatedKey", "ConsumedCapacity"):
            value = getattr(page, name)
            if value is not msgspec.UNSET:
                said[name] = value
        return page.Items, said


class TypedAnswer(dict[str, Any]):
    """An answer of which the items are ``typed``, as a form has them, and the other members lie in the dict itself."""

    __slots__ = ("_untyped", "typed")

    def __init__(self, said: Parameters, typed: list[Any], untyped: Callable[[], dict[str, Any]]) -> None:
        super().__init__(said)
        self.typed = typed
        self._untyped = untyped

    def items_as_dicts(self) -> Items:
        """The same items as dicts of dicts; the page is decoded again."""
        found: Items = self._untyped()["Items"]
        return found

    def as_plain(self) -> Mapping[str, Any]:
        """The answer as any other one is; its items are decoded when they are asked for."""
        return _Plain(self)


class _Plain(Mapping[str, Any]):
    def __init__(self, answer: TypedAnswer) -> None:
        self._answer = answer
        self._items: Items | None = None

    def __getitem__(self, name: str) -> Any:
        if name != "Items":
            return self._answer[name]
        if self._items is None:
            self._items = self._answer.items_as_dicts()
        return self._items

    def __iter__(self) -> Iterator[str]:
        yield "Items"
        yield from self._answer

    def __len__(self) -> int:
        return len(self._answer) + 1

    def __repr__(self) -> str:
        return repr(dict(self))


def holds_binary(text: bytes) -> bool:
    """Whether a JSON text may hold a binary value."""
    # Of what ends in a quotation mark, which is every other character, a search is ten times slower.
    place = text.find(_BEGINNING)
    while place >= 0:
        if text.startswith(_BINARY, place):
            return True
        place = text.find(_BEGINNING, place + 1)
    return False


def item_of(text: bytes) -> NewItem:
    """The item that a JSON text says, binary values as bytes; ``ValueError`` or ``TypeError`` where they are none."""
    item: NewItem = _decode(text)
    return ITEM.decoded(item) if holds_binary(text) else item
