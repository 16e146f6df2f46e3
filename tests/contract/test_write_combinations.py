"""What one part of the write path means for another: blocks, tasks, versions, changes, expiry and lost answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from dynamo_single import pending, transactions
from dynamo_single.exceptions import (
    AlreadyExists,
    InvalidValue,
    NotSupported,
    StaleObject,
    UniqueViolation,
)
from dynamo_single.table import Table, get_table
from dynamo_single.testing import assert_requests, intercept, refusal
from tests.catalog.models import Coupon, Member
from tests.catalog.stocks import Ledger, Stock
from tests.contract.tables import assert_consistent, claims

pytestmark = pytest.mark.usefixtures("table")

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


# a task that outlives the block it was begun in


def outliving(work: Callable[[], Any]) -> None:
    """Runs a coroutine in a task that is begun within a block and awaited behind it."""

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
    """It would be collected by nobody: the object stays new, and can be saved outside."""
    stock = Stock(code="late")
    with assert_requests(0), pytest.raises(NotSupported, match=r"'late' cannot be written: the atomic\(\) block that"):
        outliving(stock.asave)
    assert stock._state.adding
    stock.save()
    assert Stock.objects.filter(pk="late").exists()


def test_a_block_and_a_callback_cannot_begin_in_a_block_that_has_ended() -> None:
    """Neither would ever be carried out."""

    async def begin() -> None:
        async with transactions.atomic():
            """Nothing."""

    async def call_back() -> None:
        transactions.on_commit(lambda: None)

    for work in (begin, call_back):
        with pytest.raises(NotSupported, match="has ended, and nothing can join it any more"):
            outliving(work)


def test_a_block_that_has_ended_is_in_no_readers_way() -> None:
    """What it wrote is stored by then, or was never sent."""
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
    """The error is the object's own, what was collected before them stays, and nothing is called written."""
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


def test_a_claim_that_passes_on_within_a_block_is_refused_by_its_own_name() -> None:
    """A transaction cannot free and take one claim, and the message says what can be done."""
    one = Member.objects.create(member_id="m1", email="a@example.org", badge=1)
    two = Member.objects.create(member_id="m2", email="b@example.org")
    one.badge, two.badge = None, 1
    refused = pytest.raises(NotSupported, match=r"the claim on a unique value: save the object that gives the value up")
    with refused, transactions.atomic():
        one.save()
        two.save()
    assert Member.objects.get(pk="m1").badge == 1
    assert_consistent()


# lost answers


class LostAnswer:
    """Carries one request out, and answers as DynamoDB does to botocore's next attempt at it."""

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
    """The item that is there is the block's own, so the block was carried out."""
    member = Stock(code="a", labels={"x", "y"})
    with intercept(LostAnswer("PutItem")), transactions.atomic():
        member.save()
    assert not member._state.adding
    assert Stock.objects.get(pk="a").labels == {"x", "y"}


def test_a_block_of_one_deletion_is_not_failed_by_its_own_first_attempt() -> None:
    """What was to be deleted is gone."""
    stock = Stock.objects.create(code="a")
    with intercept(LostAnswer("DeleteItem")), transactions.atomic():
        stock.delete()
    assert stock._state.adding


def test_another_writers_item_is_not_taken_for_the_blocks_own() -> None:
    """Between the two attempts somebody else replaced the item."""

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


# versions


@pytest.fixture
def outdated() -> Ledger:
    """An object that another writer has written since, with a change that is not saved."""
    Ledger.objects.create(code="l", total=1)
    mine, theirs = Ledger.objects.get(pk="l"), Ledger.objects.get(pk="l")
    theirs.total = 5
    theirs.save()
    mine.total = 9
    return mine


@pytest.mark.parametrize("name", ["save", "delete", "hard_delete"])
def test_a_deletion_that_was_refused_changes_nothing_of_what_the_object_knows(outdated: Ledger, name: str) -> None:
    """Trying again, or something else, is refused as well: nobody has looked at the other writer's change."""
    with pytest.raises(StaleObject) as refused:
        outdated.delete()
    assert (refused.value.expected, refused.value.found) == (1, 2)
    assert (outdated.version, outdated.total) == (1, 9)
    with pytest.raises(StaleObject):
        getattr(outdated, name)()
    assert Ledger.objects.get(pk="l").total == 5


def test_bulk_update_does_not_write_over_another_version(outdated: Ledger) -> None:
    """As its save(), which it stands for."""
    with pytest.raises(StaleObject) as refused:
        Ledger.objects.bulk_update([outdated], ["total"])
    assert (refused.value.expected, refused.value.found) == (1, 2)
    assert Ledger.objects.get(pk="l").total == 5


def test_bulk_update_leaves_out_what_is_gone_with_a_version_too() -> None:
    """It counts those that were there to be written."""
    gone, there = Ledger.objects.create(code="gone"), Ledger.objects.create(code="there")
    Ledger.objects.get(pk="gone").hard_delete()
    gone.total = there.total = 3
    unread = Ledger(code="never", total=3)
    assert Ledger.objects.bulk_update([gone, there, unread], ["total"]) == 1
    assert Ledger.objects.get(pk="there").total == 3


