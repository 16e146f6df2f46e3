"""A write finds dependent objects with any ``Meta.ordering``, even if no key has this order."""

from __future__ import annotations

import pytest

from dynamo_single.exceptions import NotSupported
from tests.catalog.boards import Pin, Wall

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def wall() -> Wall:
    """A wall with two pins."""
    wall = Wall.objects.create(wall_id="w", name="North")
    for pin_id, color in (("1", "red"), ("2", "blue")):
        Pin.objects.create(wall=wall, pin_id=pin_id, color=color)
    return wall


def test_children_are_deleted_with_their_parent(wall: Wall) -> None:
    """Their model's order is one of lists."""
    assert wall.delete() == (3, {"catalog.Wall": 1, "catalog.Pin": 2})


def test_copies_follow_their_source(wall: Wall) -> None:
    """A key finds the holders by their reference."""
    wall.name = "South"
    wall.save()
    assert {pin.wall_name for pin in Pin.objects.filter(wall=wall).order_by("pin_id")} == {"South"}


def test_an_object_that_others_refer_to_is_not_moved(wall: Wall) -> None:
    """A key finds the references."""
    with pytest.raises(NotSupported, match=r"catalog\.Pin"):
        wall.move(wall_id="x")
