"""Work on items respects its rates, the table's connections and its memory."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dynamo_single.evolution.backfill import Options, Work, delete_checkpoints, run_work
from dynamo_single.evolution.backfill.claims import rename_parent_marks
from dynamo_single.evolution.backfill.work import Others
from dynamo_single.orm.requests.actions import Action, Item
from dynamo_single.table import SentRequest, Table, batches, intercept
from dynamo_single.table.request import READS
from tests.contract.item_migrations.things import DOUBLING, double, put, scanned, thing, work


def test_every_request_keeps_to_the_rates(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each read and write of items waits for the pace, which counts all threads."""
    put(table, *map(thing, range(20)))
    asked: list[float] = []

    def no_pause(rate: batches.Rate) -> float:
        asked.append(rate.consumed)
        return 0.0

    monkeypatch.setattr(batches.Rate, "pause", no_pause)
    run_work(DOUBLING, table, Options(segments=1, page=10))
    assert len(asked) == 3 + 20  # three pages, with the checkpoints among the items, and a write for each thing
    assert 0 == asked[0] < asked[-1]


def test_the_units_of_a_report_are_those_of_the_requests(table: Table, sent: list[SentRequest]) -> None:
    """Reads and writes each, of the items and of the checkpoints."""
    put(table, *map(thing, range(20)))
    sent.clear()
    report = run_work(DOUBLING, table, Options(segments=3, page=5))
    counted = sent[2:]  # the two requests that take the work over come first
    assert report.read_units == sum(each.consumed for each in counted if each.operation in READS)
    writes = [each.consumed for each in counted if each.operation not in READS]
    assert report.write_units == sum(writes)


def test_as_many_threads_as_there_are_connections(table: Table) -> None:
    """Further segments are read sequentially."""
    put(table, *map(thing, range(100)))
    seen: set[str] = set()

    def change(item: Item, others: Others) -> Sequence[Action]:
        seen.add(threading.current_thread().name)
        return double(item, others)

    run_work(work(change), table, Options(segments=64, page=10))
    assert len(seen) <= table.settings.max_pool_connections
    assert len(scanned(table)) == sum("double" in item for item in scanned(table).values()) == 100


def pages(total: int, size: int) -> Any:
    """Respond to a Scan with a number of items that are not stored."""

    def interceptor(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if operation != "Scan":
            return None
        start = params.get("ExclusiveStartKey", {}).get("pk", {}).get("S", "THING#-00001")
        first = int(start.removeprefix("THING#")) + 1
        items = [thing(number, text={"S": "x" * 200}) for number in range(first, min(first + size, total))]
        answer: dict[str, Any] = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
        if first + size < total:
            answer["LastEvaluatedKey"] = {name: items[-1][name] for name in ("pk", "sk")}
        return answer

    return interceptor


def test_memory_does_not_grow_with_the_table(table: Table) -> None:
    """Twenty times as many items need the same memory, because one page is loaded at a time."""

    def peak(total: int) -> int:
        delete_checkpoints(table, "shop", "0002_double")
        with intercept(pages(total, 100)):
            tracemalloc.start()
            report = run_work(work(lambda item, others: ()), table, Options(segments=1, page=100))
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert report.matched == total
        return most

    peak(500)  # one-time allocations do not count
    assert peak(10_000) < 1.5 * peak(500)


def test_what_went_along_with_a_parent_is_found(table: Table) -> None:
    """The parent's old type finds it, whatever its own type is."""
    put(
        table,
        thing(1, deletedAt={"N": "1"}, deletedWith={"S": "Lamp#7"}),
        thing(2, deletedAt={"N": "1"}, deletedWith={"S": "Lampion#7"}),
    )
    renaming = Work("shop", "0003", 0, "open", "Rename", rename_parent_marks("Lamp", "Light"))
    assert run_work(renaming, table).changed == 1
    assert {item["deletedWith"]["S"] for item in scanned(table).values()} == {"Light#7", "Lampion#7"}
