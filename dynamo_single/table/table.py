"""The one seam: every request to DynamoDB, ours and PynamoDB's own, passes ``Table.call``.

It sends what it is given and must not know botocore, models, queries or plans.
"""

from __future__ import annotations

import logging
import random
import time
from asyncio import CancelledError, _get_running_loop
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any

from django.core.signals import setting_changed
from django.utils.asyncio import async_unsafe

from dynamo_single.conf import TableSettings, table_settings
from dynamo_single.exceptions import Conflict, TableUnavailable, Throttled
from dynamo_single.table import deadlines, errors, flow, id_tables, redirects, transport
from dynamo_single.table.answers import PageForm, untyped
from dynamo_single.table.pynamodb import PynamodbTable
from dynamo_single.table.redirects import HEARD, INTERCEPTING
from dynamo_single.table.request import READS, Parameters, Request, Response

logger = logging.getLogger("dynamo_single.requests")

#: Operations on items; they say what they consumed. The second group names its tables inside its parameters.
ON_ONE_TABLE = frozenset({"DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"})
ON_SEVERAL_TABLES = frozenset({"BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"})
_CONSUMING = ON_ONE_TABLE | ON_SEVERAL_TABLES
#: Operations that do not take the name of the table.
_UNNAMED = ON_SEVERAL_TABLES | {"ListTables"}

#: How often a request is sent that another transaction is in the way of, and the longest pause before it, in seconds.
CONFLICT_ATTEMPTS = 12
LONGEST_PAUSE = 2.0
#: The same where it is another writer that was faster, and a web page may wait for this one.
LONGEST_AMONG_WRITERS = 0.4

_waited_for: ContextVar[tuple[type[TableUnavailable], ...]] = ContextVar("waited_for", default=(Conflict,))


