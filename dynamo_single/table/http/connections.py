"""HTTP/1.1 connections that stay open: the exchange of a request and its response, and the pool of an endpoint.

Threads and event loops share this code. It leaves all reading, writing, and waiting to a ``Stream``: in a thread, a
stream has done its work when its coroutine returns; ``loop_connections`` contains the streams of event loops.

The module is independent of DynamoDB, signatures, and retries. All errors are botocore's. After
``EndpointConnectionError``, ``ConnectTimeoutError`` and ``SSLError``, the request was not sent. After
``ConnectionClosedError`` and ``ReadTimeoutError``, the server may have executed it.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus
from operator import methodcaller
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, ClassVar
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

#: The most bytes of a response: DynamoDB sends at most 16 MB of items, which are longer as JSON.
MAX_RESPONSE = 128 * 1024 * 1024
#: The most bytes of one read from a socket.
CHUNK = 256 * 1024


class Endpoint(Struct, frozen=True):
    """The server of a pool; ``tls`` is ``None`` for plain HTTP. The timeouts are seconds.

    ``authority`` is the value of the header ``Host``, ``target`` is the path of the POST requests. Messages show
    ``url``, which does not contain a user, password or query.
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
        """The name in the certificate."""
        return self.host.rstrip(".")


class HTTPResponse(Struct, frozen=True):
    """A response as it was received, with lower-case header names, and the number of attempts before it."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    retries: int = 0

    @property
    def is_whole(self) -> bool:
        """Return whether the body matches its checksum; DynamoDB sends one with every response, errors included."""
        checksum = self.headers.get("x-amz-crc32")
        return checksum is None or checksum == str(crc32(self.body))


_OK = b"HTTP/1.1 200 OK\r\n"
_field = methodcaller("split", ": ", 1)
#: The headers that change where a response ends, or what becomes of the connection.
_FRAMING = frozenset({"transfer-encoding", "upgrade", "trailer"})


def _usual_response(data: bytes) -> HTTPResponse | None:
    """Return a successful response that arrived as a whole; ``None`` for all other bytes, which httptools reads."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not (end and head.startswith(_OK)):
        return None
    # Only the identifier of the request has upper-case letters that count, and no one asks for it after a success.
    lines = head[len(_OK) :].lower().decode("latin-1").split("\r\n")
    try:
        headers = dict(map(_field, lines))
    except ValueError:
        return None
    is_usual = (
        headers.get("content-length") == str(len(body))
        and headers.get("connection", "keep-alive") == "keep-alive"
        and len(headers) == len(lines)
        and _FRAMING.isdisjoint(headers)
    )
    return HTTPResponse(HTTPStatus.OK, headers, body) if is_usual else None


class ResponseParser:
    """Build the responses of one connection from its bytes; the methods ``on_...`` are called by httptools."""

    def __init__(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        #: If several headers have one name, the last one counts.
        self.on_header = self._headers.__setitem__
        self._body: list[bytes] = []
        self.on_body = self._body.append
        #: The bytes of the current response.
        self._size = 0
        self._response: HTTPResponse | None = None
        #: Whether the connection stays open after the last response.
        self.keep_alive = False
        self._parser = HttpResponseParser(self)

    def feed(self, data: bytes) -> HTTPResponse | None:
        """Accept received bytes, and return the response once it is complete.

        Raise ``ValueError`` if it is not HTTP, is too long, ends early, or is followed by further bytes.
        """
        if not self._size and (usual := _usual_response(data)) is not None:
            self.keep_alive = True
            return usual
        if not data:
            raise ValueError("the response is incomplete")
        self._size += len(data)
        if self._size > MAX_RESPONSE:
            raise ValueError(f"the response is longer than {MAX_RESPONSE} bytes")
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as error:
            raise ValueError("the response changes the protocol") from error
        except HttpParserError as error:
            raise ValueError(f"the response is not HTTP: {error}") from error
        response, self._response = self._response, None
        return response

    def close(self) -> None:
        """Break the reference cycle with httptools, which would keep an incomplete response in memory."""
        del self._parser

    def on_message_begin(self) -> None:
        """Start a response; an interim response such as ``100 Continue`` may precede it."""
        if self._response is not None:
            raise ValueError("bytes after the end of the response")
        self._headers.clear()
        self._body.clear()

    def on_message_complete(self) -> None:
        """Finish a response, unless it is an interim one."""
        status = self._parser.get_status_code()
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            # httptools accepts it if the response does not name another protocol.
            raise ValueError("the response changes the protocol")
        if status >= HTTPStatus.OK:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers.items()}
            self._response = HTTPResponse(status, headers, b"".join(self._body))
            self._body.clear()
            self._size = 0
            self.keep_alive = self._parser.should_keep_alive()


