"""Faults of single INSERT statements, which no engine has: AWS's codes instead of an engine's response."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context
from typing import Any

from dynamo_single.table import get_table
from dynamo_single.testing import intercept
from tests.strict import Received, Strict

INSERTS = "BatchExecuteStatement"


def inserted(params: Mapping[str, Any]) -> list[str]:
    """The partition keys that a request inserts."""
    return [each["Parameters"][0]["S"] for each in params["Statements"]]


@contextmanager
def answered(*codes: Mapping[str, str]) -> Iterator[list[list[str]]]:
    """Let statements fail with a code, by the end of their partition key: the first mapping in the first request, ...

    All other statements are executed, and a statement whose code ends with "!" too. Yield the keys that each request
    has inserted.
    """
    seen: list[list[str]] = []
    lock = threading.Lock()

    def interceptor(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if operation != INSERTS:
            return None
        with lock:
            seen.append(inserted(params))
            told = codes[len(seen) - 1] if len(seen) <= len(codes) else {}
        found = [next((c for end, c in told.items() if key.endswith(end)), "") for key in inserted(params)]
        sent = [each for each, code in zip(params["Statements"], found, strict=True) if not code or code[-1] == "!"]
        told_by_engine: Iterator[Any] = iter(())
        if sent:
            call = Context().run(get_table().call, operation, {**params, "Statements": sent})
            told_by_engine = iter(call["Responses"])
        responses = []
        for code in found:
            own = next(told_by_engine) if not code or code[-1] == "!" else None
            responses.append({"Error": {"Code": code.rstrip("!"), "Message": "a test"}} if code else own)
        return {"Responses": responses}

    with intercept(interceptor):
        yield seen


def lose_next(server: Strict, operation: str = INSERTS) -> None:
    """Let a server execute the next request of an operation, and close its connection without a response."""

    def lose(request: Received) -> None:
        if request.operation == operation:
            server.executed = lambda request: None
            raise ConnectionResetError

    server.executed = lose
