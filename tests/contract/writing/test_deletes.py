"""Permanent deletion, the trash and restoration on the real engine."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models.signals import post_delete, pre_delete

from dynamo_single.exceptions import UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.catalog.clubs import Bee, Hive
from tests.catalog.models import Firm, Member
from tests.contract.tables import claims, stored

pytestmark = pytest.mark.usefixtures("table")


def test_deleting_is_one_request_and_counts() -> None:
    """One DeleteItem deletes an object without soft delete; a second deletion counts no object."""
    firm = Firm.objects.create(firm_id="f", name="n", stock="s")
    other = Firm.objects.get(pk="f")
    with assert_requests(["DeleteItem"]):
        assert firm.delete() == (1, {"catalog.Firm": 1})
    assert other.delete() == (0, {"catalog.Firm": 0})


def test_an_object_that_is_not_stored_cannot_be_deleted() -> None:
    """As in Django, deleting a new object raises a ``ValueError``."""
    with pytest.raises(ValueError, match=r"not stored"):
        Firm(firm_id="f", name="n", stock="s").delete()


def test_soft_delete_keeps_the_item(table: Table) -> None:
    """A soft delete sets ``deletedAt`` and replaces the index keys by the trash's; other attributes stay the same.

    The children are searched before and after.
    """
    company = Company.objects.create(company_id="c1", name="Acme")
    before = stored(table)["COMPANY#c1"]
    with assert_requests(["Query", "UpdateItem", "Query"]):
        assert company.delete() == (1, {"directory.Company": 1})
    after = stored(table)["COMPANY#c1"]
    assert after["gs1pk"] == {"S": "TRASH#Company"}
    assert after["gs1sk"]["S"].endswith("#c1")
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed == {"gs1pk", "gs1sk", "deletedAt", "updatedAt"}


def test_soft_delete_frees_unique_values_and_restore_takes_them_back(table: Table) -> None:
    """A deleted object holds no claim; restoring it takes its own again."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    with assert_requests(["TransactWriteItems"]):
        member.delete()
    assert claims(table) == {}
    with assert_requests(["TransactWriteItems"]):
        member.restore()
    assert claims(table) == {"UNIQUE#Member#email#a@example.org": "MEMBER#m1"}
    assert [m.pk for m in Member.objects.all()] == ["m1"]


def test_restore_is_refused_when_the_value_was_taken_meanwhile(table: Table) -> None:
    """The object stays in the trash, and the error names the value."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    member.delete()
    Member.objects.create(member_id="m2", email="a@example.org")
    with pytest.raises(UniqueViolation, match=r"email 'a@example.org'"):
        member.restore()
    assert [m.pk for m in Member.deleted_objects.all()] == ["m1"]


def test_deleting_twice_and_restoring_a_live_object_are_harmless() -> None:
    """Both leave the object unchanged, even if another reader has loaded its other state."""
    company = Company.objects.create(company_id="c1", name="Acme")
    other = Company.objects.get(pk="c1")
    company.delete()
    assert company.delete() == (0, {"directory.Company": 0})
    assert other.delete() == (0, {"directory.Company": 0})
    other.restore()
    other.restore()
    assert Company.objects.get(pk="c1").deleted_at is None


def test_soft_delete_does_not_undo_another_writers_change() -> None:
    """Deleting an object keeps another process's change."""
    member = Member.objects.create(member_id="m1", email="a@example.org")
    other = Member.objects.get(pk="m1")
    other.email = "b@example.org"
    other.save()
    member.delete()
    member.restore()
    assert Member.objects.get(pk="m1").email == "b@example.org"


def test_hard_delete_of_a_deleted_object_empties_the_trash() -> None:
    """You can permanently delete an object in the trash."""
    company = Company.objects.create(company_id="c1", name="Acme")
    company.delete()
    company.hard_delete()
    assert not Company.all_objects.filter(pk="c1").exists()


@pytest.mark.parametrize("signal", [pre_delete, post_delete])
def test_a_querysets_deletion_names_the_queryset_as_its_origin(signal: Any) -> None:
    """As in Django, the origin of a queryset's deletion is the queryset."""
    Firm.objects.create(firm_id="f", name="n", stock="s")
    origins: list[Any] = []

    def note(origin: Any, **kwargs: Any) -> None:
        origins.append(origin)

    signal.connect(note, sender=Firm)
    try:
        queryset = Firm.objects.filter(pk="f")
        queryset.delete()
    finally:
        signal.disconnect(note, sender=Firm)
    assert len(origins) == 1
    assert origins[0] is queryset


def test_an_objects_deletion_names_the_object_as_its_origin() -> None:
    """As in Django's collector, the origin is the object, also for cascading children."""
    hive = Hive.objects.create(hive_id="h")
    Bee.objects.create(hive=hive, bee_id="b")
    origins: list[Any] = []

    def note(origin: Any, **kwargs: Any) -> None:
        origins.append(origin)

    post_delete.connect(note)
    try:
        hive.hard_delete()
    finally:
        post_delete.disconnect(note)
    assert [origin is hive for origin in origins] == [True, True]
