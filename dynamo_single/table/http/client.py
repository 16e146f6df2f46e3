"""A client for DynamoDB's operations: signs, sends, and sends again what may succeed then.

It does what a botocore client does for these operations and raises botocore's exceptions. Several threads and event
loops may use one: what is sent, and sent again, is decided by the same code for both, and only the waiting differs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Protocol

import msgspec
from botocore.exceptions import ConnectionError as NotConnectedError
from botocore.exceptions import HTTPClientError, NoCredentialsError

from dynamo_single.table.deadlines import Deadline
from dynamo_single.table.http import OPERATIONS, retries
from dynamo_single.table.http.connections import Answer, Endpoint, Pool
from dynamo_single.table.http.loop_connections import LoopPools
from dynamo_single.table.http.retries import Doubt, Failure, RetryQuota, pause_after
from dynamo_single.table.http.signing import Credentials, Signer
from dynamo_single.table.request import Parameters

_TARGETS = {name: f"DynamoDB_20120810.{name}" for name in OPERATIONS}
#: Codes by which AWS refuses a signature; where the clocks differ, their messages say so.
_SKEWED = frozenset({"InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed"})
#: Seconds between the clocks below which a signature is not refused for its time: AWS allows five minutes.
_SKEW = 240.0
#: The errors of a connection before and after it carried the request, which botocore retries too.
_UNANSWERED = (NotConnectedError, HTTPClientError)

#: Bytes are written as base64, as DynamoDB takes them.
_encode = msgspec.json.Encoder().encode

Received = tuple[int, Mapping[str, str], bytes]


class CredentialSource(Protocol):
    """What gives the credentials of the moment."""

    #: Has botocore renew those that are due; the object that it gives is another one once they are others. ``None`` if
    #: they never change.
    renewed: Callable[[], object] | None

    def current(self) -> Credentials | None:
        """Those to sign with; ``None`` if there are none."""

    def may_wait(self) -> bool:
        """Whether ``current()`` may have to ask somebody first."""


class DirectClient:
    """Sends operations to one endpoint.

    ``credentials`` is asked for those to sign with, which are kept until botocore has others, as of a role.
    """

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
        #: What botocore had when credentials were asked for, and the credentials.
        self._held: tuple[object, Credentials | None] = (None, None)
        self.max_attempts = max_attempts
        self.quota = RetryQuota()
        self._headers = {"content-type": "application/x-amz-json-1.0"}
        self._unsigned = f"user-agent: {user_agent}\r\naccept-encoding: identity\r\n"
        #: Seconds by which the server's clock is ahead of ours, once a signature was refused for its time.
        self._ahead = 0.0

    def send(self, operation: str, params: Parameters, deadline: Deadline) -> Received:
        """Send a request, in ``max_attempts`` attempts: the answer's status, its headers in lower case, and its body.

        At the deadline the attempt that is under way is cut off, and no other one begins. Raises ``ClientError`` for a
        refusal, and botocore's connection errors for an answer that did not come. If no answer's checksum fits, the
        last one is given as it came.
        """
        attempts = _Attempts(self, operation, params, deadline)
        exchange = self._pool.exchange
        try:
            while True:
                request = attempts.request(self._current())
                try:
                    pause = attempts.answered(exchange(request, deadline))
                except _UNANSWERED as error:
                    pause = attempts.failed(error)
                if pause is None:
                    return attempts.received()
                time.sleep(pause)
        except Exception as error:
            attempts.settle(error)
            raise

    async def asend(self, operation: str, params: Parameters, deadline: Deadline) -> Received:
        """``send()`` in an event loop, over connections of the loop's own. A request that is cancelled may be sent."""
        attempts = _Attempts(self, operation, params, deadline)
        exchange = self._loop_pools.current().exchange
        changes = self._credentials.renewed is not None
        try:
            while True:
                # Renewing credentials waits for a process or another server.
                waits = changes and self._credentials.may_wait()
                request = attempts.request(await asyncio.to_thread(self._current) if waits else self._current())
                try:
                    pause = attempts.answered(await exchange(request, deadline))
                except _UNANSWERED as error:
                    pause = attempts.failed(error)
                if pause is None:
                    return attempts.received()
                await asyncio.sleep(pause)
        except Exception as error:
            attempts.settle(error)
            raise

    def _current(self) -> Credentials | None:
        """The credentials to sign with, which are asked for again once botocore has others."""
        source = self._credentials
        state = source.renewed() if source.renewed is not None else None
        held = self._held
        if held[1] is None or held[0] is not state:
            held = self._held = state, source.current()
        return held[1]

    def close(self) -> None:
        """Close the connections that wait."""
        self._pool.close()
        self._loop_pools.close()

    def request(self, operation: str, body: bytes, credentials: Credentials | None) -> bytes:
        """A request as it is sent, signed for this moment."""
        if credentials is None:
            raise NoCredentialsError
        # The server compares with its own clock, which nobody moves for a test.
        now = time.time() + self._ahead
        headers = self._signer.signed(body, {**self._headers, "x-amz-target": _TARGETS[operation]}, credentials, now)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"{self._first_line}{lines}{self._unsigned}content-length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    def sets_the_clock(self, failure: Failure, answer: Answer | None) -> bool:
        """Whether a signature was refused for its time, and the next one will be dated by the server's clock."""
        if answer is None or failure.code not in _SKEWED:
            return False
        try:
            ahead = parsedate_to_datetime(answer.headers["date"]).timestamp() - time.time()
        except (KeyError, TypeError, ValueError):
            return False
        if abs(ahead - self._ahead) < _SKEW:
            return False
        self._ahead = ahead
        return True


