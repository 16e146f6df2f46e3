"""Turn a response by which DynamoDB rejects a request into botocore's ``ClientError`` or a failure to retry.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from zlib import crc32

import msgspec
from botocore.exceptions import ClientError

from dynamo_single.table.direct.connections import Answer
from dynamo_single.table.direct.retries import Failure
from dynamo_single.table.shapes import ITEM

#: Milliseconds in a second, the unit of ``x-amz-retry-after``.
_MILLISECONDS = 1000
_WISH = re.compile("[0-9]{1,9}")


def is_whole(answer: Answer) -> bool:
    """Return whether the body matches its checksum, if there is one; DynamoDB also sends it with errors."""
    checksum = answer.headers.get("x-amz-crc32")
    return checksum is None or checksum == str(crc32(answer.body))


def failure_of(answer: Answer) -> Failure:
    """Return how an attempt failed that DynamoDB rejected."""
    wish = answer.headers.get("x-amz-retry-after", "")
    retry_after = int(wish) / _MILLISECONDS if _WISH.fullmatch(wish) else None
    return Failure(_code(answer, _content(answer)), answer.status, retry_after)


def error_of(operation: str, answer: Answer, *, retries: int) -> ClientError:
    """Return the error that botocore raises for this response; ``retries`` is the number of further attempts."""
    response = response_of(answer)
    response["ResponseMetadata"]["RetryAttempts"] = retries
    return ClientError(response, operation)  # type: ignore[arg-type]  # a plain dict, as botocore's own parser makes it


def response_of(answer: Answer) -> dict[str, Any]:
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


def _content(answer: Answer) -> Mapping[str, object]:
    try:
        content = msgspec.json.decode(answer.body) if is_whole(answer) else None
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {"message": answer.body.decode("utf-8", "replace")}


def _code(answer: Answer, content: Mapping[str, object]) -> str:
    """Return the code without its namespace, such as ``ValidationException``; the HTTP status if there is no code."""
    code = content.get("__type")
    return code.split(":", 1)[0].rsplit("#", 1)[-1] if isinstance(code, str) else str(answer.status)