# changes that are computed of what another writer has changed


def test_what_a_change_was_computed_of_is_shown_as_it_is_by_then() -> None:
    """The next save does not write the former value back."""
    stock = Stock.objects.create(code="s", qty=1)
    Stock.objects.filter(pk="s").update(qty=100)
    stock.rank = F("qty") + 1
    stock.save()
    assert (stock.rank, stock.qty) == (101, 100)
    stock.note = "later"
    stock.save()
    assert Stock.objects.get(pk="s").qty == 100


def test_a_failed_change_does_not_bring_a_former_operand_back_either() -> None:
    """What was read on the way is known to the object as a whole, or not at all."""
    stock = Stock.objects.create(code="s", qty=1)
    Stock.objects.create(code="other", serial=5)
    Stock.objects.filter(pk="s").update(qty=100)
    stock.rank, stock.serial = F("qty") + 1, 5
    with pytest.raises(UniqueViolation):
        stock.save()
    stock.rank, stock.serial, stock.note = 7, None, "later"
    stock.save()
    assert Stock.objects.get(pk="s").qty == 100
    assert_consistent()


def test_an_operand_that_was_set_is_written_as_it_was_set() -> None:
    """Only what was not touched follows the other writer."""
    stock = Stock.objects.create(code="s", qty=1)
    Stock.objects.filter(pk="s").update(qty=100)
    stock.rank, stock.qty = F("qty") + 1, 3
    stock.save()
    found = Stock.objects.get(pk="s")
    assert (found.rank, found.qty) == (101, 3)


def test_a_move_says_that_it_computes_nothing() -> None:
    """The change that was asked for stays asked for."""
    stock = Stock.objects.create(code="s", qty=1)
    stock.qty = F("qty") + 1
    with assert_requests(0), pytest.raises(InvalidValue, match=r"move\(\) puts a new item, for which it is not comp"):
        stock.move(code="t")
    stock.save()
    assert (stock.pk, stock.qty) == ("s", 2)


# what has expired


@pytest.fixture
def expired() -> Coupon:
    """An expired object whose unique value somebody else has taken."""
    coupon = Coupon.objects.create(code="old", email="a@example.org", expires_at=LONG_AGO)
    Coupon.objects.create(code="new", email="a@example.org", expires_at=timezone.now() + timedelta(hours=1))
    return coupon


def test_an_expired_object_can_be_deleted_though_its_value_is_anothers(table: Table, expired: Coupon) -> None:
    """Its claim has expired with it, so there is none to give free."""
    assert expired.delete() == (1, {"catalog.Coupon": 1})
    assert claims(table) == {"UNIQUE#Coupon#email#a@example.org": "COUPON#new"}
    assert_consistent()


def test_an_expired_object_can_give_up_a_value_that_is_anothers(table: Table, expired: Coupon) -> None:
    """The other one keeps its claim."""
    expired.email = "b@example.org"
    expired.save()
    assert claims(table)["UNIQUE#Coupon#email#a@example.org"] == "COUPON#new"
    assert_consistent()


def test_an_expired_object_that_was_prolonged_meanwhile_is_not_deleted(table: Table) -> None:
    """Its claim would be left behind, and hold the value for nobody."""
    coupon = Coupon.objects.create(code="c", email="a@example.org", expires_at=LONG_AGO)
    other = Coupon.from_item({name: dict(value) for name, value in (coupon._stored or {}).items()})
    other.expires_at = timezone.now() + timedelta(hours=1)
    other.save()
    with pytest.raises(StaleObject, match=r"was changed by another writer since it was read \(expiresAt\)"):
        coupon.delete()
    assert_consistent()


def test_a_lost_claim_is_told_as_such(table: Table) -> None:
    """The error does not compare the object with the claim."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    Member.objects.create(member_id="m2", email="b@example.org")
    key = {"pk": {"S": "UNIQUE#Member#email#a@example.org"}, "sk": {"S": "#CLAIM"}}
    holder = {":p": {"S": "MEMBER#m2"}}
    changed = {"Key": key, "UpdateExpression": "SET ownerPk = :p", "ExpressionAttributeValues": holder}
    table.call("UpdateItem", {"TableName": table.name, **changed})
    with pytest.raises(StaleObject, match="a unique value that it holds belongs to another object by now"):
        member.hard_delete()


# times that are set by hand


def test_a_time_that_update_names_is_written_however_the_objects_are_found() -> None:
    """By their key, or by an index; a save() sets it itself, as Django's does."""
    stock = Stock.objects.create(code="s")
    for found in (Stock.objects.filter(pk="s"), Stock.objects.filter(rank=0), Stock.objects.filter(rank=0)):
        assert found.update(updated_at=LONG_AGO, qty=F("qty") + 1) == 1
        assert Stock.objects.get(pk="s").updated_at == LONG_AGO
    stock.updated_at = LONG_AGO
    stock.save(update_fields=["updated_at"])
    assert Stock.objects.get(pk="s").updated_at > LONG_AGO
