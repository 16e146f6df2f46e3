"""The cost of requests is summed over a block."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dynamo_single.costs import Cost, Costs, measure_requests
from dynamo_single.exceptions import AlreadyExists, Throttled
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import capture_requests, intercept, refuse
from project.directory.models import Company, Person
from tests.catalog.models import Order


@pytest.fixture
def orders(table: Table) -> None:
    """Four orders of one customer, two of them paid."""
    for number in range(4):
        Order.objects.create(customer="c", number=number, status="paid" if number % 2 else "open")


@pytest.mark.usefixtures("orders")
def test_a_filter_is_read_and_not_returned() -> None:
    """Items that a filter discards count as read, and are charged."""
    with measure_requests() as costs:
        found = list(Order.objects.filter(customer="c", status="paid"))
    assert (len(found), costs.operations, costs.requests) == (2, {"Query": 1}, 1)
    assert (costs.items_read, costs.items_returned) == (4, 2)
    assert (costs.read_units, costs.write_units, costs.failures) == (0.5, 0.0, 0)
    assert costs.seconds > 0


@pytest.mark.usefixtures("orders")
def test_every_way_to_read_is_counted() -> None:
    """Items, batches, counts and scans report items read; a missing item does not count."""
    with measure_requests() as costs:
        Order.objects.get(pk="c~~0")
        assert Order.objects.filter(pk="c~~9").first() is None
    assert (costs.operations, costs.items_read, costs.items_returned) == ({"GetItem": 2}, 1, 1)
    with measure_requests() as costs:
        Order.objects.in_bulk(["c~~0", "c~~1", "c~~9"])
    assert (costs.operations, costs.items_read, costs.items_returned) == ({"BatchGetItem": 1}, 2, 2)
    with measure_requests() as costs:
        assert Order.objects.filter(customer="c").count() == 4
    assert (costs.operations, costs.items_read, costs.items_returned) == ({"Query": 1}, 4, 4)
    with measure_requests() as costs:
        list(Order.objects.filter(status="paid").allow_scan())
    assert (costs.operations, costs.items_read, costs.items_returned) == ({"Scan": 1}, 4, 2)


def test_writes_cost_write_units(table: Table) -> None:
    """Writes read no item; a transaction is one request."""
    with measure_requests() as costs:
        Company.objects.create(company_id="c", name="Acme")
        Person.objects.create(company_id="c", name="Mike", email="mike@example.com")
    assert costs.operations == {"PutItem": 1, "TransactWriteItems": 1}
    assert (costs.items_read, costs.read_units) == (0, 0.0)
    assert costs.write_units >= 2


def test_failures_are_counted(table: Table) -> None:
    """A failed request counts without units, which DynamoDB does not report."""
    company = Company.objects.create(company_id="c", name="Acme")
    with measure_requests() as costs:
        with pytest.raises(AlreadyExists):
            Company.objects.create(company_id="c", name="Acme")
        with refuse("ThrottlingException"), pytest.raises(Throttled):
            company.refresh_from_db()
    assert (costs.operations, costs.failures) == ({"PutItem": 1, "GetItem": 1}, 2)
    assert (costs.read_units, costs.write_units) == (0.0, 0.0)


@pytest.mark.usefixtures("orders")
def test_blocks_are_nested() -> None:
    """Each block counts the requests sent within it, and captures contain the same ones."""
    with measure_requests() as outer:
        Order.objects.get(pk="c~~0")
        with measure_requests() as inner, capture_requests() as sent:
            Order.objects.get(pk="c~~1")
        Order.objects.get(pk="c~~2")
    assert (outer.requests, inner.requests, len(sent)) == (3, 1, 1)
    assert (
        str(inner) == f"1 request (1 GetItem), 1 item read, 1 returned, 0.5 read units, {inner.seconds * 1000:.1f} ms"
    )


@pytest.mark.usefixtures("orders")
def test_other_threads_are_not_counted() -> None:
    """A block counts the requests of its own thread."""
    with measure_requests() as costs:
        other = threading.Thread(target=lambda: Order.objects.get(pk="c~~0"))
        other.start()
        other.join()
    assert costs.requests == 0
    assert str(costs) == "no requests"


def test_nothing_is_kept_of_the_requests() -> None:
    """A total contains only numbers, whatever it counts."""
    costs = Costs()
    for _ in range(1000):
        costs.add(Cost("Query", items_read=2, items_returned=1, read_units=0.5, seconds=0.25))
    assert vars(costs) | {"_lock": None} == {
        "_lock": None,
        "operations": {"Query": 1000},
        "failures": 0,
        "items_read": 2000,
        "items_returned": 1000,
        "read_units": 500.0,
        "write_units": 0.0,
        "seconds": 250.0,
    }


ANSWERS: list[tuple[SentRequest, str]] = [
    (SentRequest("PutItem", {}, {}, 0.001, 2.0), "PutItem: 2 write units, 1.0 ms"),
    (
        SentRequest("PutItem", {}, None, 0.001, 0.0, "ConditionalCheckFailedException"),
        "PutItem: 1.0 ms, and failed with ConditionalCheckFailedException",
    ),
    (SentRequest("DescribeTable", {}, {}, 0.001, 0.0), "DescribeTable: 1.0 ms"),
    (SentRequest("Query", {}, {"Count": 0}, 0.001, 0.5), "Query: 0 items read, 0 returned, 0.5 read units, 1.0 ms"),
    (
        SentRequest("Query", {}, {"Count": 3, "ScannedCount": 1200}, 0.0123, 8.0),
        "Query: 1,200 items read, 3 returned, 8 read units, 12.3 ms",
    ),
    (
        SentRequest("TransactGetItems", {}, {"Responses": [{}, {"Item": {}}]}, 0.001, 1.0),
        "TransactGetItems: 1 item read, 1 returned, 1 read unit, 1.0 ms",
    ),
]


@pytest.mark.parametrize(("sent", "text"), ANSWERS)
def test_a_request_is_told_in_words(sent: SentRequest, text: str) -> None:
    """The line contains the items read and returned, the units, the time and the error."""
    assert str(Cost.of(sent)) == text


def test_injected_answers_are_counted(table: Table) -> None:
    """A response that a test injects may lack members that DynamoDB always returns."""

    def answer(operation: str, params: Any) -> dict[str, Any]:
        return {}

    with measure_requests() as costs, intercept(answer):
        table.call("Query", {})
        table.call("BatchGetItem", {})
    assert (costs.requests, costs.items_read) == (2, 0)
