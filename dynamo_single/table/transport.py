"""Sending one request by botocore, and what its failures mean.

The only importer of botocore. There is one client for each endpoint and process, made on first use. It must not know
models, plans or what a request asks for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as NotConnectedError
from botocore.parsers import ResponseParserError, ResponseParserFactory

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import DynamoSingleError, RequestFailed
from dynamo_single.table import answers, errors

#: What sending raises; ``explained()`` makes an error of ours of each.
FAILURES = (ClientError, BotoCoreError, ResponseParserError)
_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, TokenRetrievalError)

#: With any of these a local endpoint gets the caller's credentials too, because it may check them.
_ENVIRONMENT_CREDENTIALS = {"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"}


def send(settings: TableSettings, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Send one request as it is, with botocore's attempts; raises botocore's errors, which are ``FAILURES``.

    What came and is no answer of DynamoDB is an error of ours, as ``answers.read()`` says.
    """
    try:
        status, headers, body = _clients.get(settings).send(operation, params)
        return answers.read(operation, params, status, headers, body, capacity=settings.consumed_capacity)
    except answers.NoAnswer as error:
        raise errors.no_answer(settings, operation, str(error)) from error
    except NoCredentialsError:
        # botocore remembers for the client's lifetime that it found none; a role may deliver them a moment later.
        _clients.forget(settings)
        raise


def code_of(error: Exception) -> str:
    """DynamoDB's code for a failure, or the error's class where DynamoDB gave none."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def refusal(operation: str, code: str, message: str = "Injected by a test.", **answer: Any) -> Exception:
    """The exception that an interceptor raises to stand for DynamoDB's refusal with an error code."""
    response: Any = {"Error": {"Code": code, "Message": message}, **answer}
    return ClientError(response, operation)


def unreachable(settings: TableSettings) -> Exception:
    """The exception that an interceptor raises to stand for an endpoint where nothing listens."""
    return EndpointConnectionError(endpoint_url=settings.place)


def explained(
    settings: TableSettings,
    operation: str,
    params: Mapping[str, Any],
    error: Exception,
) -> DynamoSingleError:
    """The error of ours that says what a failure of sending means."""
    if isinstance(error, ClientError):
        told: Mapping[str, Any] = error.response.get("Error", {})
        answer: Any = error.response
        code, message = str(told.get("Code", "")), str(told.get("Message", ""))
        return errors.Refusal(settings, operation, params, code, message, answer).error()
    if isinstance(error, ResponseParserError):
        return errors.no_answer(settings, operation, "it cannot be read")
    if isinstance(error, _CREDENTIALS):
        return errors.access_denied(settings, operation, str(error))
    # Of the errors of a connection that was made, all but ReadTimeoutError derive from HTTPClientError.
    if isinstance(error, (HTTPClientError, NotConnectedError)):
        if isinstance(error, ReadTimeoutError) or not isinstance(error, NotConnectedError):
            return errors.unanswered(settings, operation, str(error))
        return errors.unreachable(settings, operation, str(error))
    return RequestFailed(f"{operation} on {settings.table_name!r} could not be sent: {error}")


#: The key of an answer's status, headers and body in what botocore takes for its content.
_RECEIVED = "dynamo_single"
_Received = tuple[int, Mapping[str, str], bytes]


class _Parser:
    """What botocore takes for a parser: its own for refusals, and nothing for answers, which ``answers`` reads."""

    def __init__(self, refusals: Any) -> None:
        self._refusals = refusals

    def parse(self, response: Mapping[str, Any], shape: Any) -> dict[str, Any]:
        status = response["status_code"]
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            parsed: dict[str, Any] = self._refusals.parse(response, shape)
            return parsed
        # botocore adds the number of its attempts.
        metadata = {"HTTPStatusCode": status}
        return {"ResponseMetadata": metadata, _RECEIVED: (status, response["headers"], response["body"])}


class _ParserFactory(ResponseParserFactory):
    """Makes the parser of a client (botocore's component ``response_parser_factory``)."""

    def create_parser(self, protocol_name: str) -> Any:
        return _Parser(super().create_parser(protocol_name))


class _Client:
    """A botocore client, called by DynamoDB's own operation names."""

    def __init__(self, settings: TableSettings) -> None:
        config = Config(
            parameter_validation=False,  # costs more than the rest of a request's preparation; the compiler is tested
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            max_pool_connections=settings.max_pool_connections,
            retries={"mode": "standard", "total_max_attempts": settings.max_attempts},
        )
        pretended = "local" if settings.is_local and not _ENVIRONMENT_CREDENTIALS & os.environ.keys() else None
        session = botocore.session.get_session()
        session.register_component("response_parser_factory", _ParserFactory())
        client = session.create_client(
            "dynamodb",
            region_name=settings.region,
            endpoint_url=settings.endpoint_url,
            aws_access_key_id=pretended,
            aws_secret_access_key=pretended,
            config=config,
        )
        self._methods = {
            operation: getattr(client, method) for method, operation in client.meta.method_to_api_mapping.items()
        }

    def send(self, operation: str, params: Mapping[str, Any]) -> _Received:
        received: _Received = self._methods[operation](**params)[_RECEIVED]
        return received


class _Clients:
    """The clients of this process: tables that are reached in the same way share one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, the lock too: a fork may have happened while another thread held it."""
        self._lock = threading.Lock()
        self._clients: dict[TableSettings, _Client] = {}

    def get(self, settings: TableSettings) -> _Client:
        way = _way(settings)
        if (client := self._clients.get(way)) is None:
            with self._lock:  # making a client is slow and not thread safe
                client = self._clients.get(way) or _Client(settings)
                self._clients[way] = client
        return client

    def forget(self, settings: TableSettings) -> None:
        self._clients.pop(_way(settings), None)


@lru_cache(maxsize=64)
def _way(settings: TableSettings) -> TableSettings:
    """What of the settings a client depends on: everything but the table itself."""
    return TableSettings(
        alias="",
        table_name="",
        region=settings.region,
        endpoint_url=settings.endpoint_url,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_attempts=settings.max_attempts,
        max_pool_connections=settings.max_pool_connections,
    )


_clients = _Clients()
# Sockets and locks do not survive a fork: two processes would read each other's answers.
os.register_at_fork(after_in_child=_clients.reset)
