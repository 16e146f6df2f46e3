"""Decide whether a failed request may have executed its write: one rule for both request paths.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html: after an HTTP status 500 a
write may have succeeded or failed. The same holds if a connection breaks after the request was sent.
"""

from __future__ import annotations

from types import TracebackType

from botocore.exceptions import ClientError, HTTPClientError

from dynamo_single.table.direct import refusals
from dynamo_single.table.direct.connections import Answer
from dynamo_single.table.direct.retries import TRANSIENT_STATUS
from dynamo_single.table.request import only_reads


class Doubt:
    """Record the first attempt of a request that may have executed the write; later failures do not undo it.

    All attempts run inside this context manager. It replaces an error that leaves the block with the error of the
    recorded attempt, unless the write's own condition failed: the ``retried`` of that error tells the caller that an
    earlier attempt may be the reason. Every transaction of the app has a token, so DynamoDB executes it once.
    """

    __slots__ = ("_error", "_operation")

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._error: Exception | None = None

    def unanswered(self, error: Exception) -> None:
        """Record an attempt that received no response; botocore's ``ConnectionError`` means that it was not sent."""
        if isinstance(error, HTTPClientError):
            self._record(error)

    def refused(self, answer: Answer) -> None:
        """Record a response that was damaged, or has a status of 300 or more."""
        if not refusals.is_whole(answer):
            self._record(HTTPClientError(error="the response was damaged in transit"))
            return
        code = refusals.failure_of(answer).code
        # A status without a code comes from another server.
        if answer.status in TRANSIENT_STATUS and (code.isdigit() or code == "InternalServerError"):
            self._record(refusals.error_of(self._operation, answer, retries=0))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        doubt = self._error
        if doubt is None or doubt is error or not isinstance(error, Exception) or _is_of_condition(error):
            return
        raise doubt from error

    def _record(self, error: Exception) -> None:
        if self._error is None and not only_reads(self._operation):
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
