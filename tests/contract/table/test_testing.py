"""The helpers for users' own tests."""

from __future__ import annotations

import pytest

from dynamo_single import exceptions, testing
from dynamo_single.table import Request, Table, get_table

GET = Request("GetItem", {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}})


def test_the_right_number_of_requests_passes(table: Table) -> None:
    """A number or a list of operations is accepted, and the requests can be inspected."""
    with testing.assert_requests(1) as sent, testing.assert_requests(["GetItem"]):
        table.send(GET)
    assert sent[0].operation == "GetItem"
    with testing.assert_requests(0):
        get_table()


@pytest.mark.parametrize(("expected", "told"), [(1, "Expected 1 requests, but 2"), (["Scan"], "Expected Scan, but 2")])
def test_a_wrong_number_lists_the_requests(table: Table, expected: int | list[str], told: str) -> None:
    """The failure shows each request with its parameters and its error."""

    def two_requests() -> None:
        table.send(GET)
        with testing.refuse("ThrottlingException"), pytest.raises(exceptions.Throttled):
            table.send(Request("Scan"))

    with pytest.raises(AssertionError) as caught, testing.assert_requests(expected):
        two_requests()
    assert told in str(caught.value)
    assert "1. GetItem {'Key': {'pk': {'S': 'a'}, 'sk': {'S': 'b'}}, 'TableName': 'single-table'}" in str(caught.value)
    assert "2. Scan {'TableName': 'single-table'} -> ThrottlingException" in str(caught.value)


def test_an_error_of_the_block_is_not_replaced(table: Table) -> None:
    """The block's own error is raised instead of the count's."""
    with pytest.raises(ZeroDivisionError), testing.assert_requests(5):
        raise ZeroDivisionError


def test_refusals_can_be_limited(table: Table) -> None:
    """The first requests of one operation fail, and all others are sent."""
    with testing.refuse("ThrottlingException", operation="GetItem", times=1):
        table.send(Request("Scan"))
        with pytest.raises(exceptions.Throttled):
            table.send(GET)
        table.send(GET)


def test_a_cancelled_transaction_can_be_injected(table: Table) -> None:
    """The error contains the response next to the error code."""
    reasons = [{"Code": "None"}, {"Code": "ItemCollectionSizeLimitExceeded", "Message": "full"}]
    with (
        testing.refuse("TransactionCanceledException", CancellationReasons=reasons),
        pytest.raises(exceptions.TransactionCancelled, match="ItemCollectionSizeLimitExceeded") as caught,
    ):
        table.send(Request("TransactWriteItems", {"TransactItems": [{}, {}]}))
    assert caught.value.reasons == (None, reasons[1])


def test_a_local_engine_of_ones_own(table: Table) -> None:
    """In its block the alias points at another engine with an empty table; afterwards at the former one."""
    table.send(Request("PutItem", {"Item": GET.params["Key"]}))
    with testing.local_engine() as own:
        assert get_table() is own
        assert own.settings.endpoint_url != table.settings.endpoint_url
        assert own.send(Request("Scan"))["Count"] == 0
    assert get_table() is table
