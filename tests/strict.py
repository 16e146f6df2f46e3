"""A server in front of an engine that takes a request as AWS does: it checks the head, the date and the signature.

The local engines accept any signature and nearly any header. This server rejects the same requests as AWS, with its
codes, and forwards the rest unchanged to the engine. botocore's own signer computes the signature from the received
bytes. Responses have the ``Date`` of the server's own clock.

AWS documents signatures at https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
and errors at https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html.
"""

from __future__ import annotations

import calendar
import json
import os
import re
import socket
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.conf import settings as django_settings
from django.test import override_settings
from msgspec.structs import asdict

from dynamo_single.conf import shapes
from dynamo_single.table import Table
from dynamo_single.table.answers import OPERATIONS
from dynamo_single.test_tables import guard
from tests.listening import listening

#: ``TEST_STRICT=1`` runs all tests with such a server in front of the engine.
IS_STRICT = bool(os.environ.get("TEST_STRICT"))
#: The tolerated seconds of a request's date in the future, and by default in the past: DynamoDB's error for an older
#: one says "- 5 min.".
MOST_SKEW = 300
#: The number of bytes per read of a request.
_CHUNK = 65536
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/, ]+)/(?P<scope>[^, ]+), "
    r"SignedHeaders=(?P<signed>[a-z0-9;-]+), Signature=(?P<signature>[0-9a-f]{64})"
)
_CORAL = "com.amazon.coral.service"
_KNOWN = {*OPERATIONS, "DescribeContributorInsights"}


class Refused(Exception):
    """AWS's error for a request."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(code, message)
        self.code, self.message, self.status = code, message, status

    def answer(self, seconds: float) -> bytes:
        """The bytes of the refusal, at a time of the server's clock."""
        body = json.dumps({"__type": f"{_CORAL}#{self.code}", "message": self.message}).encode()
        head = {
            "Server": "Server",
            "Date": formatdate(seconds, usegmt=True),
            "Content-Type": "application/x-amz-json-1.0",
            "Content-Length": str(len(body)),
            "Connection": "close",
            "x-amzn-RequestId": uuid.uuid4().hex.upper(),
            "x-amz-crc32": str(zlib.crc32(body)),
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        return f"HTTP/1.1 {self.status} Refused\r\n{lines}\r\n".encode() + body


@dataclass(frozen=True)
class Received:
    """A request as it came: the names of its headers in lower case, in the order in which they came."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def operation(self) -> str:
        """The operation that it names."""
        return dict(self.headers).get("x-amz-target", "").rpartition(".")[2]

    def json(self) -> Any:
        """The content of the body."""
        return json.loads(self.body)


@dataclass
class Strict:
    """A server with its accepted credentials, its engine, and its accepted and rejected requests."""

    engine: tuple[str, int]
    secrets: dict[str, str] = field(default_factory=lambda: {"local": "local"})
    tokens: dict[str, str] = field(default_factory=dict)
    region: str = "us-east-1"
    path: str = "/"
    #: The host name of requests, if it differs from the address.
    host: str = ""
    #: Seconds by which the server's clock is ahead.
    ahead: float = 0.0
    #: Seconds that the date of a request may lie back.
    tolerance: float = MOST_SKEW
    #: Called with each request before its check, and after its execution before the response. They may wait, or raise
    #: ``ConnectionError`` to close the connection.
    arrived: Callable[[Received], object] = lambda request: None
    executed: Callable[[Received], object] = lambda request: None
    port: int = 0
    taken: list[Received] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def now(self) -> float:
        """The time by the server's clock."""
        return time.time() + self.ahead

    def stamp(self, seconds: float) -> str:
        """Return the date of a request that is signed some seconds later, by the server's clock."""
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now() + seconds))

    def check(self, request: Received) -> None:
        """Raise ``Refused`` for a request that AWS would not take."""
        headers = self._head(request)
        self._check_signature(request, headers)
        self._check_token(headers)

    def _head(self, request: Received) -> dict[str, str]:
        if (request.method, request.version) != ("POST", "HTTP/1.1") or request.target != self.path:
            raise Refused("UnknownOperationException", f"{request.method} {request.target} {request.version}", 404)
        repeated = [name for name, number in Counter(name for name, _ in request.headers).items() if number > 1]
        if repeated:
            raise Refused("SerializationException", f"the headers {', '.join(repeated)} are there more than once")
        headers = dict(request.headers)
        if headers.get("host") != (self.host or f"127.0.0.1:{self.port}"):
            raise Refused("BadRequest", f"Host is {headers.get('host')!r}")
        if headers.get("content-type") != "application/x-amz-json-1.0":
            raise Refused("UnknownOperationException", f"Content-Type is {headers.get('content-type')!r}")
        if not headers.get("x-amz-target", "").startswith("DynamoDB_20120810.") or request.operation not in _KNOWN:
            raise Refused("UnknownOperationException", f"X-Amz-Target is {headers.get('x-amz-target')!r}")
        if headers.get("content-length") != str(len(request.body)) or "transfer-encoding" in headers:
            raise Refused("SerializationException", f"Content-Length is {headers.get('content-length')!r}")
        try:
            json.loads(request.body.decode())
        except ValueError:
            raise Refused("SerializationException", "the body is no JSON") from None
        return headers

    def _check_signature(self, request: Received, headers: Mapping[str, str]) -> None:
        if "authorization" not in headers:
            raise Refused("MissingAuthenticationTokenException", "Request is missing Authentication Token")
        found = _AUTHORIZATION.fullmatch(headers["authorization"])
        date = headers.get("x-amz-date", "")
        if found is None or not re.fullmatch(r"\d{8}T\d{6}Z", date):
            raise Refused("IncompleteSignatureException", f"Authorization or X-Amz-Date {date!r} cannot be read")
        self._check_date(date)
        signed = found["signed"].split(";")
        needed = {"host", *(name for name in headers if name.startswith("x-amz-"))}
        if signed != sorted(set(signed)) or not needed <= {*signed} or not {*signed} <= headers.keys():
            raise Refused("InvalidSignatureException", f"the signed headers are {found['signed']}")
        if found["scope"] != f"{date[:8]}/{self.region}/dynamodb/aws4_request":
            raise Refused("InvalidSignatureException", f"the credential's scope is {found['scope']}")
        if found["key"] not in self.secrets:
            raise Refused("UnrecognizedClientException", "The security token included in the request is invalid.")
        secret = self.secrets[found["key"]]
        if found["signature"] != _signature(request, headers, signed, Credentials(found["key"], secret), self.region):
            raise Refused("InvalidSignatureException", "The request signature we calculated does not match.")

    def _check_date(self, date: str) -> None:
        skew = self.now() - calendar.timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
        if skew > self.tolerance:
            told = f"Signature expired: {date} is now earlier than - {self.tolerance / 60:g} min."
            raise Refused("InvalidSignatureException", told)
        if skew < -MOST_SKEW:
            raise Refused("InvalidSignatureException", f"Signature not yet current: {date} is later than + 5 min.")

    def _check_token(self, headers: Mapping[str, str]) -> None:
        key = re.findall("Credential=([^/]+)/", headers["authorization"])[0]
        if headers.get("x-amz-security-token") != self.tokens.get(key):
            raise Refused("UnrecognizedClientException", "The security token included in the request is invalid.")


