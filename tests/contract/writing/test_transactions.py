"""``transactions.atomic()`` on a real engine: a block is one request, and rejects anything that does not fit."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models import Q
from django.db.transaction import TransactionManagementError

from dynamo_single import transactions
from dynamo_single.exceptions import (
    AlreadyExists,
    ConditionNotMet,
    Conflict,
    InvalidValue,
    NotSupported,
    OutcomeUnknown,
    PendingWrite,
    StaleObject,
    TokenReused,
    UniqueViolation,
)
from dynamo_single.table import SentRequest
from dynamo_single.testing import assert_requests, fault, intercept, refuse
from project.directory.models import Company, Person
from tests.catalog.chat import ChatChannel, ChatServer
from tests.catalog.models import Order

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def acme() -> Company:
    """A stored company."""
    return Company.objects.create(company_id="company-acme", name="Acme")


def person(company: Company, name: str, **values: Any) -> Person:
    """Return an unsaved person."""
    return Person(company=company, person_id=f"person-{name}", name=name, **values)


def test_a_block_is_one_request(acme: Company) -> None:
    """One TransactWriteItems sends all writes of a block at its end."""
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        person(acme, "Mike", email="mike@example.com").save()
        acme.name = "Acme Corp"
        acme.save()
        Order.objects.create(customer="a", number=1)
        assert sent == []
    assert len(sent[0].params["TransactItems"]) == 4  # the claim on the address is the fourth
    assert Company.objects.get(pk=acme.pk).name == "Acme Corp"
    assert Person.objects.get(person_id="person-Mike").email == "mike@example.com"


def test_one_write_is_a_plain_request() -> None:
    """A block of one action needs no transaction."""
    with assert_requests(["PutItem"]), transactions.atomic():
        Order.objects.create(customer="a", number=1)


def test_an_empty_block_sends_nothing() -> None:
    """A block without writes does not send a request."""
    with assert_requests(0), transactions.atomic():
        pass


def test_an_exception_discards_everything(acme: Company) -> None:
    """The objects are in their former state, so they can be saved again, and no request is sent."""
    order = Order(customer="a", number=1)
    with assert_requests(0), pytest.raises(RuntimeError), transactions.atomic():
        order.save()
        acme.name = "Acme Corp"
        acme.save()
        raise RuntimeError
    assert order._state.adding
    order.save()
    acme.save()
    assert (Order.objects.get(customer="a", number=1).status, Company.objects.get(pk=acme.pk).name) == (
        "open",
        "Acme Corp",
    )


def test_soft_delete_that_is_discarded_leaves_the_object_live(acme: Company) -> None:
    """The discarded deletion is also removed from the object."""
    with pytest.raises(RuntimeError), transactions.atomic():
        acme.delete()
        raise RuntimeError
    assert acme.deleted_at is None
    acme.name = "Acme Corp"
    acme.save()
    assert Company.objects.get(pk=acme.pk).name == "Acme Corp"


def test_an_inner_block_joins_the_outer_one() -> None:
    """There is one transaction, sent when the outermost block ends."""
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        Order.objects.create(customer="a", number=1)
        with transactions.atomic():
            Order.objects.create(customer="a", number=2)
        assert sent == []


def test_the_exception_of_an_inner_block_discards_its_own_writes() -> None:
    """If the outer block catches the exception, it still sends its own writes."""
    with transactions.atomic():
        Order.objects.create(customer="a", number=1)
        with pytest.raises(RuntimeError), transactions.atomic():
            Order.objects.create(customer="a", number=2)
            raise RuntimeError
    assert [order.number for order in Order.objects.filter(customer="a")] == [1]


def test_a_function_is_a_block() -> None:
    """Each call of the decorated function is a separate block."""

    @transactions.atomic
    def order_two(customer: str) -> None:
        Order.objects.create(customer=customer, number=1)
        Order.objects.create(customer=customer, number=2)

    with assert_requests(["TransactWriteItems", "TransactWriteItems"]):
        order_two("a")
        order_two("b")


def test_asynchronous_blocks(table: Any) -> None:
    """``async with`` and coroutine functions collect what their a-methods write."""

    @transactions.atomic
    async def order_one() -> None:
        await Order.objects.acreate(customer="a", number=3)
        await Order.objects.acreate(customer="a", number=4)

    async def write() -> None:
        async with transactions.atomic():
            await Order.objects.acreate(customer="a", number=1)
            await Order(customer="a", number=2).asave()
        await order_one()

    with assert_requests(["TransactWriteItems", "TransactWriteItems"]):
        asyncio.run(write())


def test_a_failed_block_changes_nothing(acme: Company) -> None:
    """If one condition does not hold, none of the writes is in the table."""
    Order.objects.create(customer="a", number=1)
    acme.name = "Acme Corp"
    with pytest.raises(AlreadyExists, match=r"catalog.Order with pk 'a~~1' already exists"), transactions.atomic():
        acme.save()
        Order.objects.create(customer="a", number=1)
    assert Company.objects.get(pk=acme.pk).name == "Acme"
    acme.save()
    assert Company.objects.get(pk=acme.pk).name == "Acme Corp"


def test_a_taken_value_is_told_by_its_object(acme: Company) -> None:
    """A unique value of another object cancels the block with the error that a single save has."""
    person(acme, "Mike", email="m@example.com").save()
    with pytest.raises(UniqueViolation) as caught, transactions.atomic():
        Order.objects.create(customer="a", number=1)
        person(acme, "Mary", email="M@example.com").save()
    assert (caught.value.label, caught.value.field) == ("directory.Person", "email")
    assert isinstance(caught.value, IntegrityError)
    assert not Order.objects.filter(customer="a").exists()


def test_an_object_that_another_writer_deleted(acme: Company) -> None:
    """An outdated object cancels the block with ``StaleObject``."""
    Company.objects.get(pk=acme.pk).hard_delete()
    acme.name = "Acme Corp"
    with pytest.raises(StaleObject, match="was deleted since it was read"), transactions.atomic():
        acme.save()
        Order.objects.create(customer="a", number=1)


READS = [
    lambda acme: Company.objects.get(pk=acme.pk),
    lambda acme: acme.refresh_from_db(),
    lambda acme: Company.objects.in_bulk([acme.pk, "company-other"]),
    lambda acme: list(Company.objects.filter(name="Acme")),
    lambda acme: list(Company.objects.filter(name="Zenith")),
    lambda acme: Company.objects.filter(name__startswith="Z").count(),
    lambda acme: list(Company.objects.filter(Q(pk="company-other") | Q(name="Acme"))),
    lambda acme: list(Order.objects.allow_scan()),
    lambda acme: list(Company.objects.prefetch_related("people").filter(pk=acme.pk)),
    lambda acme: Company.objects.page(5),
    lambda acme: transactions.read(Company.objects.filter(pk=acme.pk)),
]


@pytest.mark.parametrize("read", READS)
def test_a_read_of_what_is_pending_raises(acme: Company, read: Any) -> None:
    """A read that would miss the block's own writes raises an error before it sends a request."""
    acme.name = "Zenith"
    with assert_requests(0), pytest.raises(PendingWrite, match="written in this") as caught, transactions.atomic():
        acme.save()
        read(acme)
    assert isinstance(caught.value, TransactionManagementError)


