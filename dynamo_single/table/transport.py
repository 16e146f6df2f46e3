"""Send one request over the request path in the settings, and turn its failures into the app's errors.

Each process creates one client per endpoint on first use. While a library replaces AWS inside botocore, as moto's
``mock_aws`` does, botocore sends the requests: moto responds in botocore's event ``before-send``. Its handler is always
registered, and its attribute ``enabled`` is ``True`` while a test uses it. The module does not import moto.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore import exceptions as botocore_errors
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as NotConnectedError
from botocore.handlers import BUILTIN_HANDLERS
from botocore.parsers import ResponseParserError
from msgspec import Struct

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import DynamoSingleError, OutcomeUnknown, RequestFailed
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.table import answers, errors, flow
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.deadlines import BUDGET, USUAL, BudgetSpent, Deadline, deadline_of, total_reason
from dynamo_single.table.request import Parameters

if TYPE_CHECKING:
    from dynamo_single.table.http import botocore_client, credentials
    from dynamo_single.table.http.client import DirectClient
    from dynamo_single.table.http.connections import HTTPResponse
else:
    botocore_client = LazyModule("dynamo_single.table.http.botocore_client")
    credentials = LazyModule("dynamo_single.table.http.credentials")


_EVENT = "before-send"
_AWS = ".amazonaws.com"


class _Handlers(Struct):
    """The handlers that can respond instead of AWS, and the number of handlers when they were collected."""

    of: int = 0
    found: tuple[Callable[..., object], ...] = ()


_handlers = _Handlers()


def is_aws_replaced() -> bool:
    """Return whether a handler currently responds instead of AWS; handlers that only observe requests do not count."""
    if _handlers.of != len(BUILTIN_HANDLERS):
        _handlers.of = len(BUILTIN_HANDLERS)
        events = [(each[0], each[1]) for each in BUILTIN_HANDLERS]
        _handlers.found = tuple(
            handler for event, handler in events if event.startswith(_EVENT) and hasattr(handler, "enabled")
        )
    return any(getattr(handler, "enabled", False) is True for handler in _handlers.found)


def is_endpoint_replaced(endpoint_url: str | None) -> bool:
    """Return whether a handler responds to requests to an endpoint: it does for endpoints of AWS only."""
    return is_aws_replaced() and (endpoint_url is None or (urlsplit(endpoint_url).hostname or "").endswith(_AWS))


#: The exceptions of a request; ``error_for()`` turns each into an error of the app.
FAILURES = (ClientError, BotoCoreError, ResponseParserError)
_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
    # For "aws login", which older releases of botocore do not support.
    getattr(botocore_errors, "LoginError", NoCredentialsError),
)


async def send(
    settings: TableSettings, operation: str, params: Parameters, decoder: ResponseDecoder | None = None
) -> dict[str, object]:
    """Send one request in as many attempts as the settings allow, and return the content of its response.

    The request ends after ``TOTAL_TIMEOUT`` or with the current ``deadlines.budget()``. Raise botocore's errors
    (``FAILURES``), or an error of the app if the response is invalid or the budget is used up. botocore never blocks an
    event loop, since it sends in a thread.
    """
    spent, begun = BUDGET.get(), monotonic()
    client = _clients.get(settings)
    try:
        if spent is None:
            deadline = Deadline(begun + settings.total_timeout, total_reason(settings.total_timeout))
        else:
            deadline = deadline_of(settings, spent)
        sender = client.direct if client.direct is not None and operation in answers.OPERATIONS else client
        received = await sender.send(operation, params, deadline)
        # A library that replaces AWS in tests does not return the capacity of every operation.
        capacity = settings.consumed_capacity and not client.is_stand_in
        return answers.read(
            operation, params, received.status, received.headers, received.body, capacity=capacity, decoder=decoder
        )
    except (BudgetSpent, answers.InvalidResponse) as error:
        raise _app_error(settings, operation, error) from error
    except NoCredentialsError:
        # botocore caches for the life of a client that there are none, but a role may provide them later.
        _clients.forget(settings)
        raise
    finally:
        if spent is not None:
            spent.charge(monotonic() - begun - USUAL)


def _app_error(
    settings: TableSettings, operation: str, error: BudgetSpent | answers.InvalidResponse
) -> DynamoSingleError:
    """Return the app's error for an exception that is neither botocore's nor DynamoDB's."""
    if isinstance(error, BudgetSpent):
        return errors.budget_spent(settings, operation, str(error))
    return errors.invalid_response(settings, operation, str(error))


