"""The state of an object after its write, also if it was never loaded or the write was retried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db.models import F

from dynamo_single import models, transactions
from dynamo_single.table import Table
from dynamo_single.table.http.faults import refusal
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.chat import ChatInvitation, ChatMembership, ChatProfile, ChatServer, ChatUser
from tests.catalog.models import Firm
from tests.catalog.stocks import Stock
from tests.contract.tables import stored
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

#: The indexes that find a letter by each of its references.
INDEXES = {"sender": "gs1", "receiver": "gs2"}


def once_before(operation: str, work: Callable[[], object]) -> Any:
    """Call a function before the first request of a kind."""
    begun: list[str] = []

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked == operation and not begun:
            begun.append(asked)
            work()

    return intercept(interceptor)


def test_an_object_that_was_not_read_is_stored_once_it_is_saved_without_a_change() -> None:
    """The stored item is the same, so the object counts as stored."""
    Firm.objects.create(firm_id="f", name="Firm", stock="S")
    firm = Firm(firm_id="f", name="Firm", stock="S")
    with assert_requests(["GetItem"]):
        firm.save(force_update=True)
    with assert_requests(["DeleteItem"]):
        assert firm.delete() == (1, {"catalog.Firm": 1})


def test_a_computed_value_that_stays_the_same_takes_the_place_of_its_expression(table: Table) -> None:
    """Another attribute is written, and the next save does not compute again."""
    stock = Stock.objects.create(code="s", rank=3)
    stock.rank, stock.note = F("rank") + 0, "n"
    stock.save()
    assert (stock.rank, stock.note) == (3, "n")
    assert stored(table)["STOCK#s"]["rank"] == {"N": "3"}


def test_a_change_of_an_object_that_was_not_read_is_computed_again() -> None:
    """Another process has changed the operand; the object shows the new result."""
    Stock.objects.create(code="s", rank=3)
    stock = Stock(code="s", rank=F("rank") + 1)
    with once_before("UpdateItem", lambda: Stock.objects.filter(pk="s").update(rank=10)):
        stock.save(update_fields=["rank"])
    assert stock.rank == 11
    assert Stock.objects.get(pk="s").rank == 11


def test_an_operand_that_another_writer_changes_is_not_written_back() -> None:
    """The retry uses the new value, which is kept and shown."""
    Stock.objects.create(code="s", qty=4)
    stock = Stock.objects.get(pk="s")
    stock.rank = F("qty") + 1
    with once_before("UpdateItem", lambda: Stock.objects.filter(pk="s").update(qty=5)):
        stock.save()
    found = Stock.objects.get(pk="s")
    assert (found.qty, found.rank) == (stock.qty, stock.rank) == (5, 6)


@pytest.mark.parametrize("read", [True, False], ids=["read", "not read"])
def test_an_operand_that_was_set_is_written(read: bool) -> None:
    """An assigned operand is written, although another process has changed it since."""
    Stock.objects.create(code="s", qty=4)
    stock = Stock.objects.get(pk="s") if read else Stock(code="s")
    stock.qty, stock.rank = 7, F("qty") + 1
    with once_before("UpdateItem", lambda: Stock.objects.filter(pk="s").update(qty=5)):
        stock.save(update_fields=["qty", "rank"])
    found = Stock.objects.get(pk="s")
    assert (found.qty, found.rank) == (stock.qty, stock.rank) == (7, 6)


# copies of other objects' attributes


@pytest.fixture
def john(table: Table) -> ChatUser:
    """Return a person whose name is copied."""
    return ChatUser.objects.create(user_id="1", username="John")


def test_a_reference_that_stays_the_same_keeps_its_copy_where_an_object_was_not_read(john: ChatUser) -> None:
    """The object has the stored copy."""
    ChatInvitation.objects.create(invitation_id="i", user=john)
    invitation = ChatInvitation(invitation_id="i", user_id="1")
    with assert_requests(["GetItem"]):
        invitation.save(update_fields=["user"])
    assert invitation.username == "John"
    assert ChatInvitation.objects.get(pk="i").username == "John"


def test_an_object_is_put_over_another_with_the_same_reference(john: ChatUser) -> None:
    """The failed creation reads the source, and the overwrite does not read it again."""
    ChatInvitation.objects.create(invitation_id="i", user=john)
    invitation = ChatInvitation(invitation_id="i", user_id="1")
    with assert_requests(["GetItem", "TransactWriteItems"]):
        ChatInvitation.objects.bulk_create([invitation], update_conflicts=True)
    assert invitation.username == "John"
    ChatServer.objects.create(server_id="s", name="S")
    ChatMembership.objects.create(server_id="s", user=john)
    membership = ChatMembership(server_id="s", user_id="1", role="Owner")
    with assert_requests(["GetItem", "TransactWriteItems", "UpdateItem"]):
        ChatMembership.objects.bulk_create([membership], update_conflicts=True)
    found = ChatMembership.objects.get(pk=membership.pk)
    assert (membership.username, found.username, found.role) == ("John", "John", "Owner")


def test_a_holder_that_refers_to_one_source_twice_follows_in_one_write(john: ChatUser) -> None:
    """One action sets both copies, since a transaction accepts one per item."""
    references = {
        name: models.ReferenceAttribute(ChatUser, on_delete=models.DO_NOTHING, related_name="+")
        for name in ("sender", "receiver")
    }
    copies = {f"{name}_name": models.CopiedAttribute(name, "username") for name in references}
    keys = {name: models.IndexKey(index, f"{name}#{{{name}_id}}", "{letter_id}") for name, index in INDEXES.items()}
    with forgotten():
        letters = declare(
            "Letter",
            ("LETTER#{letter_id}", "#METADATA"),
            keys,
            letter_id=models.UnicodeAttribute(),
            **references,
            **copies,
        ).objects
        letters.create(letter_id="l", sender=john, receiver=john)
        john.username = "Jack"
        john.save()
        letter = letters.get(pk="l")
    assert (letter.sender_name, letter.receiver_name) == ("Jack", "Jack")


def test_a_source_with_copies_due_can_be_deleted_in_the_block_that_looks_for_them(john: ChatUser) -> None:
    """The copies were due after the block, and no copy is left."""
    for start in range(0, 120, 40):
        with transactions.atomic():
            for number in range(start, start + 40):
                ChatProfile(user_id="1", kind=str(number)).save()
    john.username = "Jack"

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems":
            raise refusal(operation, "ValidationException")

    with intercept(interceptor), pytest.raises(Exception, match="some copies of it are not updated yet"):
        john.save()
    john.refresh_from_db()
    with transactions.atomic():
        john.save()
        john.hard_delete()
    assert not ChatUser.objects.filter(pk="1").exists()
