"""The cost of each HTTP request in the log, and a response with status 503 while DynamoDB is unavailable.

This module listens to sent requests. It must not depend on models, and does not log the contents of items.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import starmap
from typing import Any, TypeGuard

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.utils.encoding import escape_uri_path
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.conf import CostSettings, cost_settings, web_timeout
from dynamo_single.costs import Cost, Costs
from dynamo_single.table import masking, names
from dynamo_single.table.deadlines import budget
from dynamo_single.table.redirects import SentRequest, listening
from dynamo_single.table.shaped.written_keys import sent_key, written_keys
from dynamo_single.table.table import translator_of
from dynamo_single.unavailable import AWAY, unavailable_response

__all__ = ["RequestCostMiddleware", "UnavailableMiddleware"]

logger = logging.getLogger("dynamo_single.requests")

#: The most kinds or keys that one warning names. Further ones are only counted.
_SHOWN = 5
#: The prefixes of keys that are never shown: a session's key identifies its user, and the hash a visitor.
_HIDDEN = ("SESSION#", "SESSIONHASH#")
_END = object()
#: The seconds to wait for the first part of an asynchronous stream before the head is sent.
FIRST_PART = 1.0


class Middleware:
    """The base of middleware for synchronous and asynchronous projects."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        return self._answer(request) if self.is_async else self._answer_now(request)

    def _answer_now(self, request: HttpRequest) -> HttpResponseBase:
        raise NotImplementedError

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        raise NotImplementedError


def is_stream(response: HttpResponseBase) -> TypeGuard[StreamingHttpResponse]:
    """Return whether a response is streamed. A file is not: wrapped, the server's file wrapper could not send it."""
    return isinstance(response, StreamingHttpResponse) and not isinstance(response, FileResponse)


def read_within(
    response: StreamingHttpResponse, context: Callable[[], AbstractContextManager[object]], ended: Callable[[], object]
) -> None:
    """Read each part of a streamed response in a new context, and call ``ended()`` at the end of the stream."""
    content: Any = response.streaming_content
    response.streaming_content = (_aread if response.is_async else _read)(content, context, ended)


def _read(
    content: Iterator[Any], context: Callable[[], AbstractContextManager[object]], ended: Callable[[], object]
) -> Iterator[Any]:
    try:
        while True:
            with context():
                chunk = next(content, _END)
            if chunk is _END:
                return
            yield chunk
    finally:
        ended()


async def _aread(
    content: AsyncIterator[Any], context: Callable[[], AbstractContextManager[object]], ended: Callable[[], object]
) -> AsyncIterator[Any]:
    try:
        while True:
            with context():
                chunk = await anext(content, _END)
            if chunk is _END:
                return
            yield chunk
    finally:
        ended()


class RequestCostMiddleware(Middleware):
    """Log the cost of each HTTP request to the logger ``dynamo_single.requests``. Put it first in ``MIDDLEWARE``.

    It logs one line at INFO, or at WARNING above the thresholds of ``DYNAMO_SINGLE_COSTS``. Further warnings name items
    that GetItem read repeatedly, and kinds of items that were read one by one. Requests during a streamed response have
    separate lines. Works in synchronous and asynchronous projects.
    """

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        self.settings = cost_settings()

    def _answer_now(self, request: HttpRequest) -> HttpResponseBase:
        with self._watched(request) as watch:
            response: HttpResponseBase = self.get_response(request)
            watch.status = response.status_code
        return self._streamed(request, response)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        with self._watched(request) as watch:
            response: HttpResponseBase = await self.get_response(request)
            watch.status = response.status_code
        return self._streamed(request, response)

    @contextmanager
    def _watched(self, request: HttpRequest) -> Iterator[_Watch]:
        watch = _Watch(request, self.settings)
        try:
            with listening(watch):
                yield watch
        finally:
            watch.report()

    def _streamed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if is_stream(response):
            watch = _Watch(request, self.settings, response.status_code, is_streaming=True)
            read_within(response, partial(listening, watch), watch.report)
        return response


class UnavailableMiddleware(Middleware):
    """Respond with status 503 and ``Retry-After`` while DynamoDB is unavailable. Put it first in ``MIDDLEWARE``.

    It covers errors of later middleware, such as that for sessions and logins, of views and templates, and of a
    streamed response up to its first part. The requests of one HTTP request may wait ``DYNAMO_SINGLE_WEB_TIMEOUT``
    seconds in total for DynamoDB: the time of each beyond a quarter of a second counts. Works in synchronous and
    asynchronous projects.
    """

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        self.seconds = web_timeout()

    def _answer_now(self, request: HttpRequest) -> HttpResponseBase:
        with self._waiting(request):
            try:
                return _begun(self.get_response(request))
            except AWAY as error:
                return unavailable_response(request, error)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        with self._waiting(request):
            try:
                return await _abegun(await self.get_response(request))
            except AWAY as error:
                # Rendering the page may read files.
                return await sync_to_async(unavailable_response)(request, error)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """Return the response for an error of a view, or of a template that is rendered later."""
        return unavailable_response(request, exception) if isinstance(exception, AWAY) else None

    @contextmanager
    def _waiting(self, request: HttpRequest) -> Iterator[None]:
        # Django would turn an error of a middleware into a page with status 500: see apps.pass_on().
        before = getattr(request, "dynamo_single_passes", ())
        request.dynamo_single_passes = AWAY  # type: ignore[attr-defined]
        try:
            with budget(self.seconds, "DYNAMO_SINGLE_WEB_TIMEOUT"):
                yield
        finally:
            request.dynamo_single_passes = before  # type: ignore[attr-defined]


def _begun(response: HttpResponseBase) -> HttpResponseBase:
    """Return the response, with the first part of a stream read: servers do not send the head before it either."""
    if is_stream(response) and not response.is_async:
        content: Any = response.streaming_content
        response.streaming_content = _from(_first(response, content), content)
    return response


