"""Send one request over the request path in the settings, and turn its failures into the app's errors.

Each process creates one client per endpoint on first use. The direct request path, ``DirectClient``, signs requests
with Signature Version 4, sends them over ``http/connections``, and retries temporary failures by the rules of
``http/retries``. botocore sends all other operations, and requests to endpoints that the direct path does not support.

While a library replaces AWS inside botocore, as moto's
``mock_aws`` does, botocore sends the requests: moto responds in botocore's event ``before-send``. Its handler is always
registered, and its attribute ``enabled`` is ``True`` while a test uses it. The module does not import moto.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec
from botocore import exceptions as botocore_errors
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
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
from botocore.utils import normalize_url_path
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import DynamoSingleError, InvalidValue, OutcomeUnknown, RequestFailed
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.table import answers, errors, flow
from dynamo_single.table.answers import DAMAGED, OPERATIONS, InvalidResponse, ResponseDecoder, TypedResponse
from dynamo_single.table.deadlines import BUDGET, USUAL, BudgetSpent, Deadline, deadline_of, total_reason
from dynamo_single.table.http import dates, retries
from dynamo_single.table.http.retries import Doubt, Failure, RetryQuota, pause_after
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import Parameters

if TYPE_CHECKING:
    from dynamo_single.table.http import botocore_client, connections, credentials, loop_connections
    from dynamo_single.table.http.connections import Endpoint, HTTPResponse
    from dynamo_single.table.http.credentials import Credentials, CredentialSource
else:
    botocore_client = LazyModule("dynamo_single.table.http.botocore_client")
    connections = LazyModule("dynamo_single.table.http.connections")
    credentials = LazyModule("dynamo_single.table.http.credentials")
    loop_connections = LazyModule("dynamo_single.table.http.loop_connections")


_TARGETS = {name: f"DynamoDB_20120810.{name}" for name in OPERATIONS}
#: AWS accepts signatures up to five minutes off; below this difference in seconds, the clock is not the reason.
_SKEW = 240.0
#: The errors of an attempt without a response, which botocore retries too.
_UNANSWERED = (NotConnectedError, HTTPClientError)


#: msgspec writes bytes as base64, as DynamoDB requires.
_encode = msgspec.json.Encoder().encode


_TOKEN = "x-amz-security-token"  # noqa: S105 - the name of a header
#: The most timestamps that a signer keeps.
_MAX_STAMPS = 8
_ALGORITHM = "AWS4-HMAC-SHA256"


def _unencodable(operation: str, error: UnicodeEncodeError) -> InvalidValue:
    """Return the error for a string without a UTF-8 form, which must not have a cause: that contains the string.

    The mapping reports most of these strings earlier. The others are in conditions, and in PynamoDB's own calls.
    """
    return InvalidValue(
        f"Cannot send {operation}: a string has a lone surrogate at position {error.start}, which has no UTF-8 form. "
        "Nothing was sent. Decode the string properly, or use bytes."
    )


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
    settings: TableSettings,
    operation: str,
    params: Parameters,
    decoder: ResponseDecoder | None = None,
    lease: Lease | None = None,
    head: dict[str, str] | None = None,
) -> dict[str, object]:
    """Send one request in as many attempts as the settings allow, and return the content of its response.

    The request ends after ``TOTAL_TIMEOUT`` or with the current ``deadlines.budget()``. Raise botocore's errors
    (``FAILURES``), or an error of the app if the response is invalid or the budget is used up. botocore never blocks an
    event loop, since it sends in a thread. ``head`` receives the header ``date`` of the response.
    """
    spent, begun = BUDGET.get(), monotonic()
    client = _clients.get(settings)
    try:
        if spent is None:
            deadline = Deadline(begun + settings.total_timeout, total_reason(settings.total_timeout))
        else:
            deadline = deadline_of(settings, spent)
        sender = client.direct if client.direct is not None and operation in OPERATIONS else client
        received = await sender.send(operation, params, deadline, lease)
        if head is not None:
            head["date"] = received.headers.get("date", "")
            head["retries"] = str(received.retries)
        # A library that replaces AWS in tests does not return the capacity of every operation.
        capacity = settings.consumed_capacity and not client.is_stand_in
        answer = answers.read(
            operation, params, received.status, received.headers, received.body, capacity=capacity, decoder=decoder
        )
        if received.retries and operation == "BatchExecuteStatement":
            # A statement that is refused in this response may have been executed by an earlier attempt.
            answer["ResponseMetadata"] = {"RetryAttempts": received.retries}
        if type(answer) is TypedResponse:
            answer.untyped = partial(_untyped, settings, operation, answer.untyped)
        return answer
    except (BudgetSpent, InvalidResponse) as error:
        raise _app_error(settings, operation, error) from error
    except NoCredentialsError:
        # botocore caches for the life of a client that there are none, but a role may provide them later.
        _clients.forget(settings)
        raise
    finally:
        if spent is not None:
            spent.charge(monotonic() - begun - USUAL)


def _untyped(settings: TableSettings, operation: str, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a decoded response with its items as dicts; raise the app's error if an item is invalid."""
    try:
        return read()
    except InvalidResponse as error:
        raise _app_error(settings, operation, error) from error


