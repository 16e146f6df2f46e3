"""A process that stops itself between the check and the send of leased requests, or that a test stops."""

from __future__ import annotations

import asyncio
import sys
import uuid
from functools import partial
from typing import Any

import django

django.setup()

from dynamo_single.exceptions import BeginAgain  # noqa: E402
from dynamo_single.table import Request, flow, get_table  # noqa: E402
from dynamo_single.table.lease import Lease  # noqa: E402
from dynamo_single.testing import intercept  # noqa: E402
from tests.contract.stops import Stops  # noqa: E402

STATE = Request("GetItem", {"Key": {"pk": {"S": "state"}, "sk": {"S": "state"}}, "ConsistentRead": True})
#: The length of a lease in seconds, for a process that stops itself, and for a stopped one.
LONG, SHORT = 10, 1


def key(name: str) -> dict[str, Any]:
    """The key of an item."""
    return {"pk": {"S": name}, "sk": {"S": name}}


def operations(table: str) -> dict[str, Request]:
    """A request of each kind; each write is of an item of its own."""
    change = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
    put, token = {"TableName": table, "Item": key("transaction")}, str(uuid.uuid4())
    return {
        "create": Request("PutItem", {"Item": key("create"), "ConditionExpression": "attribute_not_exists(pk)"}),
        "update": Request("UpdateItem", {"Key": key("update"), **change}),
        "delete": Request("DeleteItem", {"Key": key("delete")}),
        "transaction": Request("TransactWriteItems", {"TransactItems": [{"Put": put}], "ClientRequestToken": token}),
        "batch": Request("BatchWriteItem", {"RequestItems": {table: [{"PutRequest": {"Item": key("batch")}}]}}),
        "read": Request("GetItem", {"Key": key("delete")}),
    }


async def lease(length: float) -> Lease:
    """A lease by the server's clock."""
    _, served_at = await get_table().ask_dated(STATE)
    assert served_at is not None
    return Lease(1, served_at + length, 300)


async def stop_itself() -> None:
    """Send each request twice: stopped at each point, and again under a new lease."""
    stops = Stops(partial(print, "stops", flush=True))
    with intercept(stops.checked):
        for point in ("checked", "signed"):
            for request in operations(get_table().name).values():
                under = Request(request.operation, request.params, await lease(LONG))
                stops.point = point
                try:
                    await get_table().ask(under)
                    print("executed", flush=True)
                except BeginAgain as error:
                    print(type(error).__name__, flush=True)
                sys.stdin.readline()
        for request in operations(get_table().name).values():
            await get_table().ask(Request(request.operation, request.params, await lease(LONG)))
            print("executed", flush=True)


async def be_stopped() -> None:
    """Create items with the deadline of their lease until the input ends; print each created one."""
    number = 0
    held = await lease(SHORT)
    while True:
        number += 1
        item = {**key(f"item {number}"), "deadline": {"N": str(int(held.deadline))}}
        try:
            await get_table().ask(Request("PutItem", {"Item": item}, held))
            print(f"item {number}", flush=True)
        except BeginAgain:
            print("again", flush=True)
            held = await lease(SHORT)


if __name__ == "__main__":
    work = {"itself": stop_itself, "stopped": be_stopped}[sys.argv[1]]
    if sys.argv[2] == "awaited":
        asyncio.run(work())
    else:
        flow.run(work())
