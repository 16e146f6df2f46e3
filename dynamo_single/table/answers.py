"""Validate and decode the HTTP responses of DynamoDB.

``read()`` accepts a response only if its head and its members match the operation; both request paths use it. The file
has three parts: shapes, which are the types of members; decoders that turn the items of a page into the caller's own
types; and the members of each operation. The module is independent of botocore, connections, and settings.
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


class Shape:
    """The type of a member, checked as deeply as callers rely on it: an item is a map, its values are not checked."""

    __slots__ = ()

    def fits(self, value: object) -> bool:
        """Return whether a decoded JSON value is of this type."""
        raise NotImplementedError

    def decoded(self, value: object) -> object:
        """Return a value of this type with its binary values as bytes.

        Raise ``ValueError`` or ``TypeError`` if a binary value is not base64.
        """
        return value


class Scalar(Struct, Shape, frozen=True):
    """A string, or a number that is not negative."""

    types: tuple[type, ...]

    def fits(self, value: Any) -> bool:
        return type(value) in self.types and (type(value) is str or value >= 0)


class Item(Struct, Shape, frozen=True):
    """An item, or a key: a map from names to typed values."""

    def fits(self, value: object) -> bool:
        return type(value) is dict

    def decoded(self, value: Any) -> Any:
        return {name: with_bytes(each) for name, each in value.items()}


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
    """A map with members of known names; other members are returned unchanged."""

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


def with_bytes(value: Any) -> Any:
    """Return an attribute value of JSON with its binary values as bytes (AWS API reference, AttributeValue).

    Raise ``ValueError`` or ``TypeError`` if a binary value is not base64.
    """
    ((kind, content),) = value.items()
    if kind == "B":
        return {kind: b64decode(content, validate=True)}
    if kind == "BS":
        return {kind: [b64decode(each, validate=True) for each in content]}
    if kind == "L":
        return {kind: list(map(with_bytes, content))}
    if kind == "M":
        return {kind: {name: with_bytes(each) for name, each in content.items()}}
    return value


TEXT = Scalar((str,))
COUNT = Scalar((int,))
NUMBER = Scalar((int, float))
ITEM = Item()
RECORD = Record()
#: The capacity units of a request (AWS API reference, ConsumedCapacity).
CAPACITY = Record({"CapacityUnits": NUMBER})


#: The JSON of the types of binary values, and its common beginning.
_BINARY, _BEGINNING = (b'"B"', b'"BS"'), b'"B'

_decode = msgspec.json.Decoder().decode


#: The member that contains the items of an operation; ``Items`` is that of the others.
_HOLDING = {"BatchGetItem": "Responses", "GetItem": "Item"}


class ResponseDecoder:
    """Decode the items of a Query, Scan, BatchGetItem or GetItem into a type that msgspec supports.

    ``operation`` is ``"Query"`` for a Scan, too. ``is_raw`` means that the type does not decode binary values. A
    response that contains one is then returned as a plain dict, as are responses that do not match the type.
    """

    __slots__ = ("_decode", "_is_raw", "_members", "member")

    def __init__(self, item: Any, *, is_raw: bool, operation: str = "Query") -> None:
        #: The member that contains the items. A response to GetItem lacks it if there is no item.
        self.member = _HOLDING.get(operation, "Items")
        shape = OPERATIONS[operation]
        self._members = tuple(dict.fromkeys((self.member, *shape.required, *shape.optional)))
        kinds: dict[str, Any] = {"Items": list[item], "Responses": dict[str, list[item]]}
        held: Any = (self.member, kinds[self.member]) if self.member in kinds else (self.member, item, msgspec.UNSET)
        others = [(name, Any, msgspec.UNSET) for name in self._members[1:]]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Page", [held, *others])).decode
        self._is_raw = is_raw

    def decoded(self, body: bytes) -> dict[str, object] | None:
        """Return the members of a response; ``None`` if the body does not match the type, or is not valid JSON."""
        if self._is_raw and holds_binary(body):
            return None
        try:
            page: Any = self._decode(body)
            # msgspec does not check the characters of the members that it skips.
            if not body.isascii():
                body.decode()
        except (ValueError, RecursionError):
            return None
        members: dict[str, object] = {}
        for name in self._members:
            if (value := getattr(page, name)) is not msgspec.UNSET:
                members[name] = value
        return members


class TypedResponse(dict[str, Any]):
    """A response with decoded items in ``typed``, a list or, for a batch, a list for each table.

    The dict itself contains the other members. For a GetItem, ``typed`` is the item. ``untyped`` returns the response
    with its items as dicts of attribute values.
    """

    __slots__ = ("_member", "typed", "untyped")

    def __init__(self, members: dict[str, Any], member: str, untyped: Callable[[], dict[str, Any]]) -> None:
        self.typed = members.pop(member)
        super().__init__(members)
        self._member = member
        self.untyped = untyped

    def of_items(self, typed: Any, members: dict[str, Any], untyped: Callable[[], dict[str, Any]]) -> TypedResponse:
        """Return a response with other items and members."""
        return TypedResponse({**members, self._member: typed}, self._member, untyped)

    def as_plain(self) -> Mapping[str, object]:
        """Return the response as a plain mapping, which decodes the items again when they are read."""
        return _Plain(self, self._member, self.untyped)


def plain_response(answer: Mapping[str, object]) -> Mapping[str, Any]:
    """Return a response with its items as dicts of attribute values, however it was decoded."""
    return answer.as_plain() if isinstance(answer, TypedResponse) else answer


class _Plain(Mapping[str, Any]):
    def __init__(self, answer: TypedResponse, member: str, untyped: Callable[[], dict[str, Any]]) -> None:
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
    """Return whether JSON may contain a binary value."""
    # A search for bytes that end in a quotation mark takes ten times as long, because JSON is full of them.
    place = text.find(_BEGINNING)
    while place >= 0:
        if text.startswith(_BINARY, place):
            return True
        place = text.find(_BEGINNING, place + 1)
    return False


def item_of(text: bytes) -> NewItem:
    """Return the item in a JSON text with its binary values as bytes.

    Raise ``ValueError`` or ``TypeError`` if a binary value is not base64.
    """
    item: NewItem = _decode(text)
    return ITEM.decoded(item) if holds_binary(text) else item


#: The content type of DynamoDB's responses (AWS: "DynamoDB low-level API"), without its version.
CONTENT_TYPE = "application/x-amz-json-1."

#: The most bytes of an invalid response that a message shows.
_SHOWN = 60

#: The reason of a request path that received a body which does not match its checksum.
DAMAGED = "its checksum does not match"


class InvalidResponse(Exception):
    """A response is not DynamoDB's response to the request; the text contains the reason, as the end of a sentence."""


