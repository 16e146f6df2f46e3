"""Commands do not change a table that the app does not own."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command

from dynamo_single.conf import parse
from dynamo_single.table import Request, SentRequest, Table, capture_requests, get_table, schema
from tests.contract.adoption.conftest import ADOPTED, adopted_table
from tests.ready import DEFINING


@pytest.fixture
def sent(adopted: Table) -> Iterator[list[SentRequest]]:
    """The requests of the test."""
    with capture_requests() as found:
        yield found


def setup(*arguments: str) -> str:
    """Return the output of ``dynamo_setup`` for the adopted table."""
    out = io.StringIO()
    call_command("dynamo_setup", "--alias", ADOPTED, *arguments, stdout=out, no_color=True)
    return out.getvalue()


def changes(sent: list[SentRequest]) -> list[str]:
    """The requests that change a table's definition."""
    return [each.operation for each in sent if each.operation in DEFINING]


def test_setup_of_an_equal_table_changes_nothing(adopted: Table, sent: list[SentRequest]) -> None:
    assert "was ready already" in setup()
    assert changes(sent) == []


@pytest.mark.parametrize("arguments", [(), ("--check",), ("--dry-run",)])
def test_setup_does_not_add_a_missing_index(adopted: Table, arguments: tuple[str, ...]) -> None:
    key = adopted.settings.key
    with (
        adopted_table(KEY=key, INDEXES=["gs1", "gs2", "gs3"]),
        capture_requests() as sent,
        pytest.raises(CommandError, match="settings"),
    ):
        setup(*arguments)

    assert changes(sent) == []


def test_setup_says_how_to_add_an_index(adopted: Table) -> None:
    with (
        adopted_table(KEY=adopted.settings.key, INDEXES=["gs3"]),
        pytest.raises(CommandError, match="program that owns"),
    ):
        setup()


def test_setup_creates_a_missing_table_on_this_machine(table: Table) -> None:
    with adopted_table(TABLE_NAME="not-there"):
        with capture_requests() as sent:
            setup()
        get_table(ADOPTED).send(Request("DeleteTable"))

    assert changes(sent) == ["CreateTable"]


def test_setup_creates_no_table_elsewhere(table: Table) -> None:
    given = parse("shop", {"TABLE_NAME": "theirs", "REGION": "eu-west-1", "OWNS": False})

    (missing, *rest) = schema.differences(given, schema.Observed(None, {}))

    assert (missing.repair, [each.repair for each in rest]) == ("impossible", ["unneeded"])
    assert missing.sentence.endswith("Create it with the program that owns it.")


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
