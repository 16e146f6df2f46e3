"""Writes of outdated, expired or partially loaded objects keep other processes' changes and leave no claims."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import serializers
from django.db.models import F
from django.utils import timezone

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue, StaleObject, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, capture_requests
from tests.catalog.library import Aisle, Volume
from tests.catalog.models import Coupon, Member
from tests.catalog.seats import Essay, EssayWord
from tests.catalog.stocks import Ledger, Stock
from tests.contract.tables import assert_consistent, claims
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


# versions


@pytest.fixture
def outdated() -> Ledger:
    """Return an object with an unsaved change that another process has written since."""
    Ledger.objects.create(code="l", total=1)
    mine, theirs = Ledger.objects.get(pk="l"), Ledger.objects.get(pk="l")
    theirs.total = 5
    theirs.save()
    mine.total = 9
    return mine


@pytest.mark.parametrize("name", ["save", "delete", "hard_delete"])
def test_a_deletion_that_was_refused_changes_nothing_of_what_the_object_knows(outdated: Ledger, name: str) -> None:
    """Another attempt is rejected too, since the other process's change has not been read."""
    with pytest.raises(StaleObject) as refused:
        outdated.delete()
    assert (refused.value.expected, refused.value.found) == (1, 2)
    assert (outdated.version, outdated.total) == (1, 9)
    with pytest.raises(StaleObject):
        getattr(outdated, name)()
    assert Ledger.objects.get(pk="l").total == 5


def test_bulk_update_does_not_write_over_another_version(outdated: Ledger) -> None:
    """It behaves like save()."""
    with pytest.raises(StaleObject) as refused:
        Ledger.objects.bulk_update([outdated], ["total"])
    assert (refused.value.expected, refused.value.found) == (1, 2)
    assert Ledger.objects.get(pk="l").total == 5


def test_bulk_update_leaves_out_what_is_gone_with_a_version_too() -> None:
    """The count includes only existing objects."""
    gone, there = Ledger.objects.create(code="gone"), Ledger.objects.create(code="there")
    Ledger.objects.get(pk="gone").hard_delete()
    gone.total = there.total = 3
    unread = Ledger(code="never", total=3)
    assert Ledger.objects.bulk_update([gone, there, unread], ["total"]) == 1
    assert Ledger.objects.get(pk="there").total == 3


# computed changes of values that another process has changed


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
    """The values of the failed write are on the object completely, or not at all."""
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
    """Only unchanged attributes are refreshed."""
    stock = Stock.objects.create(code="s", qty=1)
    Stock.objects.filter(pk="s").update(qty=100)
    stock.rank, stock.qty = F("qty") + 1, 3
    stock.save()
    found = Stock.objects.get(pk="s")
    assert (found.rank, found.qty) == (101, 3)


def test_a_move_says_that_it_computes_nothing() -> None:
    """The requested change stays pending."""
    stock = Stock.objects.create(code="s", qty=1)
    stock.qty = F("qty") + 1
    with assert_requests(0), pytest.raises(InvalidValue, match=r"move\(\) writes a new item and cannot compute"):
        stock.move(code="t")
    stock.save()
    assert (stock.pk, stock.qty) == ("s", 2)


# what has expired


@pytest.fixture
def expired() -> Coupon:
    """Return an expired object whose unique value another object has taken."""
    coupon = Coupon.objects.create(code="old", email="a@example.org", expires_at=LONG_AGO)
    Coupon.objects.create(code="new", email="a@example.org", expires_at=timezone.now() + timedelta(hours=1))
    return coupon


def test_an_expired_object_can_be_deleted_though_its_value_is_anothers(table: Table, expired: Coupon) -> None:
    """Its claim has expired with it, so there is none to release."""
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
    """Otherwise, its claim would remain without an owner."""
    coupon = Coupon.objects.create(code="c", email="a@example.org", expires_at=LONG_AGO)
    other = Coupon.from_item({name: dict(value) for name, value in (coupon._stored or {}).items()})
    other.expires_at = timezone.now() + timedelta(hours=1)
    other.save()
    with pytest.raises(StaleObject, match=r"was changed by another process since it was read \(expiresAt\)"):
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
    with pytest.raises(StaleObject, match="another object now has one of its unique values"):
        member.hard_delete()


# manually set times


def test_a_time_that_update_names_is_written_however_the_objects_are_found() -> None:
    """By their key, or by an index; a save() sets it itself, as Django's does."""
    stock = Stock.objects.create(code="s")
    for found in (Stock.objects.filter(pk="s"), Stock.objects.filter(rank=0), Stock.objects.filter(rank=0)):
        assert found.update(updated_at=LONG_AGO, qty=F("qty") + 1) == 1
        assert Stock.objects.get(pk="s").updated_at == LONG_AGO
    stock.updated_at = LONG_AGO
    stock.save(update_fields=["updated_at"])
    assert Stock.objects.get(pk="s").updated_at > LONG_AGO


# keys of several values, of which each writer changes one


