"""``bulk_create()`` never overwrites objects, and finds conflicts within the call before it sends a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models.signals import post_save, pre_save

from dynamo_single import transactions
from dynamo_single.exceptions import (
    AlreadyExists,
    BulkError,
    BulkIntegrityError,
    InvalidValue,
    ItemTooLarge,
    NotSupported,
    PendingWrite,
    Throttled,
    UniqueViolation,
)
from dynamo_single.table.http.faults import refusal
from dynamo_single.table.table import Table
from dynamo_single.testing import assert_requests, intercept, refuse
from project.directory.models import Company, Person
from tests.catalog.models import Coupon, Member, Resident, Sample
from tests.contract.tables import claims

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    monkeypatch.setattr("dynamo_single.table.batches.LONGEST_PAUSE", 0.0)


def member(number: int, **values: Any) -> Member:
    """Return an unsaved member."""
    return Member(**{"member_id": f"m{number}", "email": f"{number}@example.org", **values})


def samples(number: int, **values: Any) -> list[Sample]:
    """Return unsaved samples."""
    return [Sample(sample_id=f"s{each:04d}", **values) for each in range(number)]


def emails() -> dict[str, str]:
    """The stored members' addresses."""
    return {each.pk: each.email for each in Member.objects.all()}


# creating


def test_each_object_is_one_conditional_request() -> None:
    """The objects get identifiers, times and keys, and are marked as stored; the result is the given list."""
    given = [Company(name=name) for name in ("Beta", "Acme", "Zeta")]
    with assert_requests(["PutItem"] * 3) as sent:
        made = Company.objects.bulk_create(given, batch_size=1)
    assert all("ConditionExpression" in request.params for request in sent)
    assert [each is obj for each, obj in zip(made, given, strict=True)] == [True] * 3
    assert (made.skipped, [obj._state.adding for obj in made]) == ([], [False] * 3)
    assert [company.name for company in Company.objects.order_by("name")] == ["Acme", "Beta", "Zeta"]
    assert Company.objects.get(pk=given[0].pk).created_at == given[0].created_at
    given[0].name = "Gamma"
    with assert_requests(["UpdateItem"]):
        given[0].save()


def test_nothing_given_sends_nothing() -> None:
    """An empty list does not send a request."""
    with assert_requests(0):
        assert Company.objects.bulk_create([]) == []


def test_unique_values_are_claimed_with_each_object(table: Table) -> None:
    """An object and its claims are one transaction."""
    with assert_requests(["TransactWriteItems"] * 3):
        Member.objects.bulk_create(member(number, badge=number) for number in range(3))
    assert len(claims(table)) == 6
    with pytest.raises(UniqueViolation):
        Member.objects.create(email="1@example.org")


def test_computed_copies_are_stored() -> None:
    """Copies of an object's own attributes are stored with it."""
    Resident.objects.bulk_create([Resident(last_name="ÉCOLE"), Resident(last_name="Zoo")])
    assert [each.last_name for each in Resident.objects.filter(last_name__istartswith="école")] == ["ÉCOLE"]


def test_no_signals_are_sent() -> None:
    """As in Django, no signal is sent."""
    told: list[Any] = []

    def note(**arguments: Any) -> None:
        told.append(arguments)

    for signal in (pre_save, post_save):
        signal.connect(note)
    try:
        Company.objects.bulk_create([Company(name="Acme")])
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(note)
    assert told == []


def test_within_a_block_all_are_one_transaction() -> None:
    """The block's one request has every object, and an exception discards them."""
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        Member.objects.bulk_create(member(number) for number in range(4))
        with pytest.raises(PendingWrite):
            Member.objects.count()
    assert len(emails()) == 4
    given = [member(8), member(9)]
    with assert_requests(0), pytest.raises(KeyError), transactions.atomic():
        Member.objects.bulk_create(given)
        raise KeyError
    assert [obj._state.adding for obj in given] == [True, True]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (lambda: [member(1), member(2, email=None)], InvalidValue, "catalog.Member: email is missing"),
        (lambda: [member(1), member(2, badge="x")], InvalidValue, "badge"),
        (
            lambda: [member(1), Company(name="x")],
            TypeError,
            "bulk_create() of catalog.Member got directory.Company with pk 'company-",
        ),
        (
            lambda: [member(1), member(2), member(1, email="other@example.org")],
            AlreadyExists,
            "bulk_create() got two catalog.Member objects with pk 'm1'. Nothing was written.",
        ),
        (
            lambda: [member(1), member(2, email="1@EXAMPLE.org")],
            UniqueViolation,
            "bulk_create() got two catalog.Member objects with email '1@EXAMPLE.org': pk 'm1' and 'm2'. Nothing was",
        ),
        (
            lambda: [member(1, badge=7), member(2, badge=8), member(3, badge=7)],
            UniqueViolation,
            "bulk_create() got two catalog.Member objects with badge 7: pk 'm1' and 'm3'. Nothing was written.",
        ),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_sent(
    given: Callable[[], list[Any]], error: type[Exception], message: str
) -> None:
    """The errors of wrong values, and of two objects with one key, name the objects, and the table does not change."""
    with assert_requests(0), pytest.raises(error) as raised:
        Member.objects.bulk_create(given())
    assert message in str(raised.value)


