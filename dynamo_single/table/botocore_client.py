"""Sending one request by botocore: whatever the direct request path does not send, or everything if a project says so.

Its answers are given as they came, since ``answers`` reads them; its retries and refusals are botocore's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from botocore.config import Config
from botocore.parsers import ResponseParserFactory
from botocore.session import Session

from dynamo_single.conf import TableSettings
from dynamo_single.table.direct.client import Received
from dynamo_single.table.direct.endpoints import ENVIRONMENT_CREDENTIALS
from dynamo_single.table.direct.sessions import new_client
from dynamo_single.table.items import Parameters

#: The key of an answer's status, headers and body in what botocore takes for its content.
_RECEIVED = "dynamo_single"


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


class BotocoreClient:
    """A botocore client, called by DynamoDB's own operation names."""

    def __init__(self, settings: TableSettings, session: Session) -> None:
        config = Config(
            parameter_validation=False,  # costs more than the rest of a request's preparation; the compiler is tested
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            max_pool_connections=settings.max_pool_connections,
            retries={"mode": "standard", "total_max_attempts": settings.max_attempts},
        )
        pretended = "local" if settings.is_local and not ENVIRONMENT_CREDENTIALS & os.environ.keys() else None
        session.register_component("response_parser_factory", _ParserFactory())
        client = new_client(
            session,
            region_name=settings.region,
            endpoint_url=settings.endpoint_url,
            aws_access_key_id=pretended,
            aws_secret_access_key=pretended,
            config=config,
        )
        self._methods = {
            operation: getattr(client, method) for method, operation in client.meta.method_to_api_mapping.items()
        }

    def send(self, operation: str, params: Parameters) -> Received:
        received: Received = self._methods[operation](**params)[_RECEIVED]
        return received
