"""Less than the floor: the bytes of a request that was made before, and those of its answer, on a bare socket."""

from __future__ import annotations

import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks.sides.floor import HEADERS
from benchmarks.sides.side import Side

CHUNK = 1 << 16


class Raw(Side):
    """GetItem and Query of the shorter list; nothing that would have to be made again each time."""

    name = "raw socket"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._local = threading.local()
        address = urlsplit(self.settings.endpoint_url)
        self._place = address.hostname, address.port
        wire_key = {name: {"S": value} for name, value in self.key.items()}
        self._get = self._request("GetItem", {"TableName": self.table, "Key": wire_key})
        asked = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": wire_key["pk"]}}
        self._query = self._request("Query", {"TableName": self.table, **asked})

    def get(self) -> Any:
        """The bytes of an item."""
        return self._send(self._get)

    def objects(self) -> Any:
        """The bytes of a page."""
        return self._send(self._query)

    create = save = many = in_bulk = bulk_create = None

    def _request(self, operation: str, params: Any) -> bytes:
        body = orjson.dumps(params)
        fixed = {
            **HEADERS,
            "Host": "{}:{}".format(*self._place),
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Length": len(body),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in fixed.items())
        return f"POST / HTTP/1.1\r\n{head}\r\n".encode() + body

    def _send(self, request: bytes) -> bytes:
        try:
            connection = self._local.connection
        except AttributeError:
            connection = self._local.connection = socket.create_connection(self._place)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(request)
        parts = [connection.recv(CHUNK)]
        head, _, body = parts[0].partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        left = length - len(body)
        while left > 0:
            parts.append(connection.recv(CHUNK))
            left -= len(parts[-1])
        return b"".join(parts)


SIDES = (Raw,)
