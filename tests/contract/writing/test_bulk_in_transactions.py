"""Many objects written in transactions: as many together as one takes, all of them or none, and a full account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db.models import F
from django.db.models.signals import post_delete

from dynamo_single import transactions
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import (
    AlreadyExists,
    BulkError,
    BulkIntegrityError,
    ItemTooLarge,
    MissingReference,
    NotSupported,
    OutcomeUnknown,
    UniqueViolation,
)
from dynamo_single.testing import assert_requests, capture_requests, intercept, refuse
from tests.catalog.chat import ChatChannel, ChatMembership, ChatServer, ChatUser
from tests.catalog.models import Coupon, Employee, Firm, Member, Order, Sample
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")

TRANSACTION = "TransactWriteItems"


def samples(number: int, **values: Any) -> list[Sample]:
    """Return unsaved samples."""
    return [Sample(sample_id=f"s{each:04d}", **values) for each in range(number)]


def members(number: int) -> list[Member]:
    """Return unsaved members with two unique values each."""
    return [Member(member_id=f"m{each:03}", email=f"{each}@example.org", badge=each) for each in range(number)]


def stored() -> set[str]:
    """The stored samples."""
    return {each.pk for each in Sample.objects.all()}


def before_the_first(operation: str, write: Callable[[], object]) -> Any:
    """Lets another writer be faster than the first request of a kind."""
    written: list[bool] = []

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked == operation and not written:
            written.append(True)
            write()

    return intercept(interceptor)


# how many together


def test_a_hundred_objects_are_one_request() -> None:
    """250 objects take three requests with a condition per action, and are marked as stored."""
    given = samples(250)
    with assert_requests([TRANSACTION] * 3) as sent:
        made = Sample.objects.bulk_create(given, in_transactions=True)
    assert sorted(len(request.params["TransactItems"]) for request in sent) == [50, 100, 100]
    assert all("ConditionExpression" in entry["Put"] for request in sent for entry in request.params["TransactItems"])
    assert (list(made), made.skipped) == (given, [])
    assert len(stored()) == 250
    given[0].text = "new"
    with assert_requests(["UpdateItem"]):
        given[0].save()


def test_the_queryset_says_it_for_whatever_it_writes() -> None:
    """``in_transactions()`` applies to each bulk operation and to derived querysets."""
    together = Sample.objects.in_transactions()
    with assert_requests([TRANSACTION] * 2):
        together.bulk_create(samples(150))
    with assert_requests(["Query", TRANSACTION, TRANSACTION]):
        assert together.filter(pk__gte="").update(text="one") == 150
    objects = list(Sample.objects.all())
    for each in objects:
        each.text = f"text of {each.pk}"
    with assert_requests([TRANSACTION] * 2):
        assert together.bulk_update(objects, ["text"]) == 150
    assert {each.text for each in Sample.objects.all()} == {f"text of {pk}" for pk in stored()}
    with assert_requests(["Query", TRANSACTION, TRANSACTION]):
        assert together.all().delete() == (150, {"catalog.Sample": 150})
    assert stored() == set()


def test_a_soft_delete_and_a_restoration_release_and_take_unique_values_again() -> None:
    """Each member is three actions, so that 33 fit into one transaction."""
    together = Member.all_objects.in_transactions()
    with assert_requests([TRANSACTION] * 5) as sent:
        together.bulk_create(members(120))
    assert sorted(len(request.params["TransactItems"]) for request in sent) == [3, 60, 99, 99, 99]
    with assert_requests(["Query"] + [TRANSACTION] * 5):
        assert Member.objects.in_transactions().all().delete() == (120, {"catalog.Member": 120})
    assert_consistent()
    with assert_requests(["Query"] + [TRANSACTION] * 5):
        assert Member.deleted_objects.in_transactions().all().restore() == (120, {"catalog.Member": 120})
    assert_consistent()
    assert Member.objects.get(badge=39).pk == "m039"


def test_what_other_objects_follow_is_counted_and_merged() -> None:
    """All children of a transaction share one action for the parent's counter, and one for a copy's source."""
    server = ChatServer.objects.create(server_id="s", name="Gaming")
    with assert_requests([TRANSACTION] * 4) as sent:
        ChatChannel.objects.bulk_create((ChatChannel(server=server) for _ in range(250)), in_transactions=True)
    assert sorted(len(request.params["TransactItems"]) for request in sent) == [2, 52, 100, 100]
    assert ChatServer.objects.consistent().get(pk="s").channel_count == 250
    john = ChatUser.objects.create(user_id="1", username="John")
    others = [ChatServer(server_id=f"o{number}", name="Other") for number in range(20)]
    ChatServer.objects.bulk_create(others)
    with assert_requests(["GetItem", TRANSACTION]):
        ChatMembership.objects.bulk_create((ChatMembership(server=s, user=john) for s in others), in_transactions=True)
    assert_consistent()


def test_items_that_are_too_large_together_are_divided() -> None:
    """A transaction takes four megabytes."""
    with assert_requests([TRANSACTION] * 2) as sent:
        Order.objects.bulk_create(
            (Order(customer="c", number=number, status="x" * 100_000) for number in range(50)), in_transactions=True
        )
    assert [len(request.params["TransactItems"]) for request in sent] == [41, 9]


def test_batch_size_bounds_the_objects_of_a_transaction() -> None:
    """``batch_size`` defines which objects are written together or not at all."""
    with assert_requests([TRANSACTION] * 3) as sent:
        Sample.objects.bulk_create(samples(25), batch_size=10, in_transactions=True)
    assert sorted(len(request.params["TransactItems"]) for request in sent) == [5, 10, 10]


def test_a_transaction_takes_twice_the_units() -> None:
    """A transaction costs two units for an item of up to a kilobyte outside indexes."""
    given = [ChatUser(user_id=str(number), username="John") for number in range(10)]
    with measure_requests() as costs:
        ChatUser.objects.bulk_create(given, in_transactions=True)
    assert (costs.requests, costs.write_units) == (1, 20.0)


def test_one_object_alone_is_a_plain_request() -> None:
    """A transaction of one action would only cost more."""
    with assert_requests([TRANSACTION, "PutItem"]):
        Sample.objects.bulk_create(samples(101), in_transactions=True)


def test_progress_is_told_after_each_object() -> None:
    """Progress is reported as for separate writes."""
    told: list[tuple[int, int | None]] = []
    together = Sample.objects.in_transactions().on_progress(lambda done, total: told.append((done, total)))
    together.bulk_create(samples(130))
    assert told == [(done, 130) for done in range(1, 131)]


def test_within_a_block_everything_joins_that() -> None:
    """The block is the transaction."""
    with assert_requests([TRANSACTION]), transactions.atomic():
        Sample.objects.in_transactions().bulk_create(samples(3))
        Firm.objects.create(firm_id="f", name="Firm", stock="F")


# all or nothing


def test_if_nothing_is_written_it_is_the_objects_own_error() -> None:
    """The first transaction is sent alone, and its objects stay new."""
    Sample.objects.create(sample_id="s0007")
    given = samples(150)
    with assert_requests([TRANSACTION]), pytest.raises(AlreadyExists, match="s0007"):
        Sample.objects.bulk_create(given, in_transactions=True)
    assert stored() == {"s0007"}
    assert all(each._state.adding for each in given)


def test_the_others_of_its_transaction_are_not_written_and_it_says_so() -> None:
    """``failed`` contains the object that failed, and ``not_tried`` the others of its transaction."""
    Sample.objects.create(sample_id="s0142")
    given = samples(150)
    with pytest.raises(BulkIntegrityError) as raised:
        Sample.objects.bulk_create(given, in_transactions=True)
    error = raised.value
    assert error.written == tuple(f"s{number:04d}" for number in range(100))
    assert [*error.failed] == ["s0142"]
    assert {*error.not_tried} == {f"s{number:04d}" for number in range(100, 150)} - {"s0142"}
    assert stored() == {*error.written, "s0142"}
    assert [each._state.adding for each in given] == [False] * 100 + [True] * 50


def test_what_exists_can_be_left_out() -> None:
    """One response names all existing objects of a transaction, and the others are sent again."""
    for number in (3, 70, 140):
        Sample.objects.create(sample_id=f"s{number:04d}", text="old")
    with capture_requests() as sent:
        made = Sample.objects.bulk_create(samples(150, text="new"), ignore_conflicts=True, in_transactions=True)
    assert sorted(each.pk for each in made.skipped) == ["s0003", "s0070", "s0140"]
    assert [request.operation for request in sent] == [TRANSACTION] * 4
    assert Sample.objects.filter(text="new").count() == 147


def test_a_unique_value_that_is_taken_fails_by_name() -> None:
    """The failed claim raises the same error as the creation of one object."""
    Member.objects.create(member_id="x", email="1@example.org")
    with pytest.raises(UniqueViolation) as raised:
        Member.objects.bulk_create(members(3), in_transactions=True)
    assert (raised.value.field, raised.value.value) == ("email", "1@example.org")
    assert Member.objects.count() == 1


def test_an_error_of_the_request_is_every_objects() -> None:
    """The outcome of these objects is unknown, so ``not_tried`` does not contain them."""
    with refuse("InternalServerError", operation=TRANSACTION), pytest.raises(BulkError) as raised:
        Sample.objects.bulk_create(samples(3), in_transactions=True)
    assert [*raised.value.failed] == ["s0000", "s0001", "s0002"]
    assert {type(error) for error in raised.value.failed.values()} == {OutcomeUnknown}


def test_an_object_that_is_too_large_is_named() -> None:
    """The other objects of the transaction are not written."""
    given = [*samples(2), Sample(sample_id="large", json="x" * 500_000)]
    with assert_requests(0), pytest.raises(ItemTooLarge):
        Sample.objects.bulk_create(given, in_transactions=True)


def test_a_missing_parent_is_named() -> None:
    """A counter's parent has to be there."""
    with pytest.raises(MissingReference, match="SERVER#none"):
        ChatChannel.objects.bulk_create(
            [ChatChannel(server_id="none"), ChatChannel(server_id="none")], in_transactions=True
        )
    assert not ChatChannel.objects.allow_scan().exists()


