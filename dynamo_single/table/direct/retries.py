"""Whether a request is sent again, and after which pause: the rules of the AWS SDKs' standard mode.

https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html, with the figures of botocore for DynamoDB.
A request is sent at most ``max_attempts`` times, and all requests of a client share a quota, so that a table in trouble
is not sent a multiple of what it was sent before. Nothing here sends or waits.
"""

from __future__ import annotations

import random
import threading

from msgspec import Struct

#: Codes with which DynamoDB asks to slow down.
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
#: What a proxy, or DynamoDB itself, answers while something is wrong that may pass.
TRANSIENT_STATUS = frozenset({500, 502, 503, 504})
_THROTTLING_STATUS = 429

#: Seconds: the first pause is up to this long, each further one up to twice as long, none longer than the last.
_FIRST_PAUSE = 0.025
_FIRST_PAUSE_THROTTLED = 1.0
_LONGEST_PAUSE = 20.0
#: Seconds that a server's ``x-amz-retry-after`` may add to the pause.
_LONGEST_WISH = 5.0


class Failure(Struct, frozen=True):
    """What went wrong with one attempt: DynamoDB's code and the HTTP status, or 0 where no answer came.

    ``retry_after`` is the pause that the server asks for, in seconds.
    """

    code: str = ""
    status: int = 0
    retry_after: float | None = None

    @property
    def throttled(self) -> bool:
        """Whether DynamoDB asks to slow down."""
        return self.code in THROTTLING or self.status == _THROTTLING_STATUS

    @property
    def passing(self) -> bool:
        """Whether another attempt may succeed."""
        return not self.status or self.throttled or self.code in _TRANSIENT or self.status in TRANSIENT_STATUS


class RetryQuota:
    """What all requests of one client may spend on further attempts: 500 units, earned back by what succeeds."""

    CAPACITY = 500
    COST = 14
    COST_THROTTLED = 5

    def __init__(self) -> None:
        self._left = self.CAPACITY
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """The units that are left."""
        return self._left

    def spend(self, failure: Failure) -> int:
        """The units that another attempt costs, taken now; 0 if there are not enough left."""
        cost = self.COST_THROTTLED if failure.throttled else self.COST
        with self._lock:
            if cost > self._left:
                return 0
            self._left -= cost
            return cost

    def earn(self, spent: int) -> None:
        """Give back what a request that succeeded had spent last, or one unit if it had spent nothing."""
        if self._left == self.CAPACITY:
            return
        with self._lock:
            self._left = min(self.CAPACITY, self._left + (spent or 1))


def pause_after(failure: Failure, attempt: int) -> float:
    """The seconds to wait after a failed attempt, of which the first is 1."""
    first = _FIRST_PAUSE_THROTTLED if failure.throttled else _FIRST_PAUSE
    pause: float = random.random() * min(first * 2 ** (attempt - 1), _LONGEST_PAUSE)  # noqa: S311 - jitter is no secret
    if failure.retry_after is None:
        return pause
    return max(pause, min(failure.retry_after, _LONGEST_WISH + pause))
