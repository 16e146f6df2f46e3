"""A client for DynamoDB's operations: it signs requests, sends them, and retries failures that may be temporary.

It replaces a botocore client for these operations and raises botocore's exceptions. Threads and event loops can share
one.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import starmap
from typing import NamedTuple, Protocol
from urllib.parse import quote

import msgspec
from botocore.exceptions import ConnectionError as NotConnectedError
from botocore.exceptions import HTTPClientError, NoCredentialsError
from botocore.utils import normalize_url_path
from msgspec import Struct

from dynamo_single.table import flow
from dynamo_single.table.answers import DAMAGED, OPERATIONS, InvalidResponse
from dynamo_single.table.deadlines import Deadline
from dynamo_single.table.http import retries
from dynamo_single.table.http.connections import Endpoint, HTTPResponse, Pool
from dynamo_single.table.http.loop_connections import LoopPools
from dynamo_single.table.http.retries import Doubt, Failure, RetryQuota, pause_after
from dynamo_single.table.request import Parameters

_TARGETS = {name: f"DynamoDB_20120810.{name}" for name in OPERATIONS}
#: The error codes for a rejected signature; it may be rejected because the clocks differ.
_SKEWED = frozenset({"InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed"})
#: AWS accepts signatures up to five minutes off; below this difference in seconds, the clock is not the reason.
_SKEW = 240.0
#: The errors of an attempt without a response, which botocore retries too.
_UNANSWERED = (NotConnectedError, HTTPClientError)

_ALGORITHM = "AWS4-HMAC-SHA256"

#: msgspec writes bytes as base64, as DynamoDB requires.
_encode = msgspec.json.Encoder().encode


class Credentials(NamedTuple):
    """An access key; temporary credentials have a ``token``."""

    access_key: str
    secret_key: str
    token: str | None = None


class _Day(Struct, frozen=True):
    """The part of a signature that is the same for all requests of one day with one secret key."""

    date: str
    secret_key: str
    scope: str
    key: bytes


class Signer:
    """Sign POST requests to one host, region, and target with Signature Version 4; threads can share a signer.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. The signer keeps the key
    of a day, because it takes four of the five HMACs.
    """

    def __init__(self, host: str, region: str, service: str = "dynamodb", *, target: str = "/") -> None:
        self._host = host
        self._resource = _canonical(target)
        self._region = region
        self._service = service
        self._day = _Day("none yet", "", "", b"")
        #: The last second in which a request was signed, and its timestamp.
        self._second = (0, "")

    def signed(self, body: bytes, headers: dict[str, str], credentials: Credentials, seconds: float) -> dict[str, str]:
        """Return the headers of a POST request with ``body``: the given ones, and its signature.

        ``headers`` contains names in lower case and values without outer spaces; all of them are signed. ``seconds`` is
        the time since 1970.
        """
        second, stamp = self._second
        if second != int(seconds):
            second = int(seconds)
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
            self._second = second, stamp
        day = self._day
        if day.secret_key != credentials.secret_key or not stamp.startswith(day.date):
            # One assignment: another thread sees the old day or the new one.
            day = self._day = self._day_of(stamp[:8], credentials.secret_key)
        signed = {**headers, "host": self._host, "x-amz-date": stamp}
        if credentials.token:
            signed["x-amz-security-token"] = " ".join(credentials.token.split())
        names = ";".join(sorted(signed))
        lines = "".join(starmap("{}:{}\n".format, sorted(signed.items())))
        request = f"POST\n{self._resource}\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{stamp}\n{day.scope}\n{digest}"
        signature = hmac.digest(day.key, text.encode(), "sha256").hex()
        scope = f"{credentials.access_key}/{day.scope}"
        signed["authorization"] = f"{_ALGORITHM} Credential={scope}, SignedHeaders={names}, Signature={signature}"
        return signed

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


class CredentialSource(Protocol):
    """The source of the current credentials."""

    #: Let botocore renew credentials that are due, and return an object that changes with them. ``None`` if the
    #: credentials never change.
    renewed: Callable[[], object] | None

    def current(self) -> Credentials | None:
        """Return the credentials, or ``None`` if there are none."""

    def may_wait(self) -> bool:
        """Return whether ``current()`` may send a request or start a process first."""


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
        self._pool = Pool(endpoint, pool_size)
        self._loop_pools = LoopPools(endpoint, pool_size)
        self._signer = Signer(endpoint.authority, region, target=endpoint.target)
        self._first_line = f"POST {endpoint.target} HTTP/1.1\r\n"
        self._credentials = credentials
        #: The object of ``renewed()`` for which the credentials were read, and the credentials.
        self._held: tuple[object, Credentials | None] = (None, None)
        self._unchanging: Credentials | None = None
        self.max_attempts = max_attempts
        self.quota = RetryQuota()
        self._headers = {"content-type": "application/x-amz-json-1.0"}
        self._unsigned = f"user-agent: {user_agent}\r\naccept-encoding: identity\r\n"
        #: The seconds by which the server's clock is ahead, known after it rejected a signature.
        self._ahead = 0.0

    async def send(self, operation: str, params: Parameters, deadline: Deadline) -> HTTPResponse:
        """Send a request in at most ``max_attempts`` attempts, and return the response as it was received.

        The deadline ends the current attempt and prevents further ones. Raise ``ClientError`` if DynamoDB rejects the
        request, botocore's connection errors if there is no response, and ``InvalidResponse`` if the last one is
        damaged.
        """
        body = _encode(params)
        pool = self._pool if flow.mode.depth else self._loop_pools.current()
        attempts: _Attempts | None = None
        outcome: HTTPResponse | Exception
        try:
            while True:
                request = self.request(operation, body, self._unchanging or await self._current())
                try:
                    outcome = await pool.exchange(request, deadline)
                except _UNANSWERED as error:
                    outcome = error
                else:
                    if outcome.status < HTTPStatus.MULTIPLE_CHOICES and outcome.is_whole:
                        if self.quota.left != RetryQuota.CAPACITY:
                            self.quota.earn(attempts.spent if attempts else 0)
                        return outcome
                attempts = attempts or _Attempts(self, operation, deadline)
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

    def request(self, operation: str, body: bytes, credentials: Credentials | None) -> bytes:
        """Return the bytes of a signed request."""
        if credentials is None:
            raise NoCredentialsError
        # The server compares the time with its own clock, which tests do not move.
        now = time.time() + self._ahead
        headers = self._signer.signed(body, {**self._headers, "x-amz-target": _TARGETS[operation]}, credentials, now)
        lines = "".join(starmap("{}: {}\r\n".format, headers.items()))
        head = f"{self._first_line}{lines}{self._unsigned}content-length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    def sets_the_clock(self, failure: Failure, response: HTTPResponse) -> bool:
        """Return whether the signature was rejected because the clocks differ, and adopt the server's clock."""
        if failure.code not in _SKEWED:
            return False
        try:
            ahead = parsedate_to_datetime(response.headers["date"]).timestamp() - time.time()
        except (KeyError, TypeError, ValueError):
            return False
        if abs(ahead - self._ahead) < _SKEW:
            return False
        self._ahead = ahead
        return True


