"""The streams of connections in an event loop, and the pool of each loop.

A stream refers to the loop only while a request waits for it. A loop can therefore end without closing its pool, whose
connections are closed when the pool is garbage collected.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, finalize

from dynamo_single.table.http.connections import CHUNK, Endpoint, Place, Places, Pool, Stream, close_all

T = TypeVar("T")


class LoopStream(Stream):
    """A TCP connection that the running event loop waits for. TLS reads and writes buffers in memory."""

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._socket.setblocking(False)
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None

    @staticmethod
    async def addresses(host: str, port: int, seconds: float) -> list[Any]:
        """Return what ``socket.getaddrinfo()`` finds; a name is looked up in a thread."""
        try:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def connect(self, address: Any, seconds: float) -> None:
        """Connect to an address."""
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(self._socket, address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def encrypt(self, context: ssl.SSLContext, name: str, seconds: float) -> None:
        """Start TLS, and verify the certificate of the server."""
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=name)
        async with asyncio.timeout(seconds):
            await self._step(self._tls.do_handshake)

    async def send(self, data: bytes, seconds: float) -> None:
        """Send all of the bytes."""
        async with asyncio.timeout(seconds):
            if self._tls is None:
                await asyncio.get_running_loop().sock_sendall(self._socket, data)
                return
            rest = memoryview(data)
            while rest:
                rest = rest[await self._step(partial(self._tls.write, rest)) :]

    async def receive(self, seconds: float) -> bytes:
        """Return the next bytes, which are empty at the end of the connection."""
        async with asyncio.timeout(seconds):
            if self._tls is None:
                return await asyncio.get_running_loop().sock_recv(self._socket, CHUNK)
            with suppress(ssl.SSLZeroReturnError):
                return await self._step(partial(self._tls.read, CHUNK))
            return b""

    @property
    def is_readable(self) -> bool:
        """Return whether bytes, or the end of the connection, can be read without waiting."""
        return bool(self._received.pending or (self._tls and self._tls.pending()) or super().is_readable)

    async def _step(self, work: Callable[[], T]) -> T:
        """Run a step of TLS, which may need bytes of the server first, and send the bytes that it writes."""
        while True:
            try:
                result = work()
            except ssl.SSLWantReadError:
                await self._flush()
                if data := await asyncio.get_running_loop().sock_recv(self._socket, CHUNK):
                    self._received.write(data)
                else:
                    self._received.write_eof()
                continue
            await self._flush()
            return result

    async def _flush(self) -> None:
        if data := self._to_send.read():
            await asyncio.get_running_loop().sock_sendall(self._socket, data)


class LoopPlaces(Places):
    """The free places of a pool in one event loop; requests get them in the order in which they came."""

    def __init__(self) -> None:
        self._requests: deque[asyncio.Future[Place]] = deque()

    def put(self, place: Place, block: bool = True, timeout: float | None = None) -> None:
        """Give a place to the request that has waited longest."""
        while self._requests:
            request = self._requests.popleft()
            if not request.done():
                request.set_result(place)
                return
        super().put(place)

    async def wait(self, seconds: float) -> Place:
        """Return the next free place, or raise ``Empty``."""
        request: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        self._requests.append(request)
        try:
            async with asyncio.timeout(seconds):
                return await request
        except BaseException as error:
            with suppress(ValueError):
                self._requests.remove(request)
            if request.done() and not request.cancelled():
                self.put(request.result())
            if isinstance(error, TimeoutError):
                raise Empty from None
            raise


class LoopPool(Pool):
    """At most ``size`` connections of one event loop to one endpoint."""

    stream = LoopStream
    places = LoopPlaces

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        super().__init__(endpoint, size)
        finalize(self, close_all, self._idle)


class LoopPools:
    """The pool of each event loop of this process. The pool of a closed loop is closed."""

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self._endpoint, self._size = endpoint, size
        self._lock = Lock()
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopPool] = WeakKeyDictionary()

    def current(self) -> LoopPool:
        """Return the pool of the running loop."""
        loop = asyncio.get_running_loop()
        return self._pools.get(loop) or self._add(loop)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()

    def _add(self, loop: asyncio.AbstractEventLoop) -> LoopPool:
        with self._lock:
            for each in [each for each in self._pools if each.is_closed()]:
                self._pools.pop(each).close()
            pool = self._pools[loop] = LoopPool(self._endpoint, self._size)
            return pool
