"""The points where a process stops itself between the check and the send of a request."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any


class Stops:
    """Stop this process once, at a given point, for chosen operations and parameters.

    The points are "checked", before the signature, and "signed", before the send. ``say`` is called before the stop.
    """

    def __init__(self, say: Callable[[], object], chosen: Callable[[str, str], bool] = lambda *_: True) -> None:
        self.point = ""
        self._say, self._chosen = say, chosen
        for name in ("sendall", "send"):
            self._watch(name, getattr(socket.socket, name))

    def _watch(self, name: str, send: Callable[..., Any]) -> None:
        def stopping(connection: socket.socket, data: Any, *arguments: Any) -> Any:
            head = bytes(data[:4096])
            # An event loop wakes itself up through a socket too.
            if head.startswith(b"POST"):
                operation = head.partition(b"DynamoDB_20120810.")[2].partition(b"\r")[0].decode()
                self._stop("signed", operation, "")
            return send(connection, data, *arguments)

        setattr(socket.socket, name, stopping)

    def checked(self, operation: str, params: Mapping[str, Any]) -> None:
        """Stop before the signature of a request; for ``intercept()``."""
        self._stop("checked", operation, str(params))

    def _stop(self, point: str, operation: str, text: str) -> None:
        if point == self.point and self._chosen(operation, text):
            self.point = ""
            self._say()
            # Only this thread gets the signal; any other thread would let it run on for a moment.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