_USED = {"ConsumedCapacity": CAPACITY}
_USED_BY_TABLES = {"ConsumedCapacity": ListOf(CAPACITY)}
_WRITTEN = Record(_USED, {"Attributes": ITEM})
_FOUND = Record({"Count": COUNT, "ScannedCount": COUNT, **_USED}, {"Items": ListOf(ITEM), "LastEvaluatedKey": ITEM})
_TABLE = Record({"TableName": TEXT, "TableStatus": TEXT})
_CHANGED_TABLE = Record({"TableDescription": _TABLE})
_KEYS = Record({"Keys": ListOf(ITEM)})
_WRITE = Record(optional={"PutRequest": Record({"Item": ITEM}), "DeleteRequest": Record({"Key": ITEM})})
_ENTRY = Record(optional={"Item": ITEM})
_STATEMENT = Record(optional={"Item": ITEM, "Error": Record({"Code": TEXT}, {"Item": ITEM})})

#: The members of each response, from the sections "Response Syntax" of the AWS API reference, of all sent operations.
OPERATIONS: Mapping[str, Record] = MappingProxyType(
    {
        # A response to each statement identifies DynamoDB, and DynamoDB Local does not return the capacity.
        "BatchExecuteStatement": Record({"Responses": ListOf(_STATEMENT)}, _USED_BY_TABLES),
        "BatchGetItem": Record({"Responses": MapOf(ListOf(ITEM)), "UnprocessedKeys": MapOf(_KEYS), **_USED_BY_TABLES}),
        "BatchWriteItem": Record({"UnprocessedItems": MapOf(ListOf(_WRITE)), **_USED_BY_TABLES}),
        "CreateTable": _CHANGED_TABLE,
        "DeleteItem": _WRITTEN,
        "DeleteTable": _CHANGED_TABLE,
        "DescribeTable": Record({"Table": _TABLE}),
        "DescribeTimeToLive": Record({"TimeToLiveDescription": Record({"TimeToLiveStatus": TEXT})}),
        "GetItem": Record(_USED, {"Item": ITEM}),
        "ListTables": Record({"TableNames": ListOf(TEXT)}, {"LastEvaluatedTableName": TEXT}),
        "PutItem": _WRITTEN,
        "Query": _FOUND,
        "Scan": _FOUND,
        "TransactGetItems": Record({"Responses": ListOf(_ENTRY), **_USED_BY_TABLES}),
        "TransactWriteItems": Record(_USED_BY_TABLES),
        "UpdateItem": _WRITTEN,
        "UpdateTable": _CHANGED_TABLE,
        "UpdateTimeToLive": Record({"TimeToLiveSpecification": RECORD}),
    }
)

