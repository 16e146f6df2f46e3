"""Errors if the table is missing or different, or if no engine listens."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from dynamo_single.exceptions import EndpointUnreachable, TableMismatch, TableNotFound, Throttled
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests, refuse
from project.directory.models import Company, Person


def renamed(table: Table, name: str, **options: Any) -> Any:
    """Return the same engine with another table name."""
    endpoint = str(table.settings.endpoint_url)
    settings = {"TABLE_NAME": name, "ENDPOINT_URL": endpoint, "REGION": "us-east-1", **options}
    return override_settings(DYNAMO_SINGLE={"default": settings})


@pytest.mark.parametrize(
    "step",
    [
        lambda: Company.objects.get(pk="c1"),
        lambda: list(Company.objects.all()),
        lambda: Company.objects.count(),
        lambda: Company.objects.create(company_id="c1", name="Acme"),
        lambda: Person.objects.create(company_id="c1", name="Mike", email="m@example.org"),
        lambda: list(Person.objects.in_bulk(["a~~b", "c~~d"])),
    ],
)
def test_a_missing_table_says_how_to_make_it(table: Table, step: Any) -> None:
    """Every operation names the table, its place and the command that creates it."""
    with renamed(table, "no-such-table"), pytest.raises(TableNotFound) as raised:
        step()
    assert str(raised.value) == (
        f"The table 'no-such-table' does not exist at {table.settings.endpoint_url}. "
        "Run `manage.py dynamo_setup`, or correct the table's name in DYNAMO_SINGLE['default']."
    )


def test_a_missing_table_of_another_alias_is_named_with_the_alias_that_the_command_takes(table: Table) -> None:
    """``dynamo_setup`` alone makes the table of ``default``, and so the error would stay."""
    settings = {"TABLE_NAME": "no-such-table", "ENDPOINT_URL": str(table.settings.endpoint_url), "REGION": "us-east-1"}
    aliases = {"default": settings, "products": settings}
    with override_settings(DYNAMO_SINGLE=aliases), pytest.raises(TableNotFound) as raised:
        get_table("products").send(Request("Scan", {}))
    assert "Run `manage.py dynamo_setup --alias products`, or" in str(raised.value)


def test_nothing_listening_names_the_endpoint_and_the_command() -> None:
    """Without an engine, the error names the endpoint and the command that starts one."""
    url = "dynamodb://127.0.0.1:1/single-table?region=us-east-1"
    with override_settings(DYNAMO_SINGLE={"default": url}), pytest.raises(EndpointUnreachable) as raised:
        Company.objects.first()
    assert "http://127.0.0.1:1" in str(raised.value)
    assert "manage.py dynamo_local" in str(raised.value)


def test_nothing_listening_for_another_alias_names_it_in_the_command() -> None:
    """``dynamo_local`` alone listens at the endpoint of ``default``."""
    url = "dynamodb://127.0.0.1:1/single-table?region=us-east-1"
    aliases = {"default": url, "products": url}
    with override_settings(DYNAMO_SINGLE=aliases), pytest.raises(EndpointUnreachable) as raised:
        get_table("products").send(Request("Scan", {}))
    assert "`manage.py dynamo_local --alias products`, or" in str(raised.value)


@pytest.fixture
def foreign_table(table: Table) -> Any:
    """Create a foreign table with other keys."""
    with renamed(table, "foreign-table"):
        get_table().send(
            Request(
                "CreateTable",
                {
                    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            )
        )
        yield
        get_table().send(Request("DeleteTable"))


@pytest.mark.usefixtures("foreign_table")
@pytest.mark.parametrize(
    "step",
    [
        lambda: Company.objects.get(pk="c1"),
        lambda: Company.objects.create(company_id="c1", name="Acme"),
        lambda: list(Company.objects.all()),
        lambda: list(Person.objects.filter(company="c1")),
    ],
)
def test_a_table_with_other_keys_is_named_as_such(step: Any) -> None:
    """The error explains how to see the difference to the app's table."""
    with pytest.raises(TableMismatch, match="dynamo_setup --check"):
        step()


def test_a_missing_index_is_named_as_such(table: Table) -> None:
    """An index that the settings name and the table lacks is a mismatch, not an empty list."""
    with renamed(table, "small-table", INDEXES=["gs1"]):
        definition = {
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
        get_table().send(Request("CreateTable", definition))
        with pytest.raises(TableMismatch, match="dynamo_setup --check"):
            list(Company.objects.all())
        get_table().send(Request("DeleteTable"))


def test_a_throttled_read_is_an_error_and_not_an_empty_list(table: Table) -> None:
    """A throttled request never looks like a missing item."""
    with refuse("ProvisionedThroughputExceededException"), pytest.raises(Throttled):
        list(Company.objects.all())


def test_keys_that_a_batch_leaves_out_are_asked_for_again(table: Table) -> None:
    """Unprocessed keys are sent again until all are read."""
    Company.objects.create(company_id="c1", name="Acme")
    Company.objects.create(company_id="c2", name="Beta")
    left_out = {"times": 1}

    def leave_out(operation: str, params: Any) -> dict[str, Any] | None:
        if operation == "BatchGetItem" and left_out["times"]:
            left_out["times"] -= 1
            return {"Responses": {}, "UnprocessedKeys": params["RequestItems"]}
        return None

    from dynamo_single.testing import intercept

    with intercept(leave_out), assert_requests(["BatchGetItem", "BatchGetItem"]):
        assert sorted(Company.objects.in_bulk(["c1", "c2"])) == ["c1", "c2"]


def test_a_transaction_that_is_cancelled_for_another_reason_raises_as_it_is(table: Table) -> None:
    """Only failed conditions are explained; other reasons stay DynamoDB's own, and nothing is written."""
    from dynamo_single.exceptions import TransactionCancelled

    reasons = [{"Code": "ItemCollectionSizeLimitExceeded", "Message": "full"}, {"Code": "None"}]
    with (
        refuse("TransactionCanceledException", CancellationReasons=reasons),
        pytest.raises(TransactionCancelled, match="ItemCollectionSizeLimitExceeded"),
    ):
        Person.objects.create(company_id="c1", name="Mike", email="m@example.org")