def _app_error(settings: TableSettings, operation: str, error: BudgetSpent | InvalidResponse) -> DynamoSingleError:
    """Return the app's error for an exception that is neither botocore's nor DynamoDB's."""
    if isinstance(error, BudgetSpent):
        return errors.budget_spent(settings, operation, str(error))
    return errors.invalid_response(settings, operation, str(error))


class _Day(Struct, frozen=True):
    """The part of a signature that is the same for all requests of one day with one secret key."""

    date: str
    secret_key: str
    scope: str
    key: bytes


class _SignedHeaders(Struct, frozen=True):
    """The headers that a request signs: their names, and their lines with a placeholder for each value."""

    names: str
    lines: str

    @classmethod
    def of(cls, names: Iterable[str]) -> _SignedHeaders:
        ordered = sorted(names)
        return cls(";".join(ordered), "".join(f"{name}:%({name})s\n" for name in ordered))


class Signer:
    """Sign POST requests to one host, region, and target with Signature Version 4; threads can share a signer.

    ``headers`` contains the names, in lower case, of the headers that each request has beside those of the signature.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. The signer keeps the key
    of a day, because it takes four of the five HMACs.
    """

    def __init__(
        self, host: str, region: str, service: str = "dynamodb", *, target: str = "/", headers: Iterable[str] = ()
    ) -> None:
        names = {*headers, "host", "x-amz-date"}
        self._plain, self._with_token = _SignedHeaders.of(names), _SignedHeaders.of({*names, _TOKEN})
        self._host = host
        self._resource = _canonical(target)
        self._region = region
        self._service = service
        self._day = _Day("none yet", "", "", b"")
        #: The timestamps of some seconds: requests under a lease have the same date for a long time.
        self._stamps: dict[int, str] = {}

    def signed(self, body: bytes, headers: Mapping[str, str], credentials: Credentials, seconds: float) -> str:
        """Return the header lines of a POST request with ``body``: the given headers, and its signature.

        ``headers`` contains values without outer spaces by the names of the signer. ``seconds`` is the time since 1970.
        """
        second = int(seconds)
        stamp = self._stamps.get(second)
        if stamp is None:
            stamp = time.strftime(dates.TIMESTAMP, time.gmtime(second))
            # One assignment: another thread sees the old dict or the new one.
            self._stamps = {second: stamp, **dict(list(self._stamps.items())[: _MAX_STAMPS - 1])}
        day = self._day
        if day.secret_key != credentials.secret_key or not stamp.startswith(day.date):
            # One assignment: another thread sees the old day or the new one.
            day = self._day = self._day_of(stamp[:8], credentials.secret_key)
        form, values = self._plain, {**headers, "host": self._host, "x-amz-date": stamp}
        if credentials.token:
            form, values[_TOKEN] = self._with_token, " ".join(credentials.token.split())
        names, lines = form.names, form.lines % values
        request = f"POST\n{self._resource}\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{stamp}\n{day.scope}\n{digest}"
        signature = hmac.digest(day.key, text.encode(), "sha256").hex()
        scope = f"{credentials.access_key}/{day.scope}"
        authorization = f"{_ALGORITHM} Credential={scope}, SignedHeaders={names}, Signature={signature}"
        return f"{lines}authorization:{authorization}\n".replace("\n", "\r\n")

    def _day_of(self, date: str, secret_key: str) -> _Day:
        key = f"AWS4{secret_key}".encode()
        for part in (date, self._region, self._service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return _Day(date, secret_key, f"{date}/{self._region}/{self._service}/aws4_request", key)


def _canonical(target: str) -> str:
    """Return the path and the query of a target as they are signed, each on a line."""
    if target == "/":
        return "/\n"
    path, _, query = target.partition("?")
    # As botocore signs it: the path is quoted again, and the query is sorted.
    pairs = sorted(tuple(pair.partition("=")[::2]) for pair in query.split("&")) if query else []
    return f"{quote(normalize_url_path(path), safe='/~')}\n{'&'.join(map('='.join, pairs))}"


class DirectClient:
    """Send operations to one endpoint, with credentials that are kept until botocore renews them."""

    def __init__(
        self,
        endpoint: Endpoint,
        region: str,
        credentials: CredentialSource,
        *,
        max_attempts: int,
        pool_size: int,
        user_agent: str,
    ) -> None:
        self._pool = connections.Pool(endpoint, pool_size)
        self._loop_pools = loop_connections.LoopPools(endpoint, pool_size)
        self._headers = {"content-type": "application/x-amz-json-1.0"}
        names = (*self._headers, "x-amz-target")
        self._signer = Signer(endpoint.authority, region, target=endpoint.target, headers=names)
        self._first_line = f"POST {endpoint.target} HTTP/1.1\r\n"
        self._credentials = credentials
        #: The object of ``renewed()`` for which the credentials were read, and the credentials.
        self._held: tuple[object, Credentials | None] = (None, None)
        self._unchanging: Credentials | None = None
        self.max_attempts = max_attempts
        self.quota = RetryQuota()
        self._unsigned = f"user-agent: {user_agent}\r\naccept-encoding: identity\r\n"
        #: The seconds by which the server's clock is ahead, known after it rejected a signature.
        self._ahead = 0.0

    async def send(
        self, operation: str, params: Parameters, deadline: Deadline, lease: Lease | None = None
    ) -> HTTPResponse:
        """Send a request in at most ``max_attempts`` attempts, and return the response as it was received.

        The deadline ends the current attempt and prevents further ones. Raise ``ClientError`` if DynamoDB rejects the
        request, botocore's connection errors if there is no response, and ``InvalidResponse`` if the last one is
        damaged.
        """
        try:
            body = _encode(params)
        except UnicodeEncodeError as error:
            raise _unencodable(operation, error) from None
        pool = self._pool if flow.mode.depth else self._loop_pools.current()
        attempts: _Attempts | None = None
        outcome: HTTPResponse | Exception
        try:
            while True:
                request = self.request(operation, body, self._unchanging or await self._current(), lease)
                try:
                    outcome = await pool.exchange(request, deadline)
                except _UNANSWERED as error:
                    outcome = error
                else:
                    if outcome.status < HTTPStatus.MULTIPLE_CHOICES and outcome.is_whole:
                        if self.quota.left != RetryQuota.CAPACITY:
                            self.quota.earn(attempts.spent if attempts else 0)
                        return replace(outcome, retries=attempts.number) if attempts else outcome
                attempts = attempts or _Attempts(self, operation, deadline, lease)
                pause = attempts.pause_after(outcome)
                if pause is None:
                    raise attempts.error_of(outcome)
                await flow.pause(pause)
        except Exception as error:
            if attempts is not None and not isinstance(error, InvalidResponse):
                attempts.doubt.settle(error)
            raise

    async def _current(self) -> Credentials | None:
        """Return the credentials to sign with; an event loop does not wait while botocore renews them."""
        source = self._credentials
        if source.renewed is None:
            self._unchanging = source.current()
            return self._unchanging
        return await flow.in_thread(self._renewed) if source.may_wait() else self._renewed()

    def _renewed(self) -> Credentials | None:
        source, held = self._credentials, self._held
        state = source.renewed() if source.renewed is not None else None
        if held[1] is None or held[0] is not state:
            held = self._held = state, source.current()
        return held[1]

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()
        self._loop_pools.close()

    def request(
        self, operation: str, body: bytes, credentials: Credentials | None, lease: Lease | None = None
    ) -> bytes:
        """Return the bytes of a signed request."""
        if credentials is None:
            raise NoCredentialsError
        tolerance = None if lease is None else lease.tolerance
        # The server compares the time with its own clock, which tests do not move.
        date = time.time() + self._ahead if lease is None or tolerance is None else lease.deadline - tolerance
        lines = self._signer.signed(body, {**self._headers, "x-amz-target": _TARGETS[operation]}, credentials, date)
        head = f"{self._first_line}{lines}{self._unsigned}content-length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    def sets_the_clock(self, failure: Failure, response: HTTPResponse) -> bool:
        """Return whether the signature was rejected because the clocks differ, and adopt the server's clock."""
        if failure.code not in dates.SKEWED or (date := dates.served_at(response.headers)) is None:
            return False
        ahead = date - time.time()
        if abs(ahead - self._ahead) < _SKEW:
            return False
        self._ahead = ahead
        return True


class _Attempts:
    """The failed attempts of one request."""

    __slots__ = ("_deadline", "_operation", "_sender", "_sets_the_clock", "doubt", "number", "spent")

    def __init__(self, client: DirectClient, operation: str, deadline: Deadline, lease: Lease | None) -> None:
        self._sender, self._operation, self._deadline = client, operation, deadline
        #: The number of failed attempts.
        self.number = 0
        #: A request whose lease is over must not be sent with a later date.
        self._sets_the_clock = lease is None or lease.signed_at is None
        #: The units of the retry quota that the current attempt costs.
        self.spent = 0
        self.doubt = Doubt(operation, lease)

    def pause_after(self, outcome: HTTPResponse | Exception) -> float | None:
        """Return the seconds to wait after a failed attempt; ``None`` if it was the last one."""
        self.number += 1
        client, is_last = self._sender, self.number >= self._sender.max_attempts
        if isinstance(outcome, Exception):
            failure = Failure()
            self.doubt.unanswered(outcome)
        else:
            failure = retries.failure_of(outcome) if outcome.is_whole else Failure()
            if self._sets_the_clock and client.sets_the_clock(failure, outcome) and not is_last:
                return 0.0
            self.doubt.refused(outcome)
        if not failure.passing or is_last or not (spent := client.quota.spend(failure)):
            return None
        self.spent = spent
        pause = pause_after(failure, self.number)
        return pause if pause < self._deadline.left else None

    def error_of(self, outcome: HTTPResponse | Exception) -> Exception:
        """Return the error of the last attempt."""
        if isinstance(outcome, Exception):
            return outcome
        if outcome.status < HTTPStatus.MULTIPLE_CHOICES:
            return InvalidResponse(DAMAGED)
        return retries.error_of(self._operation, outcome, retries=self.number - 1)


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

    async def send(
        self, operation: str, params: Parameters, deadline: Deadline, lease: Lease | None = None
    ) -> HTTPResponse:
        # Creating a client reads files, and may request credentials.
        if self._is_direct and operation in OPERATIONS and (client := await flow.in_thread(self._make_direct)):
            return await client.send(operation, params, deadline, lease)
        if operation in OPERATIONS:
            try:
                _encode(params)  # botocore would send a lone surrogate as an escape
            except UnicodeEncodeError as error:
                raise _unencodable(operation, error) from None
        return await flow.in_thread(lambda: self._make_botocore().send(operation, params, deadline, lease))

    def _make_direct(self) -> DirectClient | None:
        with self._lock:
            if self.direct is None and self._is_direct:
                endpoint = credentials.endpoint_of(self._settings, self._session)
                self._is_direct = endpoint is not None
                if endpoint is not None:
                    settings = self._settings
                    self.direct = DirectClient(
                        endpoint,
                        settings.region,
                        credentials.credentials_of(settings, self._session),
                        max_attempts=settings.max_attempts,
                        pool_size=settings.max_pool_connections,
                        user_agent=credentials.user_agent_of(self._session),
                    )
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
        #: By the settings of tables, and by the part of them that a client depends on.
        self._clients: dict[TableSettings, _Client] = {}
        self._of_stand_ins: dict[TableSettings, _Client] = {}

    def get(self, settings: TableSettings) -> _Client:
        # If no library can replace AWS, comparing the number of handlers is enough.
        is_stand_in = (len(BUILTIN_HANDLERS) != _handlers.of or bool(_handlers.found)) and is_aws_replaced()
        clients = self._of_stand_ins if is_stand_in else self._clients
        if (client := clients.get(settings)) is None:
            way = _client_settings(settings)
            with self._lock:
                client = clients.get(way) or _Client(settings, is_stand_in=is_stand_in)
                clients[way] = clients[settings] = client
        return client

    def forget(self, settings: TableSettings) -> None:
        way = _client_settings(settings)
        with self._lock:
            for clients in (self._clients, self._of_stand_ins):
                for each in [each for each in clients if _client_settings(each) == way]:
                    del clients[each]


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
