"""Decide when a failed attempt is retried, and which error ends a request.

The rules follow the standard mode of the AWS SDKs, with botocore's numbers for DynamoDB: a request has at most
``max_attempts`` attempts, and all requests of a client share a quota, which limits the load on a table in trouble.
https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html

``Doubt`` decides for both request paths whether a failed request may have executed its write: after an HTTP status 500
a write may have succeeded or failed, and so it may if a connection breaks after the request was sent.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec
from botocore.exceptions import ClientError, HTTPClientError
from msgspec import Struct

from dynamo_single.table.answers import ITEM
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import only_reads

if TYPE_CHECKING:
    from dynamo_single.table.http.connections import HTTPResponse

#: The error codes for throttling.
THROTTLING = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_TRANSIENT = frozenset({"RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"})
#: The HTTP status codes of temporary failures of DynamoDB or a proxy.
TRANSIENT_STATUS = frozenset({500, 502, 503, 504})
_THROTTLING_STATUS = 429

#: The longest first pause in seconds; the limit doubles with each attempt, up to ``_LONGEST_PAUSE``.
_FIRST_PAUSE = 0.025
_FIRST_PAUSE_THROTTLED = 1.0
_LONGEST_PAUSE = 20.0
#: The most seconds that the header ``x-amz-retry-after`` may add to a pause.
_LONGEST_WISH = 5.0


class Failure(Struct, frozen=True):
    """A failed attempt: DynamoDB's code and the HTTP status, which is 0 without a response.

    ``retry_after`` is the pause in seconds that the server requests.
    """

    code: str = ""
    status: int = 0
    retry_after: float | None = None

    @property
    def throttled(self) -> bool:
        """Return whether DynamoDB throttled the request."""
        return self.code in THROTTLING or self.status == _THROTTLING_STATUS

    @property
    def passing(self) -> bool:
        """Return whether another attempt may succeed."""
        return not self.status or self.throttled or self.code in _TRANSIENT or self.status in TRANSIENT_STATUS


class RetryQuota:
    """The units that all requests of one client share for retries: 500, regained by successful requests."""

    CAPACITY = 500
    COST = 14
    COST_THROTTLED = 5

    def __init__(self) -> None:
        #: The remaining units.
        self.left = self.CAPACITY
        self._lock = threading.Lock()

    def spend(self, failure: Failure) -> int:
        """Subtract the units of another attempt, and return them; return 0 if too few are left."""
        cost = self.COST_THROTTLED if failure.throttled else self.COST
        with self._lock:
            if cost > self.left:
                return 0
            self.left -= cost
            return cost

    def earn(self, spent: int) -> None:
        """Add the units of the last retry of a successful request, or one unit if it had no retry."""
        with self._lock:
            self.left = min(self.CAPACITY, self.left + (spent or 1))


def pause_after(failure: Failure, attempt: int) -> float:
    """Return the seconds to wait after a failed attempt; the first attempt has the number 1."""
    first = _FIRST_PAUSE_THROTTLED if failure.throttled else _FIRST_PAUSE
    pause: float = random.random() * min(first * 2 ** (attempt - 1), _LONGEST_PAUSE)  # noqa: S311 - jitter is no secret
    if failure.retry_after is None:
        return pause
    return max(pause, min(failure.retry_after, _LONGEST_WISH + pause))


#: Milliseconds in a second, the unit of ``x-amz-retry-after``.
_MILLISECONDS = 1000
_WISH = re.compile("[0-9]{1,9}")


def failure_of(answer: HTTPResponse) -> Failure:
    """Return how an attempt failed that DynamoDB rejected."""
    wish = answer.headers.get("x-amz-retry-after", "")
    retry_after = int(wish) / _MILLISECONDS if _WISH.fullmatch(wish) else None
    return Failure(_code(answer, _content(answer)), answer.status, retry_after)


def error_of(operation: str, answer: HTTPResponse, *, retries: int) -> ClientError:
    """Return the error that botocore raises for this response; ``retries`` is the number of further attempts."""
    response = response_of(answer)
    response["ResponseMetadata"]["RetryAttempts"] = retries
    return ClientError(response, operation)  # type: ignore[arg-type]  # a plain dict, as botocore's own parser makes it


def response_of(answer: HTTPResponse) -> dict[str, Any]:
    """Return an error response as botocore's parser does, without members whose type differs from DynamoDB's.

    If the response was damaged or is not from DynamoDB, its code is the HTTP status.
    """
    content = _content(answer)
    message = content.get("message", content.get("Message", ""))
    response: dict[str, Any] = {
        "Error": {"Message": str(message), "Code": _code(answer, content)},
        "ResponseMetadata": {
            "RequestId": answer.headers.get("x-amzn-requestid", ""),
            "HTTPStatusCode": answer.status,
            "HTTPHeaders": dict(answer.headers),
        },
    }
    if (item := _item(content.get("Item"))) is not None:
        response["Item"] = item
    if (reasons := _reasons(content.get("CancellationReasons"))) is not None:
        response["CancellationReasons"] = reasons
    return response


def _item(value: object) -> object:
    """Return an item with its binary values as bytes; ``None`` if the value is not an item."""
    try:
        return ITEM.decoded(value) if ITEM.fits(value) else None
    except (AttributeError, TypeError, ValueError):
        return None


def _reasons(value: object) -> list[dict[str, object]] | None:
    """Return a reason for each action, without null members; ``None`` if one does not match DynamoDB's schema."""
    if not isinstance(value, list) or not all(isinstance(reason, dict) for reason in value):
        return None
    reasons = [{name: found for name, found in reason.items() if found is not None} for reason in value]
    for reason in reasons:
        if not all(isinstance(reason.get(name, ""), str) for name in ("Code", "Message")):
            return None
        if "Item" in reason:
            reason["Item"] = _item(reason["Item"])
            if reason["Item"] is None:
                return None
    return reasons


