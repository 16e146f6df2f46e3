"""The exceptions of botocore that an interceptor raises to simulate a fault."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from dynamo_single.conf import TableSettings


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
