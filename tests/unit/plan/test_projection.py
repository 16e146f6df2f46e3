"""Projections as values: the attributes that a plan reads, and its requests."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from dynamo_single.orm.conditions.terms import And, Compare, Not, Or
from dynamo_single.orm.plan.plan import PartialItem, Plan, attributes_of, project
from dynamo_single.orm.plan.planner import plan
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.table import Request
from tests.unit.factories import COMPANY, EVENT, ORDER_LINE, PERSON, SESSION, ask

KEYS = ("pk", "sk", "itemType")


def projected(layout: Any, where: Any, wanted: set[str], order: Any = (), **options: Any) -> Plan:
    """Plan a query and let it read some attributes."""
    now = options.pop("now", None)
    return project(plan(ask(layout, where, order, **options), now=now), wanted)


ROWS: list[tuple[str, Plan, tuple[str, ...]]] = [
    (
        "a get: keys, identity, whether it is deleted",
        projected(COMPANY, {"company_id": "1"}, {"name"}),
        (*KEYS, "companyId", "name", "deletedAt"),
    ),
    (
        "a get with conditions: what they compare",
        projected(PERSON, {"company_id": "1", "person_id": "2", "age": 3, "data__price__gt": 1}, {"name"}),
        (*KEYS, "companyId", "personId", "name", "deletedAt", "age", "data"),
    ),
    (
        "a batch: as a get",
        projected(COMPANY, {"company_id__in": ["1", "2"], "stock": "x"}, {"name"}),
        (*KEYS, "companyId", "name", "deletedAt", "stock"),
    ),
    (
        "a query: DynamoDB compares",
        projected(PERSON, {"company_id": "1", "age": 3}, {"name"}),
        (*KEYS, "companyId", "personId", "name", "deletedAt"),
    ),
    (
        "an index: its keys",
        projected(COMPANY, {}, {"stock"}),
        (*KEYS, "gs1pk", "gs1sk", "companyId", "stock", "deletedAt"),
    ),
    (
        "an order: what it is by",
        projected(EVENT, {"kind": "a"}, {"score"}, ["-at"]),
        (*KEYS, "gs1pk", "gs1sk", "stream", "number", "at", "score"),
    ),
    ("an expiry is read too, and that is all", projected(SESSION, {"session_key": "a"}, set(), now=1), ()),
    ("a model without a state", projected(ORDER_LINE, {"order": "1"}, set()), (*KEYS, "order", "line")),
    ("a scan", projected(ORDER_LINE, {"note": "x"}, {"line"}, allow_scan=True), (*KEYS, "order", "line")),
    ("all attributes", projected(ORDER_LINE, {"order": "1"}, {"note"}), ()),
    ("nothing to read", projected(COMPANY, {"company_id__in": []}, {"name"}), ()),
]


@pytest.mark.parametrize(("found", "names"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_is_read(found: Plan, names: tuple[str, ...]) -> None:
    """Each needed attribute is read once; no projection means whole items."""
    assert found.projection == names


def test_the_parts_of_a_union_have_projections_of_their_own() -> None:
    """Attributes that distinguish the parts' items are compared after the read."""
    either = Or(
        (Compare("person_id", "exact", "1"), And((Compare("company_id", "exact", "2"), Compare("age", "gt", 3))))
    )
    found = project(plan(ask(PERSON, either)), {"name"})
    first, second = found.parts
    base = (*KEYS, "companyId", "personId", "name", "deletedAt")
    assert found.projection == base
    assert set(first.projection) | set(second.projection) >= {*base, "gs1pk", "gs1sk"}
    for part in found.parts:
        compared = {name for other in part.exclusions for name in stored_names(other)}
        assert compared <= set(part.projection)


def stored_names(condition: Any) -> set[str]:
    """The names in a condition in stored names."""
    if hasattr(condition, "children"):
        return {name for child in condition.children for name in stored_names(child)}
    return stored_names(condition.child) if hasattr(condition, "child") else {condition.name}


def test_a_get_has_placeholders_of_its_own() -> None:
    """GetItem takes the projection and its names."""
    (request,) = compile_plan(projected(ORDER_LINE, {"order": "1", "line": "2"}, set(), consistent=True))
    assert request == Request(
        "GetItem",
        {
            "Key": {"pk": {"S": "ORDER#1"}, "sk": {"S": "LINE#2#END"}},
            "ProjectionExpression": "#a0, #a1, #a2, #a3, #a4",
            "ExpressionAttributeNames": {"#a0": "pk", "#a1": "sk", "#a2": "itemType", "#a3": "order", "#a4": "line"},
            "ConsistentRead": True,
        },
    )


def test_each_batch_has_the_projection() -> None:
    """BatchGetItem has it next to the table's keys."""
    keys = [str(number) for number in range(101)]
    first, second = compile_plan(projected(COMPANY, {"company_id__in": keys}, set()), table_name="table")
    for request in (first, second):
        inside = request.params["RequestItems"]["table"]
        assert inside["ProjectionExpression"] == "#a0, #a1, #a2, #a3, #a4"
        assert list(inside["ExpressionAttributeNames"].values()) == [*KEYS, "companyId", "deletedAt"]


def test_a_query_shares_the_placeholders_of_its_other_expressions() -> None:
    """A name in several expressions has one placeholder in the request."""
    (request,) = compile_plan(projected(PERSON, {"company_id": "1", "age": 3}, {"age"}))
    assert request.params["KeyConditionExpression"] == "#a0 = :v0 AND #a1 BETWEEN :v1 AND :v2"
    assert request.params["FilterExpression"] == "#a2 = :v3 AND (attribute_not_exists(#a3) OR #a3 = :v4)"
    assert request.params["ProjectionExpression"] == "#a0, #a1, #a4, #a5, #a6, #a2, #a3"
    names = ["pk", "sk", "age", "deletedAt", "itemType", "companyId", "personId"]
    assert list(request.params["ExpressionAttributeNames"].values()) == names


@pytest.mark.parametrize("where", [{"company_id": "1"}, {"age": 3}])
def test_counting_has_no_projection(where: Any) -> None:
    """DynamoDB refuses a projection together with Select=COUNT."""
    for request in compile_plan(projected(PERSON, where, {"name"}, allow_scan=True), count=True):
        assert request.params["Select"] == "COUNT"
        assert "ProjectionExpression" not in request.params


def test_the_attributes_that_a_condition_names() -> None:
    """Every comparison counts, however deep."""
    condition = And((Compare("a", "exact", 1), Or((Not(Compare("b", "gt", 2)), Compare("c", "exact", 3, ("x",))))))
    assert list(attributes_of(condition)) == ["a", "b", "c"]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_a_partial_item_stays_one_in_copies(duplicate: Any) -> None:
    """A copy also knows the loaded attributes."""
    item = duplicate(PartialItem({"pk": {"S": "x"}}, ("pk", "name")))
    assert (type(item), item, item.names) == (PartialItem, {"pk": {"S": "x"}}, {"pk", "name"})
