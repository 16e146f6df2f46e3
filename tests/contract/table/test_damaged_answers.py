"""Whatever bytes the server returns, a request returns DynamoDB's response or raises this app's error."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import (
    ConditionFailed,
    Conflict,
    DynamoSingleError,
    EndpointUnreachable,
    OutcomeUnknown,
    TransactionCancelled,
)
from dynamo_single.table import Request, get_table
from tests.contract.table.scripted import FOUND, ITEM, Scripted, Step, refusal, reply, scripted
from tests.contract.table.test_transports import GET, PUT, WRITTEN
from tests.deep import examples

TRANSACTION = Request("TransactWriteItems", {"TransactItems": [{}, {}]})
BODY = json.dumps(FOUND).encode()
HTML = b"<html><body>Sign in</body></html>"


@pytest.fixture(scope="module", params=["direct", "botocore"])
def server(request: pytest.FixtureRequest) -> Iterator[Scripted]:
    """A server that the default table is at, reached by one request path."""
    with scripted() as found:
        declared = {"TABLE_NAME": "single-table", "ENDPOINT_URL": f"http://127.0.0.1:{found.port}"}
        options = {"TRANSPORT": request.param, "MAX_ATTEMPTS": 1, "READ_TIMEOUT": 5 + found.number / 1000}
        with override_settings(DYNAMO_SINGLE={"default": declared | options}):
            yield found


def outcome(server: Scripted, request: Request, given: bytes) -> dict[str, Any] | DynamoSingleError:
    """Return the result of a request, or this app's error, if these bytes end the connection."""
    while server.at_once:  # the next request would use a connection that the server is about to close
        time.sleep(0.001)
    server.steps[:] = [Step(given, end="close")]
    try:
        return get_table().send(request)
    except DynamoSingleError as error:
        return error


