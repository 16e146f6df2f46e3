"""What an HTTP answer to a request has to be before it is taken for DynamoDB's: its head, its checksum, its members.

Pure: an operation, its parameters and the bytes of an answer go in, and the answer's content comes out, or ``NoAnswer``
with what does not fit. Every transport reads what it received by ``read()``. This module must not know botocore,
connections or settings.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, field

from dynamo_single.table.request import NewItem, Parameters

# The types that members of an answer have, as values: what fits them, and how binary values in them are decoded.
#
# A type looks as far as the code that reads the answer relies on: that an item is an object, and not at each of its
# values. This module must not know operations.


class Shape:
    """The type of a member."""

    __slots__ = ()

    def fits(self, value: object) -> bool:
        """Whether a value that JSON gave is of this type."""
        raise NotImplementedError

    def decoded(self, value: object) -> object:
        """A value that fits, with its binary values as bytes; ``ValueError`` or ``TypeError`` where they are none."""
        return value


class Scalar(Struct, Shape, frozen=True):
    """A text, or a number that is not negative."""

    types: tuple[type, ...]

    def fits(self, value: Any) -> bool:
        return type(value) in self.types and (type(value) is str or value >= 0)


class Item(Struct, Shape, frozen=True):
    """An item, or a key: a map from names to typed values."""

    def fits(self, value: object) -> bool:
        return type(value) is dict

    def decoded(self, value: Any) -> Any:
        return {name: _decoded(each) for name, each in value.items()}


class ListOf(Struct, Shape, frozen=True):
    """A list of values of one type."""

    each: Shape

    def fits(self, value: object) -> bool:
        return type(value) is list and all(map(self.each.fits, value))

    def decoded(self, value: Any) -> Any:
        return list(map(self.each.decoded, value))


class MapOf(Struct, Shape, frozen=True):
    """A map from any names to values of one type."""

    each: Shape

    def fits(self, value: object) -> bool:
        return type(value) is dict and all(map(self.each.fits, value.values()))

    def decoded(self, value: Any) -> Any:
        return {name: self.each.decoded(each) for name, each in value.items()}


class Record(Struct, Shape, frozen=True):
    """A map with members of known names, and perhaps more, which are left as they are."""

    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)

    def fits(self, value: object) -> bool:
        return (
            type(value) is dict
            and all(name in value and shape.fits(value[name]) for name, shape in self.required.items())
            and all(name not in value or shape.fits(value[name]) for name, shape in self.optional.items())
        )

    def decoded(self, value: Any) -> Any:
        members = {**self.required, **self.optional}
        return {name: members[name].decoded(each) if name in members else each for name, each in value.items()}


def _decoded(value: Any) -> Any:
    """A typed value of DynamoDB with its bytes (AWS API reference, AttributeValue)."""
    ((kind, content),) = value.items()
    if kind == "B":
        return {kind: b64decode(content, validate=True)}
    if kind == "BS":
        return {kind: [b64decode(each, validate=True) for each in content]}
    if kind == "L":
        return {kind: list(map(_decoded, content))}
    if kind == "M":
        return {kind: {name: _decoded(each) for name, each in content.items()}}
    return value


TEXT = Scalar((str,))
COUNT = Scalar((int,))
NUMBER = Scalar((int, float))
ITEM = Item()
RECORD = Record()
#: What a request consumed (AWS API reference, ConsumedCapacity).
CAPACITY = Record({"CapacityUnits": NUMBER})


# Answers to Query, Scan and BatchGetItem whose items are decoded into what their reader wants, not dicts of dicts.
#
# A reader gives a ``PageForm`` along with its request. What it is given back is a ``TypedAnswer``; or the answer as a
# plain dict, where the page is not as the form has it, or somebody else answered. This module must not know models.

#: How an answer says that it holds binary values, which JSON has no form for, and how both begin.
_BINARY, _BEGINNING = (b'"B"', b'"BS"'), b'"B'

_decode = msgspec.json.Decoder().decode


class PageForm:
    """What the items of a page are decoded into: a type as msgspec takes it; with ``batch`` those of a BatchGetItem.

    ``is_raw`` says that the type leaves binary values as they came, inside documents for instance: a page that holds
    one is not decoded by this form.
    """

    __slots__ = ("_decode", "_is_raw", "_members", "member")

    def __init__(self, item: Any, *, is_raw: bool, batch: bool = False) -> None:
        #: The member that holds the items.
        self.member = "Responses" if batch else "Items"
        names = ("UnprocessedKeys",) if batch else ("Count", "ScannedCount", "LastEvaluatedKey")
        self._members = (self.member, *names, "ConsumedCapacity")
        held = (self.member, dict[str, list[item]] if batch else list[item])
        others = [(name, Any, msgspec.UNSET) for name in self._members[1:]]
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
        members: dict[str, object] = {}
        for name in self._members:
            if (value := getattr(page, name)) is not msgspec.UNSET:
                members[name] = value
        return members


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


#: What DynamoDB says of its answers (AWS: "DynamoDB low-level API"), without the version of the format.
CONTENT_TYPE = "application/x-amz-json-1."


#: How much of an answer that does not fit a message shows, in bytes.
_SHOWN = 60


#: The sign of a response whose body does not match its checksum, which the request paths check.
DAMAGED = "its checksum does not fit"


class NoAnswer(Exception):
    """What came is no answer of DynamoDB to the request; the text says by what that is seen, as a sentence's end."""


