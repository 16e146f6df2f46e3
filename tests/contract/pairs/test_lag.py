"""The simulation of eventual consistency, and the faults that it has found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.table import Table
from tests.contract.pairs.lag import lagging
from tests.unit.declaring import declare, forgotten


@pytest.fixture
def declared(table: Table) -> Iterator[tuple[Any, Any]]:
    """Owners, and things that copy their names and that only an index lists."""
    with forgotten():
        owner = declare(
            "Owner",
            ("OWNER#{owner_id}", "#METADATA"),
            owner_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(),
        )
        thing = declare(
            "Thing",
            ("THING#{thing_id}", "#METADATA"),
            {"by_owner": models.IndexKey("gs1", "OWNER#{owner_id}", "{thing_id}")},
            thing_id=models.UnicodeAttribute(),
            owner=models.ReferenceAttribute(owner, on_delete=models.DO_NOTHING),
            owner_name=models.CopiedAttribute("owner", "name"),
        )
        owner.objects.create(owner_id="o", name="Ann")
        yield owner, thing


def test_index_shows_a_write_some_time_later(declared: tuple[Any, Any]) -> None:
    _, thing = declared
    with lagging(1) as time:
        thing.objects.create(thing_id="t", owner_id="o")
        at_once = thing.objects.filter(owner="o").count()
        time.settle()
        assert (at_once, thing.objects.filter(owner="o").count()) == (0, 1)


@pytest.mark.parametrize(("of_table", "shown"), [(False, True), (True, False)])
def test_table_is_behind_only_when_told_to(declared: tuple[Any, Any], of_table: bool, shown: bool) -> None:
    _, thing = declared
    with lagging(1, of_table=of_table):
        thing.objects.create(thing_id="t", owner_id="o")
        assert thing.objects.filter(pk="t").exists() is shown
        assert thing.objects.consistent().filter(pk="t").exists()


def test_waiting_moves_the_clock(declared: tuple[Any, Any]) -> None:
    """The app waits for an index without keeping the test waiting."""
    owner, thing = declared
    with lagging(1):
        thing.objects.create(thing_id="t", owner_id="o")
        owner.objects.get(pk="o").delete()
    assert [finding.kind for finding in verify()] == []


def test_copies_follow_although_the_index_is_behind(declared: tuple[Any, Any]) -> None:
    """The search after a rename finds outdated copies that are already right, so none is due (`CopiesDue`)."""
    owner, thing = declared
    with lagging(1) as time:
        thing.objects.create(thing_id="t", owner_id="o")
        time.settle()
        owner.objects.filter(pk="o").update(name="Bob")
        assert thing.objects.consistent().get(pk="t").owner_name == "Bob"
    assert list(verify()) == []


def test_rename_passes_a_holder_that_was_just_deleted(declared: tuple[Any, Any]) -> None:
    """The index still shows its copy."""
    owner, thing = declared
    with lagging(1) as time:
        thing.objects.create(thing_id="t", owner_id="o")
        time.settle()
        thing.objects.consistent().get(pk="t").delete()
        owner.objects.filter(pk="o").update(name="Bob")
        assert owner.objects.consistent().get(pk="o").name == "Bob"


def test_second_rename_passes_an_index_behind(declared: tuple[Any, Any]) -> None:
    """The index still shows the copies as they were before the first one."""
    owner, thing = declared
    with lagging(1) as time:
        thing.objects.create(thing_id="t", owner_id="o")
        time.settle()
        for name in ("Bob", "Cyd"):
            owner.objects.filter(pk="o").update(name=name)
        assert thing.objects.consistent().get(pk="t").owner_name == "Cyd"


WAYS = [models.CASCADE, models.SET_NULL, models.SET_DEFAULT]


@pytest.mark.parametrize("base", [models.Model, models.SoftDeleteModel], ids=["for good", "trash"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_deletion_leaves_what_refers_elsewhere_by_now(table: Table, way: Any, base: Any) -> None:
    """The index still shows its reference to the deleted object."""
    with forgotten():
        owner = declare("Owner", ("OWNER#{owner_id}", "#METADATA"), bases=(base,), owner_id=models.UnicodeAttribute())
        thing = declare(
            "Thing",
            ("THING#{thing_id}", "#METADATA"),
            {"by_owner": models.IndexKey("gs1", "OWNER#{owner_id}", "{thing_id}")},
            bases=(base,),
            thing_id=models.UnicodeAttribute(),
            owner=models.ReferenceAttribute(owner, null=True, default="other", on_delete=way),
        )
        for owner_id in ("old", "new", "other"):
            owner.objects.create(owner_id=owner_id)
        with lagging(1) as time:
            thing.objects.create(thing_id="t", owner_id="old")
            time.settle()
            thing.objects.filter(pk="t").update(owner="new")
            owner.objects.get(pk="old").delete()
            assert thing.objects.consistent().get(pk="t").owner_id == "new"


@pytest.mark.parametrize("way", [models.PROTECT, models.SET_NULL], ids=lambda way: way.__name__)
@pytest.mark.parametrize("to_trash", [True, False], ids=["to the trash", "restored"])
def test_permanent_deletion_finds_what_moved_between_trash_and_list(table: Table, way: Any, to_trash: bool) -> None:
    """The index shows its former place, and the table has its current one."""
    with forgotten():
        owner = declare("Owner", ("OWNER#{owner_id}", "#METADATA"), owner_id=models.UnicodeAttribute())
        thing = declare(
            "Thing",
            ("THING#{thing_id}", "#METADATA"),
            {"by_owner": models.IndexKey("gs1", "OWNER#{owner_id}", "{thing_id}")},
            bases=(models.SoftDeleteModel,),
            thing_id=models.UnicodeAttribute(),
            owner=models.ReferenceAttribute(owner, null=True, on_delete=way),
        )
        owner.objects.create(owner_id="o")
        obj = thing.objects.create(thing_id="t", owner_id="o")
        if not to_trash:
            obj.delete()
        with lagging(1):
            (obj.delete if to_trash else obj.restore)()
            with pytest.raises(models.ProtectedError) if way is models.PROTECT else nullcontext():
                owner.objects.consistent().get(pk="o").delete()
        assert list(verify()) == []