def chunked(body: bytes, *, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return a chunked response."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n" % (len(body), body) + end


DAMAGED = {
    "truncated JSON": reply(BODY[:-2]),
    "shorter than its length": reply(BODY, content_length=str(len(BODY) + 9)),
    "longer than its length": reply(BODY, content_length=str(len(BODY) - 9)),
    "chunks without end": chunked(BODY, end=b""),
    "a wrong chunk": chunked(BODY).replace(b"\r\n\r\n", b"\r\n\r\nx", 1),
    "compressed": reply(gzip.compress(BODY), content_encoding="gzip"),
    "another checksum": reply(BODY, x_amz_crc32=str(zlib.crc32(BODY) + 1)),
    "HTML": reply(HTML, content_type="text/html"),
    "an empty body": reply(b""),
    "nested too deep": reply(b"[" * 100_000),
    "no UTF-8": reply(b'{"Item": {"a": {"S": "\xff"}}}'),
    "moved": reply(b"", 302, location="http://127.0.0.1:1/"),
    "not modified": reply(b"", 304),
    "no content": b"HTTP/1.1 204 No\r\n\r\n",
    "HTML as refusal": reply(HTML, 403, content_type="text/html"),
    "refusal without type": reply({"message": "no"}, 400),
    "refusal of no text": reply({"__type": 7, "message": ["no"]}, 400),
    "refusal as list": reply([1], 400),
    "refusal as null": reply(b"null", 400),
    "refusal nested too deep": reply(b"[" * 100_000, 400),
    "refusal of another checksum": reply(
        {"__type": "a#ConditionalCheckFailedException", "message": ""}, 400, x_amz_crc32="1"
    ),
    "status of no HTTP": reply(BODY, 999),
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "no bytes": b"",
}


@pytest.mark.parametrize("given_", DAMAGED.values(), ids=DAMAGED)
def test_damaged_answer_is_no_answer(server: Scripted, given_: bytes) -> None:
    """A read has no result, and the outcome of a write is unknown."""
    assert type(outcome(server, GET, given_)) is EndpointUnreachable
    assert type(outcome(server, PUT, given_)) is OutcomeUnknown


NO_REASONS: dict[str, Any] = {
    "missing": {},
    "null": {"CancellationReasons": None},
    "a text": {"CancellationReasons": "None, ConditionalCheckFailed"},
    "an object": {"CancellationReasons": {"Code": "None"}},
    "too few": {"CancellationReasons": [{"Code": "ConditionalCheckFailed"}]},
    "too many": {"CancellationReasons": [{"Code": "None"}] * 3},
    "of no objects": {"CancellationReasons": ["None", None]},
    "a code of no text": {"CancellationReasons": [{"Code": "None"}, {"Code": 7}]},
    "an item of no object": {"CancellationReasons": [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": 7}]},
    "no bytes": {"CancellationReasons": [{"Code": "None"}, {"Code": "x", "Item": {"a": {"B": "-"}}}]},
}


@pytest.mark.parametrize("more", NO_REASONS.values(), ids=NO_REASONS)
def test_odd_cancellation_reasons_are_not_given(server: Scripted, more: Any) -> None:
    """The transaction was cancelled anyway, but the reasons cannot be assigned to actions."""
    error = outcome(server, TRANSACTION, refusal("TransactionCanceledException", **more))
    assert isinstance(error, TransactionCancelled)
    assert error.reasons == ()


def test_null_codes_are_actions_that_passed(server: Scripted) -> None:
    """DynamoDB's own code for them is ``None``."""
    reasons = [{"Code": None, "Message": None}, {"Code": "ConditionalCheckFailed", "Message": None, "Item": ITEM}]
    error = outcome(server, TRANSACTION, refusal("TransactionCanceledException", CancellationReasons=reasons))
    assert isinstance(error, TransactionCancelled)
    assert error.reasons == (None, {"Code": "ConditionalCheckFailed", "Item": ITEM})


def test_conflict_is_one_whatever_the_number_of_reasons(server: Scripted) -> None:
    """All reasons are the same."""
    reasons = [{"Code": "TransactionConflict"}]
    error = outcome(server, TRANSACTION, refusal("TransactionCanceledException", CancellationReasons=reasons))
    assert type(error) is Conflict


def test_failed_condition_without_readable_item_has_none(server: Scripted) -> None:
    """The condition failed anyway."""
    error = outcome(server, PUT, refusal("ConditionalCheckFailedException", Item={"a": {"B": "-"}}))
    assert isinstance(error, ConditionFailed)
    assert error.item is None


WHOLE = {
    "item": (GET, reply()),
    "written": (PUT, WRITTEN),
    "condition": (PUT, refusal("ConditionalCheckFailedException", Item=ITEM)),
    "cancelled": (
        TRANSACTION,
        refusal("TransactionCanceledException", CancellationReasons=[{"Code": "None"}, {"Code": "x", "Item": ITEM}]),
    ),
    "chunks": (GET, chunked(BODY)),
}
INSTEAD = st.binary(max_size=4) | st.sampled_from([b"\r\n", b"0", b"null"])
CHANGES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), INSTEAD), min_size=1, max_size=3)


@settings(max_examples=examples(25, 3000), suppress_health_check=list(HealthCheck))
@given(which=st.sampled_from([*WHOLE]), changes=CHANGES, checked=st.booleans())
def test_changed_bytes_raise_errors_of_ours_alone(
    server: Scripted, which: str, changes: list[tuple[int, int, bytes]], checked: bool
) -> None:
    """Some bytes are others, missing or more, with and without a checksum that would show it."""
    request, given_ = WHOLE[which]
    if not checked:
        given_ = b"\r\n".join(line for line in given_.split(b"\r\n") if not line.startswith(b"x-amz-crc32"))
    for at, length, instead in changes:
        given_ = given_[:at] + instead + given_[at + length :]
    assert isinstance(outcome(server, request, given_), dict | DynamoSingleError)
