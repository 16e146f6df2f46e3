"""The single-table field pattern: one item for each root and for each list element, read back by one Query."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb.models import Model as PynamoDBModel

from dynamo_single import transactions
from dynamo_single.exceptions import AlreadyExists
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


#: The scenario's table: partition, sort key, attributes.
SCENARIO = """
| id1 | root_id1 | name1, stock1 |
| id1 | people_pid1 | pid1's |
| id1 | people_pid2 | pid2's |
| id1 | office_off1 | off1's |
| id2 | root_id2 | name2, stock2 |
| id2 | people_pid3 | pid3's |
| id2 | office_off3 | off3's |
"""


@pytest.mark.usefixtures("firms")
def test_the_items_are_the_rows_of_the_scenario(table: Table) -> None:
    """Key by key: prefixes and separator are the user's."""
    rows = [tuple(cell.strip() for cell in line.split("|")[1:4]) for line in SCENARIO.strip().splitlines()]
    items = stored(table)
    assert sorted(items) == sorted((partition, sort) for partition, sort, _ in rows)
    for partition, sort, attributes in rows:
        item = items[partition, sort]
        values = {item["name"], item["stock"]} if "stock" in item else {item.get("name", f"{item.get('site_id')}'s")}
        assert values == set(attributes.split(", "))


@pytest.mark.usefixtures("table")
def test_a_firm_and_its_elements_are_created_by_one_request() -> None:
    """``atomic()`` sends all that its block saves as one transaction, as many items as there are."""
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        firm = Firm.objects.create(firm_id="id1", **FIRST)
        firm.staff.create(employee_id="pid1", name="pid1's")
        firm.staff.create(employee_id="pid2", name="pid2's")
        firm.sites.create(site_id="off1")
    puts = [action["Put"] for action in sent[0].params["TransactItems"]]
    assert [put["Item"]["sk"]["S"] for put in puts] == ["root_id1", "people_pid1", "people_pid2", "office_off1"]
    assert all(put["ConditionExpression"] == "attribute_not_exists(#a0)" for put in puts)


@pytest.mark.usefixtures("firms")
def test_a_firm_that_cannot_be_created_whole_is_not_created(table: Table) -> None:
    """If an element's key is taken, nothing is written, and objects in memory do not count as stored."""
    before = stored(table)
    with pytest.raises(AlreadyExists), transactions.atomic():
        firm = Firm.objects.create(firm_id="id3", **FIRST)
        firm.staff.create(employee_id="pid9")
        Employee.objects.create(firm_id="id1", employee_id="pid1")
    assert stored(table) == before
    assert firm._state.adding


@pytest.mark.usefixtures("firms")
def test_a_whole_firm_moves_to_another_key(table: Table) -> None:
    """Its elements go with it by one transaction, and the other firm's stay."""
    firm = Firm.objects.get(pk="id1")
    with assert_requests(["Query", "Query", "TransactWriteItems", "Query", "Query"]):
        firm.move_tree(firm_id="id9")
    assert sorted(stored(table)) == [
        ("id2", "office_off3"),
        ("id2", "people_pid3"),
        ("id2", "root_id2"),
        ("id9", "office_off1"),
        ("id9", "people_pid1"),
        ("id9", "people_pid2"),
        ("id9", "root_id9"),
    ]
    with assert_requests(["Query"]):
        assert Employee.objects.get(employee_id="pid2").firm_id == "id9"


@pytest.mark.usefixtures("firms")
def test_an_element_moves_to_another_firm(table: Table) -> None:
    """A transaction puts one item and deletes one, without writes of either root."""
    employee = Employee.objects.get(employee_id="pid2")
    with assert_requests(["TransactWriteItems"]) as sent:
        employee.move_tree(firm_id="id2")
    assert [[*action] for action in sent[0].params["TransactItems"]] == [["Put"], ["Delete"]]
    assert ("id2", "people_pid2") in stored(table)


@pytest.mark.usefixtures("firms")
def test_a_whole_firm_is_one_query() -> None:
    """The firm, its people and its offices come with one Query of the partition."""
    with assert_requests(["Query"]):
        firm = Firm.objects.prefetch_related("staff", "sites").get(pk="id1")
        found = (firm.name, firm.stock, [e.name for e in firm.staff.all()], [s.site_id for s in firm.sites.all()])
    assert found == ("name1", "stock1", ["pid1's", "pid2's"], ["off1"])


@pytest.mark.usefixtures("firms")
def test_explain_tells_the_one_query_of_a_whole_firm() -> None:
    """``explain()`` shows the Query for the whole firm instead of the GetItem for the firm alone."""
    text = Firm.objects.filter(pk="id1").prefetch_related("staff", "sites").explain()
    assert "one Query reads the object and its staff, sites" in text
    assert "sends     Query" in text
    assert "GetItem" not in text


@pytest.mark.usefixtures("firms")
def test_children_of_a_whole_firm_know_their_parent() -> None:
    """A child that was read with its parent returns that object, without another request."""
    firm = Firm.objects.prefetch_related("staff").get(pk="id1")
    with assert_requests(0):
        assert all(employee.firm is firm for employee in firm.staff.all())


@pytest.mark.usefixtures("firms")
def test_a_nested_entity_is_one_query_on_the_field_index() -> None:
    """A Query finds a person by its own id, and a GetItem its parent."""
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
    """An item without an attribute reads as ``None``."""
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