#: The operations whose usual response has a fast check, each with its only other member.
_USUAL = {"DeleteItem": "Attributes", "GetItem": "Item", "PutItem": "Attributes", "UpdateItem": "Attributes"}
_NOTHING: dict[str, object] = {}
_PAGED = frozenset({"Query", "Scan"})
#: The number of members of a last page: its items, and what each page has.
_MEMBERS_OF_LAST_PAGE = 1 + len(_FOUND.required)


def read(
    operation: str,
    params: Parameters,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    capacity: bool = True,
    decoder: ResponseDecoder | None = None,
) -> dict[str, object]:
    """Return the content of a successful response, with binary values as bytes, or raise ``InvalidResponse``.

    ``headers`` has names in lower case. With ``capacity``, the response must contain ``ConsumedCapacity``, which
    distinguishes it from an empty response of another server. Return a ``TypedResponse`` if there is a ``decoder`` and
    the page matches it.
    """
    _check_head(status, headers, body)
    found = None if decoder is None else decoder.decoded(body)
    if decoder is None or found is None or decoder.member not in found:
        answer = _usual_response(operation, params, body) if capacity and operation in _USUAL else None
        return _content(operation, params, body, capacity=capacity) if answer is None else answer
    if capacity and _is_usual_page(operation, found, decoder):
        return TypedResponse(found, decoder.member, partial(_content, operation, params, body, capacity=capacity))
    typed = found.pop(decoder.member)
    # Among the other members, only keys can contain binary values.
    _check_members(operation, found, body, capacity=capacity, binary=True, apart_from=decoder.member)
    found[decoder.member] = typed
    _check_requested(operation, params, found, body)
    return TypedResponse(found, decoder.member, partial(_content, operation, params, body, capacity=capacity))


def _usual_response(operation: str, params: Parameters, body: bytes) -> dict[str, object] | None:
    """Return the content of a usual response: capacity and one member of the right type, without binary values.

    Return ``None`` for every other response. ``_content()`` then applies the rules and words the errors.
    """
    if _BEGINNING in body and holds_binary(body):  # booleans begin so too
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


