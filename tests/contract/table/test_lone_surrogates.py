"""A string without a UTF-8 form never leaves the process, and errors do not repeat it: it may be a secret."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.exceptions import InvalidValue
from dynamo_single.table import Request
from tests.catalog.safes import said_of, told
from tests.contract.table.scripted import ITEM, scripted
from tests.contract.table.test_transports import Transport, outcome
from tests.contract.table.test_transports import transport as transport

__all__ = ["transport"]

SECRET = "swordfish\ud800"
#: Requests with the string in a value, a nested value, a name of a document, and a key.
REQUESTS = {
    "value": Request("PutItem", {"Item": {**ITEM, "text": {"S": SECRET}}}),
    "nested": Request("PutItem", {"Item": {**ITEM, "map": {"M": {"a": {"L": [{"S": SECRET}]}}}}}),
    "name": Request("PutItem", {"Item": {**ITEM, "map": {"M": {SECRET: {"BOOL": True}}}}}),
    "condition": Request(
        "PutItem",
        {
            "Item": ITEM,
            "ConditionExpression": "#n <> :v",
            "ExpressionAttributeNames": {"#n": "text"},
            "ExpressionAttributeValues": {":v": {"S": SECRET}},
        },
    ),
    "key": Request("GetItem", {"Key": {**ITEM, "pk": {"S": SECRET}}}),
}


@pytest.mark.parametrize("options", [{}, {"KEY": "id"}], ids=["pair", "id"])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_lone_surrogate_is_not_sent(transport: Transport, request_: Request, options: dict[str, Any]) -> None:
    with scripted() as server:
        error = outcome(server, transport, request_, **options)

    assert server.requests == []
    assert isinstance(error, InvalidValue)
    assert "lone surrogate at position" in str(error)
    assert told("\n".join(said_of(error))) == []