def test_what_a_block_creates_can_be_got_within_it() -> None:
    """The primary key returns the pending object without a request, and references find it."""
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        Company.objects.create(company_id="new", name="New")
        Person.objects.create(company_id="new", person_id="p", name="P")
        found = Company.objects.get(pk="new")
        assert (found.name, found._state.adding) == ("New", False)
        assert Person.objects.get(pk="new~~p").company.name == "New"
        with pytest.raises(Company.DoesNotExist):
            Company.objects.get(pk="new", name="Other")
        found.refresh_from_db()


def test_what_a_block_creates_is_not_listed_or_counted_within_it() -> None:
    """DynamoDB would omit the pending object from any list or count."""
    with pytest.raises(PendingWrite), transactions.atomic():
        Company.objects.create(company_id="new", name="New")
        Company.objects.filter(pk="new").count()
    with pytest.raises(PendingWrite), transactions.atomic():
        Company.objects.create(company_id="new", name="New")
        list(Company.objects.filter(name__startswith="N"))


def test_what_an_inner_block_took_back_is_not_there() -> None:
    """The discarded creation is nothing that the outer block puts."""
    with transactions.atomic():
        with pytest.raises(ValueError, match="x"), transactions.atomic():
            Company.objects.create(company_id="new", name="New")
            raise ValueError("x")
        assert not Company.objects.filter(pk="new").exists()


