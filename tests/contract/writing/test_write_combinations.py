"""Blocks in combination with tasks, bulk operations, claims and lost responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db.models import F

from dynamo_single import transactions
from dynamo_single.exceptions import AlreadyExists, NotSupported, PendingWrite, StaleObject, UniqueViolation
from dynamo_single.orm.requests import atomic_block as pending
from dynamo_single.table import get_table
from dynamo_single.testing import assert_requests, intercept, refusal
from tests.catalog.chat import ChatChannel, ChatServer
from tests.catalog.models import Member
from tests.catalog.stocks import Stock
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")


# a task that continues after its block


def outliving(work: Callable[[], Any]) -> None:
    """Run a coroutine in a task that starts within a block and ends after it."""

    async def run() -> None:
        ended = asyncio.Event()

        async def late() -> None:
            await ended.wait()
            await work()

        async with transactions.atomic():
            task = asyncio.create_task(late())
        ended.set()
        await task

    asyncio.run(run())


def test_a_write_that_comes_too_late_for_its_block_is_refused() -> None:
    """No block would send the write, so the object stays new and can be saved outside."""
    stock = Stock(code="late")
    with assert_requests(0), pytest.raises(NotSupported, match=r"'late' cannot be written: the atomic\(\) block that"):
        outliving(stock.asave)
    assert stock._state.adding
    stock.save()
    assert Stock.objects.filter(pk="late").exists()


def test_a_block_and_a_callback_cannot_begin_in_a_block_that_has_ended() -> None:
    """No block would execute them."""

    async def begin() -> None:
        async with transactions.atomic():
            """Nothing."""

    async def call_back() -> None:
        transactions.on_commit(lambda: None)

    for work in (begin, call_back):
        with pytest.raises(NotSupported, match="has ended, so that no write can join it"):
            outliving(work)


def test_a_block_that_has_ended_is_in_no_readers_way() -> None:
    """Its writes are stored, or were never sent."""
    found: list[bool] = []

    async def read() -> None:
        found.append(await Stock.objects.filter(pk="a").aexists())

    async def run() -> None:
        ended = asyncio.Event()

        async def late() -> None:
            await ended.wait()
            await read()

        async with transactions.atomic():
            await Stock.objects.acreate(code="a")
            task = asyncio.create_task(late())
        ended.set()
        await task

    asyncio.run(run())
    assert found == [True]


# what a block takes back


def test_many_writes_that_fail_within_a_block_leave_nothing_of_themselves() -> None:
    """The object's own error is raised, earlier writes stay in the block, and no object counts as written."""
    Stock.objects.create(code="x")
    new = [Stock(code="n1", serial=1), Stock(code="x")]
    with transactions.atomic():
        stock = Stock.objects.get(pk="x")
        stock.qty = 5
        stock.save()
        with pytest.raises(NotSupported, match="'x' cannot be written in this block"):
            Stock.objects.bulk_create(new)
    assert [(each.code, each.qty) for each in Stock.objects.all()] == [("x", 5)]
    assert [each._state.adding for each in new] == [True, True]
    assert_consistent()


def test_a_discarded_inner_block_does_not_bind_the_outer_one_to_its_table() -> None:
    """A block that has collected nothing is of no table."""
    with transactions.atomic():
        with pytest.raises(ValueError, match="x"), transactions.atomic():
            Stock.objects.create(code="x")
            raise ValueError("x")
        block = pending.current()
        assert block is not None
        assert block.alias is None


def test_a_partition_with_a_pending_counter_is_not_read() -> None:
    """The parent's item is in it, with a number that is not yet what the block makes of it."""
    server = ChatServer.objects.create(server_id="s", name="S")
    with pytest.raises(PendingWrite, match="'c' is written in this"), transactions.atomic():
        ChatChannel.objects.create(channel_id="c", server=server)
        ChatServer.objects.prefetch_related("members").get(pk="s")
    assert ChatServer.objects.prefetch_related("members").get(pk="s").channel_count == 0


def badges() -> dict[str, int | None]:
    """Return the owners of the unique numbers."""
    return {each.member_id: each.badge for each in Member.objects.all()}


@pytest.fixture
def pair() -> tuple[Member, Member]:
    """Two members, each with a badge."""
    one = Member.objects.create(member_id="m1", email="a@example.org", badge=1)
    return one, Member.objects.create(member_id="m2", email="b@example.org", badge=2)


@pytest.mark.parametrize("first", [0, 1])
def test_a_unique_value_passes_on_within_a_block(pair: tuple[Member, Member], first: int) -> None:
    """The order of the saves does not matter: the transaction contains one action on the claim."""
    pair[0].badge, pair[1].badge = None, 1
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        pair[first].save()
        pair[1 - first].save()
    assert len(sent[0].params["TransactItems"]) == 4  # the two objects, the transferred claim, and the released one
    assert badges() == {"m1": None, "m2": 1}
    assert_consistent()