class _Attempts:
    """The failed attempts of one request."""

    __slots__ = ("_deadline", "_number", "_operation", "_sender", "doubt", "spent")

    def __init__(self, client: DirectClient, operation: str, deadline: Deadline) -> None:
        self._sender, self._operation, self._deadline = client, operation, deadline
        self._number = 0
        #: The units of the retry quota that the current attempt costs.
        self.spent = 0
        self.doubt = Doubt(operation)

    def pause_after(self, outcome: HTTPResponse | Exception) -> float | None:
        """Return the seconds to wait after a failed attempt; ``None`` if it was the last one."""
        self._number += 1
        client, is_last = self._sender, self._number >= self._sender.max_attempts
        if isinstance(outcome, Exception):
            failure = Failure()
            self.doubt.unanswered(outcome)
        else:
            failure = retries.failure_of(outcome) if outcome.is_whole else Failure()
            if client.sets_the_clock(failure, outcome) and not is_last:
                return 0.0
            self.doubt.refused(outcome)
        if not failure.passing or is_last or not (spent := client.quota.spend(failure)):
            return None
        self.spent = spent
        pause = pause_after(failure, self._number)
        return pause if pause < self._deadline.left else None

    def error_of(self, outcome: HTTPResponse | Exception) -> Exception:
        """Return the error of the last attempt."""
        if isinstance(outcome, Exception):
            return outcome
        if outcome.status < HTTPStatus.MULTIPLE_CHOICES:
            return InvalidResponse(DAMAGED)
        return retries.error_of(self._operation, outcome, retries=self._number - 1)
