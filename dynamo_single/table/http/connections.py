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
from time import monotonic
from types import TracebackType
from typing import ClassVar
from weakref import ref
from zlib import crc32

from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct
from urllib3.util import wait_for_read

from dynamo_single.table.deadlines import Deadline

#: Bytes of an answer beyond which it cannot be DynamoDB's: it sends at most 16 MB of items, in more bytes of JSON.
MAX_ANSWER = 128 * 1024 * 1024
#: How much is read of a socket at a time, in bytes.
CHUNK = 256 * 1024


class Endpoint(Struct, frozen=True):
    """Where a pool connects to; ``tls`` is ``None`` for plain HTTP. The timeouts are seconds.

    ``authority`` is what the header ``Host`` says, ``target`` what is posted to. ``url`` is for messages: it has no
    user, password or query.
    """

    host: str
    port: int
    url: str
    tls: ssl.SSLContext | None
    connect_timeout: float
    read_timeout: float
    authority: str = ""
    target: str = "/"

    @property
    def server_name(self) -> str:
        """The name that the certificate is for."""
        return self.host.rstrip(".")


class Answer(Struct, frozen=True):
    """An answer as it came; the headers' names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_whole(self) -> bool:
        """Whether the body matches its checksum, if there is one; DynamoDB also sends it with errors."""
        checksum = self.headers.get("x-amz-crc32")
        return checksum is None or checksum == str(crc32(self.body))


class AnswerParser:
    """Puts an answer together from the bytes of a connection, as they come."""

    def __init__(self) -> None:
        #: The headers as they came, the last one of a name. The parser puts them there by itself.
        self._headers: dict[bytes, bytes] = {}
        self.on_header = self._headers.__setitem__
        self._body: list[bytes] = []
        self._size = 0
        self._status = 0
        self.complete = False
        self.keep_alive = False
        self._parser = HttpResponseParser(self)

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
        except HttpParserUpgrade as error:
            raise ValueError("the answer changes the protocol") from error
        except HttpParserError as error:
            raise ValueError(f"the answer is not HTTP: {error}") from error

    def answer(self) -> Answer:
        """The answer, once it is ``complete``."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers.items()}
        return Answer(self._status, headers, b"".join(self._body))

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Refuse a second answer to one request; what an announcement said is no part of the answer."""
        if self.complete:
            raise ValueError("bytes after the end of the answer")
        self._headers.clear()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._size += len(body)
        if self._size > MAX_ANSWER:
            raise ValueError(f"the answer is longer than {MAX_ANSWER} bytes")
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The end, unless it was only the announcement of an answer."""
        self._status = self._parser.get_status_code()
        if self._status == HTTPStatus.SWITCHING_PROTOCOLS:
            # httptools would not raise this one if the answer names no other protocol.
            raise ValueError("the answer changes the protocol")
        if self._status >= HTTPStatus.OK:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()


class _Using:
    """Within the block an error of the socket is one of botocore's, and whatever is raised closes the socket."""

    __slots__ = ("_deadline", "_endpoint", "_socket")

    late: ClassVar[type[BotoCoreError]]
    failed: ClassVar[type[BotoCoreError]]
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def __init__(self, endpoint: Endpoint, deadline: Deadline, own: socket.socket | None = None) -> None:
        self._endpoint, self._deadline, self._socket = endpoint, deadline, own

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
            passed = isinstance(error, TimeoutError) and self._deadline.left <= 0
            where = f"{self._endpoint.url} ({self._deadline.reason})" if passed else self._endpoint.url
            raise made(endpoint_url=where, error=error) from error


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

    def __init__(self, endpoint: Endpoint, deadline: Deadline) -> None:
        self._endpoint = endpoint
        self._socket = _connect(endpoint, deadline)

    @property
    def dropped(self) -> bool:
        """Whether a waiting connection was closed by the other side: nobody sends anything before it is asked."""
        return wait_for_read(self._socket, timeout=0)

    def exchange(self, request: bytes, deadline: Deadline) -> tuple[Answer, bool]:
        """Send a request and read its answer; and whether the connection stays open. Anything raised has closed it."""
        patience, own = self._endpoint.read_timeout, self._socket
        # Until then the deadline is further away than the timeout.
        ample = deadline.at - patience
        parser = AnswerParser()
        using: type[_Using] = Connecting
        try:
            own.settimeout(patience if monotonic() < ample else deadline.within(patience))
            using = Exchanging
            own.sendall(request)
            while not parser.complete:
                # Of each piece: an answer that drips would else never end.
                own.settimeout(patience if monotonic() < ample else deadline.within(patience))
                parser.feed(part_of_answer(self._endpoint, own.recv(CHUNK)))
            return parser.answer(), parser.keep_alive
        except BaseException:
            with using(self._endpoint, deadline, own):
                raise
        finally:
            parser.close()

    def close(self) -> None:
        """Close the connection, at once and without a word to the other side."""
        self._socket.close()