class _Attempts:
    """The attempts of one request: what is sent next, and whether it is sent again. It neither sends nor waits."""

    __slots__ = ("_answer", "_body", "_deadline", "_doubt", "_error", "_number", "_operation", "_sender", "_spent")

    def __init__(self, client: DirectClient, operation: str, params: Parameters, deadline: Deadline) -> None:
        self._sender, self._operation, self._deadline = client, operation, deadline
        self._body = _encode(params)
        self._number = 0
        self._spent = 0
        self._answer: Answer | None = None
        self._error: Exception | None = None
        #: Made by the first failure.
        self._doubt: Doubt | None = None

    def request(self, credentials: Credentials | None) -> bytes:
        """The bytes of the next attempt."""
        self._number += 1
        return self._sender.request(self._operation, self._body, credentials)

    def answered(self, answer: Answer) -> float | None:
        """An answer came: the seconds to wait before the next attempt, or ``None`` if this was the last one."""
        self._answer, self._error = answer, None
        if not answer.is_whole:
            return self._again(Failure())
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            return self._again(retries.failure_of(answer))
        quota = self._sender.quota
        if quota.left != quota.CAPACITY:
            quota.earn(self._spent)
        return None

    def failed(self, error: Exception) -> float | None:
        """No answer came; what is given is as of ``answered()``."""
        self._answer, self._error = None, error
        return self._again(Failure())

    def received(self) -> Received:
        """The answer of the last attempt, or the error that it is."""
        answer, error = self._answer, self._error
        if answer is not None:
            if answer.status < HTTPStatus.MULTIPLE_CHOICES:
                return answer.status, answer.headers, answer.body
            error = retries.error_of(self._operation, answer, retries=self._number - 1)
        raise error or AssertionError("an attempt without an answer has failed")

    def settle(self, error: Exception) -> None:
        """Raise, in the place of an error that the request ended with, that of an attempt that may have written."""
        if self._doubt is not None:
            self._doubt.settle(error)

    def _again(self, failure: Failure) -> float | None:
        client, is_last = self._sender, self._number >= self._sender.max_attempts
        if client.sets_the_clock(failure, self._answer) and not is_last:
            return 0.0
        doubt = self._doubt = self._doubt or Doubt(self._operation)
        if self._answer is not None:
            doubt.refused(self._answer)
        elif self._error is not None:
            doubt.unanswered(self._error)
        if not failure.passing or is_last or not (spent := client.quota.spend(failure)):
            return None
        self._spent = spent
        pause = pause_after(failure, self._number)
        return pause if pause < self._deadline.left else None