def _is_usual_page(operation: str, found: Mapping[str, Any], decoder: ResponseDecoder) -> bool:
    """Return whether a decoded response has valid counts and nothing else that needs a check.

    This is an item, or a page without optional members.
    """
    if operation in _PAGED:
        count, scanned = found.get("Count"), found.get("ScannedCount")
        is_last = len(found) <= _MEMBERS_OF_LAST_PAGE
        if not is_last or type(count) is not int or type(scanned) is not int or scanned < 0:
            return False
        if count != len(found[decoder.member]):
            return False
    elif operation != "GetItem" or not bytes(found[decoder.member]).startswith(b"{"):
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
        raise InvalidResponse(f"{_shown(body)} is not complete JSON") from None
    if type(answer) is not dict:
        raise InvalidResponse(f"{_shown(body)} is not a JSON object")
    if operation in OPERATIONS:
        # Decoding walks through the whole response, so it is skipped if there is no binary value.
        _check_members(operation, answer, body, capacity=capacity, binary=holds_binary(body))
        _check_requested(operation, params, answer, body)
    return answer


def _check_members(
    operation: str, answer: dict[str, object], body: bytes, *, capacity: bool, binary: bool, apart_from: str = ""
) -> None:
    """Raise ``InvalidResponse`` if a member is missing or has a wrong type; with ``binary``, decode binary values."""
    record = OPERATIONS[operation]
    for name, shape in {**record.required, **record.optional}.items():
        if name == "ConsumedCapacity" and not capacity:
            continue
        if name in answer:
            answer[name] = _member(operation, name, shape, answer[name], binary=binary)
        elif name in record.required and name != apart_from:
            raise InvalidResponse(_missing_sentence(operation, name, body))


def _check_head(status: int, headers: Mapping[str, str], body: bytes) -> None:
    if status != HTTPStatus.OK:
        raise InvalidResponse(f"its HTTP status is {status}")
    kind = headers.get("content-type")
    if kind is None or not kind.lower().startswith(CONTENT_TYPE):
        raise InvalidResponse(f"its content type is {kind!r}, and DynamoDB's is {CONTENT_TYPE + '0'!r}")
    length = headers.get("content-length")
    if length is not None and length.isdecimal() and int(length) != len(body):
        raise InvalidResponse(f"{len(body)} of its {length} bytes arrived")


def _member(operation: str, name: str, shape: Shape, value: object, *, binary: bool) -> object:
    if not shape.fits(value):
        raise InvalidResponse(f"{name} in a response to {operation} cannot be {_shown(json.dumps(value).encode())}")
    try:
        return shape.decoded(value) if binary else value
    except (AttributeError, TypeError, ValueError):
        raise InvalidResponse(
            f"{name} in its response to {operation} contains a binary value that is not base64"
        ) from None


def _check_requested(operation: str, params: Parameters, answer: Mapping[str, Any], body: bytes) -> None:
    """Raise ``InvalidResponse`` if a member that the parameters request is missing or incomplete."""
    if missing := _missing_member(operation, params, answer):
        raise InvalidResponse(_missing_sentence(operation, missing, body))


def _missing_member(operation: str, params: Parameters, answer: Mapping[str, Any]) -> str:
    if operation in {"Query", "Scan"} and params.get("Select") != "COUNT":
        return "" if "Items" in answer and len(answer["Items"]) == answer["Count"] else "Items, as many as Count"
    if operation == "UpdateItem" and params.get("ReturnValues") == "ALL_NEW":
        return "" if "Attributes" in answer else "Attributes"
    if operation == "TransactGetItems":
        return "" if len(answer["Responses"]) == len(params["TransactItems"]) else "a response to each action"
    if operation == "BatchExecuteStatement":
        return "" if len(answer["Responses"]) == len(params["Statements"]) else "a response to each statement"
    if operation == "BatchGetItem":
        told = answer["Responses"].keys() | answer["UnprocessedKeys"].keys()
        return "" if params["RequestItems"].keys() <= told else "responses of each table"
    return ""


def _missing_sentence(operation: str, what: str, body: bytes) -> str:
    advice = ""
    if what == "ConsumedCapacity":
        advice = "; if the endpoint never returns the consumed capacity, set CONSUMED_CAPACITY to False"
    return f"a response to {operation} contains {what}, but {_shown(body)} does not{advice}"


def _shown(body: bytes) -> str:
    if not body:
        return "an empty body"
    text = body[:_SHOWN].decode("ascii", "replace")
    return repr(text if len(body) <= _SHOWN else f"{text}...")