class Place:
    """The right to one connection of a pool. It returns by itself if a thread was interrupted as it took it."""

    __slots__ = ("_places",)

    def __init__(self, places: SimpleQueue[Place]) -> None:
        self._places = ref(places)

    def __del__(self) -> None:
        if (places := self._places()) is not None:
            places.put(Place(places))


class Pool:
    """The connections to one endpoint: at most ``size`` at a time, those that wait taken latest first.

    Whoever asks for one more waits for at most the read timeout, and not past the deadline of the request.
    """

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self._endpoint = endpoint
        # Not a semaphore: what interrupts a thread in the middle of one leaves its lock taken for good.
        self._places: SimpleQueue[Place] = SimpleQueue()
        for _ in range(size):
            self._places.put(Place(self._places))
        self._waiting: deque[Connection] = deque()

    def exchange(self, request: bytes, deadline: Deadline) -> Answer:
        """Send a request over a connection of the pool, and give its answer."""
        try:
            place = self._places.get_nowait()
        except Empty:
            place = self._place(deadline)
        try:
            connection = self._connection(deadline)
            answer, stays = connection.exchange(request, deadline)
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

    def _place(self, deadline: Deadline) -> Place:
        try:
            return self._places.get(timeout=max(0.0, min(self._endpoint.read_timeout, deadline.left)))
        except Empty:
            raise no_place(self._endpoint) from None

    def _connection(self, deadline: Deadline) -> Connection:
        while True:
            try:
                connection = self._waiting.pop()
            except IndexError:
                return Connection(self._endpoint, deadline)
            if not connection.dropped:
                return connection
            connection.close()


def no_place(endpoint: Endpoint) -> EndpointConnectionError:
    """The error of one that has waited long enough for a connection of a pool."""
    return EndpointConnectionError(
        endpoint_url=f"{endpoint.url} (no connection of the pool became free: raise MAX_POOL_CONNECTIONS)"
    )


def _connect(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    with Connecting(endpoint, deadline):
        found = _open(endpoint, deadline)
    with Encrypting(endpoint, deadline, found):
        # The request is one piece: waiting for more of it would only delay it.
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.tls is not None:
            found.settimeout(deadline.within(endpoint.connect_timeout))
            found = endpoint.tls.wrap_socket(found, server_hostname=endpoint.server_name)
    return found


def _open(endpoint: Endpoint, deadline: Deadline) -> socket.socket:
    """A socket that is connected to the first of the endpoint's addresses that answers.

    All of them together have the connect timeout, unless the deadline is before. How long a name may take to be found
    is the operating system's: Python can neither bound that nor break it off.
    """
    failure: OSError = OSError(f"{endpoint.host} has no address")
    addresses = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    ends = deadline.sooner(endpoint.connect_timeout)
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        own = socket.socket(family, kind, protocol)
        try:
            own.settimeout(ends.within(endpoint.connect_timeout) / (len(addresses) - number))
            own.connect(address)
            return own
        except OSError as error:
            own.close()
            failure = error
        except BaseException:
            own.close()
            raise
    raise failure