def test_what_exists_cannot_be_updated_in_transactions() -> None:
    """The operation would have to read the object first."""
    with assert_requests(0), pytest.raises(NotSupported, match="update_conflicts"):
        Sample.objects.bulk_create(samples(2), update_conflicts=True, in_transactions=True)


# other writers


def test_an_object_that_does_not_meet_the_condition_any_more_is_left_alone() -> None:
    """The failed condition identifies the object, and the others are written."""
    Order.objects.bulk_create(Order(customer="c", number=number) for number in range(5))
    together = Order.objects.filter(customer="c", status="open").in_transactions()
    with before_the_first(TRANSACTION, lambda: Order.objects.filter(customer="c", number=3).update(status="paid")):
        assert together.update(coupon="x") == 4
    assert Order.objects.get(customer="c", number=3).coupon is None


def test_an_object_that_is_deleted_meanwhile_is_not_counted() -> None:
    """The object is not counted, as with separate writes."""
    Order.objects.bulk_create(Order(customer="c", number=number) for number in range(5))
    with before_the_first(TRANSACTION, lambda: Order.objects.filter(customer="c", number=3).delete()):
        assert Order.objects.filter(customer="c").in_transactions().delete() == (4, {"catalog.Order": 4})


def test_an_object_that_another_writer_changed_is_written_over_the_change() -> None:
    """Another process's change is kept, and a key that depends on both values is correct."""
    Order.objects.bulk_create(Order(customer="c", number=number) for number in range(3))
    with before_the_first(TRANSACTION, lambda: Order.objects.filter(customer="c", number=1).update(status="paid")):
        assert Order.objects.filter(customer="c").in_transactions().update(coupon="x") == 3
    assert {order.status for order in Order.objects.filter(coupon="x")} == {"open", "paid"}