def _content(answer: HTTPResponse) -> Mapping[str, object]:
    try:
        content = msgspec.json.decode(answer.body) if answer.is_whole else None
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {"message": answer.body.decode("utf-8", "replace")}


def _code(answer: HTTPResponse, content: Mapping[str, object]) -> str:
    """Return the code without its namespace, such as ``ValidationException``; the HTTP status if there is no code."""
    code = content.get("__type")
    return code.split(":", 1)[0].rsplit("#", 1)[-1] if isinstance(code, str) else str(answer.status)


class Doubt:
    """Record the first attempt of a request that may have executed the write; later failures do not undo it.

    All attempts run inside this context manager. It replaces an error that leaves the block with the error of the
    recorded attempt, unless the write's own condition failed: its ``retried`` indicates that an earlier attempt
    may be the reason. Every transaction of the app has a token, so DynamoDB executes it once. The lease of the request
    learns of each such attempt.
    """

    __slots__ = ("_error", "_lease", "_operation")

    def __init__(self, operation: str, lease: Lease | None = None) -> None:
        self._operation, self._lease = operation, lease
        self._error: Exception | None = None

    def unanswered(self, error: Exception) -> None:
        """Record an attempt that received no response; botocore's ``ConnectionError`` means that it was not sent."""
        if isinstance(error, HTTPClientError):
            self._record(error)

    def refused(self, answer: HTTPResponse) -> None:
        """Record a response that was damaged, or has a status of 300 or more."""
        if not answer.is_whole:
            self._record(HTTPClientError(error="the response was damaged in transit"))
            return
        code = failure_of(answer).code
        # A status without a code comes from another server.
        if answer.status in TRANSIENT_STATUS and (code.isdigit() or code == "InternalServerError"):
            self._record(error_of(self._operation, answer, retries=0))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.settle(error)

    def settle(self, error: Exception) -> None:
        """Raise the error of the recorded attempt instead of the last one, unless the write's condition failed."""
        doubt = self._error
        if doubt is not None and doubt is not error and not _is_of_condition(error):
            raise doubt from error

    def _record(self, error: Exception) -> None:
        if only_reads(self._operation):
            return
        if self._lease is not None:
            self._lease.lose()
        if self._error is None:
            self._error = error


def _is_of_condition(error: BaseException) -> bool:
    """Return whether DynamoDB compared the write's condition with the stored item, and it did not hold."""
    if not isinstance(error, ClientError):
        return False
    code = error.response["Error"]["Code"]
    if code != "TransactionCanceledException":
        return code == "ConditionalCheckFailedException"
    reasons = error.response.get("CancellationReasons", [])
    return any(reason.get("Code") == "ConditionalCheckFailed" for reason in reasons)
