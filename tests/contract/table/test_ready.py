"""The tests' own table, from one test to the next: tests/ready.py."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from dynamo_single.table import Request, Table
from dynamo_single.table.schema import TableDefinition, differences, observe
from dynamo_single.testing import capture_requests
from tests.children import run
from tests.ready import table_ready

ASKED = ["DescribeTable", "DescribeTimeToLive"]


def asked() -> list[str]:
    """Return the requests about the table's definition before a test."""
    with capture_requests() as sent:
        table_ready()
    return [request.operation for request in sent]


def test_a_table_that_nobody_can_have_changed_is_emptied_only(table: Table) -> None:
    """A write does not change the table's definition."""
    table.send(Request("PutItem", {"Item": {"pk": {"S": "P"}, "sk": {"S": "S"}}}))
    assert asked() == []
    assert table.send(Request("Scan"))["Items"] == []


def test_a_table_that_was_changed_is_made_anew(table: Table) -> None:
    """The next test does not get a table without its indexes."""
    table.send(Request("DeleteTable"))
    definition = TableDefinition(table.settings).create()
    keys = [each for each in definition.params["AttributeDefinitions"] if each["AttributeName"] in ("pk", "sk")]
    bare = {name: value for name, value in definition.params.items() if name != "GlobalSecondaryIndexes"}
    table.send(Request("CreateTable", {**bare, "AttributeDefinitions": keys}))
    table_ready()
    assert differences(table.settings, observe(table)) == []


def forked() -> None:
    """Return a forked copy of this process."""
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(lambda: subprocess.run(["true"], check=True), id="program"),  # noqa: S607
        pytest.param(forked, id="fork"),
        pytest.param(lambda: run(["-c", ""], env={**os.environ}), id="child"),
    ],
)
def test_what_a_process_may_have_changed_is_asked_for(table: Table, start: Callable[[], object]) -> None:
    """A process that the test started could have reached the table, whatever it did."""
    assert asked() == []
    start()
    assert asked() == ASKED
    assert asked() == []
