"""Work on items: its requests, its continuation after any stop, and its operator."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamo_single import transactions
from dynamo_single.evolution.backfill import (
    Options,
    Report,
    Task,
    delete_checkpoints,
    estimate,
    rehearse,
    run_work,
    type_condition,
)
from dynamo_single.exceptions import (
    ConfigurationError,
    InvalidValue,
    MigrationIncomplete,
    MigrationRunning,
    MigrationStopped,
    NotSupported,
)
from dynamo_single.orm.requests.actions import Action, Item
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import intercept, moved_time, refusal
from tests.contract.item_migrations.things import DOUBLING, SMALL, double, doubled, is_done, put, scanned, thing, work
from tests.contract.robustness.crashing import Crash, crash_behind


def operations(sent: Sequence[SentRequest]) -> list[str]:
    """Return the operations sent, in order."""
    return [each.operation for each in sent]


def test_what_a_small_table_takes(table: Table, sent: list[SentRequest]) -> None:
    """Next to the items' requests, there is a size check, a takeover, and a checkpoint per page."""
    put(table, thing(1), thing(2, double={"N": "4"}), {**thing(3), "itemType": {"S": "Other"}})
    sent.clear()
    report = run_work(DOUBLING, table, Options(segments=1))
    assert operations(sent) == [
        "GetItem", "TransactWriteItems", "DescribeTable", "Scan", "UpdateItem", "PutItem", "PutItem",
    ]  # fmt: skip
    assert (report.scanned, report.matched, report.changed, report.before) == (5, 2, 1, False)
    assert scanned(table) == doubled(1, 2) | {("THING#000003", "#METADATA"): {**thing(3), "itemType": {"S": "Other"}}}


def test_work_that_is_done_sends_one_request(table: Table, sent: list[SentRequest]) -> None:
    """A migration with completed operations skips them."""
    put(table, thing(1))
    run_work(DOUBLING, table)
    sent.clear()
    assert run_work(DOUBLING, table).before
    assert operations(sent) == ["GetItem"]


def test_other_work_of_the_same_name_is_begun_anew(table: Table) -> None:
    """A changed migration file is not mistaken for the executed one."""
    put(table, thing(1))
    run_work(work(lambda item, others: ()), table)
    assert not run_work(replace(DOUBLING, mark="other"), table).before
    assert scanned(table) == doubled(1)


def test_a_migration_that_is_forgotten_is_begun_anew(table: Table) -> None:
    """Taking it back and applying it again is new work."""
    put(table, thing(1))
    run_work(work(lambda item, others: ()), table)
    assert is_done(table) == [True]
    assert delete_checkpoints(table, "shop", "0002_double") == 5
    assert (is_done(table), run_work(DOUBLING, table).before) == ([], False)


def test_every_segment_is_read(table: Table) -> None:
    """Several threads read the segments of a table in parallel, and together all items."""
    put(table, *map(thing, range(200)))
    report = run_work(DOUBLING, table, Options(segments=7, page=10))
    assert (report.matched, report.changed) == (200, 200)
    assert scanned(table) == doubled(*range(200))


def run_after_lease(table: Table) -> Any:
    """Run the work after the lease of a killed operator has ended."""
    with moved_time(timedelta(seconds=61)):
        return run_work(DOUBLING, table, SMALL)


def test_it_goes_on_wherever_it_ended(table: Table) -> None:
    """After a kill at any request, the next process has the same result as an undisturbed one."""
    things = [thing(number) for number in range(8)]
    put(table, *things)
    with crash_behind(None) as asked:
        run_work(DOUBLING, table, SMALL)
    for number in range(len(asked)):
        put(table, *things)
        delete_checkpoints(table, "shop", "0002_double")
        with crash_behind(number), pytest.raises(Crash):
            run_work(DOUBLING, table, SMALL)
        run_after_lease(table)
        assert scanned(table) == doubled(*range(8)), f"killed after {number} requests"


