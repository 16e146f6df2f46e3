"""Counters that are spread over several items: concurrent additions are not lost, and a sum reads all items."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dynamo_single import counters
from dynamo_single.exceptions import InvalidValue
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.studios import Applause
from tests.contract.tables import everything

pytestmark = pytest.mark.usefixtures("table")


def clap(hands: int = 1, *, shards: int = 4) -> Applause:
    """Add to one of the items."""
    return counters.spread(Applause(stage="a", hands=hands), "hands", over="shard", shards=shards)


def total(shards: int = 4) -> int:
    """Return the sum of all items."""
    found: int = counters.total(Applause.objects.filter(stage="a", shard__in=range(shards)), "hands")
    return found


def test_an_addition_is_one_request_and_so_is_the_sum(table: Table) -> None:
    with assert_requests(["UpdateItem", "UpdateItem"]):
        clap(2)
        clap(3)
    with assert_requests(["BatchGetItem"]):
        assert total() == 5


def test_the_twins_send_the_same(table: Table) -> None:
    async def both() -> int:
        await counters.aspread(Applause(stage="a", hands=2), "hands", over="shard", shards=4)
        found: int = await counters.atotal(Applause.objects.filter(stage="a", shard__in=range(4)), "hands")
        return found

    with assert_requests(["UpdateItem", "BatchGetItem"]):
        assert asyncio.run(both()) == 2


def test_many_at_once_lose_nothing_and_go_to_different_items(table: Table) -> None:
    threads = [threading.Thread(target=lambda: [clap() for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total() == 160
    assert sorted(int(item["shard"]["N"]) for item in everything(table).values()) == [0, 1, 2, 3]


def test_more_shards_leave_the_sum_right(table: Table) -> None:
    for _ in range(20):
        clap(shards=2)
    for _ in range(20):
        clap(shards=8)
    assert total(8) == 40


def test_nothing_counted_is_nothing(table: Table) -> None:
    assert total() == 0


def test_what_cannot_be_spread_is_refused(table: Table) -> None:
    with pytest.raises(InvalidValue, match="takes the number of items, from 1 up, not 0"):
        clap(shards=0)
    with pytest.raises(InvalidValue, match=r"spread\(over='hands'\): catalog.Applause has no whole number"):
        counters.spread(Applause(stage="a", hands=1), "hands", over="hands", shards=2)
    with pytest.raises(InvalidValue, match="is not a number, and only numbers have a sum"):
        counters.total(Applause.objects.filter(stage="a", shard__in=[0]), "stage")
    assert everything(table) == {}
