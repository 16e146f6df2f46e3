"""Values that are unique together: the claims that hold them, on every way to write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError
from django.forms import modelform_factory
from django.utils import timezone

from dynamo_single import transactions
from dynamo_single.exceptions import NotSupported, StaleObject, UniqueViolation
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests
from tests.catalog.seats import Seat, Voucher
from tests.contract.tables import assert_consistent, claims, stored

pytestmark = pytest.mark.usefixtures("table")


def place(hall: str, row: str) -> str:
    """The claim on a place."""
    return f"UNIQUE#Seat#hallName#row#{hall}#{row}"


def test_one_claim_holds_all_the_values(table: Table, sent: list[SentRequest]) -> None:
    """The names of the attributes and then the values make the key; a second declaration of the same needs none."""
    Seat.objects.create(seat_id="1", hall="A", row=7, code="x")
    assert [request.operation for request in sent] == ["TransactWriteItems"]
    assert claims(table) == {place("A", "p5007"): "SEAT#1", "UNIQUE#Seat#hallName#code#A#x": "SEAT#1"}


def test_a_taken_pair_is_refused_and_nothing_is_written(table: Table) -> None:
    """The error names the model, the attributes and their values."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    before = stored(table)
    with pytest.raises(UniqueViolation) as raised:
        Seat.objects.create(seat_id="2", hall="A", row=7)
    assert str(raised.value) == "Another catalog.Seat has hall 'A' and row 7. Nothing was written."
    error = raised.value
    assert isinstance(error, IntegrityError)
    assert (error.label, error.fields, error.field, error.value) == (
        "catalog.Seat",
        ("hall", "row"),
        "hall, row",
        ("A", 7),
    )
    assert stored(table) == before


@pytest.mark.parametrize(("hall", "row"), [("A", 8), ("B", 7), ("a", 7), ("A", None)])
def test_a_pair_that_differs_in_one_value_is_free(hall: str, row: int | None) -> None:
    """The values are unique only together, and a missing value does not equal anything."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    Seat.objects.create(seat_id="2", hall=hall, row=row)


@pytest.mark.parametrize("missing", [{"row": None}, {"row": None, "code": ""}])
def test_a_missing_or_empty_value_needs_no_claim(table: Table, missing: dict[str, Any]) -> None:
    """Two objects may lack the same value, as in SQL."""
    for number in "12":
        Seat.objects.create(seat_id=number, hall="A", **missing)
    assert claims(table) == {}


def test_compositions_of_one_text_are_one_value() -> None:
    """Strings are compared in Unicode NFC."""
    Seat.objects.create(seat_id="1", hall="Caf\u00e9", row=1)
    with pytest.raises(UniqueViolation):
        Seat.objects.create(seat_id="2", hall="Cafe\u0301", row=1)


def change_by_save(seat: Seat, **values: Any) -> None:
    """Set and save."""
    for name, value in values.items():
        setattr(seat, name, value)
    seat.save()


def change_by_queryset(seat: Seat, **values: Any) -> None:
    """Update through a queryset."""
    assert Seat.objects.filter(pk=seat.pk).update(**values) == 1


def change_by_fixture(seat: Seat, **values: Any) -> None:
    """Load a fixture over a stored object."""
    for name, value in values.items():
        setattr(seat, name, value)
    (loaded,) = serializers.deserialize("json", serializers.serialize("json", [seat]))
    loaded.save()


WAYS = [change_by_save, change_by_queryset, change_by_fixture]


@pytest.mark.parametrize("change", WAYS)
def test_every_way_to_write_moves_the_claim(table: Table, change: Any) -> None:
    """Every write releases the old values and claims the new ones; a missing value releases them."""
    seat = Seat.objects.create(seat_id="1", hall="A", row=7)
    change(seat, row=8)
    assert claims(table) == {place("A", "p5008"): "SEAT#1"}
    change(Seat.objects.get(pk="1"), hall="B")
    assert claims(table) == {place("B", "p5008"): "SEAT#1"}
    change(Seat.objects.get(pk="1"), row=None)
    assert claims(table) == {}
    assert_consistent()


@pytest.mark.parametrize("change", WAYS)
def test_every_way_to_write_is_refused_a_taken_pair(table: Table, change: Any) -> None:
    """The object that held the values keeps them."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    seat = Seat.objects.create(seat_id="2", hall="A", row=8)
    before = stored(table)
    with pytest.raises(UniqueViolation):
        change(seat, row=7)
    assert stored(table) == before


