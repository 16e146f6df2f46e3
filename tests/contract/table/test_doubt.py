"""A write with an unknown outcome is reported as such, whatever its later attempts return."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from dynamo_single.exceptions import (
    ConditionFailed,
    DynamoSingleError,
    EndpointUnreachable,
    OutcomeUnknown,
    TransactionCancelled,
)
from dynamo_single.table import Request
from tests.contract.table.scripted import FOUND, ITEM, Scripted, Step, refusal, reply, scripted
from tests.contract.table.test_transports import GET, PUT, Transport, hardly_any_pause, outcome
from tests.contract.table.test_transports import authority as authority
from tests.contract.table.test_transports import transport as transport

__all__ = ["authority", "hardly_any_pause", "transport"]

Authority = tuple[Path, ssl.SSLContext]

#: First attempts that may have executed a write.
LOST = {
    "reset": Step(end="reset"),
    "internal": Step(reply({"__type": "x#InternalServerError"}, 500, connection="close"), end="close"),
    "proxy": Step(reply(b"", 503, connection="close"), end="close"),
    "damaged": Step(reply(x_amz_crc32="1", connection="close"), end="close"),
}
#: Errors of the last attempt that do not apply to the first one.
REFUSALS = (
    "AccessDeniedException",
    "ExpiredTokenException",
    "ResourceNotFoundException",
    "ThrottlingException",
    "TransactionConflictException",
    "ValidationException",
)
lost = pytest.mark.parametrize("first", LOST.values(), ids=LOST)


@contextmanager
def encrypted(authority: Authority, *steps: Step) -> Iterator[Scripted]:
    """A scripted server with TLS that the clients of the block trust."""
    bundle, context = authority
    with mock.patch.dict(os.environ, {"AWS_CA_BUNDLE": str(bundle)}), scripted(*steps, tls=context) as server:
        yield server


def after_first_request(server: Scripted, change: Callable[[], object]) -> None:
    """Call ``change`` before the server responds to its first request."""

    def check(headers: dict[str, str], body: bytes) -> None:
        if len(server.requests) == 0:
            change()

    server.check = check


def assert_reported(request: Request, error: object) -> None:
    """A write is in doubt, and a read has a plain error."""
    assert isinstance(error, DynamoSingleError), error
    assert isinstance(error, OutcomeUnknown) == (request is PUT), error
    assert ("may have been executed" in str(error)) == (request is PUT)


@lost
def test_refusal_leaves_write_in_doubt(transport: Transport, first: Step) -> None:
    """DynamoDB's error does not apply to the first attempt."""
    with scripted() as server:
        for code in REFUSALS:
            for request in (GET, PUT):
                server.steps[:] = [first, Step(refusal(code))]
                error = outcome(server, transport, request, MAX_ATTEMPTS=2)
                assert_reported(request, error)
                assert request is GET or code in str(error)
        assert len(server.requests) == 4 * len(REFUSALS)


@lost
@pytest.mark.parametrize("request_", [GET, PUT], ids=["read", "write"])
def test_refused_connection_leaves_write_in_doubt(transport: Transport, first: Step, request_: Request) -> None:
    """The last attempt was not sent, but the first one was."""
    with scripted(first) as server:
        after_first_request(server, server.stop)
        assert_reported(request_, outcome(server, transport, request_, MAX_ATTEMPTS=2))


@pytest.mark.parametrize("given", [b"", b"no TLS\r\n"], ids=["reset", "not TLS"])
def test_failed_handshake_leaves_write_in_doubt(transport: Transport, authority: Authority, given: bytes) -> None:
    """This includes a handshake that ends with a reset."""
    for first in LOST.values():
        with encrypted(authority, first) as server:
            after_first_request(server, lambda: server.breaks.append(given))
            error = outcome(server, transport, PUT, ENDPOINT_URL=f"https://127.0.0.1:{server.port}", MAX_ATTEMPTS=2)
            assert_reported(PUT, error)
            assert server.connections == 2


@pytest.mark.parametrize("given", [b"", b"no TLS\r\n"], ids=["reset", "not TLS"])
def test_failed_handshake_is_retried(transport: Transport, authority: Authority, given: bytes) -> None:
    """botocore does the same."""
    with encrypted(authority) as server:
        server.breaks.append(given)
        assert outcome(server, transport, GET, ENDPOINT_URL=f"https://127.0.0.1:{server.port}") == FOUND


def test_handshake_that_always_fails_sends_nothing(transport: Transport, authority: Authority) -> None:
    """The write's error says this."""
    with encrypted(authority) as server:
        server.breaks += [b"no TLS\r\n"] * 2
        error = outcome(server, transport, PUT, ENDPOINT_URL=f"https://127.0.0.1:{server.port}", MAX_ATTEMPTS=2)
    assert type(error) is EndpointUnreachable
    assert "was not sent" in str(error)


def test_tls_failure_after_request_leaves_doubt(transport: Transport, authority: Authority) -> None:
    """The request was sent before."""
    for request in (GET, PUT):
        with encrypted(authority, Step(end="garbled")) as server:
            error = outcome(server, transport, request, ENDPOINT_URL=f"https://127.0.0.1:{server.port}", MAX_ATTEMPTS=1)
            assert len(server.requests) == 1
        assert isinstance(error, EndpointUnreachable)
        assert isinstance(error, OutcomeUnknown) == (request is PUT)


def test_missing_credentials_leave_write_in_doubt(transport: Transport, tmp_path: Path) -> None:
    """Their process fails between the attempts."""
    process, config, flag = (tmp_path / name for name in ("process.py", "config", "flag"))
    process.write_text(
        "import datetime, json, pathlib, sys\n"
        f"if pathlib.Path({str(flag)!r}).exists():\n"
        "    sys.exit('no login any more')\n"
        # Within the last ten minutes botocore renews credentials before it uses them.
        "ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': 'KEY', 'SecretAccessKey': 's', 'SessionToken': 't',"
        " 'Expiration': ends.isoformat()}))\n"
    )
    config.write_text(f"[default]\ncredential_process = {sys.executable} {process}\n")
    environment = {"AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "default"}
    with mock.patch.dict(os.environ, environment), scripted(Step(end="reset")) as server:
        after_first_request(server, flag.touch)
        error = outcome(server, transport, PUT)
        assert len(server.requests) == 1
    assert_reported(PUT, error)
    assert "no login any more" in str(error)


@lost
def test_failed_condition_ends_doubt(transport: Transport, first: Step) -> None:
    """The caller compares the stored item with its own."""
    with scripted(first, Step(refusal("ConditionalCheckFailedException", Item=ITEM))) as server:
        error = outcome(server, transport, PUT)
    assert isinstance(error, ConditionFailed)
    assert error.retried


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ConditionalCheckFailed", TransactionCancelled),
        ("TransactionConflict", OutcomeUnknown),
        ("ThrottlingError", OutcomeUnknown),
    ],
)
def test_only_condition_of_transaction_ends_doubt(
    transport: Transport, code: str, expected: type[DynamoSingleError]
) -> None:
    """A conflict may be one with its own first attempt."""
    reasons = [{"Code": "None"}, {"Code": code, "Message": "no"}]
    request = Request("TransactWriteItems", {"TransactItems": [{}, {}], "ClientRequestToken": "one"})
    last = refusal("TransactionCanceledException", CancellationReasons=reasons)
    with scripted(LOST["reset"], Step(last)) as server:
        assert type(outcome(server, transport, request)) is expected
