"""A server on a separate port that returns fixed bytes, for tests of invalid responses."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

from django.test import override_settings

KIND = "application/x-amz-json-1.0"


def answer(content: Any) -> bytes:
    """Return a DynamoDB response with this content."""
    return framed(json.dumps(content).encode())


def framed(body: bytes, *, kind: str | None = KIND, checksum: int | None = None, length: int | None = None) -> bytes:
    """A body with DynamoDB's head, and with a ``checksum``, a ``length`` and a ``kind`` of content of another."""
    head = ["HTTP/1.1 200 OK", "Connection: close", *([] if kind is None else [f"Content-Type: {kind}"])]
    head.append(f"Content-Length: {len(body) if length is None else length}")
    head.append(f"x-amz-crc32: {zlib.crc32(body) if checksum is None else checksum}")
    return "\r\n".join([*head, "", ""]).encode() + body


class Server(ThreadingTCPServer):
    """Respond to each request with the set bytes."""

    daemon_threads = True
    allow_reuse_address = True
    given = b""
    #: The request path that requests to it take.
    transport = "direct"


class _Handler(BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.request.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        (length,) = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        while len(body) < length:
            body += self.request.recv(65536)
        self.request.sendall(self.server.given)


@contextmanager
def serving() -> Iterator[Server]:
    """A server that runs for the block."""
    with Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(server: Server, given: bytes, **options: Any) -> Iterator[None]:
    """Within the block the default table is at the server, which gives ``given`` and closes the connection."""
    server.given = given
    settings: Mapping[str, Any] = {
        "TABLE_NAME": "single-table",
        "ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "REGION": "us-east-1",
        "MAX_ATTEMPTS": 1,
        "TRANSPORT": server.transport,
        # The server responds to one request; the check of the state does not count.
        "MIGRATIONS": "trust",
        **options,
    }
    with override_settings(DYNAMO_SINGLE={"default": settings}):
        yield