def test_two_who_each_change_another_part_do_not_both_win(table: Table) -> None:
    """Otherwise, the claim would contain a pair that neither process had read."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    mine, theirs = Seat.objects.get(pk="1"), Seat.objects.get(pk="1")
    theirs.hall = "B"
    theirs.save()
    mine.row = 8
    with pytest.raises(StaleObject):
        mine.save()
    assert claims(table) == {place("B", "p5007"): "SEAT#1"}
    assert_consistent()


def test_a_queryset_cannot_give_one_pair_to_several() -> None:
    """The error occurs before any write; objects may share one of the two values."""
    for number in (1, 2):
        Seat.objects.create(seat_id=str(number), hall="A", row=number)
    with pytest.raises(NotSupported, match="hall, row is unique, and 2 objects match: they cannot all have"):
        Seat.objects.filter(hall="A").update(hall="B", row=7)
    assert Seat.objects.filter(hall="A").update(hall="B") == 2


def test_deleted_objects_hold_nothing(table: Table) -> None:
    """A soft delete releases the values, and a restoration claims them again or names the conflict."""
    seat = Seat.objects.create(seat_id="1", hall="A", row=7)
    seat.delete()
    assert claims(table) == {}
    other = Seat.objects.create(seat_id="2", hall="A", row=7)
    with pytest.raises(UniqueViolation, match=r"Another catalog\.Seat has hall 'A' and row 7"):
        seat.restore()
    other.hard_delete()
    assert claims(table) == {}
    seat.restore()
    assert claims(table) == {place("A", "p5007"): "SEAT#1"}
    assert_consistent()


def test_claims_expire_with_their_owner(table: Table) -> None:
    """An expired object does not hold its values, and a prolonged one keeps them."""
    Voucher.objects.create(voucher_id="1", shop="s", number=1, expires_at=timezone.now() - timedelta(seconds=5))
    other = Voucher.objects.create(voucher_id="2", shop="s", number=1, expires_at=timezone.now() + timedelta(days=1))
    assert claims(table) == {"UNIQUE#Voucher#shop#number#s#p5001": "VOUCHER#2"}
    other.expires_at = None
    other.save()
    assert "expiresAt" not in stored(table)["UNIQUE#Voucher#shop#number#s#p5001"]
    with pytest.raises(UniqueViolation):
        Voucher.objects.create(voucher_id="3", shop="s", number=1)
    assert_consistent()


def test_prolonging_does_not_take_back_what_was_given_up(table: Table) -> None:
    """A process that only has an old value cannot claim it again by changing the time."""
    soon = timezone.now() + timedelta(days=1)
    Voucher.objects.create(voucher_id="1", shop="s", number=1, expires_at=soon)
    mine, theirs = Voucher.objects.get(pk="1"), Voucher.objects.get(pk="1")
    theirs.number = 2
    theirs.save()
    mine.expires_at = soon + timedelta(days=1)
    with pytest.raises(StaleObject):
        mine.save()
    assert claims(table) == {"UNIQUE#Voucher#shop#number#s#p5002": "VOUCHER#1"}
    assert_consistent()


def test_pynamodbs_writers_are_refused() -> None:
    """They would leave claims behind."""
    with pytest.raises(NotSupported, match=r"depends on .*hall, row"):
        Seat.batch_write()


def test_a_block_of_writes_is_one_transaction(table: Table) -> None:
    """A taken pair cancels the whole block."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    with pytest.raises(UniqueViolation), transactions.atomic():
        Seat.objects.create(seat_id="2", hall="B", row=7)
        Seat.objects.create(seat_id="3", hall="A", row=7)
    assert claims(table) == {place("A", "p5007"): "SEAT#1"}


def test_of_many_at_once_one_gets_the_pair(table: Table) -> None:
    """The other processes get an error, and none of their writes remain."""

    def create(number: int) -> bool:
        try:
            Seat.objects.create(seat_id=str(number), hall="A", row=7, code=str(number))
        except UniqueViolation:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(24))) == 1
    assert len(stored(table)) == 3
    assert_consistent()


def test_a_move_takes_the_claims_along(table: Table) -> None:
    """They belong to the object under its new key, whether it keeps its values or changes them."""
    seat = Seat.objects.create(seat_id="1", hall="A", row=7, code="x")
    seat.move(seat_id="2", row=8)
    assert claims(table) == {place("A", "p5008"): "SEAT#2", "UNIQUE#Seat#hallName#code#A#x": "SEAT#2"}
    assert_consistent()
    seat.hard_delete()
    assert stored(table) == {}


# forms


def test_forms_report_a_taken_pair_on_no_field() -> None:
    """The message and the code are Django's; each claim takes one GetItem."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    with assert_requests(["GetItem"]), pytest.raises(ValidationError) as raised:
        Seat(hall="A", row=7).validate_unique(exclude={"seat_id"})
    assert raised.value.message_dict == {NON_FIELD_ERRORS: ["Seat with this Hall and Row already exists."]}
    assert [error.code for error in raised.value.error_dict[NON_FIELD_ERRORS]] == ["unique_together"]


def test_an_object_is_not_in_its_own_way() -> None:
    """A stored object may keep its values."""
    seat = Seat.objects.create(seat_id="1", hall="A", row=7, code="x")
    seat.full_clean()


@pytest.mark.parametrize("excluded", ["hall", "row"])
def test_what_is_excluded_is_not_asked_for(excluded: str) -> None:
    """A form without one of the attributes cannot check the pair."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    with assert_requests([]):
        Seat(hall="A", row=7).validate_unique(exclude={"seat_id", excluded})


def test_what_is_missing_or_in_the_trash_is_not_asked_for() -> None:
    """Such an object would take no claim."""
    seat = Seat.objects.create(seat_id="1", hall="A", row=7)
    seat.delete()
    Seat.objects.create(seat_id="2", hall="A", row=7)
    with assert_requests([]):
        seat.validate_unique()
        Seat(hall="A", row=None).validate_unique(exclude={"seat_id"})


def test_a_model_form_says_it() -> None:
    """The error of the pair is the form's, once."""
    Seat.objects.create(seat_id="1", hall="A", row=7)
    form = modelform_factory(Seat, fields=["hall", "row"])({"hall": "A", "row": "7"})
    assert form.errors == {NON_FIELD_ERRORS: ["Seat with this Hall and Row already exists."] * 2}
