"""``move_tree()``: whole families under another key or parent, in one transaction or in several, and interrupted."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single import transactions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import AlreadyExists, NotSupported, StaleObject
from dynamo_single.table import Table, capture_requests, get_table
from dynamo_single.table.request import MAX_ACTIONS
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.chat import ChatChannel, ChatMembership, ChatServer, ChatUser
from tests.catalog.clubs import Bee, Club, Guest, Hive, Player, Team, Trophy
from tests.catalog.places import Kitchen, Place, Restaurant
from tests.catalog.servers import GamePlayer, GameServer, GameTag
from tests.catalog.studios import (
    Artist,
    Chore,
    Frame,
    Lease,
    Painting,
    Play,
    Sketch,
    Theatre,
    Venture,
)
from tests.catalog.tenants import Estate, EstateLetter, Lot, LotRemark, Stakeholder
from tests.contract.clubs import club, items
from tests.contract.robustness.crashing import ROOM, Items
from tests.contract.robustness.test_cascade_crashes import MANY, Crash, crash, put_back
from tests.contract.tables import assert_consistent
from tests.ready import table_ready

pytestmark = pytest.mark.usefixtures("table", "small_transactions")
#: The children of a family that moves in one transaction.
FEW = 3


#: Created families with their stored items.
_families: dict[tuple[str, int], Items] = {}


def family(club_id: str, players: int) -> None:
    """Store a club with all kinds of dependents in an empty table; it is created once, and copied afterwards."""
    table = get_table()
    assert items(table) == {}
    if (club_id, players) in _families:
        put_back(_families[club_id, players])
        return
    made = club(0, club_id=club_id)
    # Named as in the other family: only the club's own identity differs.
    texts = [f"{number:03}" for number in range(players)]
    Player.objects.bulk_create(
        [Player(player_id=text, team_id=f"{club_id}~~b", number=text) for text in texts], in_transactions=True
    )
    made.name = "name"
    made.save()
    Trophy.objects.create(club=made, year=2000)
    Guest.objects.create(club=made, guest_id="g")
    _families[club_id, players] = items(table)


def plain(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Return all items without their times of creation and change."""
    found = items(table)
    for item in found.values():
        item.pop("createdAt", None)
    return found