def test_counting_on_what_is_stored_is_done_once() -> None:
    """The transaction includes changes that DynamoDB computes."""
    Sample.objects.bulk_create(samples(30, integer=1))
    with assert_requests(["Query", TRANSACTION]):
        assert Sample.objects.filter(pk__gte="").in_transactions().update(integer=F("integer") + 1) == 30
    assert {each.integer for each in Sample.objects.all()} == {2}


# objects that are written separately


def test_objects_with_children_go_each_with_its_own() -> None:
    """A deletion packs its children into transactions of its own, and looks for latecomers."""
    for name in "ab":
        Firm.objects.create(firm_id=name, name=name, stock=name)
        Employee.objects.create(firm_id=name, employee_id="e")
    counts = Firm.objects.filter(pk__in=["a", "b"]).in_transactions().delete()
    assert counts == (2, {"catalog.Firm": 2}) or counts == (4, {"catalog.Firm": 2, "catalog.Employee": 2})


def test_where_somebody_listens_each_is_deleted_by_itself() -> None:
    """A signal is sent only when its object is deleted."""
    Order.objects.bulk_create(Order(customer="c", number=number) for number in range(3))
    left: list[int] = []

    def note(**kwargs: Any) -> None:
        left.append(Order.objects.filter(customer="c").consistent().using_index("primary").count())

    post_delete.connect(note, sender=Order)
    try:
        Order.objects.filter(customer="c").in_transactions().delete()
    finally:
        post_delete.disconnect(note, sender=Order)
    assert left == [2, 1, 0]


def test_a_unique_value_that_two_are_given_fails_as_it_does_alone() -> None:
    """A conflicting object starts another transaction, and fails because of the stored value."""
    Coupon.objects.bulk_create([Coupon(code="a", email="a@x.org"), Coupon(code="b", email="b@x.org")])
    given = list(Coupon.objects.filter(pk__in=["a", "b"]))
    given[0].email, given[1].email = "c@x.org", "a@x.org"
    with pytest.raises(NotSupported, match="Save the object that releases the value first, or save both in one atomic"):
        Coupon.objects.in_transactions().bulk_update(given, ["email"])
