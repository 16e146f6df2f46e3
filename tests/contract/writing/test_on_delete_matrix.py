"""Each ``on_delete``, checked or not, with and without a trash on both sides: the state of the referring object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import ProtectedError

from dynamo_single import models
from dynamo_single.checks.models import check_model
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import MissingReference
from dynamo_single.table import Table
from tests.deep import deep
from tests.unit.declaring import declare, forgotten

WAYS: dict[str, Any] = {
    "CASCADE": models.CASCADE,
    "PROTECT": models.PROTECT,
    "SET_NULL": models.SET_NULL,
    "SET_DEFAULT": models.SET_DEFAULT,
    "DO_NOTHING": models.DO_NOTHING,
}
#: The new target of a reference after a permanent deletion, if it changes.
REFERS_TO = {"SET_NULL": None, "SET_DEFAULT": "other"}
GONE = "gone"

World = tuple[Any, Any, str, bool]


def declared_as(way: str, checked: bool, trash: bool, own: bool) -> str:
    """Return the name of a case."""
    marks = {"checked": checked, "trash": trash, "own trash": own}
    return " ".join([way, *(mark for mark, given in marks.items() if given)])


CASES = [
    (way, checked, trash, own)
    for way in WAYS
    # DO_NOTHING cannot be combined with a count.
    for checked in ((False,) if way == "DO_NOTHING" else (False, True))
    for trash in (False, True)
    for own in (False, True)
]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(case, id=declared_as(*case), marks=[deep] if case[2] is not case[3] else []) for case in CASES
    ],
)
def declared(request: Any) -> Iterator[World]:
    """Return models for the target and the referring object, each with or without a trash."""
    way, checked, trash, own = request.param
    with forgotten():
        house = declare(
            "Inn",
            ("INN#{house_id}", "#METADATA"),
            bases=(models.SoftDeleteModel if trash else models.Model,),
            house_id=models.UnicodeAttribute(),
        )
        guest = declare(
            "Lodger",
            ("LODGER#{guest_id}", "#METADATA"),
            {"by_house": models.IndexKey("gs1", "LODGERS#{house_id}", "{guest_id}")},
            bases=(models.SoftDeleteModel if own else models.Model,),
            guest_id=models.UnicodeAttribute(),
            house=models.ReferenceAttribute(house, on_delete=WAYS[way], checked=checked, null=True, default="other"),
        )
        assert [*check_model(house), *check_model(guest)] == []
        yield house, guest, way, checked


@pytest.fixture
def world(declared: World, table: Table) -> World:
    """A guest of a house, and another house."""
    house, guest, _, _ = declared
    house.objects.create(house_id="other")
    house.objects.create(house_id="h")
    guest.objects.create(guest_id="g", house_id="h")
    return declared


def everywhere(model: Any) -> Any:
    """Return the manager of live and deleted objects."""
    return getattr(model, "all_objects", model.objects)


def state(guest: Any) -> tuple[str | None, bool] | str:
    """Return the guest's reference, and whether it is live."""
    try:
        found = everywhere(guest).consistent().get(pk="g")
    except ObjectDoesNotExist:
        return GONE
    return found.house_id, getattr(found, "deleted_at", None) is None


def refused(write: Callable[[], Any]) -> bool:
    """Return whether a referring object prevents the deletion."""
    try:
        write()
    except ProtectedError:
        return True
    return False


def is_there(house: Any) -> bool:
    """Return whether the house is live."""
    return bool(house.objects.consistent().filter(pk="h").exists())


def expected_for_good(way: str, *, live: bool) -> tuple[str | None, bool] | str:
    """Return the expected state of the guest after the house's permanent deletion."""
    return GONE if way == "CASCADE" else (REFERS_TO.get(way, "h"), live)


def test_a_deletion(world: World) -> None:
    """Objects with a trash go there and back; others are deleted permanently."""
    house, guest, way, _ = world
    soft = hasattr(house, "deleted_objects")
    own = hasattr(guest, "deleted_objects")
    is_refused = refused(house.objects.get(pk="h").delete)
    assert (is_refused, is_there(house)) == ((way == "PROTECT"),) * 2
    if is_refused or (soft and not (way == "CASCADE" and own)):
        assert state(guest) == ("h", True)
    elif soft:
        assert state(guest) == ("h", False)
    else:
        assert state(guest) == expected_for_good(way, live=True)
    if soft and not is_refused:
        house.deleted_objects.get(pk="h").restore()
        assert (is_there(house), state(guest)) == (True, ("h", True))
    assert list(verify()) == []


def test_a_deletion_for_good(world: World) -> None:
    """The trash does not matter."""
    house, guest, way, _ = world
    assert refused(house.objects.get(pk="h").hard_delete) is (way == "PROTECT")
    assert state(guest) == expected_for_good(way, live=True)


def test_a_deletion_for_good_of_what_lies_in_the_trash(world: World) -> None:
    """Cascaded objects are deleted, and remaining ones are handled now."""
    house, guest, way, _ = world
    if not hasattr(house, "deleted_objects") or refused(house.objects.get(pk="h").delete):
        return
    house.deleted_objects.get(pk="h").hard_delete()
    assert state(guest) == expected_for_good(way, live=True)


def test_one_in_the_trash_who_refers(world: World) -> None:
    """A referring object in the trash does not prevent a soft delete, but it prevents a permanent deletion."""
    house, guest, way, _ = world
    if not hasattr(guest, "deleted_objects"):
        return
    guest.objects.get(pk="g").delete()
    if hasattr(house, "deleted_objects"):
        house.objects.get(pk="h").delete()
        assert state(guest) == ("h", False)
        house.deleted_objects.get(pk="h").restore()
        assert state(guest) == ("h", False)
    assert refused(house.objects.get(pk="h").hard_delete) is (way == "PROTECT")
    assert state(guest) == expected_for_good(way, live=False)


def test_a_deletion_by_a_queryset(world: World) -> None:
    house, guest, way, _ = world
    find = everywhere(house).filter(pk="h")
    delete = find.hard_delete if hasattr(house, "deleted_objects") else find.delete
    assert refused(delete) or way != "PROTECT"
    assert state(guest) == expected_for_good(way, live=True)


def test_who_comes_to_refer_to_what_is_not_there(world: World) -> None:
    """A checked reference is rejected; an unchecked one is found later if ``on_delete`` has an effect."""
    house, guest, way, checked = world
    guest.objects.get(pk="g").hard_delete()
    house.objects.get(pk="h").hard_delete()
    if checked:
        with pytest.raises(MissingReference):
            guest.objects.create(guest_id="late", house_id="h")
        return
    guest.objects.create(guest_id="late", house_id="h")
    found = {"CASCADE": {"child without parent"}, "DO_NOTHING": set()}.get(way, {"reference to a missing object"})
    assert {finding.kind for finding in verify()} == found


def test_who_comes_to_refer_to_what_lies_in_the_trash(world: World) -> None:
    """A checked reference is rejected."""
    house, guest, _, checked = world
    guest.objects.get(pk="g").hard_delete()
    if not hasattr(house, "deleted_objects"):
        return
    house.objects.get(pk="h").delete()
    if checked:
        with pytest.raises(MissingReference):
            guest.objects.create(guest_id="late", house_id="h")
        return
    guest.objects.create(guest_id="late", house_id="h")
    assert list(verify()) == []