class Table:
    """One table, as the settings name it."""

    def __init__(self, settings: TableSettings) -> None:
        self.settings = settings
        #: What PynamoDB's own calls pass.
        self.pynamodb = PynamodbTable(settings, self.call)
        #: How often all that the table holds was replaced, as test tables are: what is remembered of it holds no more.
        self.replaced = 0

    @property
    def name(self) -> str:
        """The table's name."""
        return self.settings.table_name

    def send(self, request: Request, form: PageForm | None = None) -> dict[str, Any]:
        """Send one request to this table; every failure is an error of ours, with botocore's as its cause.

        With a ``form`` the items of a page are given as that has it, by a ``TypedAnswer``, if the page allows that.
        """
        return flow.run(self.ask(request, form))

    def send_patiently(self, request: Request) -> Response:
        """Send, and again after a pause while another transaction is in the way; a token makes that harmless.

        Within ``patience()`` also while DynamoDB asks to slow down.
        """
        return flow.run(self.ask_patiently(request))

    def pages(self, request: Request, *, send: Callable[[Request], Response] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the responses to a Query or a Scan, one request for each page to its end, sent by ``send``.

        For the app's own items and for commands: what models read goes by ``orm/reading``.
        """
        while True:
            answer = self.send(request) if send is None else send(request)
            yield answer
            if not (start := answer.get("LastEvaluatedKey")):
                return
            request = Request(request.operation, {**request.params, "ExclusiveStartKey": start})

    async def ask(self, request: Request, form: PageForm | None = None) -> Response:
        """``send()`` for a coroutine: at once within ``flow.run()``, and in an event loop while other work goes on.

        A request that is cancelled there is broken off, and nobody knows whether it is carried out: the
        ``CancelledError`` of a write says so in a note, and the log in a warning.
        """
        operation, params = request.operation, dict(request.params)
        if operation not in _UNNAMED:
            params["TableName"] = self.settings.table_name
        try:
            return await self._call(operation, params, form)
        except transport.FAILURES as error:
            raise transport.explained(self.settings, operation, params, error) from error
        except CancelledError as error:
            if operation not in READS:
                told = errors.cancelled(self.settings, operation)
                error.add_note(told)
                logger.warning("%s", told)
            raise

    async def ask_patiently(self, request: Request) -> Response:
        """``send_patiently()`` for a coroutine."""
        for attempt in range(CONFLICT_ATTEMPTS - 1):
            try:
                return await self.ask(request)
            except _waited_for.get():
                if deadlines.is_spent():
                    raise
                await pause_after(attempt)
        return await self.ask(request)

    def call(self, operation: str, params: Parameters, form: PageForm | None = None) -> Response:
        """Send one request; botocore's errors pass through. What it consumed is always asked for.

        By that an answer is known for DynamoDB's (``answers.read()``).
        In a thread that runs an event loop it is Django's ``SynchronousOnlyOperation``: the loop would stand still.
        """
        return flow.run(self._call(operation, params, form))

    async def _call(self, operation: str, params: Parameters, form: PageForm | None) -> Response:
        if flow.mode.depth and _get_running_loop() is not None:
            _refuse_in_event_loop()
        if operation in _CONSUMING and params.get("ReturnConsumedCapacity") not in {"TOTAL", "INDEXES"}:
            params = {**params, "ReturnConsumedCapacity": "TOTAL"}
        if HEARD.get() or INTERCEPTING.get() or redirects.state.guard is not None:
            return await self._watched(operation, params, form)
        return await transport.send(self.settings, operation, params, form)

    async def _watched(self, operation: str, params: Parameters, form: PageForm | None) -> Response:
        """Send a request that listeners hear of, interceptors may answer, or a guard may refuse."""
        started = time.perf_counter()
        response: dict[str, Any] | None = None
        failure = ""
        try:
            if INTERCEPTING.get() or redirects.state.guard is not None:
                # What a test does there may send requests of its own, or wait.
                response = await flow.local(partial(self._tested, operation, params))
            if response is None:
                response = await transport.send(self.settings, operation, params, form)
        except (Exception, CancelledError) as error:  # also what an interceptor raises: listeners hear of it
            failure = transport.code_of(error)
            raise
        finally:
            if HEARD.get():
                heard = None if response is None else untyped(response)
                redirects.tell(operation, params, heard, time.perf_counter() - started, failure)
        return response

    def _tested(self, operation: str, params: Parameters) -> dict[str, object] | None:
        """What a test answers in DynamoDB's place; else ``None``, if the request may be sent."""
        answer = redirects.intercepted(operation, params) if INTERCEPTING.get() else None
        # What stands in for AWS lets nothing out.
        guard = None if transport.answers_for(self.settings.endpoint_url) else redirects.state.guard
        if answer is None and guard is not None:
            guard(self.settings, operation, params)
        return answer


class SingleKeyTable(Table):
    """A table whose key is ``id`` alone: its callers know items by ``pk`` and ``sk``, and it sends them by ``id``.

    Listeners hear what is sent.
    """

    async def _call(self, operation: str, params: Parameters, form: PageForm | None) -> Response:
        sent, translated = id_tables.asked(operation, params)
        try:
            answer = await super()._call(sent, translated, form)
        except transport.FAILURES as error:
            transport.translate(error, partial(id_tables.answered, operation))
            raise
        return id_tables.answered(operation, answer)


@async_unsafe(
    "A request would hold up the event loop. Await the asynchronous twin, as aget(), asave() and async for, read "
    "references along by select_related(), or call it by sync_to_async()."
)
def _refuse_in_event_loop() -> None:
    """Raise Django's ``SynchronousOnlyOperation``, unless ``DJANGO_ALLOW_ASYNC_UNSAFE`` is set."""


def get_table(alias: str = "default") -> Table:
    """The table of an alias; one object for as long as the settings stay the same. Sends nothing.

    While tests run, it is the test table that stands in for the one which the settings name.
    """
    found = _tables.get(alias)
    if found is None:
        redirects.watch()
        found = _tables[alias] = table_at(redirects.stand_in_for(table_settings(alias)))
    return found


def use_test_tables(stand_ins: Mapping[TableSettings, TableSettings]) -> None:
    """From now on ``get_table()`` gives the second table of each pair in the place of the first."""
    redirects.put_in(stand_ins)
    _tables.clear()


_tables: dict[str, Table] = {}


@lru_cache(maxsize=64)
def table_at(settings: TableSettings) -> Table:
    """The table of settings as they are, whatever stands in for it. Sends nothing."""
    return SingleKeyTable(settings) if settings.key == "id" else Table(settings)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "DYNAMO_SINGLE":
        _tables.clear()


# Tests override settings.
setting_changed.connect(_forget)


async def pause_after(attempt: int, longest: float | None = None) -> None:
    """Wait before something is tried again, the longer the more attempts there were, from 0, and up to ``longest``
    seconds, ``LONGEST_PAUSE`` unless it is given. Nobody waits as long as the others, or longer than a budget has left.
    """
    # Looked up here: whoever lowers it, as tests do, would not be heard by a default.
    most = min(LONGEST_PAUSE if longest is None else longest, 0.05 * 2**attempt)
    await flow.pause(deadlines.charged(random.uniform(0, most)))  # noqa: S311 - jitter is no secret


async def pause_before(attempt: int) -> None:
    """Wait before an attempt, numbered from 0, at what other writers were faster with: not before the first two, and
    up to ``LONGEST_AMONG_WRITERS`` seconds before the others."""
    if attempt > 1:
        await pause_after(attempt - 2, LONGEST_AMONG_WRITERS)


@contextmanager
def patience() -> Iterator[None]:
    """Within the block a write that DynamoDB puts off is sent again after pauses, beyond botocore's own attempts.

    For work on many items: it can wait, where a web page's one write rather fails.
    """
    token = _waited_for.set((Conflict, Throttled))
    try:
        yield
    finally:
        _waited_for.reset(token)
