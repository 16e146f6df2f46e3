"""Who hears of requests, and who answers in DynamoDB's place: listeners, captures and interceptors of a block.

This module must not know botocore, tables or settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from dynamo_single.table.items import Parameters, Response

Interceptor = Callable[[str, Parameters], Response | None]


class SentRequest(Struct, frozen=True):
    """One request as it was sent.

    ``response`` is ``None`` and ``error`` DynamoDB's error code if it failed; botocore's own retries are not counted.
    """

    operation: str
    params: Parameters
    response: Mapping[str, Any] | None
    seconds: float
    consumed: float
    error: str = ""


Listener = Callable[[SentRequest], object]

#: Who listens, and who may answer; empty for nobody. The table looks before it asks.
HEARD: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
INTERCEPTING: ContextVar[tuple[Interceptor, ...]] = ContextVar("interceptors", default=())


@contextmanager
def capture_requests() -> Iterator[list[SentRequest]]:
    """Collect the requests that the block sends, in the order of their answers; blocks may be nested.

    Requests of other threads are not seen, except of those that the block's own reads and ``sync_to_async`` use.
    """
    sent: list[SentRequest] = []
    with listening(sent.append):
        yield sent


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of each request of the block after its answer; several threads may call it at once."""
    token = HEARD.set((*HEARD.get(), listener))
    try:
        yield
    finally:
        HEARD.reset(token)


def listen(listener: Listener) -> None:
    """Tell ``listener`` of each request of this context, until ``unlisten``; for what begins and ends in two calls."""
    unlisten(listener)
    HEARD.set((*HEARD.get(), listener))


def unlisten(listener: Listener) -> None:
    """End what ``listen`` began; nothing if it did not."""
    HEARD.set(tuple(each for each in HEARD.get() if each != listener))


@contextmanager
def intercept(interceptor: Interceptor) -> Iterator[None]:
    """Ask ``interceptor(operation, params)`` before each request of the block: it may raise, answer, or return None.

    The innermost is asked first; an answer or an error keeps the request from being sent.
    """
    token = INTERCEPTING.set((*INTERCEPTING.get(), interceptor))
    try:
        yield
    finally:
        INTERCEPTING.reset(token)


def tell(operation: str, params: Parameters, response: Mapping[str, object] | None, seconds: float, error: str) -> None:
    """Tell each listener of a request that was answered, or failed."""
    sent = SentRequest(operation, params, response, seconds, _consumed(response), error)
    for listener in HEARD.get():
        listener(sent)


def intercepted(operation: str, params: Parameters) -> dict[str, object] | None:
    """What an interceptor answers in DynamoDB's place, the innermost first; ``None`` if the request is to be sent."""
    for interceptor in reversed(INTERCEPTING.get()):
        if (answer := interceptor(operation, params)) is not None:
            return answer
    return None


def _consumed(response: Mapping[str, Any] | None) -> float:
    consumed = (response or {}).get("ConsumedCapacity") or ()
    parts = [consumed] if isinstance(consumed, Mapping) else consumed
    return float(sum(part.get("CapacityUnits", 0.0) for part in parts))
