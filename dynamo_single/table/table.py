"""The one seam: every request to DynamoDB, ours and PynamoDB's own, passes ``Table.call``.

The only importer of botocore and of PynamoDB's connection. It sends what it is given and must not know models, queries
or plans. There is one botocore client for each endpoint and process, made on first use.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as NotConnectedError
from botocore.parsers import ResponseParserError
from django.utils.asyncio import async_unsafe
from pynamodb.connection import Connection, TableConnection
from pynamodb.connection.base import MetaTable

from dynamo_single.conf import TableSettings, table_settings
from dynamo_single.exceptions import (
    Conflict,
    DynamoSingleError,
    NotSupported,
    RequestFailed,
    TableUnavailable,
    Throttled,
)
from dynamo_single.table import errors, names

if TYPE_CHECKING:
    from dynamo_single.table.request import Request

#: Operations on items; they say what they consumed. The second group names its tables inside its parameters.
ON_ONE_TABLE = frozenset({"DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"})
ON_SEVERAL_TABLES = frozenset({"BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"})

#: How often a request is sent that another transaction is in the way of, and the longest pause before it, in seconds.
CONFLICT_ATTEMPTS = 12
LONGEST_PAUSE = 2.0

_READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan"})

Interceptor = Callable[[str, Mapping[str, Any]], dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One request as it was sent.

    ``response`` is ``None`` and ``error`` DynamoDB's error code if it failed; botocore's own retries are not counted.
    """

    operation: str
    params: Mapping[str, Any]
    response: Mapping[str, Any] | None
    seconds: float
    consumed: float
    error: str = ""


Listener = Callable[[SentRequest], object]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_interceptors: ContextVar[tuple[Interceptor, ...]] = ContextVar("interceptors", default=())
_waited_for: ContextVar[tuple[type[TableUnavailable], ...]] = ContextVar("waited_for", default=(Conflict,))


class Table:
    """One table, as the settings name it."""

    def __init__(self, settings: TableSettings) -> None:
        self.settings = settings
        self.pynamodb: TableConnection = _PynamodbTable(self)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.settings.table_name

    def send(self, request: Request) -> dict[str, Any]:
        """Send one request to this table; every failure is an error of ours, with botocore's as its cause."""
        params = dict(request.params)
        if request.operation not in ON_SEVERAL_TABLES:
            params["TableName"] = self.name
        if request.operation in ON_ONE_TABLE or request.operation in ON_SEVERAL_TABLES:
            params.setdefault("ReturnConsumedCapacity", "TOTAL")
        try:
            return self.call(request.operation, params)
        except (ClientError, BotoCoreError, ResponseParserError) as error:
            raise _explained(self.settings, request.operation, params, error) from error

    def send_patiently(self, request: Request) -> dict[str, Any]:
        """Send, and again after a pause while another transaction is in the way; a token makes that harmless.

        Within ``patience()`` also while DynamoDB asks to slow down.
        """
        for attempt in range(CONFLICT_ATTEMPTS - 1):
            try:
                return self.send(request)
            except _waited_for.get():
                longest = min(LONGEST_PAUSE, 0.05 * 2**attempt)
                time.sleep(random.uniform(0, longest))  # noqa: S311 - jitter is no secret
        return self.send(request)

    @async_unsafe("A request would hold up the event loop: use the method's asynchronous twin, or sync_to_async().")
    def call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request as it is; botocore's errors pass through.

        In a thread that runs an event loop it is Django's ``SynchronousOnlyOperation``: the loop would stand still.
        """
        listeners = _listeners.get()
        if not listeners:
            return self._answer(operation, params)
        started = time.perf_counter()
        response: dict[str, Any] | None = None
        failure = ""
        try:
            response = self._answer(operation, params)
        except ClientError as error:
            failure = str(error.response.get("Error", {}).get("Code", ""))
            raise
        except Exception as error:
            failure = type(error).__name__
            raise
        finally:
            sent = SentRequest(operation, params, response, time.perf_counter() - started, _consumed(response), failure)
            for listener in listeners:
                listener(sent)
        return response

    def _answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        for interceptor in reversed(_interceptors.get()):
            if (answer := interceptor(operation, params)) is not None:
                return answer
        try:
            return _clients.get(self.settings).send(operation, params)
        except NoCredentialsError:
            # botocore remembers for the client's lifetime that it found none; a role may deliver them a moment later.
            _clients.forget(self.settings)
            raise


def get_table(alias: str = "default") -> Table:
    """The table of an alias; one object for as long as the settings stay the same. Sends nothing."""
    return _table(table_settings(alias))


@lru_cache(maxsize=64)
def _table(settings: TableSettings) -> Table:
    return Table(settings)


@contextmanager
def capture_requests() -> Iterator[list[SentRequest]]:
    """Collect the requests that the block sends, in the order of their answers; blocks may be nested.

    Requests of other threads are not seen, except of those that the block's own reads and ``sync_to_async`` use.
    """
    sent: list[SentRequest] = []
    with listening(sent.append):
        yield sent


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


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of each request of the block after its answer; several threads may call it at once."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def intercept(interceptor: Interceptor) -> Iterator[None]:
    """Ask ``interceptor(operation, params)`` before each request of the block: it may raise, answer, or return None.

    The innermost is asked first; an answer or an error keeps the request from being sent.
    """
    token = _interceptors.set((*_interceptors.get(), interceptor))
    try:
        yield
    finally:
        _interceptors.reset(token)


def refusal(operation: str, code: str, message: str = "Injected by a test.", **answer: Any) -> Exception:
    """The exception that an interceptor raises to stand for DynamoDB's refusal with an error code."""
    response: Any = {"Error": {"Code": code, "Message": message}, **answer}
    return ClientError(response, operation)


