"""A server with AWS's checks accepts requests of both paths, and rejects all invalid ones."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from unittest import mock

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from msgspec.structs import replace

from dynamo_single.exceptions import AccessDenied
from dynamo_single.table import Request, Table
from tests.contract.table.test_transports import Transport, transport
from tests.strict import IS_STRICT, Strict, in_front_of

__all__ = ["transport"]

# Strict servers in front of one another would take each other's Host for a wrong one.
pytestmark = pytest.mark.skipif(IS_STRICT, reason="the engine has a strict server in front of it")

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
GET = Request("GetItem", {"Key": KEY})
PUT = Request("PutItem", {"Item": {**KEY, "name": {"S": "\u00e4\u20ac\U0001f642"}}})
KEYED = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "not/a+secret"}
SECRETS = {"AKIDEXAMPLE": "not/a+secret"}


def requests(table: Table) -> Iterator[Request]:
    """A request of each kind that the app sends to items and to the table."""
    yield PUT
    yield GET
    yield Request("UpdateItem", {"Key": KEY, "UpdateExpression": "REMOVE nothing"})
    yield Request("Query", {"KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}})
    yield Request("Scan", {"Limit": 1})
    yield Request("BatchGetItem", {"RequestItems": {table.name: {"Keys": [KEY]}}})
    yield Request("BatchWriteItem", {"RequestItems": {table.name: [{"PutRequest": {"Item": KEY}}]}})
    yield Request("BatchExecuteStatement", {"Statements": [table.insert_statement({**KEY, "name": {"S": "n"}})]})
    yield Request("TransactGetItems", {"TransactItems": [{"Get": {"TableName": table.name, "Key": KEY}}]})
    yield Request("TransactWriteItems", {"TransactItems": [{"Delete": {"TableName": table.name, "Key": KEY}}]})
    yield Request("DeleteItem", {"Key": KEY})
    yield Request("DescribeTable")
    yield Request("DescribeTimeToLive")
    yield Request("ListTables")


def on(transport: Transport, table: Table) -> Table:
    """The settings of a table with another request path."""
    return Table(replace(table.settings, transport=transport.name))


@pytest.mark.parametrize("environment", [{}, KEYED, {**KEYED, "AWS_SESSION_TOKEN": "a/temporary+token=="}])
def test_each_operation_is_taken_as_aws_takes_it(
    transport: Transport, table: Table, environment: dict[str, str]
) -> None:
    """With pretended, lasting and temporary credentials."""
    with mock.patch.dict(os.environ, environment), in_front_of(on(transport, table)) as server:
        server.secrets.update(SECRETS)
        if token := environment.get("AWS_SESSION_TOKEN"):
            server.tokens["AKIDEXAMPLE"] = token
        for request in requests(table):
            transport.send(request)
    assert server.refused == []
    assert len(server.taken) == 14


@pytest.fixture
def server(table: Table) -> Iterator[Strict]:
    """A strict server in front of the engine that knows one secret."""
    with in_front_of(table, secrets=dict(SECRETS)) as found:
        yield found


def signed(server: Strict, body: bytes = b'{"TableName": "single-table"}', seconds: float = 0) -> bytes:
    """Return a valid request, dated some seconds ahead, and signed by botocore."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + seconds))
    headers = {
        "Host": f"127.0.0.1:{server.port}",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.DescribeTable",
        "X-Amz-Date": stamp,
    }
    request = AWSRequest("POST", f"{server.url}/", headers=headers, data=body)
    request.context["timestamp"] = stamp
    auth = SigV4Auth(Credentials("AKIDEXAMPLE", "not/a+secret"), "dynamodb", "us-east-1")
    auth._inject_signature_to_request(
        request, auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    )
    told = {**headers, "Authorization": request.headers["Authorization"], "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"POST / HTTP/1.1\r\n{lines}\r\n".encode() + body


def said(server: Strict, request: bytes) -> tuple[int, str]:
    """Return the status of the response, and the error code."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request)
        answer = connection.recv(65536)
    code = re.findall(rb'"__type": ?"[^#"]*#([A-Za-z]+)"', answer)
    return int(answer.split(b" ")[1]), code[0].decode() if code else ""


def test_what_botocore_signs_is_taken(server: Strict) -> None:
    """The request that the next test damages is valid."""
    assert said(server, signed(server)) == (200, "")


Spoil = Callable[[bytes], bytes]


def replaced(old: str, new: str) -> Spoil:
    """A request with one thing changed, which has to be there."""

    def spoil(request: bytes) -> bytes:
        changed = re.sub(old.encode(), new.encode(), request, count=1)
        assert changed != request
        return changed

    return spoil


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (replaced("POST / ", "POST /path "), "UnknownOperationException"),
        (replaced("POST / ", "GET / "), "UnknownOperationException"),
        (replaced(r"HTTP/1\.1", "HTTP/1.0"), "UnknownOperationException"),
        (replaced("Host: ", "Host: user@"), "BadRequest"),
        (replaced(r"Host: ([0-9.:]+)", r"Host: \1/"), "BadRequest"),
        (replaced("Host: ", "Host: a\r\nHost: "), "SerializationException"),
        (replaced("json-1.0", "json"), "UnknownOperationException"),
        (replaced("20120810", "20110101"), "UnknownOperationException"),
        (replaced("DescribeTable", "Describe"), "UnknownOperationException"),
        (replaced("single-table", "double-table"), "InvalidSignatureException"),
        (replaced('"}', "} "), "SerializationException"),
        (replaced("Authorization: [^\r]+\r\n", ""), "MissingAuthenticationTokenException"),
        (replaced("X-Amz-Date: [^\r]+\r\n", ""), "IncompleteSignatureException"),
        (replaced("Signature=[0-9a-f]{8}", "Signature=00000000"), "InvalidSignatureException"),
        (replaced("SignedHeaders=content-type;", "SignedHeaders="), "InvalidSignatureException"),
        (replaced(";host;", ";"), "InvalidSignatureException"),
        (replaced("us-east-1", "us-east-2"), "InvalidSignatureException"),
        (replaced("AKIDEXAMPLE", "AKIDOTHER"), "UnrecognizedClientException"),
        (replaced("Content-Length", "X-Amz-Security-Token: a\r\nContent-Length"), "InvalidSignatureException"),
        (replaced("Content-Length", "Folded: a\r\n b\r\nContent-Length"), "BadRequest"),
        (replaced("Content-Length", "Odd\x07: a\r\nContent-Length"), "BadRequest"),
        (replaced("Content-Length", "Transfer-Encoding: chunked\r\nContent-Length"), "SerializationException"),
    ],
)
def test_what_aws_would_not_take_is_refused(server: Strict, spoil: Spoil, code: str) -> None:
    """Each by the code that AWS has for it."""
    status, said_code = said(server, spoil(signed(server)))
    assert said_code == code
    assert status >= 400
    assert [refused.code for refused in server.refused] == [code]


@pytest.mark.parametrize(("seconds", "is_taken"), [(-290, True), (290, True), (-310, False), (310, False)])
def test_a_request_of_another_time_is_refused(server: Strict, seconds: float, is_taken: bool) -> None:
    """Five minutes are allowed in both directions."""
    assert (said(server, signed(server, seconds=seconds))[1] == "") == is_taken


def test_wrong_secret_is_access_denied(transport: Transport, table: Table) -> None:
    """By the refusal that AWS sends."""
    environment = {**KEYED, "AWS_SECRET_ACCESS_KEY": "another"}
    with (
        mock.patch.dict(os.environ, environment),
        in_front_of(on(transport, table), secrets=dict(SECRETS)),
        pytest.raises(AccessDenied, match="InvalidSignatureException"),
    ):
        transport.send(GET)


def test_date_of_refusal_sets_the_clock(table: Table) -> None:
    """The direct path dates its next attempt by the server's clock, and succeeds."""
    direct = Transport("direct")
    with (
        mock.patch.dict(os.environ, KEYED),
        in_front_of(on(direct, table), secrets=dict(SECRETS), ahead=7200) as server,
    ):
        direct.send(GET)
    assert [refused.code for refused in server.refused] == ["InvalidSignatureException"]
    assert len(server.taken) == 1