def test_an_existing_object_is_never_overwritten() -> None:
    """A conflict of the first object writes nothing; later ones raise an IntegrityError with a complete report."""
    Company.objects.create(company_id="c3", name="Acme")
    with assert_requests(["PutItem"]), pytest.raises(AlreadyExists):
        Company.objects.bulk_create(
            [Company(company_id=f"c{number}", name="New") for number in (3, 4, 5)], batch_size=1
        )
    with pytest.raises(IntegrityError) as raised:
        Company.objects.bulk_create([Company(company_id=f"c{number}", name="New") for number in (1, 2, 3)])
    error: Any = raised.value
    assert isinstance(error, BulkIntegrityError)
    assert (error.written, [*error.failed], error.not_tried) == (("c1", "c2"), ["c3"], ())
    assert isinstance(error.failed["c3"], AlreadyExists)
    assert Company.objects.get(pk="c3").name == "Acme"


def test_an_expired_object_counts_as_none() -> None:
    """An expired item that DynamoDB has not removed yet does not conflict."""
    past, future = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    Coupon.objects.create(code="a", email="a@example.org", expires_at=past)
    Coupon.objects.bulk_create([Coupon(code="a", email="a@example.org", expires_at=future)])
    assert Coupon.objects.get(pk="a").expires_at == future


# leaving out what exists


def test_what_exists_is_left_out(table: Table) -> None:
    """An object whose key or unique value is taken is skipped: ``skipped`` contains it, and it stays new."""
    Member.objects.create(member_id="m1", email="1@example.org")
    given = [member(1, email="other@example.org"), member(2), member(3, email="1@example.org"), member(4)]
    made = Member.objects.bulk_create(given, ignore_conflicts=True)
    assert list(made) == given
    assert [obj.pk for obj in made.skipped] == ["m1", "m3"]
    assert [obj._state.adding for obj in given] == [True, False, True, False]
    assert emails() == {"m1": "1@example.org", "m2": "2@example.org", "m4": "4@example.org"}
    assert len(claims(table)) == 3


def test_of_duplicates_the_first_is_kept() -> None:
    """Two objects that need one key are not both sent."""
    given = [member(1), member(1, email="other@example.org"), member(2, email="1@example.org"), member(3)]
    with assert_requests(["TransactWriteItems"] * 2):
        made = Member.objects.bulk_create(given, ignore_conflicts=True)
    assert [obj is skipped for obj, skipped in zip(given[1:3], made.skipped, strict=True)] == [True, True]
    assert emails() == {"m1": "1@example.org", "m3": "3@example.org"}


def test_other_failures_are_not_left_out() -> None:
    """Only conflicts are ignored."""
    with refuse("InternalServerError", operation="PutItem", times=1), pytest.raises(Exception, match="Internal"):
        Company.objects.bulk_create([Company(name="Acme")], ignore_conflicts=True)


# writing over what exists


def test_whole_items_are_put_over_in_batches(table: Table) -> None:
    """Models without dependent items take one request per 25 objects, whether or not the objects exist."""
    Sample.objects.bulk_create(samples(30, text="old", integer=1))
    with assert_requests(["BatchWriteItem"] * 3):
        made = Sample.objects.bulk_create(samples(60, text="new"), update_conflicts=True)
    assert (len(made), made.skipped, {obj._state.adding for obj in made}) == (60, [], {False})
    assert [(obj.text, obj.integer) for obj in Sample.objects.all()] == [("new", None)] * 60
    made[0].text = "newer"
    with assert_requests(["UpdateItem"]):
        made[0].save()


