"""``dynamo_inspect`` on tables of the engine: requests, limits and omitted output."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from dynamo_single.exceptions import AccessDenied, Throttled
from dynamo_single.table import Table, capture_requests
from dynamo_single.table.redirects import intercept
from tests.contract.adoption.other_programs import OtherTable, other_table
from tests.unit.inspection.tables import item, primary_keys


def inspected(*arguments: str, **options: Any) -> tuple[str, str]:
    """Return what the command prints to standard output and to standard error."""
    out, err = StringIO(), StringIO()
    call_command("dynamo_inspect", *arguments, stdout=out, stderr=err, **options)
    compile(out.getvalue(), "models.py", "exec")
    return out.getvalue(), err.getvalue()


@pytest.fixture
def orders(table: Table) -> Iterator[OtherTable]:
    """A table of 30 orders of three customers, with a secret."""
    with other_table(table, "orders", ("PK", "SK"), ttl="ttl") as found:
        for n in range(30):
            found.put(
                item(
                    PK=f"CUSTOMER#c{n % 3}",
                    SK=f"ORDER#{n}",
                    customer_id=f"c{n % 3}",
                    order_id=f"{n}",
                    status="open",
                    api_token=f"tok-{n}-secret",
                    ttl=1_900_000_000 + n,
                )
            )
        yield found


def test_table_is_described_by_bounded_reads(orders: OtherTable) -> None:
    """Two descriptions and one Scan for each of eight segments are sent, without writes."""
    with capture_requests() as sent:
        text, _ = inspected("orders")
    assert [each.operation for each in sent] == ["DescribeTable", "DescribeTimeToLive", *["Scan"] * 8]
    assert primary_keys(text) == {"Order": ("CUSTOMER#{customer_id}", "ORDER#{order_id}")}
    assert '"TTL_ATTRIBUTE": "ttl"' in text
    assert "30 items of the table" in text
    assert "# The table has no other items." in text


def test_items_bound_the_scan(orders: OtherTable) -> None:
    """The output reports a small sample."""
    with capture_requests() as sent:
        text, _ = inspected("orders", "--items", "7")
    read = sum(len((each.response or {}).get("Items", ())) for each in sent)
    assert (read, "# 7 items of the table" in text) == (7, True)
    assert "# The table has more items: rare kinds and rare attributes may be missing." in text


def test_stored_values_are_not_printed(orders: OtherTable) -> None:
    """Without --samples, standard output and standard error contain no values."""
    text, errors = inspected("orders")
    assert "secret" not in text
    assert "open" not in text
    assert errors == ""


def test_samples_are_masked_on_standard_error(orders: OtherTable) -> None:
    """Values are printed next to the source, with secrets by name masked."""
    text, errors = inspected("orders", "--samples")
    assert "open" not in text
    assert 'Order.status: "open"\n' in errors
    assert "Order.api_token: •••\n" in errors
    assert "secret" not in errors


def test_missing_table_names_the_options(table: Table) -> None:
    """The endpoint of the alias has no such table."""
    with pytest.raises(CommandError, match=r"'no-such-table' does not exist at http.*--endpoint or --region"):
        inspected("no-such-table")


def test_items_have_a_maximum(table: Table) -> None:
    """A request for more would read more than the command's bound."""
    with pytest.raises(CommandError, match="--items must be between 1 and 10000"):
        inspected("orders", "--items", "10001")


def test_database_is_another_name_of_alias(orders: OtherTable) -> None:
    """The name is the same as in inspectdb."""
    assert inspected("orders", "--database", "default") == inspected("orders", "--alias", "default")


def test_endpoint_and_region_replace_the_alias(orders: OtherTable) -> None:
    """The printed settings are those of the inspected table."""
    text, _ = inspected("orders", "--endpoint", str(orders.table.settings.endpoint_url), "--region", "eu-west-1")
    assert '"REGION": "eu-west-1"' in text


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://localhost", "http://user:password@localhost:8000"])
def test_wrong_endpoint_is_not_repeated(table: Table, address: str) -> None:
    """An address may contain a password, and the output would contain the address."""
    with pytest.raises(CommandError, match="--endpoint must be an address such as") as raised:
        inspected("orders", "--endpoint", address)
    assert address not in str(raised.value)


def test_missing_right_for_the_time_to_live_is_reported(orders: OtherTable) -> None:
    """The rest of the description does not depend on it."""

    def deny(operation: str, params: Any) -> None:
        if operation == "DescribeTimeToLive":
            raise AccessDenied("denied")

    with intercept(deny):
        text, _ = inspected("orders")
    assert "may not read the time to live (dynamodb:DescribeTimeToLive): add TTL_ATTRIBUTE" in text


def test_missing_right_for_the_scan_ends_the_command(orders: OtherTable) -> None:
    """Without items there is nothing to describe."""

    def deny(operation: str, params: Any) -> None:
        if operation == "Scan":
            raise AccessDenied("dynamodb:Scan is denied")

    with intercept(deny), pytest.raises(CommandError, match="dynamodb:Scan is denied"):
        inspected("orders")


def test_throttled_scan_keeps_what_was_read(orders: OtherTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source contains the reason, and the command exits with 1."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    scans: list[str] = []

    def throttle(operation: str, params: Any) -> None:
        if operation == "Scan":
            scans.append(operation)
            if len(scans) > 4:
                raise Throttled("slow down")

    out = StringIO()
    with intercept(throttle), pytest.raises(CommandError, match=r"The scan ended after \d+ items: slow down"):
        call_command("dynamo_inspect", "orders", stdout=out)
    assert "# The scan ended early: slow down" in out.getvalue()
    assert "class Order(models.Model):" in out.getvalue()


def test_large_partition_does_not_fill_the_sample(table: Table) -> None:
    """A Scan of one segment would read a partition to its end before the next one."""
    with other_table(table, "uneven", ("PK", "SK")) as found:
        found.put(*(item(PK="BOARD#b", SK=f"POST#{n:03d}") for n in range(150)))
        found.put(*(item(PK=f"USER#u{n}", SK="PROFILE", email=f"u{n}@example.com") for n in range(60)))
        text, _ = inspected("uneven", "--items", "80")
    assert {"Post", "User"} <= {*primary_keys(text)}


def test_binary_values_are_described(table: Table) -> None:
    """Bytes as a key, as a value, in a set and in a map."""
    with other_table(table, "blobs", ("digest:B",)) as found:
        found.put(
            {
                "digest": {"B": b"\xff\x00"},
                "data": {"B": b"\x01"},
                "parts": {"BS": [b"a"]},
                "map": {"M": {"x": {"B": b"1"}}},
            }
        )
        text, errors = inspected("blobs", "--samples")
    assert '"PARTITION_KEY": "digest:B"' in text
    assert "data = models.BinaryAttribute()" in text
    assert "parts = models.BinarySetAttribute(null=True)" in text
    assert 'Blob.data: "1 bytes"' in errors