def test_two_objects_exchange_their_unique_values_within_a_block(pair: tuple[Member, Member]) -> None:
    pair[0].badge, pair[1].badge = 2, 1
    with transactions.atomic():
        pair[0].save()
        pair[1].save()
    assert badges() == {"m1": 2, "m2": 1}
    assert_consistent()


@pytest.mark.parametrize("gone", ["delete", "hard_delete"])
def test_what_is_deleted_passes_its_unique_values_on_within_a_block(pair: tuple[Member, Member], gone: str) -> None:
    with transactions.atomic():
        getattr(pair[0], gone)()
        Member.objects.create(member_id="m3", email="A@example.org", badge=1)
    assert badges() == {"m3": 1, "m2": 2}
    assert_consistent()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_a_unique_value_passes_on_to_one_object_only(pair: tuple[Member, Member], order: tuple[int, ...]) -> None:
    """A second object that takes the value within the block raises an error before any request is sent."""
    three = [*pair, Member(member_id="m3", email="c@example.org")]
    three[0].badge, three[1].badge, three[2].badge = None, 1, 1
    with assert_requests(0), pytest.raises(UniqueViolation, match="badge"), transactions.atomic():
        for place in order:
            three[place].save()
    assert badges() == {"m1": 1, "m2": 2}


@pytest.mark.parametrize(
    ("first", "error", "said"), [(0, StaleObject, "m1.* changed"), (1, UniqueViolation, "Another .* badge 1")]
)
def test_a_unique_value_that_another_writer_has_by_now_does_not_pass_on(
    pair: tuple[Member, Member], first: int, error: type[Exception], said: str
) -> None:
    """Nothing is written: the releasing object is stale, and the error of the taking object names the other owner."""
    Member.objects.filter(pk="m1").update(badge=None)
    Member.objects.create(member_id="m3", email="c@example.org", badge=1)
    pair[0].badge, pair[1].badge = None, 1
    with pytest.raises(error, match=said), transactions.atomic():
        pair[first].save()
        pair[1 - first].save()
    assert badges() == {"m1": None, "m2": 2, "m3": 1}
    assert_consistent()


# lost responses


class LostAnswer:
    """Execute one request, and respond as DynamoDB does to botocore's next attempt."""

    def __init__(self, operation: str, *, change: Callable[[], Any] | None = None) -> None:
        self.operation = operation
        self.change = change
        self.done = False

    def __call__(self, asked: str, params: Mapping[str, Any]) -> None:
        if self.done or asked != self.operation:
            return
        self.done = True
        get_table().call(asked, params)
        if self.change is not None:
            self.change()
        again = {"RetryAttempts": 1}
        try:
            get_table().call(asked, params)
        except Exception as error:
            found: Any = getattr(error, "response", {}).get("Item")
            item = {} if found is None else {"Item": found}
            raise refusal(asked, "ConditionalCheckFailedException", ResponseMetadata=again, **item) from error


def test_a_block_of_one_creation_is_not_failed_by_its_own_first_attempt() -> None:
    """The existing item is the block's own, so the block was executed."""
    member = Stock(code="a", labels={"x", "y"})
    with intercept(LostAnswer("PutItem")), transactions.atomic():
        member.save()
    assert not member._state.adding
    assert Stock.objects.get(pk="a").labels == {"x", "y"}


def test_a_block_of_one_deletion_is_not_failed_by_its_own_first_attempt() -> None:
    """The object is already deleted."""
    stock = Stock.objects.create(code="a")
    with intercept(LostAnswer("DeleteItem")), transactions.atomic():
        stock.delete()
    assert stock._state.adding


def test_a_deletion_is_counted_though_its_answer_was_lost() -> None:
    """An object that is missing at the second attempt was deleted by the first one."""
    stock = Stock.objects.create(code="a")
    with intercept(LostAnswer("DeleteItem")):
        assert stock.delete() == (1, {"catalog.Stock": 1})
    assert stock._stored is None


def test_another_writers_item_is_not_taken_for_the_blocks_own() -> None:
    """Between the two attempts, another process has replaced the item."""

    def replace() -> None:
        Stock.objects.filter(pk="a").update(qty=9)

    stock = Stock(code="a")
    with pytest.raises(AlreadyExists), intercept(LostAnswer("PutItem", change=replace)), transactions.atomic():
        stock.save()
    assert stock._state.adding


@pytest.mark.parametrize("operation", ["UpdateItem", "TransactWriteItems"])
def test_a_sum_in_a_block_of_its_own_is_a_transaction(operation: str) -> None:
    """Its token keeps a repeated request from adding twice; a change that adds nothing is half as dear."""
    stock = Stock.objects.create(code="a", qty=1)
    adds = operation == "TransactWriteItems"
    with assert_requests([operation]), transactions.atomic():
        stock.qty = F("qty") + 1 if adds else 2
        stock.save()
    assert stock.qty == 2
