"""A server with a script: the response to each request, and the end of the connection."""

from __future__ import annotations

import itertools
import json
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.listening import listening

UNITS = {"TableName": "single-table", "CapacityUnits": 1.0}
ITEM = {"pk": {"S": "a"}, "sk": {"S": "b"}}
FOUND = {"Item": ITEM, "ConsumedCapacity": UNITS}


def reply(content: Any = FOUND, status: int = 200, **headers: str) -> bytes:
    """Return a DynamoDB response that keeps the connection open."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    told = {
        "content-type": "application/x-amz-json-1.0",
        "content-length": str(len(body)),
        "x-amz-crc32": str(zlib.crc32(body)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status} Told\r\n{head}\r\n".encode() + body


def refusal(code: str, status: int = 400, **more: Any) -> bytes:
    """A refusal of DynamoDB."""
    return reply(
        {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "as the script says", **more}, status
    )


@dataclass(frozen=True)
class Step:
    """The response to one request: ``given`` is sent after a ``delay``, and the connection is kept or closed.

    At the end "garbled" it carries bytes that are not TLS.

    With a ``drip``, every byte is sent separately after that many seconds.
    """

    given: bytes = b""
    end: str = "keep"
    delay: float = 0.0
    drip: float = 0.0


@dataclass
class Scripted:
    """The server's state; after all steps, every request gets a valid response."""

    steps: list[Step] = field(default_factory=list)
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    connections: int = 0
    at_once: int = 0
    most_at_once: int = 0
    port: int = 0
    #: This distinguishes the servers of this process: another server may get the port later.
    number: int = field(default_factory=itertools.count().__next__)
    pause: float = 0.0
    check: Callable[[dict[str, str], bytes], None] | None = None
    #: For each of the next connections, the bytes that it gets instead of a handshake; none reset it.
    breaks: list[bytes] = field(default_factory=list)
    #: Set at the end of the block: delayed responses are not sent after that.
    over: threading.Event = field(default_factory=threading.Event)
    #: Refuses connections from now on.
    stop: Callable[[], None] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, headers: dict[str, str], body: bytes) -> Step:
        """The step of a request that came."""
        with self.lock:
            self.requests.append((headers, body))
            return self.steps.pop(0) if self.steps else Step(reply())


@contextmanager
def scripted(*steps: Step, tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    """A server on a free port of this machine for the block."""
    state = Scripted(list(steps))
    with ExitStack() as stack:
        state.port = stack.enter_context(listening(lambda connection: _serve(state, connection, tls)))
        state.stop = stack.close
        stack.callback(state.over.set)
        yield state


def _serve(state: Scripted, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
    with state.lock:
        state.connections += 1
        state.at_once += 1
        state.most_at_once = max(state.most_at_once, state.at_once)
    try:
        if state.breaks:
            _break(connection, state.breaks.pop(0))
            return
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True)
        while _one_request(state, connection):
            pass
    except OSError:
        return
    finally:
        connection.close()  # before it is counted: see ``outcome`` in test_damaged_answers
        with state.lock:
            state.at_once -= 1


def _one_request(state: Scripted, connection: socket.socket) -> bool:
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(65536)
        if not data:
            return False
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65536)
    if state.check is not None:
        state.check(headers, body)
    state.over.wait(state.pause)
    step = state.take(headers, body)
    for each in [step.given[at : at + 1] for at in range(len(step.given))] if step.drip else [step.given]:
        if state.over.wait(step.drip or step.delay):
            return False
        connection.sendall(each)
    if step.end == "garbled":
        socket.socket.sendall(connection, b"no record of TLS\r\n")
    if step.end == "reset":
        _reset_at_close(connection)
    return step.end == "keep"


def _break(connection: socket.socket, given: bytes) -> None:
    connection.recv(65536)
    connection.sendall(given)
    if not given:
        _reset_at_close(connection)


def _reset_at_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
