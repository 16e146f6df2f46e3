"""INSERT statements as text, and the keys of the items that they insert."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.table.request import insert_statement, inserted_item
from dynamo_single.table.shaped import written_keys
from dynamo_single.test_tables import write_record

KEY = {"pk": {"S": "P"}, "sk": {"S": "S"}}
ODD = {"it's": {"S": "1"}, 'q"': {"S": "2"}, "?": {"S": "3"}, "a.b": {"S": "4"}, "ключ": {"S": "5"}}


def test_statement_has_names_and_parameters_only() -> None:
    """A quotation mark in a name is doubled."""
    statement = insert_statement("my-table", {**KEY, "it's": {"S": "';--"}})
    assert statement == {
        "Statement": "INSERT INTO \"my-table\" VALUE {'pk': ?, 'sk': ?, 'it''s': ?}",
        "Parameters": [{"S": "P"}, {"S": "S"}, {"S": "';--"}],
    }


def test_key_comes_first() -> None:
    """The order of the item does not matter, so that readers of requests find the key."""
    statement = insert_statement("t", {"a": {"S": "1"}, "sk": {"S": "S"}, "pk": {"S": "P"}})
    assert statement is not None
    assert statement["Statement"] == "INSERT INTO \"t\" VALUE {'pk': ?, 'sk': ?, 'a': ?}"
    assert statement["Parameters"] == [{"S": "P"}, {"S": "S"}, {"S": "1"}]


@pytest.mark.parametrize("count", [0, 580, 700])
def test_long_statement_is_not_written(count: int) -> None:
    """DynamoDB takes 8,192 characters."""
    item = {**KEY, **{f"a{number:06}": {"N": "1"} for number in range(count)}}
    statement = insert_statement("t", item)
    assert (statement is None) == (count == 700)
    assert statement is None or len(statement["Statement"]) <= 8192


@pytest.mark.parametrize("item", [{**KEY, **ODD}, {"id": {"S": "order-1"}, "name": {"S": "n"}}])
@pytest.mark.parametrize("table", ["t", 'odd "name"'])
def test_inserted_item_is_read_back(item: dict[str, Any], table: str) -> None:
    """This includes both kinds of tables."""
    statement = insert_statement(table, item, ("id",) if "id" in item else ("pk", "sk"))
    assert statement is not None
    assert inserted_item(statement) == (table, item)


@pytest.mark.parametrize(
    "text",
    [
        'UPDATE "t" SET a = ? WHERE pk = ? AND sk = ?',
        "INSERT INTO t VALUE {'pk': 'literal', 'sk': 'x'}",
    ],
)
def test_statement_of_project_has_no_known_key(text: str) -> None:
    """Test tables are then scanned after the test."""
    params = {"Statements": [{"Statement": text, "Parameters": [{"S": "P"}] * 3}]}
    assert not written_keys.has_keys("BatchExecuteStatement", params)
    assert not [*written_keys.written_keys("BatchExecuteStatement", params, lambda name: None)]


def test_inserted_items_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a test is undone without a Scan."""
    record = write_record._Record()
    record.is_kept = True
    monkeypatch.setattr(write_record, "_record", record)
    write_record.record_request("BatchExecuteStatement", {"Statements": [insert_statement("t", KEY)]})
    assert write_record.take_keys() == {"t": {("P", "S")}}
    assert record.strangers is None
