"""The single-table field pattern: one item for each root and for each list element, read back by one Query."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb.models import Model as PynamoDBModel

from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import assert_requests
from tests.catalog.models import Employee, Firm, Site

FIRST = {"name": "name1", "stock": "stock1"}
SECOND = {"name": "name2", "stock": "stock2"}


@pytest.fixture
def firms(table: Table) -> None:
    """The pattern's table, made through the models."""
    for firm_id, values in (("id1", FIRST), ("id2", SECOND)):
        Firm.objects.create(firm_id=firm_id, **values)
    Employee.objects.create(firm_id="id1", employee_id="pid1", name="pid1's")
    Employee.objects.create(firm_id="id1", employee_id="pid2", name="pid2's")
    Employee.objects.create(firm_id="id2", employee_id="pid3", name="pid3's")
    Site.objects.create(firm_id="id1", site_id="off1")
    Site.objects.create(firm_id="id2", site_id="off3")


def stored(table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """Every item of the table: its key, and its other attributes as plain text."""
    items = table.send(Request("Scan"))["Items"]
    return {
        (item["pk"]["S"], item["sk"]["S"]): {
            name: value["S"] for name, value in item.items() if name not in {"pk", "sk"}
        }
        for item in items
    }


@pytest.mark.usefixtures("firms")
def test_the_table_holds_the_patterns_items_and_nothing_else(table: Table) -> None:
    """Each row of the pattern is one item, with its attributes outside the keys and the field index filled."""
    expected: dict[tuple[str, str], dict[str, str]] = {
        ("id1", "root_id1"): {"itemType": "Firm", "id": "id1", **FIRST},
        ("id2", "root_id2"): {"itemType": "Firm", "id": "id2", **SECOND},
    }
    for firm, person in (("id1", "pid1"), ("id1", "pid2"), ("id2", "pid3")):
        expected[firm, f"people_{person}"] = {
            "itemType": "Employee",
            "firm_id": firm,
            "pid": person,
            "name": f"{person}'s",
            "gs1pk": f"people_{person}",
            "gs1sk": firm,
        }
    for firm, site in (("id1", "off1"), ("id2", "off3")):
        expected[firm, f"office_{site}"] = {
            "itemType": "Site",
            "firm_id": firm,
            "site_id": site,
            "gs1pk": f"office_{site}",
            "gs1sk": firm,
        }
    assert stored(table) == expected


@pytest.mark.usefixtures("firms")
def test_a_whole_firm_is_one_query() -> None:
    """The firm, its people and its offices come with one Query of the partition."""
    with assert_requests(["Query"]):
        firm = Firm.objects.prefetch_related("staff", "sites").get(pk="id1")
        found = (firm.name, firm.stock, [e.name for e in firm.staff.all()], [s.site_id for s in firm.sites.all()])
    assert found == ("name1", "stock1", ["pid1's", "pid2's"], ["off1"])


@pytest.mark.usefixtures("firms")
def test_explain_tells_the_one_query_of_a_whole_firm() -> None:
    """What ``explain()`` says beforehand is the Query that is sent then, not the GetItem of the firm alone."""
    text = Firm.objects.filter(pk="id1").prefetch_related("staff", "sites").explain()
    assert "the object is read together with its staff, sites" in text
    assert "sends     Query" in text
    assert "GetItem" not in text


@pytest.mark.usefixtures("firms")
def test_children_of_a_whole_firm_know_their_parent() -> None:
    """A child that was read with its parent gives that very object, without another request."""
    firm = Firm.objects.prefetch_related("staff").get(pk="id1")
    with assert_requests(0):
        assert all(employee.firm is firm for employee in firm.staff.all())


@pytest.mark.usefixtures("firms")
def test_a_nested_entity_is_one_query_on_the_field_index() -> None:
    """A person is found by its own id with one Query, and the parent from it with one GetItem."""
    with assert_requests(["Query", "GetItem"]) as sent:
        employee = Employee.objects.get(employee_id="pid2")
        firm = employee.firm
    assert sent[0].params["IndexName"] == "gs1"
    assert firm.name == "name1"


@pytest.mark.usefixtures("firms")
def test_one_field_is_one_items_update() -> None:
    """Changing the stock updates the root item alone, and that attribute alone."""
    firm = Firm.objects.get(pk="id1")
    with assert_requests(["UpdateItem"]) as sent:
        firm.stock = "stock9"
        firm.save()
    assert sent[0].params["Key"] == {"pk": {"S": "id1"}, "sk": {"S": "root_id1"}}
    assert sent[0].params["UpdateExpression"].startswith("SET ")
    assert list(sent[0].params["ExpressionAttributeNames"].values()) == ["stock", "pk"]


@pytest.mark.usefixtures("firms")
def test_adding_an_element_does_not_touch_the_root() -> None:
    """A new person is one PutItem of its own."""
    firm = Firm.objects.get(pk="id2")
    with assert_requests(["PutItem"]) as sent:
        firm.staff.create(employee_id="pid4", name="new")
    assert sent[0].params["Item"]["sk"] == {"S": "people_pid4"}


@pytest.mark.usefixtures("firms")
def test_a_field_that_was_added_later_is_unset_on_old_items(table: Table) -> None:
    """An item that was written without an attribute reads as ``None`` there."""
    item = {"pk": "id3", "sk": "root_id3", "itemType": "Firm", "id": "id3", "name": "old"}
    table.send(Request("PutItem", {"Item": {name: {"S": value} for name, value in item.items()}}))
    assert Firm.objects.get(pk="id3").stock is None


@pytest.mark.usefixtures("firms")
def test_prefetching_for_several_firms_sends_one_query_each(sent: list[SentRequest]) -> None:
    """Without one whole key the children of each firm are a Query of their own."""
    firms = list(Firm.objects.filter(pk__in=["id1", "id2"]).prefetch_related("staff"))
    assert [[e.employee_id for e in firm.staff.all()] for firm in firms] == [["pid1", "pid2"], ["pid3"]]
    assert [request.operation for request in sent] == ["BatchGetItem", "Query", "Query"]


@pytest.mark.usefixtures("firms")
def test_a_missing_firm_is_does_not_exist_although_it_has_children(table: Table) -> None:
    """A partition without its root is no object."""
    Firm.objects.get(pk="id1").delete()
    with pytest.raises(Firm.DoesNotExist):
        Firm.objects.prefetch_related("staff").get(pk="id1")


@pytest.mark.usefixtures("firms")
@pytest.mark.parametrize(
    ("key", "condition", "expected"),
    [
        ("id1", None, ["pid1", "pid2"]),
        ("id1", Employee.sort_key.startswith("people_pid2"), ["pid2"]),
        ("id2", Employee.sort_key == "people_pid3", ["pid3"]),
    ],
)
def test_pynamodb_queries_the_same_items(key: str, condition: Any, expected: list[str]) -> None:
    """``Model.query`` and conditions of PynamoDB work, and give objects of this model only."""
    found = list(Employee.query(key, condition))
    assert [employee.employee_id for employee in found] == expected
    assert all(isinstance(employee, PynamoDBModel) for employee in found)