def test_what_is_done_is_not_read_again(table: Table, sent: list[SentRequest]) -> None:
    """The next run continues after the last page with a checkpoint."""
    put(table, *map(thing, range(9)))
    seen = 0

    def third_page(operation: str, params: Mapping[str, Any]) -> None:
        nonlocal seen
        seen += operation == "Scan"
        if seen == 3:
            raise Crash

    with intercept(third_page), pytest.raises(Crash):
        run_work(DOUBLING, table, SMALL)
    sent.clear()
    report = run_after_lease(table)
    assert sum(each.operation == "UpdateItem" for each in sent) < 9
    assert report.changed == 9
    assert scanned(table) == doubled(*range(9))


def test_a_second_operator_is_refused(table: Table) -> None:
    """The error names the operator and its start, and nothing changes."""
    put(table, *map(thing, range(3)))
    with crash_behind(4), pytest.raises(Crash):
        run_work(DOUBLING, table, SMALL)
    with pytest.raises(MigrationRunning, match=r":\d+ has been running .* since .*its lease ends in \d+ s") as caught:
        run_work(DOUBLING, table, SMALL)
    assert caught.value.holder.endswith(f":{os.getpid()}")


def test_a_lease_that_has_ended_is_taken_over(table: Table) -> None:
    """A minute after a kill, the next operator continues."""
    put(table, *map(thing, range(3)))
    with crash_behind(4), pytest.raises(Crash):
        run_work(DOUBLING, table, SMALL)
    with moved_time(timedelta(seconds=61)):
        run_work(DOUBLING, table, SMALL)
    assert scanned(table) == doubled(*range(3))


def test_who_was_taken_over_from_stops(table: Table) -> None:
    """A slow operator does not change checkpoints after a takeover, and its error names the reason."""
    put(table, *map(thing, range(8)))
    taken = []

    def change(item: Item, others: Mapping[Any, Item]) -> Sequence[Action]:
        if not taken:
            taken.append(run_after_lease(table))
        return double(item, others)

    with pytest.raises(MigrationRunning, match="Another operator has taken over"):
        run_work(work(change), table, SMALL)
    assert taken[0].changed == 8
    assert is_done(table) == [True]