class Phase(Struct, frozen=True):
    """botocore's errors in one phase of a request: ``late`` after a timeout, ``failed`` after other ``failures``."""

    late: type[BotoCoreError]
    failed: type[BotoCoreError]
    failures: tuple[type[Exception], ...] = (OSError,)

    def translate(self, error: BaseException, endpoint: Endpoint, deadline: Deadline) -> None:
        """Raise botocore's error for a failure of the connection; return for other exceptions."""
        is_late = isinstance(error, TimeoutError)
        if is_late or isinstance(error, self.failures):
            url = f"{endpoint.url} ({deadline.reason})" if is_late and deadline.left <= 0 else endpoint.url
            raise (self.late if is_late else self.failed)(endpoint_url=url, error=error) from error


CONNECTING = Phase(ConnectTimeoutError, EndpointConnectionError)
ENCRYPTING = Phase(ConnectTimeoutError, SSLError)
EXCHANGING = Phase(ReadTimeoutError, ConnectionClosedError, (OSError, ValueError))


class Stream:
    """A TCP connection, with TLS or without. Each method raises ``OSError``, and ``TimeoutError`` after ``seconds``."""

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self._socket = socket.socket(family, kind, protocol)
        self._timeout: float | None = None
        #: It watches the file descriptor, which stays the same with TLS. Windows has no ``poll()``.
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(self._socket, select.POLLIN)

    @staticmethod
    async def addresses(host: str, port: int, seconds: float) -> list[Any]:
        """Return what ``socket.getaddrinfo()`` finds; in a thread, Python cannot limit the time of the system call."""
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def connect(self, address: Any, seconds: float) -> None:
        """Connect to an address."""
        self._set_timeout(seconds)
        self._socket.connect(address)
        # A request is sent in one piece, so there is nothing to wait for.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def encrypt(self, context: ssl.SSLContext, name: str, seconds: float) -> None:
        """Start TLS, and verify the certificate of the server."""
        self._set_timeout(seconds)
        self._socket = context.wrap_socket(self._socket, server_hostname=name)

    async def send(self, data: bytes, seconds: float) -> None:
        """Send all of the bytes."""
        if seconds != self._timeout:
            self._set_timeout(seconds)
        self._socket.sendall(data)

    async def receive(self, seconds: float) -> bytes:
        """Return the next bytes, which are empty at the end of the connection."""
        if seconds != self._timeout:
            self._set_timeout(seconds)
        return self._socket.recv(CHUNK)

    def _set_timeout(self, seconds: float) -> None:
        self._socket.settimeout(seconds)
        self._timeout = seconds

    @property
    def is_readable(self) -> bool:
        """Return whether bytes, or the end of the connection, can be read without waiting."""
        return wait_for_read(self._socket, timeout=0) if self._poll is None else bool(self._poll.poll(0))

    def close(self) -> None:
        """Close the connection immediately."""
        self._socket.close()


class Connection:
    """One open connection. It exchanges one request at a time, and is closed after any exception."""

    def __init__(self, endpoint: Endpoint, stream: Stream) -> None:
        self._endpoint, self.stream = endpoint, stream
        self._parser = ResponseParser()

    async def exchange(self, request: bytes, deadline: Deadline) -> tuple[HTTPResponse, bool]:
        """Send a request, and return its response and whether the connection stays open."""
        stream, parser, timeout = self.stream, self._parser, self._endpoint.read_timeout
        # Until then, the timeout ends before the deadline.
        ample = deadline.at - timeout
        phase = CONNECTING
        response = None
        try:
            seconds = timeout if monotonic() < ample else deadline.within(timeout)
            phase = EXCHANGING
            await stream.send(request, seconds)
            while response is None:
                # Each read checks the deadline again, because a response may arrive byte by byte.
                seconds = timeout if monotonic() < ample else deadline.within(timeout)
                response = parser.feed(await stream.receive(seconds))
            return response, parser.keep_alive
        except BaseException as error:
            # After an interruption or a cancellation too: the next request would read the rest of this response.
            self.close()
            phase.translate(error, self._endpoint, deadline)
            raise

    def close(self) -> None:
        """Close the connection immediately."""
        self.stream.close()
        self._parser.close()


