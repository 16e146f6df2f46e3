"""Send one request by botocore, if the direct request path does not support it or the settings choose botocore.

botocore retries the requests. Its responses are returned as they were received, since ``answers`` decodes them. Errors
are decoded as on the direct request path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future
from contextvars import copy_context
from http import HTTPStatus
from queue import Empty
from threading import Thread, local
from time import gmtime, strftime
from traceback import walk_tb
from typing import Any

from botocore.auth import AUTH_TYPE_MAPS, SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from botocore.parsers import ResponseParserFactory
from botocore.session import Session
from msgspec.structs import replace

from dynamo_single.conf import TableSettings
from dynamo_single.table.answers import DAMAGED, InvalidResponse
from dynamo_single.table.deadlines import Deadline
from dynamo_single.table.http import dates, retries
from dynamo_single.table.http.connections import HTTPResponse, Place, Places
from dynamo_single.table.http.credentials import ENVIRONMENT_CREDENTIALS, botocore_client, credentials_of, shown_url
from dynamo_single.table.http.retries import Doubt
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import Parameters

#: The key of the received response in the content that botocore sees.
_RECEIVED = "dynamo_single"
#: The name of the signature with a given date in botocore's map, and the key of the date in the context of a request.
_DATED = "dynamo_single-v4"


class _DatedAuth(SigV4Auth):
    """Signature Version 4 with the date in the context of the request, instead of the current time."""

    def canonical_request(self, request: AWSRequest) -> Any:
        # add_auth() calls this after it has set the current time, and reads the date from the context later.
        context: dict[str, Any] = request.context
        context["timestamp"] = context[_DATED]
        del request.headers["X-Amz-Date"]
        request.headers["X-Amz-Date"] = context[_DATED]
        return super().canonical_request(request)


AUTH_TYPE_MAPS[_DATED] = _DatedAuth


class _Parser:
    """A parser for botocore, which decodes error responses and keeps other responses as they were received."""

    def parse(self, response: Mapping[str, Any], shape: Any) -> dict[str, Any]:
        status, headers, body = response["status_code"], response["headers"], response["body"]
        # botocore adds the number of its attempts. Libraries that wrap its methods read these members.
        received = HTTPResponse(status, headers, body)
        parsed = retries.response_of(received)
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            return parsed
        return {"ResponseMetadata": parsed["ResponseMetadata"], _RECEIVED: received}


class _ParserFactory(ResponseParserFactory):
    """Create the parser of a client (botocore's component ``response_parser_factory``)."""

    def create_parser(self, protocol_name: str) -> Any:
        return _Parser()


class _Call:
    """One running request: its deadline and lease, and whether it may have been executed."""

    def __init__(self, operation: str, deadline: Deadline, lease: Lease | None) -> None:
        self.deadline, self.lease = deadline, lease
        self.is_sent = False
        self.doubt = Doubt(operation, lease)


class _Current(local):
    """The request that the current thread sends."""

    call: _Call | None = None


class BotocoreClient:
    """A botocore client whose operations have DynamoDB's names.

    botocore limits the time of each read instead of the whole response. Each request therefore has a thread, which is
    abandoned at the deadline and then begins no further attempt. There are at most ``MAX_POOL_CONNECTIONS`` threads.
    """

    def __init__(self, settings: TableSettings, session: Session, *, is_stand_in: bool = False) -> None:
        # A library that replaces AWS responds at AWS's own addresses only. (The type stubs do not contain the option.)
        also: Any = {"ignore_configured_endpoint_urls": is_stand_in}
        config = Config(
            parameter_validation=False,  # it takes longer than all other preparation
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            max_pool_connections=settings.max_pool_connections,
            retries={"mode": "standard", "total_max_attempts": settings.max_attempts},
            **also,
        )
        pretended = "local" if settings.is_local and not ENVIRONMENT_CREDENTIALS & os.environ.keys() else None
        session.register_component("response_parser_factory", _ParserFactory())
        client = botocore_client(
            settings,
            session,
            aws_access_key_id=pretended,
            aws_secret_access_key=pretended,
            config=config,
        )
        # The type stubs do not contain handlers that return a value.
        events: Any = client.meta.events
        events.register_first("choose-signer.dynamodb", self._choose_signer)
        events.register_first("before-send.dynamodb", self._before_attempt)
        events.register("needs-retry.dynamodb", self._after_attempt)
        self._url = shown_url(client.meta.endpoint_url)
        self._credentials = credentials_of(settings, session)
        self._current = _Current()
        self._places = Places()
        for _ in range(settings.max_pool_connections):
            self._places.put(Place(self._places))
        self._methods = {
            operation: getattr(client, method) for method, operation in client.meta.method_to_api_mapping.items()
        }

    def send(self, operation: str, params: Parameters, deadline: Deadline, lease: Lease | None = None) -> HTTPResponse:
        """Send a request; return and raise as the direct request path does."""
        # This raises an error for credentials that a header cannot contain, which botocore would send.
        self._credentials.current()
        call, answer = _Call(operation, deadline, lease), Future[HTTPResponse]()
        try:
            place = self._places.get(timeout=max(0.0, deadline.left))
        except Empty:
            raise EndpointConnectionError(
                endpoint_url=f"{self._url} (as many requests as MAX_POOL_CONNECTIONS are under way)"
            ) from None
        arguments = (self._send, place, answer, call, operation, params)
        Thread(target=copy_context().run, args=arguments, daemon=True).start()
        try:
            received = answer.result(timeout=max(0.0, deadline.left))
        except TimeoutError:
            kind = ReadTimeoutError if call.is_sent else ConnectTimeoutError
            error = kind(endpoint_url=f"{self._url} ({deadline.reason})")
            call.doubt.unanswered(error)
            raise error from None
        if not received.is_whole:
            raise InvalidResponse(DAMAGED)
        return received

    def _send(
        self, place: Place, answer: Future[HTTPResponse], call: _Call, operation: str, params: Parameters
    ) -> None:
        """Send a request in its thread."""
        self._current.call = call
        try:
            with call.doubt:
                content = self._methods[operation](**params)
                retries_before = content["ResponseMetadata"].get("RetryAttempts", 0)
                received = replace(content[_RECEIVED], retries=retries_before)
        except BaseException as error:
            self._places.put(place)
            answer.set_exception(error)
        else:
            self._places.put(place)
            answer.set_result(received)

    def _choose_signer(self, *, context: dict[str, object], **_: object) -> str | None:
        """Date an attempt by its lease, if it has one; it may have been renewed since the last attempt."""
        call = self._current.call
        date = None if call is None or call.lease is None else call.lease.signed_at
        if date is None:
            return None
        context[_DATED] = strftime(dates.TIMESTAMP, gmtime(int(date)))
        return _DATED

    def _before_attempt(self, **_: object) -> None:
        """Prevent an attempt after the deadline, when the caller has received an error."""
        if (call := self._current.call) is not None:
            # The caller reads is_sent after the deadline, so it is set before the deadline is checked.
            was_sent, call.is_sent = call.is_sent, True
            try:
                call.deadline.within(0)
            except TimeoutError:
                call.is_sent = was_sent
                raise

    def _after_attempt(
        self,
        *,
        response: tuple[AWSResponse, object] | None,
        caught_exception: Exception | None = None,
        **_: object,
    ) -> None:
        """Record a failure after which a write may have been executed."""
        if (call := self._current.call) is None:
            return
        if isinstance(caught_exception, SSLError) and not _is_of_connecting(caught_exception):
            call.doubt.unanswered(HTTPClientError(error=caught_exception))
        elif caught_exception is not None:
            call.doubt.unanswered(caught_exception)
        elif response is not None:
            got = response[0]
            call.doubt.refused(HTTPResponse(got.status_code, got.headers, got.content))


def _is_of_connecting(error: BaseException | None) -> bool:
    """Return whether TLS failed within urllib3's ``connect()``; botocore has one error for this and for later."""
    while error is not None:
        if any(frame.f_code.co_name == "connect" for frame, _ in walk_tb(error.__traceback__)):
            return True
        error = error.__context__
    return False
