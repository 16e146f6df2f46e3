"""Answers to Query, Scan and BatchGetItem whose items are decoded into what their reader wants, not dicts of dicts.

A reader gives a ``PageForm`` along with its request. What it is given back is a ``TypedAnswer``; or the answer as a
plain dict, where the page is not as the form has it, or somebody else answered. This module must not know models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from dynamo_single.table.items import NewItem
from dynamo_single.table.shapes import ITEM

#: How an answer says that it holds binary values, which JSON has no form for, and how both begin.
_BINARY, _BEGINNING = (b'"B"', b'"BS"'), b'"B'

_decode = msgspec.json.Decoder().decode


class PageForm:
    """What the items of a page are decoded into: a type as msgspec takes it; with ``batch`` those of a BatchGetItem.

    ``is_raw`` says that the type leaves binary values as they came, inside documents for instance: a page that holds
    one is not decoded by this form.
    """

    __slots__ = ("_decode", "_is_raw", "_others", "member")

    def __init__(self, item: Any, *, is_raw: bool, batch: bool = False) -> None:
        #: The member that holds the items.
        self.member = "Responses" if batch else "Items"
        self._others = ("UnprocessedKeys",) if batch else ("Count", "ScannedCount", "LastEvaluatedKey")
        self._others = (*self._others, "ConsumedCapacity")
        held = (self.member, dict[str, list[item]] if batch else list[item])
        others = [(name, Any, msgspec.UNSET) for name in self._others]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Page", [held, *others])).decode
        self._is_raw = is_raw

    def decoded(self, body: bytes) -> dict[str, object] | None:
        """The members of an answer; ``None`` if the body is not of this form, or no whole JSON."""
        if self._is_raw and holds_binary(body):
            return None
        try:
            page: Any = self._decode(body)
            # What no member is made of was passed over without a look at its characters.
            if not body.isascii():
                body.decode()
        except (ValueError, RecursionError):
            return None
        members = ((name, getattr(page, name)) for name in (self.member, *self._others))
        return {name: value for name, value in members if value is not msgspec.UNSET}


class TypedAnswer(dict[str, Any]):
    """An answer of which the items are ``typed``, as a form has them: those of a page, or of a batch by table.

    The other members lie in the dict itself.
    """

    __slots__ = ("_member", "_untyped", "typed")

    def __init__(self, members: dict[str, Any], member: str, untyped: Callable[[], dict[str, Any]]) -> None:
        self.typed = members.pop(member)
        super().__init__(members)
        self._member = member
        self._untyped = untyped

    def of_items(self, typed: Any, members: dict[str, Any], untyped: Callable[[], dict[str, Any]]) -> TypedAnswer:
        """The same answer with its items, and its other members, as somebody else knows them."""
        return TypedAnswer({**members, self._member: typed}, self._member, untyped)

    def as_plain(self) -> Mapping[str, object]:
        """The answer as any other one is; its items are decoded again, when they are asked for."""
        return _Plain(self, self._member, self._untyped)


def untyped(answer: Mapping[str, object]) -> Mapping[str, Any]:
    """An answer with its items as dicts of dicts, whichever way it was decoded."""
    return answer.as_plain() if isinstance(answer, TypedAnswer) else answer


class _Plain(Mapping[str, Any]):
    def __init__(self, answer: TypedAnswer, member: str, untyped: Callable[[], dict[str, Any]]) -> None:
        self._answer, self._member, self._untyped = answer, member, untyped
        self._items: Any = None

    def __getitem__(self, name: str) -> Any:
        if name != self._member:
            return self._answer[name]
        if self._items is None:
            self._items = self._untyped()[name]
        return self._items

    def __iter__(self) -> Iterator[str]:
        yield self._member
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
