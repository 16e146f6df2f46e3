"""Plans become exactly these requests."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.orm.plan.planner import plan
from dynamo_single.orm.requests.compiler import compile_plan, item_key, with_page
from dynamo_single.table import Request
from tests.unit.factories import COMPANY, EVENT, PERSON, ask


def requests(layout: Any, where: Any, order: Any = (), **options: Any) -> tuple[Request, ...]:
    """Plan and compile a query."""
    return compile_plan(plan(ask(layout, where, order, **options)), table_name="table")


def test_get() -> None:
    """A whole primary key is a GetItem, which takes no filter."""
    assert requests(COMPANY, {"company_id": "1"}) == (
        Request("GetItem", {"Key": {"pk": {"S": "COMPANY#1"}, "sk": {"S": "#METADATA"}}}),
    )


def test_consistent_get() -> None:
    """The request contains the consistency."""
    (request,) = requests(COMPANY, {"company_id": "1"}, consistent=True)
    assert request.params["ConsistentRead"] is True


def test_query_of_an_index() -> None:
    """The request has the index's key attributes, and reads backwards for a descending order."""
    assert requests(COMPANY, {"name__startswith": "Ac", "stock": "A"}, ["-name"]) == (
        Request(
            "Query",
            {
                "IndexName": "gs1",
                "KeyConditionExpression": "#a0 = :v0 AND #a1 BETWEEN :v1 AND :v2",
                "FilterExpression": "#a2 = :v3",
                "ExpressionAttributeNames": {"#a0": "gs1pk", "#a1": "gs1sk", "#a2": "stock"},
                "ExpressionAttributeValues": {
                    ":v0": {"S": "COMPANY"},
                    ":v1": {"S": "Ac"},
                    ":v2": {"S": "Ac\U0010ffff"},
                    ":v3": {"S": "A"},
                },
                "ScanIndexForward": False,
            },
        ),
    )


@pytest.mark.parametrize(
    ("where", "expression"),
    [
        ({"stream": "s"}, "#a0 = :v0"),
        ({"stream": "s", "number__gte": 1}, "#a0 = :v0 AND #a1 >= :v1"),
        ({"stream": "s", "number__lt": 1}, "#a0 = :v0 AND #a1 < :v1"),
        ({"stream": "s", "number__range": (1, 2)}, "#a0 = :v0 AND #a1 BETWEEN :v1 AND :v2"),
        ({"stream": "s", "kind": "k"}, "#a0 = :v0 AND #a1 BETWEEN :v1 AND :v2"),
        ({"stream": "s", "kind": "k", "score": 1}, "#a0 = :v0 AND #a1 = :v1"),
    ],
)
def test_key_conditions(where: Any, expression: str) -> None:
    """Each condition on the sort key is in DynamoDB's syntax."""
    (request,) = requests(EVENT, where)
    assert request.params["KeyConditionExpression"] == expression


def test_query_of_the_table_read_consistently() -> None:
    """The request has pk and sk, with the filter's placeholders in the same map."""
    (request,) = requests(PERSON, {"company_id": "1"}, consistent=True)
    assert request == Request(
        "Query",
        {
            "KeyConditionExpression": "#a0 = :v0 AND #a1 BETWEEN :v1 AND :v2",
            "FilterExpression": "attribute_not_exists(#a2) OR #a2 = :v3",
            "ExpressionAttributeNames": {"#a0": "pk", "#a1": "sk", "#a2": "deletedAt"},
            "ExpressionAttributeValues": {
                ":v0": {"S": "COMPANY#1"},
                ":v1": {"S": "PEOPLE#"},
                ":v2": {"S": "PEOPLE$"},
                ":v3": {"NULL": True},
            },
            "ConsistentRead": True,
        },
    )


def test_several_partitions_are_several_queries() -> None:
    """Each partition has its own request."""
    first, second = requests(PERSON, {"company_id__in": ["1", "2"]})
    assert first.params["ExpressionAttributeValues"][":v0"] == {"S": "COMPANY#1"}
    assert second.params["ExpressionAttributeValues"][":v0"] == {"S": "COMPANY#2"}


def test_scan() -> None:
    """A scan has a filter only."""
    (request,) = requests(EVENT, {"score__gt": 5}, allow_scan=True)
    assert request == Request(
        "Scan",
        {
            "FilterExpression": "#a0 > :v0 AND #a1 = :v1",
            "ExpressionAttributeNames": {"#a0": "score", "#a1": "itemType"},
            "ExpressionAttributeValues": {":v0": {"N": "5"}, ":v1": {"S": "Event"}},
        },
    )


def test_batches_hold_a_hundred_keys() -> None:
    """A hundred keys are read per request, under the table's name."""
    numbers = [str(number) for number in range(205)]
    batches = requests(COMPANY, {"company_id__in": numbers}, consistent=True)
    sizes = [len(batch.params["RequestItems"]["table"]["Keys"]) for batch in batches]
    assert [batch.operation for batch in batches] == ["BatchGetItem"] * 3
    assert sizes == [100, 100, 5]
    assert batches[0].params["RequestItems"]["table"]["Keys"][0] == item_key(("COMPANY#0", "#METADATA"))
    assert batches[0].params["RequestItems"]["table"]["ConsistentRead"] is True


def test_an_empty_plan_has_no_request() -> None:
    """A query that no item can meet does not have one."""
    assert requests(COMPANY, {"company_id__in": []}) == ()


def test_counting_and_limits() -> None:
    """A count returns no items, and a limit counts items read."""
    (request,) = compile_plan(plan(ask(COMPANY)), count=True, limit=7)
    assert (request.params["Select"], request.params["Limit"]) == ("COUNT", 7)
    (scan,) = compile_plan(plan(ask(EVENT, allow_scan=True)), count=True)
    assert scan.params["Select"] == "COUNT"
    assert "Limit" not in scan.params


def test_the_next_page_is_the_same_request_from_another_place() -> None:
    """Only the place and the limit change from page to page."""
    (request,) = compile_plan(plan(ask(COMPANY)), limit=7)
    start = {"pk": {"S": "x"}}
    following = with_page(request, start_key=start, limit=3)
    assert following.params == {**request.params, "ExclusiveStartKey": start, "Limit": 3}
    assert with_page(request) == request