def unreachable(settings: TableSettings) -> Exception:
    """The exception that an interceptor raises to stand for an endpoint where nothing listens."""
    return EndpointConnectionError(endpoint_url=settings.place)


def _consumed(response: Mapping[str, Any] | None) -> float:
    consumed = (response or {}).get("ConsumedCapacity") or ()
    parts = [consumed] if isinstance(consumed, Mapping) else consumed
    return float(sum(part.get("CapacityUnits", 0.0) for part in parts))


def _explained(
    settings: TableSettings,
    operation: str,
    params: Mapping[str, Any],
    error: ClientError | BotoCoreError | ResponseParserError,
) -> DynamoSingleError:
    if isinstance(error, ClientError):
        told: Mapping[str, Any] = error.response.get("Error", {})
        answer: Any = error.response
        code, message = str(told.get("Code", "")), str(told.get("Message", ""))
        return errors.Refusal(settings, operation, params, code, message, answer).error()
    if isinstance(error, ResponseParserError):
        return errors.foreign(settings, "its answer cannot be read")
    if isinstance(error, _CREDENTIALS):
        return errors.access_denied(settings, operation, str(error))
    # Of the errors of a connection that was made, all but ReadTimeoutError derive from HTTPClientError.
    if isinstance(error, (HTTPClientError, NotConnectedError)):
        answered = isinstance(error, ReadTimeoutError) or not isinstance(error, NotConnectedError)
        return errors.unreachable(settings, operation, str(error), answered=answered)
    return RequestFailed(f"{operation} on {settings.table_name!r} could not be sent: {error}")


_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, TokenRetrievalError)


class _Client:
    """A botocore client, called by DynamoDB's own operation names."""

    def __init__(self, settings: TableSettings) -> None:
        config = Config(
            parameter_validation=False,  # costs more than the rest of a request's preparation; the compiler is tested
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            max_pool_connections=settings.max_pool_connections,
            retries={"mode": "standard", "total_max_attempts": settings.max_attempts},
        )
        pretended = "local" if settings.is_local and not _ENVIRONMENT_CREDENTIALS & os.environ.keys() else None
        client = botocore.session.get_session().create_client(
            "dynamodb",
            region_name=settings.region,
            endpoint_url=settings.endpoint_url,
            aws_access_key_id=pretended,
            aws_secret_access_key=pretended,
            config=config,
        )
        self._methods = {
            operation: getattr(client, method) for method, operation in client.meta.method_to_api_mapping.items()
        }

    def send(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._methods[operation](**params)
        return answer


#: With any of these a local endpoint gets the caller's credentials too, because it may check them.
_ENVIRONMENT_CREDENTIALS = {"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"}


class _Clients:
    """The clients of this process: tables that are reached in the same way share one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, the lock too: a fork may have happened while another thread held it."""
        self._lock = threading.Lock()
        self._clients: dict[TableSettings, _Client] = {}

    def get(self, settings: TableSettings) -> _Client:
        way = _way(settings)
        if (client := self._clients.get(way)) is None:
            with self._lock:  # making a client is slow and not thread safe
                client = self._clients.get(way) or _Client(settings)
                self._clients[way] = client
        return client

    def forget(self, settings: TableSettings) -> None:
        self._clients.pop(_way(settings), None)


@lru_cache(maxsize=64)
def _way(settings: TableSettings) -> TableSettings:
    """What of the settings a client depends on: everything but the table itself."""
    return TableSettings(
        alias="",
        table_name="",
        region=settings.region,
        endpoint_url=settings.endpoint_url,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_attempts=settings.max_attempts,
        max_pool_connections=settings.max_pool_connections,
    )


_clients = _Clients()
# Sockets and locks do not survive a fork: two processes would read each other's answers.
os.register_at_fork(after_in_child=_clients.reset)


class _PynamodbClient:
    """What PynamoDB takes for its botocore client."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def _make_api_call(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = [params, *params.get("RequestItems", {}).values()] if operation in _READS else []
        if any("ProjectionExpression" in each for each in asked):
            raise NotSupported(
                "attributes_to_get is not supported: an object that lacks attributes would be saved with wrong keys. "
                "Leave it out; values() and values_list() of a queryset pick attributes."
            )
        return self._table.call(operation, params)


class _PynamodbConnection(Connection):
    """PynamoDB's connection, sending through the table; it keeps turning errors into PynamoDB's own."""

    def __init__(self, table: Table) -> None:
        super().__init__(region=table.settings.region, host=table.settings.endpoint_url)
        self._seam: Any = _PynamodbClient(table)

    def __repr__(self) -> str:
        return f"Connection<{self.host or self.region}>"

    @property
    def client(self) -> Any:
        return self._seam


class _PynamodbTable(TableConnection):
    """PynamoDB's view of one table; knows its keys beforehand, so that no DescribeTable is sent."""

    def __init__(self, table: Table) -> None:
        self.table_name = table.name
        self.connection = _PynamodbConnection(table)
        self.connection.add_meta_table(_meta_table(table.settings))


def _meta_table(settings: TableSettings) -> MetaTable:
    pairs = {index: (names.index_partition(index), names.index_sort(index)) for index in settings.indexes}
    own = (names.PARTITION_KEY, names.SORT_KEY)
    return MetaTable(
        {
            "TableName": settings.table_name,
            "KeySchema": _key_schema(own),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for pair in (own, *pairs.values()) for name in pair
            ],
            "GlobalSecondaryIndexes": [
                {"IndexName": index, "KeySchema": _key_schema(pair)} for index, pair in pairs.items()
            ],
        }
    )


def _key_schema(pair: tuple[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": pair[0], "KeyType": "HASH"}, {"AttributeName": pair[1], "KeyType": "RANGE"}]