def _signature(
    request: Received, headers: Mapping[str, str], signed: list[str], credentials: Credentials, region: str
) -> str:
    """Return botocore's signature of the received request."""
    told: Any = AWSRequest(
        "POST",
        f"http://{headers['host']}{request.target}",
        headers={name: headers[name] for name in signed},
        data=request.body,
    )
    told.context["timestamp"] = headers["x-amz-date"]
    auth: Any = SigV4Auth(credentials, "dynamodb", region)
    return str(auth.signature(auth.string_to_sign(told, auth.canonical_request(told)), told))


class _Closed(Exception):
    """The other side closed the connection."""


def read_request(connection: socket.socket) -> Received:
    """Read a request; raises ``Refused`` for bytes that a strict server does not take for one."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(_CHUNK)
        if not data:
            raise _Closed
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3:
        raise Refused("BadRequest", f"the request line is {first!r}")
    headers = tuple(_header(line) for line in lines)
    length = dict(headers).get("content-length", "")
    if not re.fullmatch(r"\d{1,9}", length):
        raise Refused("BadRequest", f"Content-Length is {length!r}")
    while len(body) < int(length):
        data = connection.recv(_CHUNK)
        if not data:
            raise _Closed
        body += data
    return Received(parts[0], parts[1], parts[2], headers, body)


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    # A second line of a value begins with a space, which no name does.
    if not colon or not _TOKEN.fullmatch(name) or not re.fullmatch(r"[\x20-\x7e]*", value):
        raise Refused("BadRequest", f"a header is {line!r}")
    return name.lower(), value.strip(" ")


def _serve(state: Strict, connection: socket.socket) -> None:
    try:
        with connection, socket.create_connection(state.engine) as engine:
            while True:
                try:
                    request = read_request(connection)
                    state.arrived(request)
                    state.check(request)
                except Refused as refused:
                    state.refused.append(refused)
                    connection.sendall(refused.answer(state.now()))
                    return
                state.taken.append(request)
                _exchange(state, request, engine, connection)
    except (_Closed, OSError):
        return


def _exchange(state: Strict, request: Received, engine: socket.socket, connection: socket.socket) -> None:
    """Forward a request to the engine, and its response with the date of the server's clock."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers)
    engine.sendall(f"POST / HTTP/1.1\r\n{lines}\r\n".encode() + request.body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        data = engine.recv(_CHUNK)
        if not data:
            raise _Closed
        answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(re.findall(rb"(?i)\r\ncontent-length: *(\d+)", head)[0])
    state.executed(request)
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"date:")]
    lines.append(f"date: {formatdate(state.now(), usegmt=True)}".encode())
    connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
    left = length - len(body)
    while left:
        data = engine.recv(min(left, _CHUNK))
        if not data:
            raise _Closed
        connection.sendall(data)
        left -= len(data)


@contextmanager
def strict(engine: tuple[str, int], **options: Any) -> Iterator[Strict]:
    """A strict server in front of the engine at an address, on a free port of this machine, for the block."""
    state = Strict(engine, **options)
    with listening(lambda connection: _serve(state, connection)) as state.port:
        yield state


@contextmanager
def in_front_of(table: Table, **options: Any) -> Iterator[Strict]:
    """Within the block the requests of a table's alias go to a strict server in front of its engine."""
    where = urlsplit(table.settings.endpoint_url or "")
    with strict((where.hostname or "", where.port or 0), **options) as server:
        values = asdict(table.settings)
        alias = values.pop("alias")
        shape = shapes.declared(values.pop("shape"))
        values["endpoint_url"] = server.url + server.path.rstrip("/")
        declared = {name.upper(): value for name, value in values.items() if value not in (None, "")} | shape
        tables = {**django_settings.DYNAMO_SINGLE, alias: declared}
        with guard.allow_engine(values["endpoint_url"]), override_settings(DYNAMO_SINGLE=tables):
            yield server
