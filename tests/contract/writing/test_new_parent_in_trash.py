"""An object in the trash that gets another parent no longer belongs to the deletion of its former parent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from dynamo_single import transactions
from dynamo_single.table import Table
from tests.catalog.clubs import Club, Player, Team
from tests.catalog.library import Aisle, Volume
from tests.contract.clubs import items
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")


def in_block(write: Callable[[], object]) -> None:
    """Call something in an atomic block."""
    with transactions.atomic():
        write()


def assigned(player: Player) -> Player:
    """Return an unsaved player of the other team."""
    player.team_id = "c~~u"
    return player


#: Ways to give a player in the trash to the other team.
BY_ATTRIBUTE: dict[str, Callable[[Any], Any]] = {
    "save": lambda player: assigned(player).save(),
    "asave": lambda player: async_to_sync(assigned(player).asave)(),
    "update_fields": lambda player: assigned(player).save(update_fields=["team"]),
    "queryset": lambda player: Player.deleted_objects.filter(pk=player.pk).update(team="c~~u"),
    "bulk": lambda player: Player.all_objects.bulk_update([assigned(player)], ["team"]),
    "block": lambda player: in_block(assigned(player).save),
}
#: Ways to give a volume in the trash to the other aisle, which is in its primary key.
BY_KEY: dict[str, Callable[[Any], Any]] = {
    "move": lambda volume: volume.move(aisle_id="b"),
    "amove": lambda volume: async_to_sync(volume.amove)(aisle_id="b"),
    "move_tree": lambda volume: volume.move_tree(aisle_id="b"),
    "block": lambda volume: in_block(lambda: volume.move(aisle_id="b")),
}


@pytest.fixture
def player() -> Any:
    """A player in the trash with the team and another player; there is a second team."""
    club = Club.objects.create(club_id="c", name="c")
    team = Team.objects.create(club=club, team_id="t")
    Team.objects.create(club=club, team_id="u")
    for key in "12":
        Player.objects.create(player_id=key, team=team)
    team.delete()
    return Player.deleted_objects.get(pk="1")


@pytest.fixture
def volume() -> Any:
    """A volume in the trash with its aisle; there is a second aisle."""
    aisle = Aisle.objects.create(aisle_id="a", name="north")
    Aisle.objects.create(aisle_id="b", name="south")
    Volume.objects.create(aisle=aisle, number=1, title="one")
    aisle.delete()
    return Volume.deleted_objects.get(pk="a~~1")


@pytest.mark.parametrize("write", BY_ATTRIBUTE.values(), ids=BY_ATTRIBUTE)
def test_player_of_another_team_stays_in_trash(player: Any, write: Any) -> None:
    """It is like an object that was deleted separately."""
    write(player)
    Team.deleted_objects.get(pk="c~~t").restore()

    left = Player.all_objects.get(pk="1")
    assert (left.is_deleted, left.deleted_with) == (True, None)
    assert [each.pk for each in Player.objects.filter(team="c~~t")] == ["2"]
    assert_consistent()


@pytest.mark.parametrize("write", BY_ATTRIBUTE.values(), ids=BY_ATTRIBUTE)
def test_restored_player_of_another_team_is_counted_once(player: Any, table: Table, write: Any) -> None:
    """The former team stopped counting the player when the team changed."""
    write(player)
    Player.deleted_objects.get(pk="1").restore()

    assert items(table)["CLUB#c", "TEAM#t"]["deletedAlong"] == {"N": "1"}
    assert_consistent()


@pytest.mark.parametrize("write", BY_KEY.values(), ids=BY_KEY)
def test_volume_of_another_aisle_stays_in_trash(volume: Any, write: Any) -> None:
    write(volume)
    Aisle.deleted_objects.get(pk="a").restore()

    left = Volume.all_objects.get(pk="b~~1")
    assert (left.is_deleted, left.deleted_with) == (True, None)
    assert volume.deleted_with is None
    assert_consistent()


def test_volume_that_moves_within_its_aisle_comes_back(volume: Any) -> None:
    volume.move(number=7)
    Aisle.deleted_objects.get(pk="a").restore()

    assert [each.number for each in Volume.objects.all()] == [7]
    assert_consistent()


def test_volumes_of_moved_aisle_come_back(volume: Any) -> None:
    """They follow their parent, whatever its key is."""
    aisle = Aisle.deleted_objects.get(pk="a")
    aisle.move_tree(aisle_id="z")
    aisle.restore()

    assert [each.pk for each in Volume.objects.all()] == ["z~~1"]
    assert_consistent()