def wanted(table: Table, make: Callable[[], None]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the table's contents after only these creations, and empty it."""
    make()
    found = plain(table)
    table_ready()
    return found


# one transaction


def test_a_small_family_moves_by_one_transaction(table: Table) -> None:
    """The table then looks as if the family was created under the new key."""
    moved = wanted(table, lambda: family("d", FEW))
    family("c", FEW)
    root = Club.objects.get(pk="c")
    with capture_requests() as sent:
        root.move_tree(club_id="d")
    assert [each.operation for each in sent if each.operation != "Query"] == ["TransactWriteItems"]
    assert plain(table) == moved
    assert root.pk == "d"
    assert_consistent()


def test_a_child_moves_to_another_parent_with_what_is_below_it() -> None:
    """Players that an index lists refer to their team under its new club."""
    for club_id in "cd":
        club(FEW, club_id=club_id)
    Team.objects.get(pk="c~~b").move_tree(club_id="d", team_id="z")
    assert [player.pk for player in Player.objects.filter(team="d~~z")] == ["c000", "c001", "c002"]
    assert not Player.objects.filter(team="c~~b").exists()
    assert_consistent()


def test_three_generations_in_one_partition_move_together(table: Table) -> None:
    """Their keys contain parts of the root's key, so all of them move to the new partition."""

    def made(tenant: str) -> None:
        estate = Estate.objects.create(tenant=tenant, code=1)
        for number in (1, 2):
            lot = estate.lots.create(number=number, title="t")
            lot.remarks.create(remark_id="r")
        Stakeholder.objects.create(stake_in=estate, stakeholder_id="s")
        EstateLetter.objects.create(estate=estate, letter_id="l")

    moved = wanted(table, lambda: made("new"))
    made("old")
    Estate.objects.get(pk="old~~1").move_tree(tenant="new")
    assert plain(table) == moved
    assert LotRemark.objects.get(about=Lot(estate_id="new~~1", number=2).pk, remark_id="r").about.estate.tenant == "new"


def test_what_only_refers_is_updated_in_its_place() -> None:
    """A channel has a key of its own; copies and counters stay right."""
    server = ChatServer.objects.create(server_id="s", name="Gaming")
    john = ChatUser.objects.create(user_id="u", username="John")
    ChatMembership.objects.create(server=server, user=john)
    ChatChannel.objects.create(channel_id="c", server=server)
    server = ChatServer.objects.get(pk="s")
    server.move_tree(server_id="t")
    assert ChatChannel.objects.get(pk="c").server_id == "t"
    assert (server.member_count, server.channel_count) == (1, 1)
    john.move_tree(user_id="v")
    (member,) = ChatMembership.objects.filter(server="t")
    assert (member.user_id, member.username) == ("v", "John")
    assert_consistent()


def test_a_family_in_the_trash_comes_back_under_its_new_key() -> None:
    """The marker of the shared deletion contains the new identity."""
    club(FEW)
    Club.objects.get(pk="c").delete()
    root = Club.deleted_objects.get(pk="c")
    root.move_tree(club_id="d")
    assert not Player.objects.filter(team="d~~b").exists()
    root.restore()
    assert Player.objects.filter(team="d~~b").count() == FEW
    assert_consistent()


def test_it_joins_a_block() -> None:
    """No request is sent before the end of the block."""
    club(FEW)
    root = Club.objects.get(pk="c")
    with transactions.atomic():
        root.move_tree(club_id="d")
        assert Club.objects.filter(pk="d").explain()
    assert Player.objects.filter(team="d~~b").count() == FEW
    assert_consistent()


def test_a_block_that_is_too_small_for_it_is_refused(table: Table) -> None:
    """The error names the alternative, and nothing is written."""
    club(MANY)
    for number in range(100):
        Guest.objects.create(club_id="c", guest_id=str(number))
    before = items(table)
    with pytest.raises(NotSupported, match=r"more than the 100 actions.*outside the block"), transactions.atomic():
        Club.objects.get(pk="c").move_tree(club_id="d")
    assert items(table) == before


def test_nothing_moves_to_where_another_one_is(table: Table) -> None:
    """This applies to small and large families, and the object in memory is unchanged."""
    for players in (FEW, MANY):
        table_ready()
        club(players)
        Club.objects.create(club_id="d", name="other")
        before, root = items(table), Club.objects.get(pk="c")
        with pytest.raises(AlreadyExists):
            root.move_tree(club_id="d")
        assert items(table) == before
        assert root.pk == "c"


def test_without_anything_below_it_is_a_move() -> None:
    """One transaction follows the search."""
    hive = Hive.objects.create(hive_id="h")
    hive.move_tree(hive_id="i")
    assert Hive.objects.get(pk="i").bee_count == 0
    with assert_requests(0):
        hive.move_tree()


def test_awaited() -> None:
    """Move asynchronously."""
    club(FEW)
    root = Club.objects.get(pk="c")
    asyncio.run(root.amove_tree(club_id="d"))
    assert Player.objects.filter(team="d~~b").count() == FEW


# other kinds of references: the table looks as if all was created under the new key


def studio(pk: str, number: int) -> None:
    """An artist to whom others refer by each kind of ``on_delete``, some by two references."""
    Artist.objects.create(artist_id="nobody", name="nobody")
    artist = Artist.objects.create(artist_id=pk, name="Ann")
    for each in range(number):
        sketch = Sketch.objects.create(artist=artist, sketch_id=f"{each:03}")
        Frame.objects.create(frame_id=f"{each:03}", sketch=sketch, maker=artist)
        Painting.objects.create(painting_id=f"{each:03}", artist=artist, editor=artist)
    Painting.objects.get(pk="000").delete()


def theatre(pk: str, number: int) -> None:
    """Return a theatre that counts its references."""
    made = Theatre.objects.create(theatre_id=pk)
    for each in range(number):
        Play.objects.create(play_id=f"{each:03}", theatre=made)
    Lease.objects.create(lease_id="l", theatre=made)


def game(pk: str, number: int) -> None:
    """Return declared and generated edges, one of them from the server to itself."""
    made = GameServer.objects.create(server_id=pk, name="s")
    other = GameServer.objects.create(server_id="other", name="o")
    for each in range(number):
        player = GamePlayer.objects.create(player_id=f"{each:03}", username=f"n{each}")
        made.players.add(player, through_defaults={"role": "admin"})
    made.tags.add(GameTag.objects.create(word="w"))
    made.links.add(made, other)
    other.links.add(made)


def venture(pk: str, number: int) -> None:
    """Return an object with conditional counters."""
    made = Venture.objects.create(venture_id=pk)
    for each in range(number):
        Chore.objects.create(venture=made, chore_id=f"{each:03}", status="open" if each % 2 else "done", rank=each)


def place(pk: str, number: int) -> None:
    """Return one-to-one relations, with a claim and with a complete key."""
    made = Place.objects.create(place_id=pk, name="p")
    restaurant = Restaurant.objects.create(restaurant_id="r", place=made, name="r")
    Kitchen.objects.create(restaurant=restaurant, stoves=1)


@pytest.mark.parametrize("number", [2, 20])
@pytest.mark.parametrize(
    ("make", "model", "changes"),
    [
        (studio, Artist, {"artist_id": "new"}),
        (theatre, Theatre, {"theatre_id": "new"}),
        (game, GameServer, {"server_id": "new"}),
        (venture, Venture, {"venture_id": "new"}),
        (place, Place, {"place_id": "new"}),
    ],
)
def test_all_that_refers_to_it_follows(
    table: Table, make: Callable[[str, int], None], model: Any, changes: dict[str, str], number: int
) -> None:
    """Be it by one transaction or by several."""
    moved = wanted(table, lambda: make("new", number))
    make("old", number)
    root = model.objects.get(pk="old")
    root.move_tree(**changes)
    found = plain(table)
    for items_of_one in (found, moved):
        for item in items_of_one.values():
            # The time of a deletion.
            if "deletedAt" in item:
                del item["deletedAt"], item["gs1sk"]
    assert found == moved
    assert root._stored == model.objects.consistent().get(pk="new")._stored
    assert_consistent()


def test_the_other_end_of_a_relation_moves_too() -> None:
    """A player's edges are in the servers' partitions, and move within them."""
    game("s", 3)
    player = GamePlayer.objects.get(pk="001")
    player.move_tree(player_id="renamed")
    assert [server.pk for server in player.servers.all()] == ["s"]
    assert {each.pk for each in GameServer.objects.get(pk="s").players.all()} == {"000", "002", "renamed"}
    assert_consistent()


# several transactions


def test_a_large_family_moves_by_several_transactions(table: Table) -> None:
    """No transaction exceeds the limit, and no trace of the move remains."""
    moved = wanted(table, lambda: family("d", MANY))
    family("c", MANY)
    root = Club.objects.get(pk="c")
    with capture_requests() as sent:
        root.move_tree(club_id="d")
    sizes = [len(each.params["TransactItems"]) for each in sent if each.operation == "TransactWriteItems"]
    assert len(sizes) > 2
    assert max(sizes) <= min(ROOM + 2, MAX_ACTIONS)
    assert plain(table) == moved
    assert_consistent()


@pytest.mark.parametrize("afterwards", [False, True])
@pytest.mark.parametrize("by", ["same", "found"])
def test_a_large_family_that_was_interrupted_goes_on(table: Table, by: str, afterwards: bool) -> None:
    """After a kill at any write, a call on the loaded or stored object completes it."""
    moved = wanted(table, lambda: family("d", MANY))
    family("c", MANY)
    before = items(table)
    with crash(0) as writes:
        Club.objects.get(pk="c").move_tree(club_id="d")
    for number in range(1, len(writes) + 1):
        put_back(before)
        root = Club.objects.get(pk="c")
        stale = Club.objects.get(pk="c")
        with pytest.raises(Crash), crash(number, afterwards=afterwards):
            root.move_tree(club_id="d")
        if by == "found":
            again = Club.objects.filter(pk="c").first() or Club.objects.get(pk="d")
            again.move_tree(club_id="d")
        elif number < len(writes) or not afterwards:
            stale.move_tree(club_id="d")
        assert plain(table) == moved


def test_counts_of_a_large_family_are_right_in_the_end() -> None:
    """Each child that follows counts itself again."""
    hive = Hive.objects.create(hive_id="h")
    for number in range(MANY):
        Bee.objects.create(hive=hive, bee_id=f"{number:03}")
    Bee.objects.get(pk="h~~000").delete()
    hive = Hive.objects.get(pk="h")
    hive.move_tree(hive_id="i")
    assert hive.bee_count == MANY - 1
    assert Hive.objects.get(pk="i").bee_count == MANY - 1
    assert_consistent()


def test_an_object_that_comes_under_the_old_key_meanwhile_is_reported(table: Table) -> None:
    """The owner of the remaining children is then unknown; without it, the same call does the rest."""
    club(MANY)
    with pytest.raises(Crash), crash(2):
        Club.objects.get(pk="c").move_tree(club_id="d")
    other = Club.objects.create(club_id="c", name="other")
    with pytest.raises(StaleObject, match="another object exists under its old identity 'c'"):
        Club.objects.get(pk="d").move_tree()
    other.hard_delete()
    club_d = Club.objects.get(pk="d")
    club_d.move_tree()
    assert_consistent()


@pytest.mark.parametrize(("players", "before"), [(FEW, 1), (MANY, 3)])
def test_what_is_created_under_the_old_key_meanwhile_follows_too(players: int, before: int) -> None:
    """A second search follows all moves."""
    club(players)
    sent: list[str] = []

    def create(operation: str, params: object) -> None:
        if operation == "TransactWriteItems":
            sent.append(operation)
            if len(sent) == before:
                Guest.objects.create(club_id="c", guest_id="late")

    with intercept(create):
        Club.objects.get(pk="c").move_tree(club_id="d")
    assert Guest.objects.get(club="d", guest_id="late").pk == "d~~late"
    assert_consistent()


@pytest.mark.parametrize("players", [FEW, MANY])
def test_an_index_that_is_behind_moves_nothing_twice(table: Table, players: int) -> None:
    """Outdated entries of the index are read again in the table."""
    moved = wanted(table, lambda: family("d", players))
    family("c", players)
    answers: dict[str, Any] = {}
    is_ours = True

    def late(operation: str, params: Any) -> dict[str, Any] | None:
        nonlocal is_ours
        if not is_ours or operation != "Query" or "IndexName" not in params:
            return None
        asked = repr(sorted((name, str(value)) for name, value in params.items()))
        if asked not in answers:
            is_ours = False
            answers[asked] = get_table().call(operation, params)
            is_ours = True
        return copy.deepcopy(answers[asked])

    with intercept(late):
        Club.objects.get(pk="c").move_tree(club_id="d")
    assert plain(table) == moved
    assert_consistent()


@pytest.mark.parametrize("verb", ["delete", "hard_delete"])
def test_a_deletion_takes_along_what_has_not_followed_yet(table: Table, verb: str) -> None:
    """The move is completed first."""
    club(MANY)
    with pytest.raises(Crash), crash(3):
        Club.objects.get(pk="c").move_tree(club_id="d")
    getattr(Club.objects.get(pk="d"), verb)()
    assert not any(key[0].startswith("CLUB#c") for key in items(table))
    assert_consistent()


def test_verification_reports_what_has_not_followed() -> None:
    """The report names the object whose call continues."""
    club(MANY)
    with pytest.raises(Crash), crash(3):
        Club.objects.get(pk="c").move_tree(club_id="d")
    (found,) = [each for each in verify("default") if each.kind == "move due"]
    assert "move_tree()" in found.text
    Club.objects.get(pk="d").move_tree()
    assert_consistent()