def test_two_operators_who_begin_at_once(table: Table) -> None:
    """One of them does the work, and the other one gets an error."""
    put(table, *map(thing, range(8)))
    inside: list[Any] = []

    def another_first(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and not inside:
            inside.append(None)
            inside.append(run_work(DOUBLING, table, SMALL))

    with intercept(another_first), pytest.raises(MigrationRunning):
        run_work(DOUBLING, table, SMALL)
    assert inside[1].changed == 8


def test_an_item_that_is_written_meanwhile_is_changed_as_it_is_then(table: Table) -> None:
    """The change uses the newer value, which is kept."""
    put(table, thing(1))
    written = []

    def change(item: Item, others: Mapping[Any, Item]) -> Sequence[Action]:
        if not written:
            written.append(put(table, thing(1, number={"N": "5"})))
        return double(item, others)

    assert run_work(work(change), table, SMALL).changed == 1
    (item,) = scanned(table).values()
    assert (item["number"], item["double"]) == ({"N": "5"}, {"N": "10"})


def gone(table: Table, item: Item) -> None:
    """Delete an item."""
    table.send(Request("DeleteItem", {"Key": {"pk": item["pk"], "sk": item["sk"]}}))


def another(table: Table, item: Item) -> None:
    """Let an item be another model's."""
    put(table, {**item, "itemType": {"S": "Other"}})


@pytest.mark.parametrize("become", [gone, another])
def test_an_item_that_is_gone_meanwhile_is_let_be(table: Table, become: Any) -> None:
    """A deleted item is not recreated, and an item of another model is not changed."""
    put(table, thing(1))

    def change(item: Item, others: Mapping[Any, Item]) -> Sequence[Action]:
        become(table, item)
        return double(item, others)

    assert run_work(work(change), table, SMALL).changed == 0
    assert [item for item in scanned(table).values() if "double" in item] == []


def test_an_item_that_never_stands_still_is_a_failure(table: Table, sent: list[SentRequest]) -> None:
    """It is read again five times, and then reported with the reason."""
    put(table, thing(1))
    number = 1

    def change(item: Item, others: Mapping[Any, Item]) -> Sequence[Action]:
        nonlocal number
        number += 1
        put(table, thing(1, number={"N": str(number)}))
        return double(item, others)

    with pytest.raises(MigrationIncomplete, match="tried 6 times to change it") as caught:
        run_work(work(change), table, SMALL)
    assert (caught.value.failed, number) == (1, 7)
    assert operations(sent).count("GetItem") == 1 + 5


def refusing(*numbers: int) -> Any:
    """Return a change that fails for some things."""

    def change(item: Item, others: Mapping[Any, Item]) -> Sequence[Action]:
        if int(item["number"]["N"]) in numbers:
            raise InvalidValue(f"{item['number']['N']} cannot be doubled.")
        return double(item, others)

    return change


def test_failures_are_named_and_the_rest_is_done(table: Table) -> None:
    """The error contains the keys and reasons, and the next step."""
    put(table, *map(thing, range(8)))
    with pytest.raises(MigrationIncomplete, match="run the same command again: it checks only these items") as caught:
        run_work(work(refusing(2, 5)), table, SMALL)
    assert dict(caught.value.failures) == {
        (f"THING#00000{number}", "#METADATA"): f"{number} cannot be doubled." for number in (2, 5)
    }
    assert sum("double" in item for item in scanned(table).values()) == 6


def test_what_failed_is_tried_again_and_nothing_else(table: Table, sent: list[SentRequest]) -> None:
    """The second run reads the items that failed by their keys."""
    put(table, *map(thing, range(8)))
    with pytest.raises(MigrationIncomplete):
        run_work(work(refusing(2, 5)), table, SMALL)
    with pytest.raises(MigrationIncomplete, match="7 items were changed, and 1 could not be changed"):
        run_work(work(refusing(5)), table, SMALL)
    sent.clear()
    assert run_work(DOUBLING, table, SMALL).changed == 8
    assert operations(sent) == [
        "GetItem", "TransactWriteItems", "DescribeTable", "TransactGetItems", "GetItem", "UpdateItem", "PutItem",
        "PutItem",
    ]  # fmt: skip
    assert scanned(table) == doubled(*range(8))


def test_of_many_failures_the_first_ones_are_kept(table: Table) -> None:
    """All are counted, up to a hundred per segment are named, and the next run checks all items again."""
    put(table, *map(thing, range(150)))
    with pytest.raises(MigrationIncomplete, match="and 110 more") as caught:
        run_work(work(refusing(*range(120))), table, Options(segments=1))
    assert (caught.value.failed, len(caught.value.failures)) == (120, 100)
    assert run_work(DOUBLING, table).changed == 120
    assert scanned(table) == doubled(*range(150))


def test_what_the_table_refuses_ends_the_work(table: Table) -> None:
    """No item is skipped: the error names the next step, and the next operator does not wait."""
    put(table, *map(thing, range(8)))
    updates = 0

    def refuse(operation: str, params: Mapping[str, Any]) -> None:
        nonlocal updates
        updates += operation == "UpdateItem"
        if operation == "UpdateItem" and updates == 5:
            raise refusal(operation, "AccessDeniedException")

    with intercept(refuse), pytest.raises(MigrationStopped, match="Repeat the command to resume"):
        run_work(DOUBLING, table, SMALL)
    assert run_work(DOUBLING, table, SMALL).matched == 8
    assert scanned(table) == doubled(*range(8))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(table: Table, number: signal.Signals) -> None:
    """The current item is the last one, the next run continues after it, and the signal's handler is restored."""
    put(table, *map(thing, range(8)))
    before = signal.getsignal(number)
    changed = 0

    def change(item: Item, others: Mapping[Any, Item]) -> Sequence[Action]:
        nonlocal changed
        changed += 1
        if changed == 5:
            os.kill(os.getpid(), number)
            while signal.getsignal(number) is not before:  # the main thread hears of it between two instructions
                time.sleep(0.001)
        return double(item, others)

    with pytest.raises(MigrationStopped, match=r"stopped after \d+ of about \d+ items"):
        run_work(work(change), table, SMALL)
    assert signal.getsignal(number) is before
    assert changed == 5
    assert run_work(DOUBLING, table).changed == 8
    assert scanned(table) == doubled(*range(8))


def test_progress(table: Table) -> None:
    """First the estimate is shown, then the sums after each page."""
    put(table, *map(thing, range(8)))
    told: list[Report] = []
    run_work(DOUBLING, table, replace(SMALL, progress=told.append))
    assert (told[0].scanned, told[0].expected, told[0].seconds_left) == (0, 10, None)
    assert [each.matched for each in told] == sorted(each.matched for each in told)
    assert (told[-1].scanned, told[-1].matched, told[-1].changed, told[-1].failed) == (10, 8, 8, 0)
    assert told[-1].read_units > 0 < told[-1].write_units
    assert told[-1].seconds_left == 0


def test_the_size_of_a_table(table: Table) -> None:
    """It is DynamoDB's own count, with the cost of reading it."""
    put(table, *map(thing, range(8)))
    assert estimate(table).items == 8
    assert "Reading them takes about" in str(estimate(table))


@pytest.mark.parametrize("options", [{"segments": 0}, {"segments": 65}, {"page": 0}, {"lease": 0}, {"max_wcu": 0}])
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    """The error is raised before any request is sent."""
    with pytest.raises(ConfigurationError):
        Options(**options)


def test_not_within_a_block(table: Table) -> None:
    """A block's writes are not stored yet, and work on items cannot be rolled back."""
    with transactions.atomic(), pytest.raises(NotSupported, match="Call it outside"):
        run_work(DOUBLING, table)


def test_a_dry_run_writes_nothing(table: Table, sent: list[SentRequest]) -> None:
    """It reads like the work, and shows items before and after, and failures."""
    put(table, *map(thing, range(8)))
    sent.clear()
    found = rehearse(Task(type_condition("Thing"), refusing(3, 4, 5)), table, sample=2)
    assert operations(sent) == ["Scan"]
    assert (found.scanned, found.matched, found.changing, found.complete) == (8, 8, 5, True)
    assert [len(found.samples), len(found.failures)] == [2, 2]
    ((key, before),) = found.samples[0].before.items()
    assert (before, found.samples[0].after[key]) == (scanned(table)[key], {**scanned(table)[key], **twice(before)})


def twice(item: Item | None) -> dict[str, Any]:
    """Return the change of a thing."""
    assert item is not None
    return {"double": {"N": str(2 * int(item["number"]["N"]))}}


def test_a_dry_run_of_a_large_table_ends(table: Table, sent: list[SentRequest]) -> None:
    """After about as many items as it may read."""
    put(table, *map(thing, range(50)))
    found = rehearse(DOUBLING.task, table, most=10)
    assert (found.scanned, found.complete) == (10, False)


def test_a_place_that_is_deleted_meanwhile(table: Table) -> None:
    """A segment continues after the last item of its page, even if the item is deleted."""
    put(table, *map(thing, range(100)))
    seen: set[str] = set()

    def change(item: Item, others: Mapping[Any, Item]) -> Sequence[Action]:
        seen.add(item["pk"]["S"])
        return ()

    def deleting(operation: str, params: Mapping[str, Any]) -> None:
        start = params.get("ExclusiveStartKey")
        if operation == "Scan" and start and len(deleted) < 3:
            deleted.append(start)
            table.send(Request("DeleteItem", {"Key": start}))

    deleted: list[Any] = []
    with intercept(deleting):
        run_work(work(change), table, Options(segments=3, page=5))
    assert len(deleted) == 3
    assert len(seen) == 100
