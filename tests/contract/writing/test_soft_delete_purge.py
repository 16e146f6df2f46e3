"""``Meta.purge_after``: the trash keeps objects for a time, and DynamoDB's time to live removes them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.forms import modelform_factory
from django.utils import timezone

from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, moved_time
from tests.catalog.clubs import Club, Draft, Sheet
from tests.contract.tables import stored

pytestmark = pytest.mark.usefixtures("table")


def expires(table: Table, partition: str) -> datetime | None:
    """When an item expires."""
    found = stored(table)[partition].get("expiresAt")
    return None if found is None else datetime.fromtimestamp(int(found["N"]), tz=timezone.get_default_timezone())


def test_only_what_is_in_the_trash_expires(table: Table) -> None:
    """A live or restored object has no ``expiresAt``; a deleted one has a separate time."""
    draft = Draft.objects.create(draft_id="d", title="t")
    assert expires(table, "DRAFT#d") is None
    draft.delete()
    found = expires(table, "DRAFT#d")
    assert found is not None
    assert timedelta() < found - draft.deleted_at - timedelta(days=30) <= timedelta(seconds=1)
    assert found == draft.purge_at
    assert draft.restore() == (1, {"catalog.Draft": 1})
    assert expires(table, "DRAFT#d") is None
    assert draft.purge_at is None


def test_purging_costs_no_request() -> None:
    """The deletion itself writes the time."""
    draft = Draft.objects.create(draft_id="d", title="t")
    with assert_requests(["Query", "TransactWriteItems"]):
        draft.delete()


def test_what_is_past_its_time_is_not_shown() -> None:
    """The trash and the ``pk`` return the object only before its time, even if DynamoDB still stores it."""
    draft = Draft.objects.create(draft_id="d", title="t")
    draft.delete()
    with moved_time(timedelta(days=29.9)):
        assert Draft.deleted_objects.count() == Draft.all_objects.filter(pk="d").count() == 1
    with moved_time(timedelta(days=30.1)):
        assert Draft.deleted_objects.count() == Draft.all_objects.filter(pk="d").count() == 0
        with pytest.raises(Draft.DoesNotExist, match=r"has expired: its time in the trash is over"):
            draft.restore()


def test_what_is_past_its_time_is_no_obstacle() -> None:
    """Other objects can take its key and its unique values."""
    Draft.objects.create(draft_id="d", title="t").delete()
    with moved_time(timedelta(days=30.1)):
        assert Draft.objects.create(draft_id="d", title="t").pk == "d"
        assert Draft.objects.get(pk="d").purge_at is None


def test_children_stay_as_long_as_their_parent() -> None:
    """Cascading children have the parent's time, so that ``restore()`` finds all of them."""
    draft = Draft.objects.create(draft_id="d", title="t")
    Sheet.objects.create(draft=draft, number=1)
    Sheet.objects.create(draft=draft, number=2).delete()
    draft.delete()
    with moved_time(timedelta(days=2)):
        assert [sheet.number for sheet in Sheet.deleted_objects.filter(draft="d")] == [1]
        assert draft.restore() == (2, {"catalog.Draft": 1, "catalog.Sheet": 1})
    assert Sheet.objects.get(pk="d~~1").purge_at is None


def test_a_model_without_the_option_keeps_its_trash(table: Table) -> None:
    """There is neither the attribute nor ``expiresAt``."""
    Club.objects.create(club_id="c", name="n").delete()
    assert expires(table, "CLUB#c") is None
    assert not hasattr(Club, "purge_at")


def test_marks_are_in_no_form() -> None:
    """A user cannot set the app's own attributes."""
    assert list(modelform_factory(Draft, fields="__all__").base_fields) == ["draft_id", "title"]