class Members(Struct, frozen=True):
    """The members of an operation's answer: those that are always there, and the types of the others, if they are.

    ``capacity`` is the type of what the request consumed, for operations that say so.
    """

    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)
    capacity: Shape | None = None

    def all(self, *, capacity: bool) -> Iterator[tuple[str, Shape]]:
        """Every member with its type; with ``capacity`` also what was consumed."""
        yield from self.required.items()
        yield from self.optional.items()
        if capacity and self.capacity is not None:
            yield "ConsumedCapacity", self.capacity


_WRITTEN = Members(optional={"Attributes": ITEM}, capacity=CAPACITY)
_FOUND = Members(
    required={"Count": COUNT, "ScannedCount": COUNT},
    optional={"Items": ListOf(ITEM), "LastEvaluatedKey": ITEM},
    capacity=CAPACITY,
)
_TABLE = Record({"TableName": TEXT, "TableStatus": TEXT})
_CHANGED_TABLE = Members({"TableDescription": _TABLE})
_KEYS = Record({"Keys": ListOf(ITEM)})
_WRITE = Record(optional={"PutRequest": Record({"Item": ITEM}), "DeleteRequest": Record({"Key": ITEM})})

#: Every operation that is sent, by the pages "Response Syntax" of the AWS API reference.
OPERATIONS: Mapping[str, Members] = MappingProxyType(
    {
        "BatchGetItem": Members(
            {"Responses": MapOf(ListOf(ITEM)), "UnprocessedKeys": MapOf(_KEYS)}, capacity=ListOf(CAPACITY)
        ),
        "BatchWriteItem": Members({"UnprocessedItems": MapOf(ListOf(_WRITE))}, capacity=ListOf(CAPACITY)),
        "CreateTable": _CHANGED_TABLE,
        "DeleteItem": _WRITTEN,
        "DeleteTable": _CHANGED_TABLE,
        "DescribeTable": Members({"Table": _TABLE}),
        "DescribeTimeToLive": Members({"TimeToLiveDescription": Record({"TimeToLiveStatus": TEXT})}),
        "GetItem": Members(optional={"Item": ITEM}, capacity=CAPACITY),
        "ListTables": Members({"TableNames": ListOf(TEXT)}, optional={"LastEvaluatedTableName": TEXT}),
        "PutItem": _WRITTEN,
        "Query": _FOUND,
        "Scan": _FOUND,
        "TransactGetItems": Members({"Responses": ListOf(Record(optional={"Item": ITEM}))}, capacity=ListOf(CAPACITY)),
        "TransactWriteItems": Members(capacity=ListOf(CAPACITY)),
        "UpdateItem": _WRITTEN,
        "UpdateTable": _CHANGED_TABLE,
        "UpdateTimeToLive": Members({"TimeToLiveSpecification": RECORD}),
    }
)

#: The operations whose usual answer is looked at by itself, with the one member that it may have.
_USUAL = {"DeleteItem": "Attributes", "GetItem": "Item", "PutItem": "Attributes", "UpdateItem": "Attributes"}
_NOTHING: dict[str, object] = {}
_PAGED = frozenset({"Query", "Scan"})


def read(
    operation: str,
    params: Parameters,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    capacity: bool = True,
    form: PageForm | None = None,
) -> dict[str, object]:
    """The content of a successful answer, binary values as bytes; raises ``NoAnswer`` for what is none.

    ``headers`` are found by their names in lower case. With ``capacity`` the answer has to say what the request
    consumed, which tells it from an empty one.
    With a ``form`` it is a ``TypedAnswer``, if the page is of that form.
    """
    _check_head(status, headers, body)
    if form is None:
        answer = _usual(operation, params, body) if capacity and operation in _USUAL else None
        return _content(operation, params, body, capacity=capacity) if answer is None else answer
    found = form.decoded(body)
    if found is None:
        return _content(operation, params, body, capacity=capacity)
    if capacity and _is_usual_page(operation, found, form):
        return TypedAnswer(found, form.member, partial(_content, operation, params, body, capacity=capacity))
    typed = found.pop(form.member)
    # Of the other members only keys could hold binary values, which are few.
    _check_members(operation, found, body, capacity=capacity, binary=True, apart_from=form.member)
    found[form.member] = typed
    _check_asked_for(operation, params, found, body)
    return TypedAnswer(found, form.member, partial(_content, operation, params, body, capacity=capacity))


