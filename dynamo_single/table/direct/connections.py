"""HTTP/1.1 connections that are kept open, and the pool that they wait in.

A connection sends one request and reads one answer at a time. It must not know DynamoDB, signatures or retries. What is
raised is botocore's: of ``EndpointConnectionError``, ``ConnectTimeoutError`` and ``SSLError`` nothing was sent, after
``ConnectionClosedError`` and ``ReadTimeoutError`` a request may have been carried out.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import ClassVar
from weakref import ref

from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)
from httptools import HttpParserError, HttpResponseParser
from msgspec import Struct
from urllib3.util import wait_for_read

#: Bytes of an answer beyond which it cannot be DynamoDB's: it sends at most 16 MB of items, in more bytes of JSON.
MAX_ANSWER = 128 * 1024 * 1024
#: How much is read of a socket at a time, in bytes.
CHUNK = 256 * 1024


class Endpoint(Struct, frozen=True):
    """Where a pool connects to; ``tls`` is ``None`` for plain HTTP. The timeouts are seconds."""

    host: str
    port: int
    url: str
    tls: ssl.SSLContext | None
    connect_timeout: float
    read_timeout: float


class Answer(Struct, frozen=True):
    """An answer as it came; the headers' names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class AnswerParser:
    """Puts an answer together from the bytes of a connection, as they come."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._status = 0
        self.complete = False
        self.keep_alive = False

    def close(self) -> None:
        """Let go of what was read: the parser refers to this object, and both would wait for the garbage collector."""
        del self._parser
        self._body.clear()

    def feed(self, data: bytes) -> None:
        """Take some bytes; raises ``ValueError`` for what is not HTTP, or too long."""
        if self.complete:
            raise ValueError("bytes after the end of the answer")
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            raise ValueError(f"the answer is not HTTP: {error}") from error

    def answer(self) -> Answer:
        """The answer, once it is ``complete``."""
        return Answer(self._status, self._headers, b"".join(self._body))

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Refuse a second answer to one request; what an announcement said is no part of the answer."""
        if self.complete:
            raise ValueError("bytes after the end of the answer")
        self._headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._size += len(body)
        if self._size > MAX_ANSWER:
            raise ValueError(f"the answer is longer than {MAX_ANSWER} bytes")
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The end, unless it was only the announcement of an answer."""
        self._status = self._parser.get_status_code()
        if self._status >= HTTPStatus.OK:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()


class _Using:
    """Within the block an error of the socket is one of botocore's, and whatever is raised closes the socket."""

    __slots__ = ("_endpoint", "_socket")

    late: ClassVar[type[BotoCoreError]]
    failed: ClassVar[type[BotoCoreError]]
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def __init__(self, endpoint: Endpoint, own: socket.socket | None = None) -> None:
        self._endpoint, self._socket = endpoint, own

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        # Also when a thread is interrupted, or a task cancelled: half an answer would be taken for the next one's.
        if self._socket is not None:
            self._socket.close()
        if isinstance(error, (TimeoutError, *self.failures)):
            made = self.late if isinstance(error, TimeoutError) else self.failed
            raise made(endpoint_url=self._endpoint.url, error=error) from error


class Connecting(_Using):
    """Nothing is sent before there is a connection."""

    late, failed = ConnectTimeoutError, EndpointConnectionError


class Encrypting(_Using):
    """Nor before the two sides have agreed on their keys."""

    late, failed = ConnectTimeoutError, SSLError


class Exchanging(_Using):
    """After these errors a request may have been carried out."""

    late, failed, failures = ReadTimeoutError, ConnectionClosedError, (OSError, ValueError)


def part_of_answer(endpoint: Endpoint, data: bytes) -> bytes:
    """What came of an answer, which is not at its end."""
    if not data:
        raise ConnectionClosedError(endpoint_url=endpoint.url, error="the answer ends before its end")
    return data


class Connection:
    """One open connection; after a failure it is closed and of no use."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket = _connect(endpoint)

    @property
    def dropped(self) -> bool:
        """Whether a waiting connection was closed by the other side: nobody sends anything before it is asked."""
        return wait_for_read(self._socket, timeout=0)

    def exchange(self, request: bytes) -> tuple[Answer, bool]:
        """Send a request and read its answer; and whether the connection stays open. Anything raised has closed it."""
        parser = AnswerParser()
        try:
            with Exchanging(self._endpoint, self._socket):
                self._socket.sendall(request)
                while not parser.complete:
                    parser.feed(part_of_answer(self._endpoint, self._socket.recv(CHUNK)))
                return parser.answer(), parser.keep_alive
        finally:
            parser.close()

    def close(self) -> None:
        """Close the connection, at once and without a word to the other side."""
        self._socket.close()


class _Place:
    """The right to one connection of a pool. It returns by itself if a thread was interrupted as it took it."""

    __slots__ = ("_places",)

    def __init__(self, places: SimpleQueue[_Place]) -> None:
        self._places = ref(places)

    def __del__(self) -> None:
        if (places := self._places()) is not None:
            places.put(_Place(places))


class Pool:
    """The connections to one endpoint: at most ``size`` at a time, those that wait taken latest first.

    Whoever asks for one more waits for at most the read timeout.
    """

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self._endpoint = endpoint
        # Not a semaphore: what interrupts a thread in the middle of one leaves its lock taken for good.
        self._places: SimpleQueue[_Place] = SimpleQueue()
        for _ in range(size):
            self._places.put(_Place(self._places))
        self._waiting: deque[Connection] = deque()

    def exchange(self, request: bytes) -> Answer:
        """Send a request over a connection of the pool, and give its answer."""
        try:
            place = self._places.get(timeout=self._endpoint.read_timeout)
        except Empty:
            raise no_place(self._endpoint) from None
        try:
            connection = self._connection()
            answer, stays = connection.exchange(request)
            if stays:
                self._waiting.append(connection)
            else:
                connection.close()
            return answer
        finally:
            self._places.put(place)

    def close(self) -> None:
        """Close the connections that wait."""
        while self._waiting:
            self._waiting.pop().close()

    def _connection(self) -> Connection:
        while True:
            try:
                connection = self._waiting.pop()
            except IndexError:
                return Connection(self._endpoint)
            if not connection.dropped:
                return connection
            connection.close()


def no_place(endpoint: Endpoint) -> EndpointConnectionError:
    """The error of one that has waited long enough for a connection of a pool."""
    return EndpointConnectionError(
        endpoint_url=f"{endpoint.url} (no connection of the pool became free: raise MAX_POOL_CONNECTIONS)"
    )


def _connect(endpoint: Endpoint) -> socket.socket:
    with Connecting(endpoint):
        found = socket.create_connection((endpoint.host, endpoint.port), endpoint.connect_timeout)
    with Encrypting(endpoint, found):
        # The request is one piece: waiting for more of it would only delay it.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.tls is not None:
            found = endpoint.tls.wrap_socket(found, server_hostname=endpoint.host)
        found.settimeout(endpoint.read_timeout)
    return found
