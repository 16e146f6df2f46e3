"""The output of explain()."""

from __future__ import annotations

from dynamo_single.orm.plan.planner import plan
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.requests.explain import describe
from tests.unit.factories import COMPANY, PERSON, ask


def explain(layout: object, *arguments: object, **options: object) -> str:
    """Describe the plan of a query with its requests."""
    found = plan(ask(layout, *arguments, **options))  # type: ignore[arg-type]  # as it takes them
    return describe(found, compile_plan(found, table_name="table"))


def test_a_query_is_explained_completely() -> None:
    """The plan names the key, the reason, the key condition, discarded items, the order, other keys and the request."""
    assert explain(PERSON, {"company_id": "1", "name": "Mike"}, ["-person_id"]) == "\n".join(
        [
            "directory.Person: filter(company_id='1', name='Mike').order_by(-person_id)",
            "  reads     Query on primary 'COMPANY#{company_id}' / 'PEOPLE#{person_id}'",
            "  because   its partition is given.",
            "  key       pk = 'COMPANY#1' and sk begins with 'PEOPLE#'",
            "  filter    name='Mike', deleted_at__isnull=True (discarded items are read and charged, too)",
            "  order     -person_id: as the sort key, read backwards",
            "  requests  1, and one more for each further page of 1 MB that is read",
            "  not used  by_id (gs1) 'PERSON#{person_id}' / '#METADATA': the query does not set person_id.",
            "  sends     Query",
            "              KeyConditionExpression: #a0 = :v0 AND #a1 BETWEEN :v1 AND :v2",
            "              FilterExpression: #a2 = :v3 AND (attribute_not_exists(#a3) OR #a3 = :v4)",
            "              ExpressionAttributeNames: {'#a0': 'pk', '#a1': 'sk', '#a2': 'name', '#a3': 'deletedAt'}",
            "              ExpressionAttributeValues: {':v0': {'S': 'COMPANY#1'}, ':v1': {'S': 'PEOPLE#'}, "
            "':v2': {'S': 'PEOPLE$'}, ':v3': {'S': 'Mike'}, ':v4': {'NULL': True}}",
            "              ScanIndexForward: False",
        ]
    )


def test_an_empty_plan_says_that_nothing_is_sent() -> None:
    """A query that no item can meet does not read."""
    assert "reads     nothing: no item can meet the conditions. No request is sent." in explain(
        COMPANY, {"company_id__in": []}
    )


def test_single_items_are_explained() -> None:
    """The plan of a get names its key, and explains that its filter is checked afterwards."""
    text = explain(COMPANY, {"company_id": "1"})
    assert "reads     GetItem on primary" in text
    assert "key       pk = 'COMPANY#1', sk = '#METADATA'" in text
    assert "deleted_at__isnull=True (checked after reading)" in text
    assert "order     at most one item" in text
    assert "requests  1\n" in text


def test_a_scan_is_called_one() -> None:
    """The plan of a scan warns that it reads the whole table."""
    text = explain(PERSON, {"name": "x"}, allow_scan=True)
    assert "reads     Scan on the whole table" in text
    assert "it reads every item of the table" in text


def test_many_keys_and_requests_are_counted() -> None:
    """Long lists are truncated with their length."""
    text = explain(PERSON, {"company_id__in": [str(number) for number in range(9)]}, ["person_id"])
    assert text.count("  key  ") == 4
    assert "… and 6 more" in text
    assert "as the sort key, partitions merged" in text
    assert "requests  9, and one more" in text
    assert "sends     … and 6 more like these" in text
    batch = explain(COMPANY, {"company_id__in": [str(number) for number in range(250)]}, ["company_id"])
    assert "… and 247 more" in batch
    assert "requests  3, several at once, and more if DynamoDB leaves keys unprocessed" in batch
    assert "order     company_id, put in order by key" in batch


def test_bounds_and_whole_listings_are_explained() -> None:
    """Between, comparisons and listings without filter read as sentences."""
    assert "gs1sk between 'B$' and 'C$'" in explain(COMPANY, {"name__gt": "B", "name__lte": "C"})
    assert "gs1sk >= 'B'" in explain(COMPANY, {"name__gte": "B"})
    assert "filter    none: all that is read is wanted" in explain(COMPANY)
    assert explain(COMPANY).startswith("directory.Company: all()\n")
    assert "among the deleted" in explain(COMPANY, visibility="deleted")
    assert "one partition after the other" in explain(PERSON, {"company_id__in": ["1", "2"]}, ["company_id"])
