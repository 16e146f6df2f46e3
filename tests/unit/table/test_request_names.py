"""Expressions of a request with other attribute names, for an open rename."""

from __future__ import annotations

from typing import Any

from dynamo_single.table.request import with_names


def test_a_filter_has_the_other_name() -> None:
    """Each placeholder is replaced, and none is left over, which DynamoDB would reject."""
    params: dict[str, Any] = {
        "FilterExpression": "#0 = :0 AND #1 = :1",
        "ExpressionAttributeNames": {"#0": "title", "#1": "city"},
        "ExpressionAttributeValues": {":0": {"S": "a"}, ":1": {"S": "b"}},
    }
    assert with_names(params, {"title": "name"}) == params | {
        "FilterExpression": "#0_now = :0 AND #1 = :1",
        "ExpressionAttributeNames": {"#1": "city", "#0_now": "name"},
    }


def test_a_step_into_a_document_keeps_its_name() -> None:
    """It may share the placeholder of an attribute."""
    params = {
        "FilterExpression": "#0 = :0 AND #1.#0[2].#0 = :1",
        "ExpressionAttributeNames": {"#0": "title", "#1": "m"},
    }
    assert with_names(params, {"title": "name"}) == {
        "FilterExpression": "#0_now = :0 AND #1.#0[2].#0 = :1",
        "ExpressionAttributeNames": {"#0": "title", "#1": "m", "#0_now": "name"},
    }


def test_a_projection_has_each_name_once() -> None:
    """DynamoDB rejects overlapping paths."""
    params = {
        "ProjectionExpression": "#0, #1, #2",
        "ExpressionAttributeNames": {"#0": "name", "#1": "title", "#2": "pk"},
    }
    found = with_names(params, {"name": "title"})
    names = found["ExpressionAttributeNames"]
    assert [names[mark] for mark in found["ProjectionExpression"].split(", ")] == ["title", "pk"]
    assert len(names) == 2


def test_a_request_without_the_name_stays() -> None:
    """A request without expressions does not change either."""
    params = {"FilterExpression": "#0 = :0", "ExpressionAttributeNames": {"#0": "city"}}
    assert with_names(params, {"title": "name"}) is params
    assert with_names({"Key": {}}, {"title": "name"}) == {"Key": {}}
