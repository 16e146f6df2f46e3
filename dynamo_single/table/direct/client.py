"""A client for operations on items: signs, sends, and sends again what may succeed then.

It does what a botocore client does for these operations and raises botocore's exceptions. Several threads may use one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import count
from typing import Any
from zlib import crc32

import msgspec
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
)

from dynamo_single.table.direct import OPERATIONS, refusals
from dynamo_single.table.direct.connections import Answer, Endpoint, Pool
from dynamo_single.table.direct.retries import Failure, RetryQuota, pause_after
from dynamo_single.table.direct.signing import Credentials, Signer

_TARGETS = {name: f"DynamoDB_20120810.{name}" for name in OPERATIONS}
#: Codes by which AWS refuses a signature; where the clocks differ, their messages say so.
_SKEWED = frozenset({"InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed"})
#: Seconds between the clocks below which a signature is not refused for its time: AWS allows five minutes.
_SKEW = 240.0
#: What a connection fails with, before or after it carried the request.
_UNANSWERED = (HTTPClientError, EndpointConnectionError, ConnectTimeoutError)

#: Bytes are written as base64, as DynamoDB takes them.
_encode = msgspec.json.Encoder().encode

Received = tuple[int, Mapping[str, str], bytes]


class DirectClient:
    """Sends operations on items to one endpoint.

    ``credentials`` is asked before each attempt, since those of a role change; ``None`` means that there are none.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        region: str,
        credentials: Callable[[], Credentials | None],
        *,
        max_attempts: int,
        pool_size: int,
        user_agent: str,
    ) -> None:
        host = endpoint.url.split("://", 1)[1]
        self._pool = Pool(endpoint, pool_size)
        self._signer = Signer(host, region)
        self._credentials = credentials
        self._max_attempts = max_attempts
        self._quota = RetryQuota()
        self._headers = {"content-type": "application/x-amz-json-1.0"}
        self._unsigned = f"user-agent: {user_agent}\r\naccept-encoding: identity\r\n"
        #: Seconds by which the server's clock is ahead of ours, once a signature was refused for its time.
        self._ahead = 0.0

    def send(self, operation: str, params: Mapping[str, Any]) -> Received:
        """Send a request, in ``max_attempts`` attempts: the answer's status, its headers in lower case, and its body.

        Raises ``ClientError`` for a refusal, and botocore's connection errors for an answer that did not come. If no
        answer's checksum fits, the last one is given as it came.
        """
        body = _encode(params)
        spent = 0
        for attempt in count(1):
            answer, failure, error = self._attempt(operation, body)
            if failure is None:
                self._quota.earn(spent)
                break
            if self._sets_the_clock(failure, answer) and attempt < self._max_attempts:
                continue
            if not failure.passing or attempt >= self._max_attempts or not (spent := self._quota.spend(failure)):
                break
            time.sleep(pause_after(failure, attempt))
        if answer is None:
            raise error or AssertionError("an attempt without an answer has failed")
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refusals.error_of(operation, answer, retries=attempt - 1)
        return answer.status, answer.headers, answer.body

    def close(self) -> None:
        """Close the connections that wait."""
        self._pool.close()

    def _attempt(self, operation: str, body: bytes) -> tuple[Answer | None, Failure | None, Exception | None]:
        """One attempt: the answer if one came, how it failed if it did, and the connection's error."""
        try:
            answer = self._pool.exchange(self._request(operation, body))
        except _UNANSWERED as error:
            return None, Failure(), error
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            checksum = answer.headers.get("x-amz-crc32")
            spoilt = checksum is not None and checksum != str(crc32(answer.body))
            return answer, Failure() if spoilt else None, None
        return answer, refusals.failure_of(answer), None

    def _request(self, operation: str, body: bytes) -> bytes:
        credentials = self._credentials()
        if credentials is None:
            raise NoCredentialsError
        # The server compares with its own clock, which nobody moves for a test.
        now = time.time() + self._ahead
        headers = self._signer.signed(body, {**self._headers, "x-amz-target": _TARGETS[operation]}, credentials, now)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        return f"POST / HTTP/1.1\r\n{lines}{self._unsigned}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body

    def _sets_the_clock(self, failure: Failure, answer: Answer | None) -> bool:
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