def test_the_size_of_a_batch_can_be_less() -> None:
    """``batch_size`` is how many items a BatchWriteItem has at most."""
    with assert_requests(["BatchWriteItem"] * 5):
        Sample.objects.bulk_create(samples(10), update_conflicts=True, batch_size=2)
    with assert_requests(["BatchWriteItem"] * 2):
        Sample.objects.bulk_create(samples(50), update_conflicts=True, batch_size=1000)


def test_of_duplicates_the_last_is_written() -> None:
    """The last object with a primary key is written, and ``skipped`` contains the others."""
    first, last = Sample(sample_id="s", text="first"), Sample(sample_id="s", text="last")
    made = Sample.objects.bulk_create([first, last], update_conflicts=True)
    assert [obj is first for obj in made.skipped] == [True]
    assert Sample.objects.get().text == "last"


def test_a_unique_value_of_two_objects_is_refused() -> None:
    """The app cannot choose between the two objects."""
    with assert_requests(0), pytest.raises(UniqueViolation, match="pk 'm1' and 'm2'"):
        Member.objects.bulk_create([member(1), member(2, email="1@example.org")], update_conflicts=True)


def test_objects_that_something_follows_from_are_updated_one_by_one(table: Table) -> None:
    """Keys, unique values and times are updated as by ``save()``; the creation time is kept."""
    stored = Person.objects.create(company_id="c", person_id="p", name="Anna", email="anna@example.org")
    again = Person(company_id="c", person_id="p", name="Berta", email="berta@example.org")
    with assert_requests(["TransactWriteItems", "TransactWriteItems", "PutItem"]):
        Person.objects.bulk_create([again, Person(company_id="c", person_id="q", name="Cleo")], update_conflicts=True)
    assert [person.name for person in Person.objects.order_by("name")] == ["Berta", "Cleo"]
    assert [*claims(table)] == ["UNIQUE#Person#email#berta@example.org"]
    assert (again.created_at, again._state.adding) == (stored.created_at, False)
    assert Person.objects.get(person_id="p").created_at == stored.created_at
    assert again.updated_at >= stored.updated_at


def test_a_large_item_is_found_before_anything_is_sent() -> None:
    """The app knows the size in advance."""
    with assert_requests(0), pytest.raises(ItemTooLarge):
        Sample.objects.bulk_create([*samples(3), Sample(text="x" * 410_000)], update_conflicts=True)


def test_only_some_attributes_of_what_exists_are_set() -> None:
    """``update_fields`` limits updates; a new object is stored completely."""
    Company.objects.create(company_id="c1", name="Acme", stock="ACM", public=True)
    given = [Company(company_id="c1", name="Other", stock="OTH"), Company(company_id="c2", name="New", stock="NEW")]
    with assert_requests(3):
        Company.objects.bulk_create(given, update_conflicts=True, update_fields=["stock"], unique_fields=["pk"])
    found = {company.pk: company for company in Company.objects.all()}
    assert (found["c1"].name, found["c1"].stock, found["c1"].public) == ("Acme", "OTH", True)
    assert (found["c2"].name, found["c2"].stock) == ("New", "NEW")


def test_what_did_not_change_is_not_written() -> None:
    """An unchanged object costs only the attempt to create it."""
    Company.objects.create(company_id="c1", name="Acme")
    with assert_requests(["PutItem"]):
        Company.objects.bulk_create([Company(company_id="c1", name="Acme")], update_conflicts=True)


def test_an_object_in_the_trash_is_not_updated() -> None:
    """The error for an object in the trash names the alternatives."""
    Company.objects.create(company_id="c1", name="Acme").delete()
    with pytest.raises(AlreadyExists, match="in the trash: restore it or delete it permanently"):
        Company.objects.bulk_create([Company(company_id="c1", name="New")], update_conflicts=True)
    assert Company.deleted_objects.get(pk="c1").name == "Acme"


def test_an_object_that_is_deleted_meanwhile_is_created() -> None:
    """Between the attempt to create and the update another writer deletes it."""
    stored = Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    done: list[bool] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "UpdateItem" and not done:
            done.append(True)
            stored.hard_delete()

    with intercept(interceptor):
        Company.objects.bulk_create([Company(company_id="c1", name="New")], update_conflicts=True)
    assert (Company.objects.get().name, Company.objects.get().stock) == ("New", None)


def test_another_objects_unique_value_stops_the_update() -> None:
    """The object stays new, and the stored one as it was."""
    Member.objects.bulk_create([member(1), member(2)])
    given = member(1, email="2@example.org")
    with pytest.raises(UniqueViolation):
        Member.objects.bulk_create([given], update_conflicts=True)
    assert (given._state.adding, given._stored) == (True, None)
    assert emails() == {"m1": "1@example.org", "m2": "2@example.org"}


