"""Writes as requests: single ones and transactions."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.exceptions import ItemTooLarge, NotSupported
from dynamo_single.orm.conditions.terms import And, Stored
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ITEM_MISSING, Action, Check, Delete, Put, Update
from dynamo_single.orm.requests.compiler import compile_action, compile_transaction
from dynamo_single.table import Request

KEY = ("COMPANY#1", "#METADATA")
KEY_VALUES = {"pk": {"S": "COMPANY#1"}, "sk": {"S": "#METADATA"}}
ITEM = {**KEY_VALUES, "name": {"S": "Acme"}}
VERSION = Stored("version", "=", ({"N": "3"},))
ALL_OLD = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}

ACTIONS = [
    (Put(ITEM), Request("PutItem", {"Item": ITEM})),
    (
        Put(ITEM, ITEM_MISSING),
        Request(
            "PutItem",
            {
                "Item": ITEM,
                "ConditionExpression": "attribute_not_exists(#a0)",
                **ALL_OLD,
                "ExpressionAttributeNames": {"#a0": "pk"},
            },
        ),
    ),
    (Delete(KEY), Request("DeleteItem", {"Key": KEY_VALUES})),
    (
        Delete(KEY, VERSION),
        Request(
            "DeleteItem",
            {
                "Key": KEY_VALUES,
                "ConditionExpression": "#a0 = :v0",
                **ALL_OLD,
                "ExpressionAttributeNames": {"#a0": "version"},
                "ExpressionAttributeValues": {":v0": {"N": "3"}},
            },
        ),
    ),
    (
        Update(
            KEY,
            set={"name": {"S": "B"}, "version": {"N": "4"}},
            remove=("stock",),
            add={"count": {"N": "1"}},
            discard={"tags": {"SS": ["x"]}},
            condition=And((ITEM_EXISTS, VERSION)),
        ),
        Request(
            "UpdateItem",
            {
                "Key": KEY_VALUES,
                "UpdateExpression": "SET #a0 = :v0, #a1 = :v1 REMOVE #a2 ADD #a3 :v2 DELETE #a4 :v3",
                "ConditionExpression": "attribute_exists(#a5) AND #a1 = :v4",
                **ALL_OLD,
                "ExpressionAttributeNames": {
                    "#a0": "name",
                    "#a1": "version",
                    "#a2": "stock",
                    "#a3": "count",
                    "#a4": "tags",
                    "#a5": "pk",
                },
                "ExpressionAttributeValues": {
                    ":v0": {"S": "B"},
                    ":v1": {"N": "4"},
                    ":v2": {"N": "1"},
                    ":v3": {"SS": ["x"]},
                    ":v4": {"N": "3"},
                },
            },
        ),
    ),
    (
        Update(KEY, remove=("gs1pk", "gs1sk")),
        Request(
            "UpdateItem",
            {
                "Key": KEY_VALUES,
                "UpdateExpression": "REMOVE #a0, #a1",
                "ExpressionAttributeNames": {"#a0": "gs1pk", "#a1": "gs1sk"},
            },
        ),
    ),
]


def test_update_returns_item_on_request() -> None:
    """DynamoDB returns no values by default."""
    update = Update(KEY, remove=("gs1pk",))
    assert compile_action(update, returns_item=True).params["ReturnValues"] == "ALL_NEW"


@pytest.mark.parametrize(("action", "request_"), ACTIONS)
def test_single_writes(action: Action, request_: Request) -> None:
    """Each action is one request, and a failing condition brings the stored item along."""
    assert compile_action(action) == request_


def test_a_transaction_holds_all_actions() -> None:
    """Puts, updates, deletes and checks go in one request with one token."""
    actions = [
        Put({**ITEM, "pk": {"S": "a"}}, ITEM_MISSING),
        Update(("b", "s"), set={"x": {"N": "1"}}),
        Delete(("c", "s"), ITEM_EXISTS),
        Check(("d", "s"), VERSION),
    ]
    request = compile_transaction(actions, "table", "token-1")
    assert request.operation == "TransactWriteItems"
    assert request.params["ClientRequestToken"] == "token-1"
    entries = request.params["TransactItems"]
    assert [next(iter(entry)) for entry in entries] == ["Put", "Update", "Delete", "ConditionCheck"]
    assert all(next(iter(entry.values()))["TableName"] == "table" for entry in entries)
    assert entries[0]["Put"]["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"
    assert "ReturnValues" not in entries[1]["Update"]
    assert entries[3]["ConditionCheck"] == {
        "TableName": "table",
        "Key": {"pk": {"S": "d"}, "sk": {"S": "s"}},
        "ConditionExpression": "#a0 = :v0",
        **ALL_OLD,
        "ExpressionAttributeNames": {"#a0": "version"},
        "ExpressionAttributeValues": {":v0": {"N": "3"}},
    }


def test_a_transaction_is_limited() -> None:
    """A hundred actions are allowed; one more raises an error before any request."""
    actions = [Delete((str(number), "s")) for number in range(101)]
    assert len(compile_transaction(actions[:100], "table", "t").params["TransactItems"]) == 100
    with pytest.raises(NotSupported, match="Cannot send a transaction of 101 actions: DynamoDB accepts at most 100"):
        compile_transaction(actions, "table", "t")


REFUSALS: list[tuple[Any, str]] = [
    (lambda: compile_transaction([], "table", "t"), "at least one action"),
    (lambda: compile_transaction([Put(ITEM), Delete(KEY)], "table", "t"), "one item twice: pk='COMPANY#1', sk='#META"),
    (lambda: compile_action(Check(KEY, VERSION)), "A check cannot be sent alone"),
    (lambda: compile_action(Update(KEY)), "The update of pk='COMPANY#1', sk='#METADATA' does not change the item"),
    (lambda: compile_transaction([Update(KEY)], "table", "t"), "does not change the item"),
]


@pytest.mark.parametrize(("compile_", "message"), REFUSALS)
def test_refusal(compile_: Any, message: str) -> None:
    """Requests that DynamoDB would reject or misinterpret raise an error first."""
    with pytest.raises(NotSupported, match=message):
        compile_()


def test_an_item_over_400_kb_is_refused() -> None:
    """The error of a too large item contains its size, alone and in a transaction."""
    item = {**KEY_VALUES, "text": {"S": "x" * 409_600}}
    for compile_ in (lambda: compile_action(Put(item)), lambda: compile_transaction([Put(item)], "table", "t")):
        with pytest.raises(
            ItemTooLarge, match=r"pk='COMPANY#1', sk='#METADATA' has 409626 bytes; DynamoDB stores at most 409600"
        ):
            compile_()
