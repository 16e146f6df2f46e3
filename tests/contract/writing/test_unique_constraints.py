"""``UniqueConstraint`` with a condition: a claim exists exactly while the item meets it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import Deferrable, F, Q, UniqueConstraint
from django.db.models.functions import Lower

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError, StaleObject, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.seats import Seat
from tests.contract.tables import assert_consistent, claims, stored
from tests.unit.declaring import declare, forgotten, messages

ANNA = "UNIQUE#Seat#guest#anna"


@pytest.fixture
def conditional(table: Table) -> Iterator[Table]:
    """The table, which has to be right after each test."""
    yield table
    assert_consistent()


def test_the_claim_carries_the_constraints_name(conditional: Table) -> None:
    """Several conditions on one attribute would need claims of their own."""
    Seat.objects.create(seat_id="1", hall="A", guest="Anna", status="taken")
    (claim,) = (item for item in stored(conditional).values() if item["itemType"]["S"] == "UniqueClaim")
    assert (claim["pk"]["S"], claim["sk"]["S"]) == (ANNA, "#CLAIM#one_seat_each")


def test_there_is_a_claim_while_the_condition_is_met(conditional: Table) -> None:
    """The claim depends on the attribute of the condition."""
    seat = Seat.objects.create(seat_id="1", hall="A", guest="Anna")
    assert claims(conditional) == {}
    for status, held in (("taken", {ANNA: "SEAT#1"}), ("free", {})):
        seat.status = status
        with assert_requests(["TransactWriteItems"]):
            seat.save()
        assert claims(conditional) == held


def test_a_taken_value_is_refused_where_the_condition_is_met(conditional: Table) -> None:
    """Without regard to case here; the error names the constraint."""
    Seat.objects.create(seat_id="1", hall="A", guest="Anna", status="taken")
    other = Seat.objects.create(seat_id="2", hall="A", guest="ANNA")
    with pytest.raises(UniqueViolation) as raised:
        Seat.objects.filter(pk="2").update(status="taken")
    assert str(raised.value) == "Another catalog.Seat has guest 'ANNA' (one_seat_each). Nothing was written."
    assert (raised.value.field, raised.value.value) == ("guest", "ANNA")
    other.delete()


def test_the_condition_and_the_value_cannot_be_changed_apart(conditional: Table) -> None:
    """A process with an old value of either cannot leave a wrong claim."""
    Seat.objects.create(seat_id="1", hall="A", guest="Anna")
    mine, theirs = Seat.objects.get(pk="1"), Seat.objects.get(pk="1")
    theirs.guest = "Berta"
    theirs.save()
    mine.status = "taken"
    with pytest.raises(StaleObject):
        mine.save()
    assert claims(conditional) == {}


def test_soft_delete_frees_and_restore_takes_it_again(conditional: Table) -> None:
    """An object that has claimed the value in the meantime keeps it."""
    seat = Seat.objects.create(seat_id="1", hall="A", guest="Anna", status="taken")
    seat.delete()
    assert claims(conditional) == {}
    Seat.objects.create(seat_id="2", hall="A", guest="Anna", status="taken")
    with pytest.raises(UniqueViolation, match="one_seat_each"):
        seat.restore()
    Seat.objects.get(pk="2").hard_delete()
    assert seat.restore()
    assert claims(conditional) == {ANNA: "SEAT#1"}


def test_forms_report_it_where_it_belongs(conditional: Table) -> None:
    """As in Django, the condition's and the constraint's messages belong to the whole object, with the code."""
    Seat.objects.create(seat_id="1", hall="A", guest="Anna", status="taken", code="x")
    with assert_requests(["BatchGetItem"]), pytest.raises(ValidationError) as raised:
        Seat(hall="A", guest="anna", status="taken", code="x").validate_constraints()
    assert raised.value.message_dict == {
        NON_FIELD_ERRORS: ["Constraint \u201cone_seat_each\u201d is violated.", "The code is in use."],
    }


@pytest.mark.parametrize(
    ("values", "excluded"),
    [
        ({"status": "free"}, set()),
        ({"status": "taken"}, {"guest"}),
        ({"status": "taken"}, {"status"}),
        ({"status": "taken", "guest": None}, set()),
    ],
)
def test_what_needs_no_claim_is_not_asked_for(conditional: Table, values: dict[str, Any], excluded: set[str]) -> None:
    """Claims are not read if the condition is false, or if a form cannot evaluate it."""
    Seat.objects.create(seat_id="1", hall="A", guest="Anna", status="taken")
    with assert_requests([]):
        Seat(**{"hall": "A", "guest": "Anna", **values}).validate_constraints(exclude=excluded)


# rejected constraints

REFUSED = [
    (UniqueConstraint(Lower("s"), name="c"), "'c' has expressions, .* .CanonicalAttribute folds"),
    (UniqueConstraint(fields=["t"], deferrable=Deferrable.DEFERRED, name="c"), "'c' has deferrable, .* remove it"),
    (UniqueConstraint(fields=["t"], include=["s"], name="c"), "'c' has include, .* leave it out"),
    (UniqueConstraint(fields=["t"], opclasses=["x"], name="c"), "'c' has opclasses, .* remove it"),
    (UniqueConstraint(fields=["t"], nulls_distinct=False, name="c"), "'c' has nulls_distinct=False, .* a default"),
]


def with_constraint(constraint: Any) -> Any:
    """A model with this constraint."""
    return declare(
        "Single",
        ("SINGLE#{s}", "#X"),
        s=models.IdAttribute(),
        t=models.UnicodeAttribute(),
        m=models.MapAttribute(null=True),
        v=models.VersionAttribute(),
        options={"constraints": [constraint]},
    )


@pytest.mark.parametrize(("constraint", "message"), REFUSED)
def test_what_claims_cannot_follow_is_refused_when_it_is_declared(constraint: Any, message: str) -> None:
    """The message names the constraint, its requirement and the fix."""
    with forgotten(), pytest.raises(ConfigurationError, match=rf"Single.Meta.constraints: {message}"):
        with_constraint(constraint)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (
            UniqueConstraint(fields=["nothing"], name="c"),
            "c names 'nothing', which is no attribute. It has s, t",
        ),
        (UniqueConstraint(fields=["t", "m"], name="c"), "Single.m cannot be unique: a MapAttribute cannot be in a key"),
        (UniqueConstraint(fields=["t"], condition=Q(nothing=1), name="c"), "the condition of c: "),
        (UniqueConstraint(fields=["t"], condition=Q(t=F("m")), name="c"), "the condition of c: "),
        (UniqueConstraint(fields=["t"], condition=Q(t__gt=None), name="c"), "the condition of c: Cannot use None"),
        (UniqueConstraint(fields=["t"], condition=Q(v__gt=1), name="c"), "the condition of c: It compares 'v', which"),
    ],
)
def test_a_check_tells_what_names_no_attribute(constraint: Any, message: str) -> None:
    """The check E009 reports it before the first object is saved."""
    with forgotten():
        found = [text for id, text in messages(with_constraint(constraint)) if id == "dynamo_single.E009"]
    assert len(found) == 1
    assert message in found[0]