def _usual(operation: str, params: Parameters, body: bytes) -> dict[str, object] | None:
    """The content of a usual answer: one member besides what it consumed, of the right type, without binary values.

    ``None`` for every other answer, which ``_content()`` reads: it has the rules, and the words for what breaks them.
    """
    if _BEGINNING in body:
        return None
    try:
        answer = _decode(body)
    except (ValueError, RecursionError):
        return None
    member = _USUAL[operation]
    try:
        units, fits = answer["ConsumedCapacity"]["CapacityUnits"], type(answer.get(member, _NOTHING)) is dict
    except (AttributeError, KeyError, TypeError):
        return None
    if not fits or type(units) not in NUMBER.types or units < 0:
        return None
    return None if member not in answer and params.get("ReturnValues") == "ALL_NEW" else answer


def _is_usual_page(operation: str, found: Mapping[str, Any], form: PageForm) -> bool:
    """Whether a page that was decoded has its items and its counts, and is the last one: no key goes on from there."""
    if operation not in _PAGED or "LastEvaluatedKey" in found:
        return False
    count, scanned = found.get("Count"), found.get("ScannedCount")
    if type(count) is not int or type(scanned) is not int or scanned < 0 or count != len(found[form.member]):
        return False
    try:
        units = found["ConsumedCapacity"]["CapacityUnits"]
    except (KeyError, TypeError):
        return False
    return type(units) in NUMBER.types and units >= 0


def _content(operation: str, params: Parameters, body: bytes, *, capacity: bool) -> dict[str, object]:
    try:
        answer = _decode(body)
    except (ValueError, RecursionError):
        raise NoAnswer(f"{_shown(body)} is no whole JSON") from None
    if type(answer) is not dict:
        raise NoAnswer(f"{_shown(body)} is no JSON object")
    if operation in OPERATIONS:
        # Only an answer that holds one of the types of binary values is walked through.
        _check_members(operation, answer, body, capacity=capacity, binary=holds_binary(body))
        _check_asked_for(operation, params, answer, body)
    return answer


def _check_asked_for(operation: str, params: Mapping[str, object], answer: Mapping[str, object], body: bytes) -> None:
    if name := _asked_for(operation, params, answer):
        raise NoAnswer(_lacking(operation, name, body))


def _check_members(
    operation: str, answer: dict[str, object], body: bytes, *, capacity: bool, binary: bool, apart_from: str = ""
) -> None:
    """Raise for a member that is missing or of another type; with ``binary`` decode the binary values of the others."""
    members = OPERATIONS[operation]
    for name, shape in members.all(capacity=capacity):
        if name in answer:
            answer[name] = _member(operation, name, shape, answer[name], binary=binary)
        elif name != apart_from and (name in members.required or name == "ConsumedCapacity"):
            raise NoAnswer(_lacking(operation, name, body))


def _check_head(status: int, headers: Mapping[str, str], body: bytes) -> None:
    if status != HTTPStatus.OK:
        raise NoAnswer(f"its HTTP status is {status}")
    kind = headers.get("content-type")
    if kind is None or not kind.lower().startswith(CONTENT_TYPE):
        raise NoAnswer(f"its content type is {kind!r}, and DynamoDB's is {CONTENT_TYPE + '0'!r}")
    length = headers.get("content-length")
    if length is not None and length.isdecimal() and int(length) != len(body):
        raise NoAnswer(f"{len(body)} of its {length} bytes arrived")


def _member(operation: str, name: str, shape: Shape, value: object, *, binary: bool) -> object:
    if not shape.fits(value):
        raise NoAnswer(f"{name} of an answer to {operation} cannot be {_shown(json.dumps(value).encode())}")
    try:
        return shape.decoded(value) if binary else value
    except (AttributeError, TypeError, ValueError):
        raise NoAnswer(f"{name} of its answer to {operation} holds a binary value that is none") from None


def _asked_for(operation: str, params: Parameters, answer: Mapping[str, Any]) -> str:
    """The member that the request's own parameters ask for, and that is missing or incomplete; empty for none."""
    if operation in {"Query", "Scan"} and params.get("Select") != "COUNT":
        return "" if "Items" in answer and len(answer["Items"]) == answer["Count"] else "Items, as many as Count"
    if operation == "UpdateItem" and params.get("ReturnValues") == "ALL_NEW":
        return "" if "Attributes" in answer else "Attributes"
    if operation == "TransactGetItems":
        return "" if len(answer["Responses"]) == len(params["TransactItems"]) else "a response to each action"
    if operation == "BatchGetItem":
        told = answer["Responses"].keys() | answer["UnprocessedKeys"].keys()
        return "" if params["RequestItems"].keys() <= told else "responses of each table"
    return ""


def _lacking(operation: str, what: str, body: bytes) -> str:
    way_out = ""
    if what == "ConsumedCapacity":
        way_out = "; for an endpoint that never says what a request consumed, set CONSUMED_CAPACITY to False"
    return f"an answer to {operation} has {what}, and {_shown(body)} has not{way_out}"


def _shown(body: bytes) -> str:
    if not body:
        return "an empty body"
    text = body[:_SHOWN].decode("ascii", "replace")
    return repr(text if len(body) <= _SHOWN else f"{text}...")