class Place:
    """The right to use one connection of a pool. It returns by itself if its thread is interrupted."""

    __slots__ = ("_places",)

    def __init__(self, places: SimpleQueue[Place]) -> None:
        self._places = ref(places)

    def __del__(self) -> None:
        if (places := self._places()) is not None:
            places.put(Place(places))


class Places(SimpleQueue[Place]):
    """The free places of a pool. Unlike a semaphore, it has no lock that an interrupted thread could leave taken."""

    async def wait(self, seconds: float) -> Place:
        """Return the next free place, or raise ``Empty``."""
        return self.get(timeout=seconds)


class Pool:
    """At most ``size`` connections of this process's threads to one endpoint; the last one used is taken first.

    If all are in use, a request waits for at most the read timeout, or until its deadline.
    """

    stream: ClassVar[type[Stream]] = Stream
    places: ClassVar[type[Places]] = Places

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self._endpoint = endpoint
        self._places = self.places()
        for _ in range(size):
            self._places.put(Place(self._places))
        self._idle: deque[Connection] = deque()

    async def exchange(self, request: bytes, deadline: Deadline) -> HTTPResponse:
        """Send a request over a connection of the pool, and return its response."""
        try:
            place = self._places.get_nowait()
        except Empty:
            place = await self._free_place(deadline)
        try:
            connection = self._idle_connection() or await connect(self._endpoint, deadline, self.stream)
            response, stays_open = await connection.exchange(request, deadline)
            if stays_open:
                self._idle.append(connection)
            else:
                connection.close()
            return response
        finally:
            self._places.put(place)

    def close(self) -> None:
        """Close the idle connections."""
        close_all(self._idle)

    async def _free_place(self, deadline: Deadline) -> Place:
        try:
            return await self._places.wait(max(0.0, min(self._endpoint.read_timeout, deadline.left)))
        except Empty:
            raise EndpointConnectionError(
                endpoint_url=f"{self._endpoint.url} (no connection of the pool became free: raise MAX_POOL_CONNECTIONS)"
            ) from None

    def _idle_connection(self) -> Connection | None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            # A server does not send anything before it receives a request, unless it closes the connection.
            if not connection.stream.is_readable:
                return connection
            connection.close()


def close_all(connections: deque[Connection]) -> None:
    """Close connections, and remove them."""
    while connections:
        connections.pop().close()


async def connect(endpoint: Endpoint, deadline: Deadline, kind: type[Stream]) -> Connection:
    """Return a new connection to the first address of the endpoint that accepts it."""
    phase, stream = CONNECTING, None
    try:
        stream = await _open(endpoint, deadline, kind)
        phase = ENCRYPTING
        if endpoint.tls is not None:
            await stream.encrypt(endpoint.tls, endpoint.server_name, deadline.within(endpoint.connect_timeout))
        return Connection(endpoint, stream)
    except BaseException as error:
        if stream is not None:
            stream.close()
        phase.translate(error, endpoint, deadline)
        raise


async def _open(endpoint: Endpoint, deadline: Deadline, kind: type[Stream]) -> Stream:
    """Return a stream to the first address that accepts it; all addresses share the connect timeout."""
    timeout = endpoint.connect_timeout
    failure: OSError = OSError(f"{endpoint.host} has no address")
    addresses = await kind.addresses(endpoint.host, endpoint.port, deadline.within(timeout))
    ends = deadline.sooner(timeout)
    for number, (family, sort, protocol, _, address) in enumerate(addresses):
        stream = kind(family, sort, protocol)
        try:
            await stream.connect(address, ends.within(timeout) / (len(addresses) - number))
            return stream
        except OSError as error:
            stream.close()
            failure = error
        except BaseException:
            stream.close()
            raise
    raise failure