def test_a_pending_item_is_named_by_its_own_object() -> None:
    """The error names a saved parent itself, even if a child counts in it."""
    server = ChatServer.objects.create(server_id="s", name="S")
    with pytest.raises(PendingWrite, match=r"catalog\.ChatServer with pk 's' is written"), transactions.atomic():
        server.name = "T"
        server.save()
        ChatChannel.objects.create(channel_id="c", server=server)
        ChatServer.objects.get(pk="s")


def test_a_pending_item_that_is_written_along_is_named() -> None:
    """If a parent only counts, the error names its key after the written child."""
    server = ChatServer.objects.create(server_id="s", name="S")
    with pytest.raises(PendingWrite, match=r"'c' is written in this.* and with it the item pk="), transactions.atomic():
        ChatChannel.objects.create(channel_id="c", server=server)
        ChatServer.objects.get(pk="s")


def test_other_reads_see_the_table(acme: Company) -> None:
    """Reads of other objects are allowed."""
    with transactions.atomic():
        acme.name = "Zenith"
        acme.save()
        assert list(Company.objects.filter(name__startswith="B")) == []
        assert not Order.objects.filter(customer="a").exists()
        assert list(Person.objects.filter(person_id="person-1")) == []


def test_reading_a_unique_value_that_is_pending_raises(acme: Company) -> None:
    """A claim is read like any item."""
    with pytest.raises(PendingWrite), transactions.atomic():
        person(acme, "Mike", email="m@example.com").save()
        person(acme, "Mary", email="m@example.com").validate_unique()


def test_an_item_is_written_once(acme: Company) -> None:
    """The second write of an item raises an error that names both objects."""
    with pytest.raises(NotSupported, match="pk 'company-acme' cannot be written in this"), transactions.atomic():
        acme.name = "Zenith"
        acme.save()
        acme.name = "Apex"
        acme.save()


def test_more_than_a_hundred_actions_are_refused() -> None:
    """The limit is checked before any request is sent."""
    with assert_requests(0), pytest.raises(NotSupported, match="101 actions"), transactions.atomic():
        for number in range(101):
            Order.objects.create(customer="a", number=number)


def test_more_than_four_megabytes_are_refused() -> None:
    """The total size is checked before any request is sent."""
    with assert_requests(0), pytest.raises(NotSupported, match="4194304"), transactions.atomic():
        for number in range(12):
            Order.objects.create(customer="a", number=number, status="x" * 380_000)


def test_pynamodbs_own_calls_are_refused(acme: Company) -> None:
    """They bypass the block, so they raise an error."""
    with pytest.raises(NotSupported, match="ignore atomic"), transactions.atomic():
        list(Person.query("COMPANY#company-acme"))


def test_callbacks_follow_the_commit(acme: Company) -> None:
    """``on_commit`` runs after the writes, in order; not for a discarded inner block; at once outside of blocks."""
    called: list[str] = []
    with transactions.atomic():
        transactions.on_commit(lambda: called.append(f"first, with {Order.objects.filter(customer='a').count()}"))
        with pytest.raises(RuntimeError), transactions.atomic():
            transactions.on_commit(lambda: called.append("never"))
            raise RuntimeError
        Order.objects.create(customer="a", number=1)
        transactions.on_commit(lambda: called.append("second"))
        assert called == []
    transactions.on_commit(lambda: called.append("at once"))
    assert called == ["first, with 1", "second", "at once"]


