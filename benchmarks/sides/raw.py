"""The second floor: signed requests on a bare socket, whose responses are decoded; no retry, check or object."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks.sides.floor import Floor

CHUNK = 1 << 18
#: A local engine does not check them.
ACCESS_KEY, SECRET_KEY = "local", "local"
SIGNED = "content-type;host;x-amz-date;x-amz-target"


class Raw(Floor):
    """Signature Version 4, orjson and ``socket``: a client in Python cannot do less."""

    name = "raw socket"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._local = threading.local()
        address = urlsplit(self.settings.endpoint_url)
        self._place = address.hostname, address.port
        self._host = f"{address.hostname}:{address.port}"
        self._date, self._day_key = "", b""

    def call(self, operation: str, params: dict[str, Any]) -> Any:
        """Send one request on the thread's connection."""
        status, body = self._exchange(self._signed(operation, orjson.dumps(params)))
        if status != b"200":
            raise RuntimeError(f"{operation}: {status!r} {body!r}")
        return orjson.loads(body)

    def _signed(self, operation: str, body: bytes) -> bytes:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        if stamp[:8] != self._date:
            self._date, self._day_key = stamp[:8], self._key_of(stamp[:8])
        fixed = (
            f"content-type:application/x-amz-json-1.0\nhost:{self._host}\n"
            f"x-amz-date:{stamp}\nx-amz-target:DynamoDB_20120810.{operation}\n"
        )
        request = f"POST\n/\n\n{fixed}\n{SIGNED}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{self._date}/{self.settings.region}/dynamodb/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.digest(self._day_key, text.encode(), "sha256").hex()
        head = (
            f"POST / HTTP/1.1\n{fixed}content-length:{len(body)}\nauthorization:AWS4-HMAC-SHA256 "
            f"Credential={ACCESS_KEY}/{scope}, SignedHeaders={SIGNED}, Signature={signature}\n\n"
        )
        return head.replace("\n", "\r\n").encode() + body

    def _key_of(self, date: str) -> bytes:
        key = f"AWS4{SECRET_KEY}".encode()
        for part in (date, self.settings.region, "dynamodb", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key

    def _exchange(self, request: bytes) -> tuple[bytes, bytes]:
        try:
            connection = self._local.connection
        except AttributeError:
            connection = self._local.connection = socket.create_connection(self._place)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(request)
        head, _, body = connection.recv(CHUNK).partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        if len(body) < length:
            parts, left = [body], length - len(body)
            while left > 0:
                parts.append(connection.recv(CHUNK))
                left -= len(parts[-1])
            body = b"".join(parts)
        return head[9:12], body


SIDES = (Raw,)
