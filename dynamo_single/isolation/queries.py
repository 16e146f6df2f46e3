"""Requests in the log of queries that ``assertNumQueries`` counts and ``CaptureQueriesContext`` shows.

A request counts for the default connection, and for others whose engine is ``dynamo_single.backend``. As with SQL,
those of a live server's threads are not counted, and those that a read sends in threads of its own are.
"""

from __future__ import annotations

from typing import Final

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from dynamo_single.table.listeners import HEARD, SentRequest

VENDOR: Final = "dynamodb"


class _Log:
    """Writes into the logs of the connections of the thread that made it."""

    def __init__(self) -> None:
        self._connections: list[BaseDatabaseWrapper] = [
            connection
            for connection in connections.all()
            if connection.alias == DEFAULT_DB_ALIAS or connection.vendor == VENDOR
        ]

    def __call__(self, sent: SentRequest) -> None:
        for connection in self._connections:
            if connection.queries_logged:
                connection.queries_log.append({"sql": described(sent), "time": f"{sent.seconds:.3f}"})


def described(sent: SentRequest) -> str:
    """One request in one line, for messages."""
    shown = {name: value for name, value in sent.params.items() if name != "ReturnConsumedCapacity"}
    return f"{sent.operation} {shown}" + (f" -> {sent.error}" if sent.error else "")


def start() -> None:
    """Log the requests of this thread, and of those that work for it."""
    stop()
    HEARD.set((*HEARD.get(), _Log()))


def stop() -> None:
    """Log none any more."""
    HEARD.set(tuple(listener for listener in HEARD.get() if not isinstance(listener, _Log)))