def code_of(error: BaseException) -> str:
    """Return DynamoDB's code for a failure, or the name of the exception's class if there is no code."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def translate(error: BaseException, read: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    """Replace an error response of DynamoDB by the result of ``read``; other errors have no response."""
    if isinstance(error, ClientError):
        response: Any = error.response
        response.update(read(response))


def refusal(operation: str, code: str, message: str = "Injected by a test.", **answer: object) -> Exception:
    """Return the exception that an interceptor raises to simulate an error code of DynamoDB."""
    response: Any = {"Error": {"Code": code, "Message": message}, **answer}
    return ClientError(response, operation)


def unreachable(settings: TableSettings) -> Exception:
    """Return the exception that an interceptor raises to simulate an endpoint that does not accept connections."""
    return EndpointConnectionError(endpoint_url=settings.place)


def unanswered(settings: TableSettings) -> Exception:
    """Return the exception that an interceptor raises to simulate a request that was sent and got no response."""
    return ReadTimeoutError(endpoint_url=settings.place)


def error_for(settings: TableSettings, operation: str, params: Parameters, error: Exception) -> DynamoSingleError:
    """Return the app's error for a failed request; if its outcome is unknown, the error names the last failure too."""
    found, later = _error_for(settings, operation, params, error), error.__cause__
    if isinstance(found, OutcomeUnknown) and isinstance(later, FAILURES) and str(later) != str(error):
        return OutcomeUnknown(f"{found} The last attempt failed too: {later}", code=found.code)
    return found


def _error_for(settings: TableSettings, operation: str, params: Parameters, error: Exception) -> DynamoSingleError:
    if isinstance(error, ClientError):
        told: Mapping[str, Any] = error.response.get("Error", {})
        answer: Any = error.response
        code, message = str(told.get("Code", "")), str(told.get("Message", ""))
        return errors.Refusal(settings, operation, params, code, message, answer).error()
    if isinstance(error, ResponseParserError):
        return errors.invalid_response(settings, operation, "it cannot be read")
    if isinstance(error, credentials.UnsendableCredentials):
        return errors.unsendable_credentials(settings, operation, str(error))
    if isinstance(error, _CREDENTIALS):
        return errors.missing_credentials(settings, operation, str(error))
    # All errors of an established connection except ReadTimeoutError derive from HTTPClientError.
    if isinstance(error, (HTTPClientError, NotConnectedError)):
        if isinstance(error, ReadTimeoutError) or not isinstance(error, NotConnectedError):
            return errors.no_response(settings, operation, str(error))
        return errors.unreachable(settings, operation, str(error))
    return RequestFailed(f"{operation} on {settings.table_name!r} could not be sent: {error}")


class _Client:
    """The two request paths to one endpoint, direct and botocore's, each created on first use."""

    def __init__(self, settings: TableSettings, *, is_stand_in: bool) -> None:
        self._settings = settings
        #: Whether a library replaces AWS inside botocore, which then sends all requests.
        self.is_stand_in = is_stand_in
        self._lock = threading.Lock()
        self._session = credentials.new_session()
        #: The client of the direct request path; ``None`` until its first request.
        self.direct: DirectClient | None = None
        self._botocore: botocore_client.BotocoreClient | None = None
        self._is_direct = settings.transport == "direct" and not is_stand_in

    async def send(self, operation: str, params: Parameters, deadline: Deadline) -> HTTPResponse:
        # Creating a client reads files, and may request credentials.
        if self._is_direct and operation in answers.OPERATIONS and (client := await flow.in_thread(self._make_direct)):
            return await client.send(operation, params, deadline)
        return await flow.in_thread(lambda: self._make_botocore().send(operation, params, deadline))

    def _make_direct(self) -> DirectClient | None:
        with self._lock:
            if self.direct is None and self._is_direct:
                self.direct = credentials.direct_client(self._settings, self._session)
                self._is_direct = self.direct is not None
            return self.direct

    def _make_botocore(self) -> botocore_client.BotocoreClient:
        with self._lock:  # creating a client is slow and not thread-safe
            if self._botocore is None:
                self._botocore = botocore_client.BotocoreClient(
                    self._settings, self._session, is_stand_in=self.is_stand_in
                )
            return self._botocore


class _Clients:
    """The clients of this process. Tables with the same endpoint and the same timeouts share one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop the clients and the lock, which another thread may have held when the process forked."""
        self._lock = threading.Lock()
        self._clients: dict[TableSettings, _Client] = {}
        self._of_stand_ins: dict[TableSettings, _Client] = {}

    def get(self, settings: TableSettings) -> _Client:
        # If no library can replace AWS, comparing the number of handlers is enough.
        is_stand_in = (len(BUILTIN_HANDLERS) != _handlers.of or bool(_handlers.found)) and is_aws_replaced()
        way = _client_settings(settings)
        clients = self._of_stand_ins if is_stand_in else self._clients
        if (client := clients.get(way)) is None:
            with self._lock:
                client = clients.get(way) or _Client(settings, is_stand_in=is_stand_in)
                clients[way] = client
        return client

    def forget(self, settings: TableSettings) -> None:
        for clients in (self._clients, self._of_stand_ins):
            clients.pop(_client_settings(settings), None)


@lru_cache(maxsize=64)
def _client_settings(settings: TableSettings) -> TableSettings:
    """Return the settings that a client depends on, without the table."""
    return TableSettings(
        alias="",
        table_name="",
        region=settings.region,
        endpoint_url=settings.endpoint_url,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_attempts=settings.max_attempts,
        max_pool_connections=settings.max_pool_connections,
        transport=settings.transport,
    )


_clients = _Clients()
# Two processes that share a socket would read each other's responses.
os.register_at_fork(after_in_child=_clients.reset)