def _first(response: StreamingHttpResponse, content: Iterator[bytes]) -> object:
    try:
        return next(content, _END)
    except BaseException:
        response.close()
        raise


def _from(first: Any, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first is not _END:
        yield first
        yield from rest


async def _abegun(response: HttpResponseBase) -> HttpResponseBase:
    """Do the same as ``_begun()``, with a short wait for an asynchronous stream, whose first part may be an event."""
    if not is_stream(response):
        return response
    content: Any = response.streaming_content
    if not response.is_async:
        response.streaming_content = _from(await sync_to_async(_first)(response, content), content)
        return response

    async def begin() -> object:
        return await anext(content, _END)

    first = asyncio.ensure_future(begin())
    await asyncio.wait({first}, timeout=FIRST_PART)
    if first.done() and first.exception() is not None:
        response.close()
        first.result()
    response.streaming_content = _afrom(first, content)
    return response


async def _afrom(first: asyncio.Future[Any], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        part = await first
        if part is not _END:
            yield part
            async for part in rest:
                yield part
    finally:
        first.cancel()


class _Key(Struct, frozen=True):
    """The key of an item."""

    table: str
    partition: str
    sort: str

    def __str__(self) -> str:
        return f"{names.PARTITION_KEY}={self.partition!r}, {names.SORT_KEY}={self.sort!r}"


class _Watch:
    """The requests of one HTTP request. Several threads may add to it."""

    def __init__(
        self, request: HttpRequest, settings: CostSettings, status: int | None = None, *, is_streaming: bool = False
    ) -> None:
        self.request = request
        self.settings = settings
        self.status = status
        self.is_streaming = is_streaming
        self.costs = Costs()
        self._lock = threading.Lock()
        self._types: dict[_Key, str] = {}
        self._reads: dict[_Key, int] = {}
        self._repeated: dict[_Key, int] = {}

    def __call__(self, sent: SentRequest) -> None:
        self.costs.add(Cost.of(sent))
        if sent.operation == "GetItem" and not sent.error:
            self._note_read(sent)
            return
        with self._lock:
            for key in starmap(_Key, written_keys(sent.operation, sent.params, translator_of)):
                # Reading an item again after a write is not wasted.
                self._reads.pop(key, None)

    def _note_read(self, sent: SentRequest) -> None:
        table_name = sent.params["TableName"]
        key = _Key(table_name, *sent_key(sent.params["Key"], table_name, translator_of))
        item = (sent.response or {}).get("Item", {})
        if item and (translator := translator_of(table_name)) is not None:
            item = translator.read(item)
        with self._lock:
            self._types[key] = item.get(names.ITEM_TYPE, {}).get("S", "")
            self._reads[key] = self._reads.get(key, 0) + 1
            if self._reads[key] > 1:
                self._repeated[key] = max(self._reads[key], self._repeated.get(key, 0))

    def report(self) -> None:
        """Log the lines; nothing for a stream without requests."""
        if self.is_streaming and not self.costs.requests:
            return
        level = logging.WARNING if self._is_much() else logging.INFO
        self._log(level, str(self.costs))
        self._warn_of_repeated()
        self._warn_of_single_reads()

    def _is_much(self) -> bool:
        costs, settings = self.costs, self.settings
        return any(
            threshold is not None and reached >= threshold
            for threshold, reached in (
                (settings.warn_requests, costs.requests),
                (settings.warn_units, costs.read_units + costs.write_units),
                (settings.warn_milliseconds, costs.seconds * 1000),
            )
        )

    def _warn_of_repeated(self) -> None:
        least = self.settings.warn_repeated
        found = {self._shown(key): count for key, count in self._repeated.items() if least and count >= least}
        if found:
            advice = "keep the object, or read it along with select_related() or prefetch_related()"
            self._log(logging.WARNING, f"the same GetItem was sent more than once: {_listed(found)}: {advice}")

    def _warn_of_single_reads(self) -> None:
        least = self.settings.warn_single_reads
        kinds = Counter(self._kind(key) for key in self._types)
        found = {kind: count for kind, count in kinds.items() if least and count >= least}
        if found:
            advice = "in_bulk(), select_related() or prefetch_related() read a hundred with one BatchGetItem"
            self._log(logging.WARNING, f"items were read one by one: {_listed(found)}: {advice}")

    def _kind(self, key: _Key) -> str:
        """Return the type of an item, or the prefix of its key if it is not stored. Keys may be hidden."""
        known = self._types[key]
        return known or (key.partition.partition("#")[0] if self.settings.show_keys else "not stored")

    def _shown(self, key: _Key) -> str:
        shows_key = self.settings.show_keys and not key.partition.startswith(_HIDDEN)
        if not shows_key:
            return self._kind(key)
        partition, sort = masking.shown_key(None, key.partition, key.sort)
        return f"{self._kind(key)} ({replace(key, partition=partition, sort=sort)})"

    def _log(self, level: int, text: str) -> None:
        # The path as the client wrote it: escaped, so that it cannot forge a line.
        path = escape_uri_path(self.request.path)
        status = "no response" if self.status is None else self.status
        status = f"{status}, while streaming" if self.is_streaming else status
        values = {"request": self.request, "status_code": self.status, "costs": self.costs}
        logger.log(level, "%s %s (%s): %s", self.request.method, path, status, text, extra=values)


def _listed(found: Mapping[str, int]) -> str:
    most = sorted(found.items(), key=lambda each: -each[1])
    shown = [f"{text} {count} times" for text, count in most[:_SHOWN]]
    return "; ".join(shown) + (f"; and {len(most) - _SHOWN} more" if len(most) > _SHOWN else "")
