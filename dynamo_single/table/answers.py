"""What an HTTP answer to a request has to be before it is taken for DynamoDB's: its head, its checksum, its members.

Pure: an operation, its parameters and the bytes of an answer go in, and the answer's content comes out, or ``NoAnswer``
with what does not fit. Every transport reads what it received by ``read()``. This module must not know botocore,
connections or settings.
"""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct, field

from dynamo_single.table.items import Parameters
from dynamo_single.table.pages import PageForm, TypedAnswer, holds_binary
from dynamo_single.table.shapes import CAPACITY, COUNT, ITEM, RECORD, TEXT, ListOf, MapOf, Record, Shape

#: What DynamoDB says of its answers (AWS: "DynamoDB low-level API"), without the version of the format.
CONTENT_TYPE = "application/x-amz-json-1."

_decode = msgspec.json.Decoder().decode

#: How much of an answer that does not fit a message shows, in bytes.
_SHOWN = 60


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
    consumed, which tells it from an empty one. A checksum has to fit where there is one: DynamoDB always sends it.
    With a ``form`` it is a ``TypedAnswer``, if the page is of that form.
    """
    _check_head(status, headers, body)
    found = None if form is None else form.decoded(body)
    if form is None or found is None:
        return _content(operation, params, body, capacity=capacity)
    typed = found.pop(form.member)
    # Of the other members only keys could hold binary values, which are few.
    _check_members(operation, found, body, capacity=capacity, binary=True, apart_from=form.member)
    found[form.member] = typed
    _check_asked_for(operation, params, found, body)
    return TypedAnswer(found, form.member, partial(_content, operation, params, body, capacity=capacity))


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
    checksum = headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(crc32(body)):
        raise NoAnswer("its checksum does not fit")


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
