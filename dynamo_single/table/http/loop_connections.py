"""Connections that an event loop waits for, and the pool that each loop has of them.

They send and read as ``connections`` does, with the same parser, timeouts and errors; only the waiting differs. The
sockets are not the loop's: it knows one only while a request waits for it. So a loop may end without closing its pool,
which is then closed when it is collected.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary, finalize

from urllib3.util import wait_for_read

from dynamo_single.table.deadlines import Deadline
from dynamo_single.table.http.connections import (
    CHUNK,
    Answer,
    AnswerParser,
    Connecting,
    Encrypting,
    Endpoint,
    Exchanging,
    no_place,
    part_of_answer,
)

T = TypeVar("T")


class _Channel(Protocol):
    """What carries the bytes of one connection."""

    @property
    def pending(self) -> bool:
        """Whether bytes came that nobody has read yet."""

    async def send(self, data: bytes) -> None:
        """Send all of some bytes."""

    async def receive(self) -> bytes:
        """The next bytes, or none at the end."""


class _Plain:
    """Bytes as they are."""

    pending = False

    def __init__(self, own: socket.socket) -> None:
        self._socket = own

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def receive(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._socket, CHUNK)


class _Encrypted:
    """Bytes inside of TLS."""

    def __init__(self, own: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._plain = _Plain(own)
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=host)

    @property
    def pending(self) -> bool:
        return bool(self._received.pending or self._tls.pending())

    async def shake_hands(self) -> None:
        """Agree with the other side, and check its certificate."""
        await self._step(self._tls.do_handshake)

    async def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[await self._step(partial(self._tls.write, rest)) :]

    async def receive(self) -> bytes:
        try:
            return await self._step(partial(self._tls.read, CHUNK))
        except ssl.SSLZeroReturnError:
            return b""

    async def _step(self, work: Callable[[], T]) -> T:
        """Do what may need bytes of the other side first, and send what comes of it."""
        while True:
            try:
                result = work()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._plain.receive()
                if data:
                    self._received.write(data)
                else:
                    self._received.write_eof()
                continue
            await self._flush()
            return result

    async def _flush(self) -> None:
        if data := self._to_send.read():
            await self._plain.send(data)


class LoopConnection:
    """One open connection; after a failure, or if its request is cancelled, it is closed and of no use."""

    def __init__(self, endpoint: Endpoint, own: socket.socket, channel: _Channel) -> None:
        self._endpoint, self._socket, self._channel = endpoint, own, channel

    @property
    def dropped(self) -> bool:
        """Whether a waiting connection was closed by the other side: nobody sends anything before it is asked."""
        return self._channel.pending or wait_for_read(self._socket, timeout=0)

    async def exchange(self, request: bytes, deadline: Deadline) -> tuple[Answer, bool]:
        """Send a request and read its answer; and whether the connection stays open. Anything raised has closed it."""
        patience = self._endpoint.read_timeout
        with Connecting(self._endpoint, deadline, self._socket):
            begins = deadline.within(patience)
        parser, now = AnswerParser(), asyncio.get_running_loop().time
        try:
            with Exchanging(self._endpoint, deadline, self._socket):
                async with asyncio.timeout(begins) as limit:
                    await self._channel.send(request)
                    while not parser.complete:
                        limit.reschedule(now() + deadline.within(patience))
                        parser.feed(part_of_answer(self._endpoint, await self._channel.receive()))
                return parser.answer(), parser.keep_alive
        finally:
            parser.close()

    def close(self) -> None:
        """Close the connection, at once and without a word to the other side."""
        self._socket.close()


class LoopPool:
    """The connections of one event loop to one endpoint: at most ``size`` at a time, the latest used first.

    Whoever asks for one more waits for at most the read timeout, and not past the deadline of the request, in the order
    of asking. It is used in its loop alone, and refers to the loop only while somebody waits: who keeps pools by their
    loops keeps no loop alive.
    """

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self._endpoint = endpoint
        self._left = size
        self._queue: deque[asyncio.Future[None]] = deque()
        self._waiting: deque[LoopConnection] = deque()
        finalize(self, _close, self._waiting)

    async def exchange(self, request: bytes, deadline: Deadline) -> Answer:
        """Send a request over a connection of the pool, and give its answer."""
        await self._take_place(deadline)
        try:
            connection = self._kept() or await _connect(self._endpoint, deadline)
            answer, stays = await connection.exchange(request, deadline)
            if stays:
                self._waiting.append(connection)
            else:
                connection.close()
            return answer
        finally:
            self._return_place()

    def close(self) -> None:
        """Close the connections that wait."""
        _close(self._waiting)

    def _kept(self) -> LoopConnection | None:
        while self._waiting:
            connection = self._waiting.pop()
            if not connection.dropped:
                return connection
            connection.close()
        return None

    async def _take_place(self, deadline: Deadline) -> None:
        if self._left:
            self._left -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(min(self._endpoint.read_timeout, deadline.left)):
                await turn
        except BaseException as error:
            if turn.cancelled() or not turn.done():
                with suppress(ValueError):
                    self._queue.remove(turn)
            else:  # it came to its turn as it gave up
                self._return_place()
            if isinstance(error, TimeoutError):
                raise no_place(self._endpoint) from None
            raise

    def _return_place(self) -> None:
        """Hand a place to the one that has waited longest."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._left += 1


def _close(connections: deque[LoopConnection]) -> None:
    while connections:
        connections.pop().close()


class LoopPools:
    """The pool of each event loop of this process; that of a loop which is gone is closed."""

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self._endpoint, self._size = endpoint, size
        self._lock = Lock()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopPool] = WeakKeyDictionary()

    def current(self) -> LoopPool:
        """The pool of the loop that runs."""
        loop = asyncio.get_running_loop()
        return self._pools.get(loop) or self._made(loop)

    def close(self) -> None:
        """Close the connections that wait."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()

    def _made(self, loop: asyncio.AbstractEventLoop) -> LoopPool:
        with self._lock:
            for each in [each for each in self._pools if each.is_closed()]:
                self._pools.pop(each).close()
            pool = self._pools[loop] = LoopPool(self._endpoint, self._size)
            return pool


async def _connect(endpoint: Endpoint, deadline: Deadline) -> LoopConnection:
    with Connecting(endpoint, deadline):
        async with asyncio.timeout(deadline.within(endpoint.connect_timeout)):
            own = await _open(endpoint)
    with Encrypting(endpoint, deadline, own):
        # The request is one piece: waiting for more of it would only delay it.
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.tls is None:
            return LoopConnection(endpoint, own, _Plain(own))
        encrypted = _Encrypted(own, endpoint.tls, endpoint.server_name)
        async with asyncio.timeout(deadline.within(endpoint.connect_timeout)):
            await encrypted.shake_hands()
        return LoopConnection(endpoint, own, encrypted)


async def _open(endpoint: Endpoint) -> socket.socket:
    """A socket that is connected to the first of the endpoint's addresses that answers."""
    loop = asyncio.get_running_loop()
    failure: OSError = OSError(f"{endpoint.host} has no address")
    for family, kind, protocol, _, address in await _addresses(endpoint):
        own = socket.socket(family, kind, protocol)
        try:
            own.setblocking(False)
            await loop.sock_connect(own, address)
            return own
        except OSError as error:
            own.close()
            failure = error
        except BaseException:
            own.close()
            raise
    raise failure


async def _addresses(endpoint: Endpoint) -> list[tuple[int, int, int, str, tuple[str, int]]]:
    host, port = endpoint.host, endpoint.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        # A name: asking for its address may take long.
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return found  # type: ignore[return-value]  # addresses of two or four parts
