"""A server of the tests: a thread for each connection, on a free port of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def listening(serve: Callable[[socket.socket], object]) -> Iterator[int]:
    """Call ``serve`` in a thread of its own for each connection of the block, and yield the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port: int = listener.getsockname()[1]
    stopped = threading.Event()

    def accept() -> None:
        while not stopped.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        stopped.set()
        # accept() ends by a last connection.
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join()
        listener.close()
