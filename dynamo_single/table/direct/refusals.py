"""An answer by which DynamoDB refuses a request, as botocore's ``ClientError``, and as a failure that may pass.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from dynamo_single.table.direct.connections import Answer
from dynamo_single.table.direct.retries import Failure
from dynamo_single.table.shapes import ITEM

#: Milliseconds to a second, in ``x-amz-retry-after``.
_MILLISECONDS = 1000


def failure_of(answer: Answer) -> Failure:
    """How an attempt failed that was refused."""
    wish = answer.headers.get("x-amz-retry-after", "")
    retry_after = int(wish) / _MILLISECONDS if wish.isascii() and wish.isdigit() else None
    return Failure(_code(answer, _content(answer)), answer.status, retry_after)


def error_of(operation: str, answer: Answer, *, retries: int) -> ClientError:
    """The error that botocore raises for this answer, after some further attempts."""
    content = _content(answer)
    message = content.get("message", content.get("Message", ""))
    response: dict[str, Any] = {
        "Error": {"Message": str(message), "Code": _code(answer, content)},
        "ResponseMetadata": {
            "RequestId": answer.headers.get("x-amzn-requestid", ""),
            "HTTPStatusCode": answer.status,
            "HTTPHeaders": dict(answer.headers),
            "RetryAttempts": retries,
        },
    }
    if isinstance(item := content.get("Item"), dict):
        response["Item"] = ITEM.decoded(item)
    if isinstance(reasons := content.get("CancellationReasons"), list):
        response["CancellationReasons"] = [_reason(reason) for reason in reasons]
    return ClientError(response, operation)  # type: ignore[arg-type]  # a plain dict, as botocore's own parser makes it


def _reason(reason: Mapping[str, object]) -> dict[str, object]:
    found = {name: value for name, value in reason.items() if value is not None}
    return {**found, "Item": ITEM.decoded(found["Item"])} if "Item" in found else found


def _content(answer: Answer) -> Mapping[str, object]:
    try:
        content = msgspec.json.decode(answer.body)
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {"message": answer.body.decode("utf-8", "replace")}


def _code(answer: Answer, content: Mapping[str, object]) -> str:
    """The code without its namespace, such as ``ValidationException``; the status where nobody named one."""
    return str(content.get("__type", answer.status)).split(":", 1)[0].rsplit("#", 1)[-1]
