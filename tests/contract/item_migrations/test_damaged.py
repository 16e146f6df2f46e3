"""Errors name damaged checkpoints and states of a table with a fix, and the fix works."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dynamo_single.evolution.backfill import delete_checkpoints, run_work
from dynamo_single.exceptions import MigrationRunning, MigrationStopped
from dynamo_single.table import Table
from dynamo_single.testing import moved_time
from tests.contract.damage import damages, items_of, store
from tests.contract.item_migrations.things import DOUBLING, SMALL, doubled, put, scanned, thing
from tests.contract.robustness.crashing import Crash, crash_behind

NAME = "WORK#shop#0002_double#"
LEFT = ("itemType",)


def interrupted(table: Table) -> dict[str, dict[str, Any]]:
    """Begin the work again, and leave it half done; the checkpoints by their sort keys."""
    delete_checkpoints(table, "shop", "0002_double")
    put(table, *map(thing, range(8)))
    with crash_behind(9), pytest.raises(Crash):
        run_work(DOUBLING, table, SMALL)
    return {item["sk"]["S"]: item for item in items_of(table, "MigrationCheckpoint")}


def run_again(table: Table) -> None:
    """Run the work with ``--force`` after the lease of a killed operator has ended."""
    with moved_time(timedelta(seconds=61)):
        run_work(DOUBLING, table, replace(SMALL, repairs=True))


def test_damaged_work_is_named_and_begins_again(table: Table) -> None:
    """The work as a whole, whose item has fewest numbers in its key."""
    whole = interrupted(table)[min(interrupted(table), key=len)]
    for what, damaged in damages(whole, leave=LEFT):
        interrupted(table)
        store(table, damaged)
        with pytest.raises(MigrationStopped, match=f"its checkpoint MIGRATIONS / {NAME}.* is damaged") as raised:
            run_work(DOUBLING, table, SMALL)
        assert (what, "--force" in str(raised.value)) == (what, True)
        run_again(table)
        assert (what, scanned(table)) == (what, doubled(*range(8)))


def test_damaged_segment_is_named_and_begins_again(table: Table) -> None:
    checkpoints = interrupted(table)
    segment = max(checkpoints, key=lambda key: (len(key), "position" in checkpoints[key]))
    assert "position" in checkpoints[segment]
    for what, damaged in damages(checkpoints[segment], leave=(*LEFT, "token")):
        present = interrupted(table)
        store(table, {**damaged, "token": present[segment]["token"]})
        with pytest.raises((MigrationStopped, MigrationRunning)):
            run_work(DOUBLING, table, SMALL)
        run_again(table)
        assert (what, scanned(table)) == (what, doubled(*range(8)))


def test_damaged_segment_stops_the_next_operator(table: Table) -> None:
    """Once the lease of the other one has ended."""
    checkpoints = interrupted(table)
    whole = min(checkpoints, key=len)
    segment = max(checkpoints, key=lambda key: (len(key), "position" in checkpoints[key]))
    store(table, {**checkpoints[whole], "until": {"N": "0"}})
    store(table, {**checkpoints[segment], "position": {"S": "damaged"}})
    with pytest.raises(MigrationStopped, match=rf"checkpoint MIGRATIONS / {segment} is damaged.*--force"):
        run_work(DOUBLING, table, SMALL)


def test_damaged_checkpoints_can_be_forgotten(table: Table) -> None:
    """Reverting the migration deletes them too."""
    for what, damaged in damages(interrupted(table)[min(interrupted(table), key=len)]):
        store(table, damaged)
        assert (what, delete_checkpoints(table, "shop", "0002_double") > 0) == (what, True)
        run_work(DOUBLING, table, SMALL)
        assert scanned(table) == doubled(*range(8))
        delete_checkpoints(table, "shop", "0002_double")