def left_out(kept: int, *, times: int) -> Any:
    """Let DynamoDB write only the first items of a batch, several times."""
    answered: list[bool] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if operation != "BatchWriteItem" or len(answered) >= times:
            return None
        ((name, given),) = params["RequestItems"].items()
        answered.append(True)
        for write in given[:kept]:
            Sample.from_item(write["PutRequest"]["Item"]).save(force_insert=True)
        return {"UnprocessedItems": {name: given[kept:]} if given[kept:] else {}}

    return intercept(interceptor)


def test_writes_that_dynamodb_leaves_out_are_sent_again() -> None:
    """Unprocessed items are sent again until all are written."""
    with left_out(10, times=2):
        Sample.objects.bulk_create(samples(25), update_conflicts=True)
    assert Sample.objects.count() == 25


def test_writes_that_are_left_out_for_good_are_told() -> None:
    """After the last attempt, the error contains exactly the unwritten objects."""
    with left_out(0, times=100), pytest.raises(BulkError) as nothing:
        Sample.objects.bulk_create(samples(50), update_conflicts=True)
    assert (nothing.value.written, len(nothing.value.failed), len(nothing.value.not_tried)) == ((), 25, 25)
    given = samples(50)
    with left_out(3, times=8), pytest.raises(BulkError) as raised:
        Sample.objects.bulk_create(given, update_conflicts=True)
    stored = {obj.pk for obj in Sample.objects.all()}
    assert {*raised.value.written} == stored
    assert stored == {obj.pk for obj in given if not obj._state.adding}
    assert len(stored) == 24
    assert {type(error) for error in raised.value.failed.values()} == {Throttled}


def test_a_throttled_batch_is_sent_again() -> None:
    """DynamoDB rejects a batch if it cannot write any of its items."""
    with refuse("ProvisionedThroughputExceededException", operation="BatchWriteItem", times=3):
        Sample.objects.bulk_create(samples(25), update_conflicts=True)
    assert Sample.objects.count() == 25


def test_a_batch_that_is_refused_is_told_as_a_whole() -> None:
    """Other errors are not retried: the objects of the batch have an unknown outcome, and the rest are not tried."""
    given = samples(60)
    seen: list[str] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        seen.append(operation)
        if len(seen) > 1:
            raise refusal(operation, "InternalServerError")

    with intercept(interceptor), pytest.raises(BulkError) as raised:
        Sample.objects.bulk_create(given, update_conflicts=True)
    error = raised.value
    assert len(error.written) == Sample.objects.count() == 25
    assert (len(error.failed), len(error.not_tried)) == (35, 0)
    assert len(seen) == 3


# unsupported options


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "Batch size must be a positive integer."),
        ({"ignore_conflicts": True, "update_conflicts": True}, ValueError, "mutually exclusive"),
        ({"update_fields": ["name"]}, ValueError, "update_fields and unique_fields require update_conflicts=True"),
        ({"unique_fields": ["pk"]}, ValueError, "update_fields and unique_fields require update_conflicts=True"),
        ({"update_conflicts": True, "update_fields": []}, ValueError, "update_fields is empty"),
        ({"update_conflicts": True, "update_fields": ["nonsense"]}, ValueError, "nonsense"),
        ({"update_conflicts": True, "update_fields": ["pk"]}, ValueError, "pk"),
        (
            {"update_conflicts": True, "unique_fields": ["name"]},
            NotSupported,
            "bulk_create(unique_fields=['name']): the primary key, company_id, identifies",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    """Contradicting options and unsuitable names raise an error before any request is sent."""
    with assert_requests(0), pytest.raises(error) as raised:
        Company.objects.bulk_create([Company(name="Acme")], **options)
    assert message in str(raised.value)


@pytest.mark.parametrize("option", ["ignore_conflicts", "update_conflicts"])
def test_a_block_knows_no_conflicts(option: str) -> None:
    """A block learns which objects exist only at its end."""
    with assert_requests(0), transactions.atomic(), pytest.raises(NotSupported, match="Call it outside the block"):
        Company.objects.bulk_create([Company(name="Acme")], **{option: True})


@pytest.mark.parametrize("fields", [["pk"], ["company_id"]])
def test_the_primary_key_may_be_named(fields: list[str]) -> None:
    """The primary key identifies the objects anyway."""
    Company.objects.bulk_create([Company(name="Acme")], update_conflicts=True, unique_fields=fields)
    assert Company.objects.count() == 1
