"""The index of a new key is there before any item gets the key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import override_settings

from dynamo_single.evolution.backfill.items import ensure_indexes
from dynamo_single.exceptions import ConfigurationError, TableMismatch, TableNotFound
from dynamo_single.table import Request, SentRequest, Table, get_table, intercept
from tests.contract.table.test_provisioning import url


def test_an_index_that_is_there_takes_one_request(table: Table, sent: list[SentRequest]) -> None:
    """Only the table's description is read."""
    assert ensure_indexes(table, ["gs1", "gs2"]) == []
    assert [each.operation for each in sent] == ["DescribeTable"]


def test_missing_indexes_are_made_one_at_a_time(table: Table, sent: list[SentRequest]) -> None:
    """Only required indexes are created, not all indexes in the settings."""
    with override_settings(DYNAMO_SINGLE=url(table, indexes="gs1,gs2,gs3,gs4,gs5,gs6")):
        assert ensure_indexes(get_table(), ["gs1", "gs4", "gs5"]) == ["gs4", "gs5"]
        described = get_table().send(Request("DescribeTable"))["Table"]["GlobalSecondaryIndexes"]
    assert [each.operation for each in sent].count("UpdateTable") == 2
    assert {each["IndexName"] for each in described} == {"gs1", "gs2", "gs3", "gs4", "gs5"}


def test_an_index_that_is_being_filled_is_waited_for(table: Table) -> None:
    """The command waits until DynamoDB reports it as active."""
    seen = 0

    def creating(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        nonlocal seen
        if operation != "DescribeTable" or seen < 0:
            return None
        seen += 1
        count, seen = seen, -1
        answer = get_table().call(operation, params)
        seen = count
        for index in answer["Table"]["GlobalSecondaryIndexes"]:
            if count < 4:
                index["IndexStatus"] = "CREATING"
        return answer

    with intercept(creating):
        assert ensure_indexes(table, ["gs1"]) == []
    assert seen == 4


def test_an_index_that_the_settings_do_not_name(table: Table) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigurationError, match=r"the index 'gs9', which DYNAMO_SINGLE\['default'\] does not name"):
        ensure_indexes(table, ["gs1", "gs9"])


def test_an_index_with_other_keys(table: Table) -> None:
    """It does not replace the required index."""

    def other(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if operation != "DescribeTable" or inside:
            return None
        inside.append(None)
        answer = get_table().call(operation, params)
        inside.clear()
        answer["Table"]["GlobalSecondaryIndexes"][0]["KeySchema"][0]["AttributeName"] = "itemType"
        return answer

    inside: list[None] = []
    with intercept(other), pytest.raises(TableMismatch):
        ensure_indexes(table, ["gs1"])


def test_a_table_that_is_not_there(table: Table) -> None:
    """The error names the command that creates it."""
    table.send(Request("DeleteTable"))
    with pytest.raises(TableNotFound, match="dynamo_setup"):
        ensure_indexes(table, ["gs1"])
