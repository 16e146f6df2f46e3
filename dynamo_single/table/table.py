"""One table of the settings. Every request to DynamoDB passes through it, PynamoDB's own requests included.

Here requests are captured and counted, and tests inject faults. The module is independent of botocore, models, queries,
and plans.
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
from typing import TYPE_CHECKING, Any, Final

from django.core.signals import setting_changed
from django.utils.asyncio import async_unsafe

from dynamo_single.conf import TableSettings, table_settings
from dynamo_single.exceptions import Conflict, DynamoSingleError, TableNotFound, TableUnavailable, Throttled
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.table import deadlines, errors, flow, redirects, transport
from dynamo_single.table.answers import ResponseDecoder, plain_response
from dynamo_single.table.http import dates
from dynamo_single.table.lease import Lease
from dynamo_single.table.pynamodb import PynamodbTable
from dynamo_single.table.redirects import INTERCEPTORS, LISTENERS
from dynamo_single.table.request import READS, Item, Parameters, Request, Response, Statement, insert_statement
from dynamo_single.table.shaped import declared
from dynamo_single.table.shaped.sortable import Unstorable

if TYPE_CHECKING:
    from dynamo_single.table.shaped import companions, translator
    from dynamo_single.table.shaped.translator import Translator
else:
    # Only tables of other programs need them.
    companions = LazyModule("dynamo_single.table.shaped.companions")
    translator = LazyModule("dynamo_single.table.shaped.translator")

logger = logging.getLogger("dynamo_single.requests")

#: Operations on items, which report their capacity. The second group contains table names inside its parameters.
ON_ONE_TABLE = frozenset({"DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"})
ON_SEVERAL_TABLES = frozenset(
    {"BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"}
)
_CONSUMING = ON_ONE_TABLE | ON_SEVERAL_TABLES
#: Operations without the parameter ``TableName``.
_UNNAMED = ON_SEVERAL_TABLES | {"ListTables"}

#: The most attempts of a request that conflicts with a transaction, and the longest pause between them in seconds.
CONFLICT_ATTEMPTS = 12
LONGEST_PAUSE = 2.0
#: After so many rejected dates that should have been accepted, a process dates its requests by the clock.
MAX_WRONGFUL = 3
#: The longest pause after a concurrent change, in seconds; it is shorter because a web page may be waiting.
LONGEST_AMONG_WRITERS = 0.4

_waited_for: ContextVar[tuple[type[TableUnavailable], ...]] = ContextVar("waited_for", default=(Conflict,))


class Table:
    """One table of the settings."""

    def __init__(self, settings: TableSettings) -> None:
        self.settings = settings
        #: The connection of PynamoDB's own calls.
        self.pynamodb = PynamodbTable(settings, self.call)
        #: How often the contents of the table were replaced, as in tests; anything cached of them is then outdated.
        self.replaced = 0
        #: Whether leases of this table may have a tolerance: not after ``MAX_WRONGFUL`` wrongful rejections.
        self.is_fenced = True
        self._wrongful = 0
        #: Whether items may be inserted by PartiQL statements; ``False`` once the role or the engine has refused one.
        self.takes_statements = True

    @property
    def name(self) -> str:
        """The table's name."""
        return self.settings.table_name

    @property
    def companion(self) -> Table | None:
        """The other table with the app's own items about this table, or ``None``."""
        return None

    def insert_statement(self, item: Item) -> Statement | None:
        """Return the statement that inserts an item; ``None`` if it is longer than DynamoDB's limit."""
        return insert_statement(self.name, item)

    def send(self, request: Request, decoder: ResponseDecoder | None = None) -> dict[str, Any]:
        """Send one request and return its response; raise an error of the app for every failure.

        With a ``decoder``, return a ``TypedResponse`` if the page matches it. The error's cause is botocore's error.
        """
        return flow.run(self.ask(request, decoder))

    def send_patiently(self, request: Request) -> Response:
        """Send one request, and retry it after a pause while it conflicts with another transaction.

        Within ``patience()``, also retry while DynamoDB throttles. The token of a transaction makes a retry harmless.
        """
        return flow.run(self.ask_patiently(request))

    def pages(self, request: Request, *, send: Callable[[Request], Response] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the response of each page of a Query or Scan, one request a page, sent by ``send()`` or ``send``.

        This is for the app's own items and for commands. Models are read by ``orm/reading``.
        """
        while True:
            answer = self.send(request) if send is None else send(request)
            yield answer
            if not (start := answer.get("LastEvaluatedKey")):
                return
            request = request.with_params({**request.params, "ExclusiveStartKey": start})

    async def ask(
        self, request: Request, decoder: ResponseDecoder | None = None, head: dict[str, str] | None = None
    ) -> Response:
        """Send one request from a coroutine, as ``send()`` does.

        If the request has a lease, raise ``BeginAgain`` if the lease is closed, or if DynamoDB rejects the date. If the
        task is cancelled, the outcome of a write is unknown. A note of its ``CancelledError`` and a warning in the log
        report this. ``head`` is for ``ask_dated()``.
        """
        operation, params = request.operation, dict(request.params)
        if operation not in _UNNAMED:
            params["TableName"] = self.settings.table_name
        if operation in _CONSUMING:
            params.setdefault("ReturnConsumedCapacity", "TOTAL")
        try:
            return await self._call(operation, params, decoder, request.lease, head)
        except transport.FAILURES as error:
            raise transport.error_for(self.settings, operation, params, error) from error
        except CancelledError as error:
            if operation not in READS:
                told = errors.cancelled(self.settings, operation)
                error.add_note(told)
                logger.warning("%s", told)
            raise

    async def ask_dated(self, request: Request) -> tuple[Response, float | None]:
        """Send one request from a coroutine, and return its response with the server's time.

        The time is the header ``Date`` in seconds since 1970: whole seconds, rounded down. It is ``None`` if there is
        no such header, as with an interceptor.
        """
        head: dict[str, str] = {}
        answer = await self.ask(request, None, head)
        return answer, dates.served_at(head)

    async def ask_patiently(self, request: Request) -> Response:
        """Send one request from a coroutine, as ``send_patiently()`` does."""
        for attempt in range(CONFLICT_ATTEMPTS - 1):
            try:
                return await self.ask(request)
            except _waited_for.get():
                if deadlines.is_spent():
                    raise
                await pause_after(attempt)
        return await self.ask(request)

    def call(
        self,
        operation: str,
        params: Parameters,
        decoder: ResponseDecoder | None = None,
        lease: Lease | None = None,
    ) -> Response:
        """Send one request, and raise botocore's errors unchanged, but ``BeginAgain`` as ``ask()`` does.

        Every request includes ``ReturnConsumedCapacity``, because ``answers.read()`` recognizes DynamoDB's responses by
        it. Raise Django's ``SynchronousOnlyOperation`` in the thread of an event loop, which the request would block.
        """
        return flow.run(self._call(operation, params, decoder, lease))

    async def _call(
        self,
        operation: str,
        params: Parameters,
        decoder: ResponseDecoder | None,
        lease: Lease | None = None,
        head: dict[str, str] | None = None,
    ) -> Response:
        if flow.mode.depth and _get_running_loop() is not None:
            _refuse_in_event_loop()
        if operation in _CONSUMING and params.get("ReturnConsumedCapacity") not in {"TOTAL", "INDEXES"}:
            params = {**params, "ReturnConsumedCapacity": "TOTAL"}
        state = redirects.state
        is_watched = (
            LISTENERS.get()
            or INTERCEPTORS.get()
            or state.guard is not None
            or (state.observers and redirects.is_observed())
        )
        if lease is None:
            if is_watched:
                return await self._watched(operation, params, decoder, None, head)
            return await transport.send(self.settings, operation, params, decoder, None, head)
        under_way, deadline = object(), lease.deadline
        try:
            lease.enter(id(under_way))
            if is_watched:
                return await self._watched(operation, params, decoder, lease, head)
            return await transport.send(self.settings, operation, params, decoder, lease, head)
        except BaseException as error:
            self._failed_under(lease, operation, error, deadline)
            raise
        finally:
            lease.leave(id(under_way))

    def _failed_under(self, lease: Lease, operation: str, error: BaseException, deadline: float) -> None:
        """Raise ``Expired`` if the date of a request was rejected; ``deadline`` is the lease's when it began."""
        if isinstance(error, transport.FAILURES):
            expired = None if lease.signed_at is None else dates.expired(operation, error, deadline)
            if expired is None:
                return
            if expired.is_wrongful:
                self._count_wrongful(lease)
            raise expired from error
        # After a cancellation or a signal's exception, the request may be on its way.
        if not isinstance(error, DynamoSingleError) and operation not in READS:
            lease.lose()

    def _count_wrongful(self, lease: Lease) -> None:
        """Count a date that was rejected too early; after ``MAX_WRONGFUL``, close the lease and give up the fence."""
        self._wrongful += 1
        if self._wrongful < MAX_WRONGFUL or not self.is_fenced:
            return
        # Nothing is sent with the current date before other processes can know of it.
        self.is_fenced = False
        lease.close()
        logger.warning(
            "%s rejected %s dates of signatures that it should have accepted. This process dates its requests by the "
            "clock from now on; a migration has to wait for this process.",
            *(self.settings.place, MAX_WRONGFUL),
        )

    async def _watched(
        self,
        operation: str,
        params: Parameters,
        decoder: ResponseDecoder | None,
        lease: Lease | None,
        head: dict[str, str] | None,
    ) -> Response:
        """Send a request with listeners, interceptors, or the guard of a test run."""
        started = time.perf_counter()
        response: dict[str, Any] | None = None
        failure, head = "", {} if head is None else head
        try:
            if INTERCEPTORS.get() or redirects.state.guard is not None:
                # Interceptors may send requests themselves, or wait.
                response = await flow.call_sync(partial(self._tested, operation, params))
            if response is None:
                response = await transport.send(self.settings, operation, params, decoder, lease, head)
        except (Exception, CancelledError) as error:  # an interceptor may raise any exception
            failure = transport.code_of(error)
            raise
        finally:
            if LISTENERS.get() or redirects.state.observers:
                heard = None if response is None else plain_response(response)
                redirects.notify_listeners(
                    operation, params, heard, time.perf_counter() - started, failure, int(head.get("retries", 0))
                )
        return response

    def _tested(self, operation: str, params: Parameters) -> dict[str, object] | None:
        """Return the response of an interceptor, or ``None`` if the request may be sent."""
        answer = redirects.intercepted(operation, params) if INTERCEPTORS.get() else None
        # A library that replaces AWS does not let any request leave the process.
        guard = None if transport.is_endpoint_replaced(self.settings.endpoint_url) else redirects.state.guard
        if answer is None and guard is not None:
            guard(self.settings, operation, params)
        return answer


class ShapedTable(Table):
    """A table with other names or keys than the app's own: requests and responses are translated by its shape.

    Callers use the app's own names. Listeners receive the request as it is sent.
    """

    def __init__(self, settings: TableSettings) -> None:
        super().__init__(settings)
        #: The translator, and the models for which it was made; one assignment changes both.
        self._translator: tuple[object, Translator | None] = None, None
        _shaped[settings.table_name] = self

    @property
    def translator(self) -> Translator:
        """The translator of the table, a new one if the models have changed."""
        made_for, held = self._translator
        if held is None or made_for is not declared.generation:
            # Read before the models: if another thread changes them in between, the next call makes a new translator.
            made_for = declared.generation
            models = declared.models_of(self.settings.alias)
            held = translator.translator_for(self.settings.shape, models, self._translator_of)
            self._translator = made_for, held
        return held

    def _translator_of(self, table_name: str) -> Translator | None:
        return self.translator if table_name in ("", self.name) else translator_of(table_name)

    def insert_statement(self, item: Item) -> Statement | None:
        # A statement contains the names of the key, so it is translated before it is written.
        keys = tuple(key.name for key in self.settings.shape.keys)
        return insert_statement(self.name, self.translator.written(item), keys)

    async def _call(
        self,
        operation: str,
        params: Parameters,
        decoder: ResponseDecoder | None,
        lease: Lease | None = None,
        head: dict[str, str] | None = None,
    ) -> Response:
        # Every request would pay for a call of the property.
        made_for, shaped = self._translator
        if shaped is None or made_for is not declared.generation:
            shaped = self.translator
        try:
            sent, translated = shaped.request(operation, params)
        except Unstorable:
            if operation != "GetItem":
                raise
            return {}
        if decoder is not None and operation != "GetItem" and shaped.types_of(operation, params):
            decoder = None
        try:
            answer = await Table._call(self, sent, translated, decoder, lease, head)
        except transport.FAILURES as error:
            transport.translate(error, partial(shaped.response, operation, params))
            raise
        return shaped.response(operation, params, answer)


#: The tables with a shape of their own, by their name.
_shaped: Final[dict[str, ShapedTable]] = {}


def translator_of(table_name: str) -> Translator | None:
    """Return the translator of a table by its name; ``None`` if it uses the app's own names."""
    found = _shaped.get(table_name)
    # Former settings, or another place, may have had a table of the same name.
    if found is None or any(each.name == table_name and each.settings.shape.is_own for each in [*_tables.values()]):
        return None
    return found.translator


class _WithCompanion(Table):
    """A table that the app does not own: its companion receives the requests for the app's own items about it.

    A batch that contains keys of both is sent as two requests.
    """

    @property
    def companion(self) -> Table:
        """The table of the alias ``COMPANION``, or its test table."""
        return get_table(self.settings.companion)

    async def ask(
        self, request: Request, decoder: ResponseDecoder | None = None, head: dict[str, str] | None = None
    ) -> Response:
        companion = self.companion
        first, second = companions.routed(request, self.name, companion.name, self.settings.own_prefix)
        if second is None:
            try:
                return await super().ask(request if first is None else first, decoder, head)
            except TableNotFound as error:
                if first is request:
                    raise
                setup = companion.settings.command("dynamo_setup")
                raise TableNotFound(
                    f"{error} Or its companion {companion.name!r} does not exist: then run `{setup}`.", code=error.code
                ) from error.__cause__
        answer = await companion.ask(second, None, head)
        if request.operation not in companions.BATCHES:
            return answer
        own = None if first is None else await super().ask(first, None, head)
        return companions.merged(self.name, companion.name, own, answer)


class _ShapedWithCompanion(_WithCompanion, ShapedTable):
    """A table that the app does not own, with names or keys of its own."""


@async_unsafe(
    "A request would block the event loop. Await the asynchronous variant, such as aget(), asave() or async for, fetch "
    "references with select_related(), or call the method by sync_to_async()."
)
def _refuse_in_event_loop() -> None:
    """Raise Django's ``SynchronousOnlyOperation``, unless ``DJANGO_ALLOW_ASYNC_UNSAFE`` is set."""


def get_table(alias: str = "default") -> Table:
    """Return the table of an alias, the same object until the settings change. Do not send a request.

    While tests run, return the test table that replaces the table in the settings.
    """
    found = _tables.get(alias)
    if found is None:
        redirects.watch()
        found = _tables[alias] = table_at(redirects.stand_in_for(table_settings(alias)))
    return found


def use_test_tables(stand_ins: Mapping[TableSettings, TableSettings]) -> None:
    """Make ``get_table()`` return the second table of each pair instead of the first."""
    redirects.set_test_tables(stand_ins)
    _tables.clear()


_tables: dict[str, Table] = {}


@lru_cache(maxsize=64)
def table_at(settings: TableSettings) -> Table:
    """Return the table of the settings, even if a test table replaces it. Do not send a request."""
    if settings.companion:
        return _WithCompanion(settings) if settings.shape.is_own else _ShapedWithCompanion(settings)
    return Table(settings) if settings.shape.is_own else ShapedTable(settings)


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "DYNAMO_SINGLE":
        _tables.clear()


# Tests override the settings.
setting_changed.connect(_forget)


async def pause_after(attempt: int, longest: float | None = None) -> None:
    """Wait for a random time after a failed attempt, numbered from 0, that doubles with each attempt.

    The limits are ``longest`` seconds, by default ``LONGEST_PAUSE``, and the time that the current budget has left.
    """
    # Tests lower the constant, which a default value would not follow.
    most = min(LONGEST_PAUSE if longest is None else longest, 0.05 * 2**attempt)
    await flow.pause(deadlines.charged(random.uniform(0, most)))  # noqa: S311 - jitter is no secret


async def pause_before(attempt: int) -> None:
    """Wait up to ``LONGEST_AMONG_WRITERS`` seconds before an attempt after a concurrent change.

    Attempts are numbered from 0; the first two begin immediately.
    """
    if attempt > 1:
        await pause_after(attempt - 2, LONGEST_AMONG_WRITERS)


@contextmanager
def patience() -> Iterator[None]:
    """Retry the throttled writes of a block after pauses, beyond the usual attempts.

    This is for work on many items, which can wait longer than a web page.
    """
    token = _waited_for.set((Conflict, Throttled))
    try:
        yield
    finally:
        _waited_for.reset(token)