@pytest.fixture
def poster() -> Iterator[Any]:
    """A model with an index key of two values, either of which may be missing, and one of a folded text."""
    with forgotten():
        yield declare(
            "Poster",
            ("POSTER#{poster_id}", "#METADATA"),
            {
                "by_place": models.IndexKey("gs1", "PLACE#{hall}", "{row}#{poster_id}"),
                "by_title": models.IndexKey("gs2", "POSTER", "{title:canonical}#{poster_id}"),
            },
            poster_id=models.UnicodeAttribute(),
            hall=models.UnicodeAttribute(null=True),
            row=models.IntegerAttribute(null=True),
            title=models.UnicodeAttribute(),
        )


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        pytest.param({"hall": "A"}, {"row": 2}, id="each sets a part of a key that was missing"),
        pytest.param({"title": "Zoo"}, {"title": "DAWN"}, id="the text that makes the same key as what was read"),
    ],
)
def test_a_key_that_need_not_be_written_has_to_be_the_one_that_was_read(
    poster: Any, theirs: dict[str, Any], mine: dict[str, Any]
) -> None:
    """Another process may have written a key that does not match the new value."""
    one = poster.objects.create(poster_id="p", title="Dawn", row=1)
    other = poster.objects.get(pk="p")
    for obj, values in ((other, theirs), (one, mine)):
        for name, value in values.items():
            setattr(obj, name, value)
    other.save()
    with pytest.raises(StaleObject):
        one.save()
    assert_consistent()


def test_a_key_that_nobody_else_changed_is_in_nobodys_way(poster: Any) -> None:
    """Values with the same key can be saved, also while others change unrelated attributes and keys."""
    one = poster.objects.create(poster_id="p", title="Dawn", row=1)
    poster.objects.filter(pk="p").update(row=7)
    one.title = "DAWN"
    one.save()
    found = poster.objects.get(pk="p")
    assert (found.title, found.row) == ("DAWN", 7)
    assert_consistent()


def test_a_change_that_leads_back_to_what_was_read_writes_the_key() -> None:
    """The item has another process's key by then."""
    stock = Stock.objects.create(code="s", rank=2)
    Stock.objects.filter(pk="s").update(rank=1)
    stock.rank = F("rank") + 1
    stock.save()
    assert stock.rank == 2
    assert_consistent()


# partially loaded objects


def test_deleting_an_outdated_object_takes_what_follows_from_the_stored_one() -> None:
    """The stored item determines the dependents, rather than the loaded one."""
    Essay.objects.create(essay_id="e", title="one two")
    outdated = Essay.objects.get(pk="e")
    Essay.objects.filter(pk="e").update(title="two three")
    outdated.delete()
    assert list(EssayWord.objects.allow_scan().order_by()) == []
    outdated.restore()
    assert {each.word for each in EssayWord.objects.allow_scan().order_by()} == {"two", "three"}
    assert_consistent()


def test_bulk_update_completes_what_was_read_in_part() -> None:
    """All unique values are compared before any request is sent, and missing objects are skipped."""
    for number, pk in enumerate("abc"):
        Member.objects.create(member_id=pk, email=f"{pk}@example.org", badge=number)
    found = [Member.objects.only("name").get(pk=pk) for pk in "abc"]
    Member.objects.get(pk="c").hard_delete()
    for member in found:
        member.attribute_values["badge"] = 10 + ord(member.pk)
    with capture_requests() as sent:
        assert Member.objects.bulk_update(found, ["badge"]) == 2
    operations = [request.operation for request in sent]
    assert operations[:4] == ["GetItem", "GetItem", "GetItem", "TransactWriteItems"]
    assert sorted(operations[4:]) == ["GetItem", "TransactWriteItems"]  # in threads
    assert_consistent()


def test_an_object_that_was_made_by_hand_is_stored_behind_bulk_update() -> None:
    """A save() after it updates, and does not create."""
    Essay.objects.create(essay_id="e", title="one")
    essay = Essay(essay_id="e", title="two")
    assert Essay.objects.bulk_update([essay], ["title"]) == 1
    assert not essay._state.adding
    essay.title = "three"
    essay.save()
    assert Essay.objects.get(pk="e").title == "three"


def test_saving_an_attribute_of_an_object_made_by_hand_that_does_not_differ() -> None:
    """No write is needed, and the object counts as stored."""
    Essay.objects.create(essay_id="e", title="one")
    essay = Essay(essay_id="e", title="one")
    with assert_requests(["GetItem"]):
        essay.save(update_fields=["title"])
    assert not essay._state.adding
    essay.title = "two"
    essay.save()
    assert_consistent()


def test_a_fixture_does_not_set_back_what_is_kept_in_step() -> None:
    """A stored object keeps its current counters and copies."""
    aisle = Aisle.objects.create(aisle_id="a", name="North")
    volume = Volume.objects.create(aisle=aisle, number=1, title="One")
    dumped = serializers.serialize("json", [aisle, volume])
    aisle.refresh_from_db()
    aisle.name = "South"
    aisle.save()
    for each in serializers.deserialize("json", dumped.replace("North", "East")):
        each.save()
    found = Aisle.objects.get(pk="a")
    assert (found.name, found.volume_count) == ("East", 1)
    assert Volume.objects.get(pk=volume.pk).aisle_name == "East"
    assert_consistent()
