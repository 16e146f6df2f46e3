"""What the commands change in a table that the app does not own: nothing."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command

from dynamo_single.exceptions import TableMismatch
from dynamo_single.table import SentRequest, Table, capture_requests, get_table, schema
from tests.contract.adoption.conftest import ADOPTED, adopted_table
from tests.ready import DEFINING


@pytest.fixture
def sent(adopted: Table) -> Iterator[list[SentRequest]]:
    """The requests of the test."""
    with capture_requests() as found:
        yield found


def setup(*arguments: str) -> str:
    """What ``dynamo_setup`` prints for the adopted table."""
    out = io.StringIO()
    call_command("dynamo_setup", "--alias", ADOPTED, *arguments, stdout=out, no_color=True)
    return out.getvalue()


def changes(sent: list[SentRequest]) -> list[str]:
    """The requests that change a table's definition."""
    return [each.operation for each in sent if each.operation in DEFINING]


def test_setup_of_an_equal_table_changes_nothing(adopted: Table, sent: list[SentRequest]) -> None:
    assert "Nothing was changed, because OWNS is False." in setup()
    assert changes(sent) == []


@pytest.mark.parametrize("arguments", [(), ("--check",), ("--dry-run",)])
def test_setup_says_which_index_is_missing(adopted: Table, arguments: tuple[str, ...]) -> None:
    key = adopted.settings.key
    with (
        adopted_table(KEY=key, INDEXES=["gs1", "gs2", "gs3"]),
        capture_requests() as sent,
        pytest.raises(CommandError, match="does not match the settings"),
    ):
        setup(*arguments)

    assert changes(sent) == []


def test_setup_does_not_create_a_missing_table(table: Table) -> None:
    with (
        adopted_table(TABLE_NAME="not-there"),
        capture_requests() as sent,
        pytest.raises(CommandError, match="does not match the settings"),
    ):
        setup()

    assert changes(sent) == []


def test_missing_expiry_is_only_noted(table: Table) -> None:
    described = schema.Observed({"KeySchema": [], "AttributeDefinitions": []}, {})
    with adopted_table():
        table = get_table(ADOPTED)
        described = schema.Observed(
            {
                "KeySchema": schema.key_schema(("pk", "sk")),
                "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
                "BillingModeSummary": {"BillingMode": "PROVISIONED"},
            },
            {},
        )

        found = {each.kind: each.repair for each in schema.differences(table.settings, described)}

    assert found == {"billing mode": "unneeded", "index": "impossible", "time to live": "unneeded"}


def test_apply_refuses_an_adopted_table(table: Table) -> None:
    with adopted_table(TABLE_NAME="not-there"), pytest.raises(TableMismatch, match="Nothing was changed"):
        schema.apply(get_table(ADOPTED))