def test_no_callback_after_a_failure() -> None:
    """A block that cannot be sent does not call callbacks."""
    Order.objects.create(customer="a", number=1)
    with pytest.raises(AlreadyExists), transactions.atomic():
        transactions.on_commit(lambda: pytest.fail("called"))
        Order.objects.create(customer="a", number=1)


def test_a_conflict_is_waited_out_with_the_same_token(sent: list[SentRequest]) -> None:
    """Another transaction in the way is no error, and DynamoDB carries the block out once."""
    reasons = [{"Code": "TransactionConflict", "Message": "busy"}, {"Code": "None"}]
    with refuse("TransactionCanceledException", times=2, CancellationReasons=reasons), transactions.atomic():
        Order.objects.create(customer="a", number=1)
        Order.objects.create(customer="a", number=2)
    assert [request.operation for request in sent] == ["TransactWriteItems"] * 3
    assert len({request.params["ClientRequestToken"] for request in sent}) == 1


def test_a_conflict_that_does_not_end_is_an_error(monkeypatch: Any) -> None:
    """After the last attempt, the block fails and its objects are not stored."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0)
    reasons = [{"Code": "TransactionConflict", "Message": "busy"}, {"Code": "None"}]
    order = Order(customer="a", number=1)
    refused = refuse("TransactionCanceledException", CancellationReasons=reasons)
    with refused, pytest.raises(Conflict), transactions.atomic():
        order.save()
        Order.objects.create(customer="a", number=2)
    assert order._state.adding


def test_an_answer_that_was_lost() -> None:
    """If a block was executed without a response, its token allows a retry."""

    def place() -> None:
        with transactions.atomic(token="order-1"):
            Order.objects.create(customer="a", number=1)
            Order.objects.create(customer="a", number=2)

    place()
    place()
    assert Order.objects.filter(customer="a").count() == 2


def test_lost_answer_of_block_names_its_token() -> None:
    """A caller with the token executes the block only once."""

    def place() -> None:
        with transactions.atomic(token="order-3"):
            Order.objects.create(customer="a", number=1)
            Order.objects.create(customer="a", number=2)

    with (
        fault("lost answer", operation="TransactWriteItems"),
        pytest.raises(OutcomeUnknown, match="its token 'order-3'"),
    ):
        place()
    place()
    assert Order.objects.filter(customer="a").count() == 2


def test_a_token_with_other_contents_is_refused() -> None:
    """A token stands for one block and no other."""
    with transactions.atomic(token="order-2"):
        Order.objects.create(customer="a", number=1)
    with pytest.raises(TokenReused, match="other contents"), transactions.atomic(token="order-2"):
        Order.objects.create(customer="a", number=2)


@pytest.mark.parametrize("token", ["", "x" * 37, 4711])
def test_a_token_of_the_wrong_length_or_kind_is_refused(token: Any) -> None:
    """DynamoDB takes 1 to 36 characters."""
    with pytest.raises(InvalidValue, match="1 to 36"):
        transactions.atomic(token=token)


def test_an_inner_block_has_no_token() -> None:
    """Only the outermost block has a token."""
    with pytest.raises(NotSupported, match="outermost"), transactions.atomic(), transactions.atomic(token="t"):
        pass


def test_what_is_required_holds_or_nothing_is_written(acme: Company) -> None:
    """``require()`` lets the block depend on an object that it does not write."""
    with transactions.atomic():
        transactions.require(acme, Q(name="Acme"))
        Order.objects.create(customer="a", number=1)
    with pytest.raises(ConditionNotMet, match="name") as caught, transactions.atomic():
        transactions.require(acme, Company.name == "Zenith")
        Order.objects.create(customer="a", number=2)
    assert caught.value.current == acme
    assert Order.objects.filter(customer="a").count() == 1


def test_requiring_is_for_blocks(acme: Company) -> None:
    """The check needs a block and a stored object."""
    with pytest.raises(NotSupported, match="inside of an atomic"):
        transactions.require(acme)
    with pytest.raises(ValueError, match="not stored"), transactions.atomic():
        transactions.require(Order(customer="a", number=1))


def test_objects_of_one_moment(acme: Company) -> None:
    """``read()`` gives a list for each queryset by one TransactGetItems."""
    order = Order.objects.create(customer="a", number=1)
    with assert_requests(["TransactGetItems"]):
        found = transactions.read(
            Company.objects.filter(pk__in=[acme.pk, "company-none"]),
            Order.objects.filter(customer="a", number=1),
            Order.objects.filter(customer="a", number=1, status="closed"),
        )
    assert found == [[acme], [order], []]


READ_REFUSALS = [
    (lambda: transactions.read(Company.objects.filter(name="A")), "complete primary keys"),
    (lambda: transactions.read(Company.objects.filter(pk__in=["a", "b"])[:1]), "unsliced"),
    (lambda: transactions.read(Order.objects.filter(customer="a", number__in=range(101))), "101 items"),
]


@pytest.mark.parametrize(("read", "text"), READ_REFUSALS)
def test_what_cannot_be_read_at_once_is_refused(read: Any, text: str) -> None:
    """Only up to a hundred individual items can be read in one request."""
    with assert_requests(0), pytest.raises(NotSupported, match=text):
        read()


def test_threads_have_blocks_of_their_own(table: Any) -> None:
    """Writes of another thread are sent immediately."""

    def elsewhere() -> None:
        Order.objects.create(customer="b", number=1)

    with transactions.atomic():
        Order.objects.create(customer="a", number=1)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert Order.objects.filter(customer="b").count() == 1


def test_nothing_of_a_block_is_seen_if_its_request_never_arrives() -> None:
    """A request that fails on its way leaves the table as it was."""

    def lost(operation: str, params: Any) -> None:
        if operation == "TransactWriteItems":
            raise ConnectionResetError

    with intercept(lost), pytest.raises(ConnectionResetError), transactions.atomic():
        Order.objects.create(customer="a", number=1)
        Order.objects.create(customer="a", number=2)
    assert not Order.objects.filter(customer="a").exists()


def test_concurrent_blocks_of_the_same_items_all_happen_or_fail_loudly(table: Any) -> None:
    """Ten threads that each move one unit between two orders leave the sum as it was."""
    Order.objects.create(customer="a", number=1, total=100)
    Order.objects.create(customer="a", number=2, total=100)
    done: list[bool] = []

    def move() -> None:
        for _ in range(20):
            one, two = Order.objects.filter(customer="a", number__in=[1, 2]).consistent()
            total_one, total_two = one.total, two.total
            try:
                with transactions.atomic():
                    transactions_of(one, total_one, total_one - 1)
                    transactions_of(two, total_two, total_two + 1)
            except (ConditionNotMet, Conflict):
                continue
            done.append(True)
            return

    def transactions_of(order: Order, before: Any, after: Any) -> None:
        order.total = after
        order.save(condition=Q(total=before))

    threads = [threading.Thread(target=move) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, two = Order.objects.filter(customer="a", number__in=[1, 2]).consistent()
    assert (one.total, two.total) == (100 - len(done), 100 + len(done))
    assert done


def test_a_block_holds_as_many_bytes_as_a_transaction() -> None:
    """Up to ten items always fit into 4 MB; more items are measured before any request is sent."""
    orders = [Order(customer="a", number=number, status="x" * 399_000) for number in range(11)]
    with assert_requests(0), pytest.raises(NotSupported, match="writes items of 43"), transactions.atomic():
        for each in orders:
            each.save()
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        for each in orders[:10]:
            each.save()
    with assert_requests(0), pytest.raises(NotSupported, match="writes items of 43"), transactions.atomic():
        orders[10].save()
        for each in orders[:10]:
            each.coupon = "small"
            each.save()


def test_messages_name_an_object_as_it_was_when_it_was_written() -> None:
    """A block remembers the object's name, although the object has become a copy since."""
    order = Order(customer="a", number=1)
    with pytest.raises(PendingWrite, match=r"catalog\.Order with pk 'a~~1' is written"), transactions.atomic():
        order.save()
        order.number, order._state.adding = 2, True
        list(Order.objects.filter(customer="a"))
