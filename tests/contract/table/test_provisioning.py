"""Setting up a table on a real engine, and the commands that do it."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from dynamo_single.engines import free_port
from dynamo_single.exceptions import TableUnavailable
from dynamo_single.table import Request, SentRequest, Table, get_table, intercept, schema
from dynamo_single.testing import refuse


def url(table: Table, **parameters: str) -> dict[str, str]:
    """DYNAMO_SINGLE with another query string, for the engine of the test."""
    endpoint = (table.settings.endpoint_url or "").replace("http://", "dynamodb://")
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return {"default": f"{endpoint}/single-table?{query}"}


def run(command: str, *arguments: str) -> str:
    """Return the output of a command."""
    out = io.StringIO()
    call_command(command, *arguments, stdout=out, stderr=out, no_color=True)
    return out.getvalue()


def foreign_table(table: Table) -> None:
    """Replace the table by one with other keys."""
    table.send(Request("DeleteTable"))
    params = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    table.send(Request("CreateTable", params))


def test_setup_makes_the_table_and_a_second_time_changes_nothing(table: Table) -> None:
    """One command makes a table usable, and can be repeated."""
    table.send(Request("DeleteTable"))
    said = run("dynamo_setup")
    assert "does not exist" in said
    assert "is ready." in said
    table.send(Request("PutItem", {"Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}))
    assert "Nothing was changed" in run("dynamo_setup")
    assert {item["pk"]["S"] for item in table.send(Request("Scan"))["Items"]} == {"a", "MIGRATIONS"}
    assert "matches the settings" in run("dynamo_setup", "--check")


def test_a_second_setup_only_describes(table: Table, sent: list[SentRequest]) -> None:
    """A correct table takes only a description."""
    schema.apply(table)
    assert [request.operation for request in sent] == ["DescribeTable", "DescribeTimeToLive"]


def test_indexes_are_added_one_at_a_time_and_old_items_are_in_them(table: Table, sent: list[SentRequest]) -> None:
    """Each missing index takes a separate request, and finds existing items with its keys."""
    table.send(Request("PutItem", {"Item": {name: {"S": "a"} for name in ("pk", "sk", "gs4pk", "gs4sk")}}))
    with override_settings(DYNAMO_SINGLE=url(table, indexes="gs1,gs2,gs3,gs4,gs5")):
        larger = get_table()
        assert [step.subject for step in schema.apply(larger)] == ["gs4", "gs5"]
        assert [request.operation for request in sent].count("UpdateTable") == 2
        assert larger.send(Request("Scan", {"IndexName": "gs4"}))["Count"] == 1


def test_an_index_that_is_not_in_the_settings_stays(table: Table) -> None:
    """Additional indexes are reported, do not fail the check, and are never deleted."""
    with override_settings(DYNAMO_SINGLE=url(table, indexes="gs1")):
        assert "Note: The index 'gs2' is not in the settings" in run("dynamo_setup")
        assert "matches the settings" in run("dynamo_setup", "--check")
        assert "Index gs2" in run("dynamo_status")


def test_check_prints_each_difference_and_changes_nothing(table: Table, sent: list[SentRequest]) -> None:
    """With a difference, --check exits with status 1, and reads only descriptions."""
    out = io.StringIO()
    with (
        override_settings(DYNAMO_SINGLE=url(table, indexes="gs1,gs2,gs3,gs4")),
        pytest.raises(CommandError, match=r"does not match the settings. Run dynamo_setup.") as caught,
    ):
        call_command("dynamo_setup", "--check", stdout=out)
    assert caught.value.returncode == 1
    assert "The index 'gs4' is missing." in out.getvalue()
    assert {request.operation for request in sent} == {"DescribeTable", "DescribeTimeToLive"}


def test_dry_run_prints_what_would_be_done(table: Table) -> None:
    """--dry-run lists every step without executing it."""
    table.send(Request("DeleteTable"))
    said = run("dynamo_setup", "--dry-run")
    assert "Would create the table 'single-table' with the indexes gs1, gs2, gs3." in said
    assert "Would enable time to live on 'expiresAt'." in said
    assert schema.observe(table).table is None


def test_the_billing_mode_is_changed_both_ways(table: Table) -> None:
    """The mode changes from on demand to provisioned and back, without remaining steps."""
    there = url(table, billing_mode="PROVISIONED", read_capacity="5", write_capacity="6")
    with override_settings(DYNAMO_SINGLE=there):
        assert [step.kind for step in schema.apply(get_table())] == ["billing mode"]
        assert "PROVISIONED, 5 read and 6 write units" in run("dynamo_status")
    assert [step.kind for step in schema.apply(table)] == ["billing mode"]


@pytest.mark.parametrize("arguments", [(), ("--check",), ("--dry-run",)])
def test_a_table_with_other_keys_is_refused(table: Table, sent: list[SentRequest], arguments: tuple[str, ...]) -> None:
    """The other table stays unchanged, and the error names the fix."""
    foreign_table(table)
    sent.clear()
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("dynamo_setup", *arguments, stdout=out)
    assert "Name another table in DYNAMO_SINGLE['default']" in f"{out.getvalue()}{caught.value}"
    assert {request.operation for request in sent} == {"DescribeTable", "DescribeTimeToLive"}


def test_two_processes_may_set_up_at_once(table: Table) -> None:
    """Several setups in parallel all end well, with one table."""
    table.send(Request("DeleteTable"))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            schema.apply(table)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert schema.differences(table.settings, schema.observe(table)) == []


def test_losing_a_race_is_no_error(table: Table) -> None:
    """If another process creates the table in the meantime, the setup continues."""
    table.send(Request("DeleteTable"))
    quicker = schema.TableDefinition(table.settings).create()

    started = threading.Event()

    def once(operation: str, params: Any) -> None:
        if operation == "CreateTable" and not started.is_set():
            started.set()
            table.send(quicker)

    with intercept(once):
        schema.apply(table)
    assert schema.differences(table.settings, schema.observe(table)) == []


def test_patience_ends_with_a_clear_error(table: Table) -> None:
    """If a table never becomes usable, the error names the awaited state."""
    described = {**schema.observe(table).table, "TableStatus": "UPDATING"}  # type: ignore[dict-item] # it exists

    def always_updating(operation: str, params: Any) -> dict[str, Any] | None:
        return {"Table": described} if operation == "DescribeTable" else None

    with (
        intercept(always_updating),
        pytest.raises(TableUnavailable, match=r"after 0 s: it is UPDATING\. DynamoDB continues"),
    ):
        schema.apply(table, patience=0.1)


def test_status_shows_the_table(table: Table) -> None:
    """Endpoint, region, keys, indexes, time to live and billing mode, from two requests."""
    said = run("dynamo_status")
    for line in (
        f"Endpoint       {table.settings.endpoint_url}",
        "Region         us-east-1",
        "Table          single-table, ACTIVE",
        "Keys           pk and sk",
        "Index gs1      gs1pk and gs1sk, ALL, ACTIVE",
        "Billing        PAY_PER_REQUEST",
        "Time to live   ENABLED on expiresAt",
    ):
        assert line in said


def test_status_sends_three_requests_and_counts_only_when_asked(table: Table, sent: list[SentRequest]) -> None:
    """Without --count, one item is read: the state of the table."""
    run("dynamo_status")
    assert [request.operation for request in sent] == ["DescribeTable", "DescribeTimeToLive", "GetItem"]


def test_count_reads_every_page_and_says_what_it_cost(table: Table, sent: list[SentRequest]) -> None:
    """All pages are counted by type, and the command reports the scan."""
    for number in range(5):
        for kind in ("Company", "Person"):
            item = {
                "pk": {"S": f"{kind}#{number}"},
                "sk": {"S": "#"},
                "itemType": {"S": kind},
                "data": {"S": "x" * 200_000},
            }
            table.send(Request("PutItem", {"Item": item}))
    table.send(Request("PutItem", {"Item": {"pk": {"S": "other"}, "sk": {"S": "#"}}}))
    sent.clear()
    said = run("dynamo_status", "--count")
    scans = [request for request in sent if request.operation == "Scan"]
    assert len(scans) > 1
    for line in ("Company        5", "Person         5", "(no type)      1", "All items      11"):
        assert line in said
    consumed = sum(request.consumed for request in scans)
    assert f"Counted by a Scan of the whole table: {len(scans)} requests, {consumed:g} read units." in said


@pytest.mark.parametrize("command", ["dynamo_setup", "dynamo_status"])
def test_without_an_engine_the_commands_say_so(command: str) -> None:
    """Without an engine, a command exits with status 1 and the fix."""
    settings = {"default": f"dynamodb://127.0.0.1:{free_port()}/single-table?max_attempts=1"}
    with (
        override_settings(DYNAMO_SINGLE=settings),
        pytest.raises(CommandError, match=r"No server responds at .*`manage\.py dynamo_local`"),
    ):
        run(command)


def test_status_without_a_table_names_the_command(table: Table) -> None:
    """Without a table, the error names dynamo_setup."""
    table.send(Request("DeleteTable"))
    with pytest.raises(CommandError, match=r"does not exist at .* Run `manage\.py dynamo_setup`"):
        run("dynamo_status")


@pytest.mark.parametrize("command", ["dynamo_setup", "dynamo_status", "dynamo_local"])
def test_an_unknown_alias_is_a_command_error(table: Table, command: str) -> None:
    """--alias must be declared; the error lists the declared ones."""
    with pytest.raises(CommandError, match="DYNAMO_SINGLE has no alias 'other'; it declares 'default'"):
        run(command, "--alias", "other")


def test_a_refused_change_is_not_hidden(table: Table) -> None:
    """Lack of permission ends the setup with DynamoDB's reason."""
    table.send(Request("DeleteTable"))
    with refuse("AccessDeniedException", operation="CreateTable"), pytest.raises(CommandError, match="was not allowed"):
        run("dynamo_setup")
