"""Unique attributes on the real engine: the claims that hold their values."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from dynamo_single import transactions
from dynamo_single.exceptions import StaleObject, UniqueViolation
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import assert_requests
from tests.catalog.library import Aisle, Volume
from tests.catalog.models import Member
from tests.contract.tables import claims, stored

CLAIM = "UNIQUE#Member#email#a@example.org"

pytestmark = pytest.mark.usefixtures("table")


def test_a_unique_value_is_a_claim_in_the_same_transaction(table: Table, sent: list[SentRequest]) -> None:
    """One transaction writes the object and the claims of its unique values."""
    Member.objects.create(member_id="m1", email="Mike@Example.org", badge=7)
    assert [request.operation for request in sent] == ["TransactWriteItems"]
    assert claims(table) == {
        "UNIQUE#Member#email#mike@example.org": "MEMBER#m1",
        "UNIQUE#Member#badge#p5007": "MEMBER#m1",
    }


def test_a_taken_value_is_refused_and_nothing_is_written(table: Table) -> None:
    """The second holder gets an error that names model, field and value."""
    Member.objects.create(member_id="m1", email="mike@example.org", badge=7)
    before = stored(table)
    with pytest.raises(UniqueViolation) as raised:
        Member.objects.create(member_id="m2", email="MIKE@example.org", badge=8)
    assert str(raised.value) == "Another catalog.Member has email 'MIKE@example.org'. Nothing was written."
    assert (raised.value.label, raised.value.field, raised.value.value) == (
        "catalog.Member",
        "email",
        "MIKE@example.org",
    )
    assert stored(table) == before


def test_a_changed_value_moves_the_claim(table: Table) -> None:
    """The old value is released in the same transaction."""
    member = Member.objects.create(member_id="m1", email="a@example.org", badge=7)
    member.email, member.badge = "b@example.org", None
    with assert_requests(["TransactWriteItems"]):
        member.save()
    assert claims(table) == {"UNIQUE#Member#email#b@example.org": "MEMBER#m1"}


def test_another_spelling_of_an_own_value_is_no_conflict() -> None:
    """A change of case in an object's own address does not need another claim."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    member.email = "A@Example.org"
    with assert_requests(["UpdateItem"]):
        member.save()
    assert Member.objects.get(pk="m1").email == "A@Example.org"


def test_two_renames_from_one_state_do_not_both_win(table: Table) -> None:
    """The slower rename fails, so that every claim has an owner."""
    Member.objects.create(member_id="m1", email="a@example.org")
    mine, theirs = Member.objects.get(pk="m1"), Member.objects.get(pk="m1")
    theirs.email = "b@example.org"
    theirs.save()
    mine.email = "c@example.org"
    with pytest.raises(StaleObject):
        mine.save()
    assert claims(table) == {"UNIQUE#Member#email#b@example.org": "MEMBER#m1"}


def test_hard_delete_frees_the_values(table: Table) -> None:
    """A permanent deletion also deletes the claims."""
    member = Member.objects.create(member_id="m1", email="a@example.org", badge=7)
    with assert_requests(["TransactWriteItems"]):
        assert member.hard_delete() == (1, {"catalog.Member": 1})
    assert stored(table) == {}


def test_forms_report_a_taken_value_on_its_field() -> None:
    """``validate_unique()`` sends one GetItem for one unique value, and ignores the object's own claim."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    with assert_requests(["GetItem"]):
        member.validate_unique()
    with pytest.raises(ValidationError) as raised:
        Member(email="A@example.org").validate_unique()
    assert set(raised.value.message_dict) == {"email"}


def test_several_unique_values_are_looked_up_together() -> None:
    """One consistent BatchGetItem reads the claims and a new object's key, and each has a separate error."""
    Member.objects.create(member_id="m1", email="a@example.org", badge=1)
    with assert_requests(["BatchGetItem"]) as sent, pytest.raises(ValidationError) as raised:
        Member(member_id="m1", email="A@example.org", badge=1, name="A").full_clean()
    assert set(raised.value.message_dict) == {"member_id", "email", "badge"}
    ((_, asked),) = sent[0].params["RequestItems"].items()
    assert (len(asked["Keys"]), asked["ConsistentRead"]) == (3, True)
    with assert_requests(["BatchGetItem"]):
        Member(member_id="m2", email="b@example.org", badge=2, name="B").full_clean()


def take_over(table: Table) -> Member:
    """Return a member that has lost its claim to another member with the same address."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    table.send(Request("DeleteItem", {"Key": {"pk": {"S": CLAIM}, "sk": {"S": "#CLAIM"}}}))
    Member.objects.create(member_id="m2", email="a@example.org")
    assert claims(table) == {CLAIM: "MEMBER#m2"}
    return member


@pytest.mark.parametrize("way", ["hard_delete", "delete", "rename"])
def test_a_claim_is_freed_by_its_owner_alone(table: Table, way: str) -> None:
    """A former owner cannot release the claim of the current one."""
    member = take_over(table)
    before = stored(table)
    with pytest.raises(StaleObject):
        if way == "rename":
            member.email = "b@example.org"
            member.save()
        else:
            getattr(member, way)()
    assert stored(table) == before


def test_a_claim_that_is_lost_is_no_obstacle(table: Table) -> None:
    """An object without its claim can still be deleted."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    table.send(Request("DeleteItem", {"Key": {"pk": {"S": CLAIM}, "sk": {"S": "#CLAIM"}}}))
    member.hard_delete()
    assert stored(table) == {}


def test_a_value_that_was_claimed_already_by_the_same_object_is_taken(table: Table) -> None:
    """A claim that its own owner left behind is no obstacle for it."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    claim = stored(table)[CLAIM]
    member.email = "b@example.org"
    member.save()
    table.send(Request("PutItem", {"Item": claim}))
    member.email = "a@example.org"
    member.save()
    assert claims(table) == {CLAIM: "MEMBER#m1"}


def test_two_objects_of_one_block_cannot_have_one_value() -> None:
    """The error is a normal violation before any request, and ignores other attributes."""
    with assert_requests(0), pytest.raises(UniqueViolation, match="email"), transactions.atomic():
        Member.objects.create(email="a@example.org")
        Member.objects.create(email="A@example.org")
    assert not Member.objects.exists()


def test_children_that_took_one_value_in_the_trash_do_not_come_back_together() -> None:
    """``restore()`` of their parent names the value, and does not restore any object."""
    aisle = Aisle.objects.create(aisle_id="a", name="north")
    for number in (1, 2):
        Volume.objects.create(aisle=aisle, number=number, title="one", isbn=f"i{number}")
    aisle.delete()
    second = Volume.deleted_objects.get(aisle="a", number=2)
    second.isbn = "i1"
    second.save()
    with pytest.raises(UniqueViolation, match="isbn"):
        aisle.restore()
    assert aisle.is_deleted
    assert Volume.deleted_objects.count() == 2
    second.isbn = "i2"
    second.save()
    aisle.restore()
    assert aisle.volumes.count() == 2
