"""Children share their parent's trash, restoration and permanent deletion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db.models.signals import post_delete, pre_delete

from dynamo_single import transactions
from dynamo_single.exceptions import ParentInTrash, UniqueViolation
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.schema import bindings
from dynamo_single.orm.schema.bindings import Rollout
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.write.cascade import DELETION, Cascade
from dynamo_single.signals import post_restore, post_soft_delete
from dynamo_single.table import SentRequest, Table
from dynamo_single.table.flow import run
from dynamo_single.table.request import Request
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.clubs import Bee, Club, Guest, Hive, Player, Team, Trophy
from tests.catalog.studios import Artist, Painting
from tests.contract.clubs import SIZES, club, items
from tests.rollouts import begin_rollout

pytestmark = pytest.mark.usefixtures("table")


def live(table: Table) -> set[str]:
    """Return the keys of live items, including claims."""
    return {f"{pk} {sk}" for (pk, sk), item in items(table).items() if "deletedAt" not in item}


def operations(sent: list[SentRequest]) -> list[str]:
    """Return the writes sent."""
    return [request.operation for request in sent if request.operation not in {"Query", "GetItem", "BatchGetItem"}]


# into the trash


def test_children_and_theirs_go_along_in_one_transaction(table: Table, sent: list[SentRequest]) -> None:
    """Everything below a club goes to the trash with it, and the counts are by model."""
    made = club()
    sent.clear()
    total, counts = made.delete()
    assert (total, counts) == (5, {"catalog.Club": 1, "catalog.Team": 2, "catalog.Player": 2})
    assert operations(sent) == ["TransactWriteItems"]
    assert live(table) == set()


def test_only_what_goes_along_is_looked_for() -> None:
    """One Query finds the teams, and one per team the players; children that stay are not read.

    Each is sent again afterwards for children that were created in the meantime.
    """
    made = club()
    with assert_requests(["Query", "Query", "Query", "TransactWriteItems", "Query", "Query", "Query"]):
        made.delete()


def test_trash_is_read_once_for_many_parents(sent: list[SentRequest]) -> None:
    """An index of live players has a partition for each team; the trash has all players in one."""
    made = club()
    Team.objects.bulk_create([Team(club=made, team_id=f"t{number}") for number in range(3)])
    sent.clear()
    run(DELETION.below([made]))
    read = [str(request.params["ExpressionAttributeValues"]) for request in sent if request.operation == "Query"]
    assert sum("TRASH#Player" in values for values in read) == 1
    assert sum("TEAM#c~~" in values for values in read) == Team.objects.count()


def test_items_of_many_children_are_measured_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app does not measure all children again for each transaction."""
    measured: list[Any] = []

    def counted(item: Any) -> int:
        measured.append(item)
        return item_size(item)

    made = club(SIZES[1])
    monkeypatch.setattr(atomic_block, "item_size", counted)
    made.delete()
    # A player before and after the change, and its claim: when transactions are planned, composed and sent.
    assert len(measured) <= 3 * 3 * (SIZES[1] + 3)


def test_a_child_has_the_mark_and_the_moment_of_the_parents_deletion(table: Table) -> None:
    """``deletedWith`` names the root, for grandchildren too; the root itself has no mark."""
    club(1).delete()
    stored = items(table)
    root = stored["CLUB#c", "#METADATA"]
    child, grandchild = stored["CLUB#c", "TEAM#b"], stored["PLAYER#c000", "#METADATA"]
    assert "deletedWith" not in root
    assert child["deletedWith"] == grandchild["deletedWith"] == {"S": "Club#c"}
    assert child["deletedAt"] == grandchild["deletedAt"] == root["deletedAt"]
    assert Team.deleted_objects.get(pk="c~~b").deleted_with == "Club#c"


def test_children_that_do_not_cascade_stay() -> None:
    """``cascade=False`` leaves children alone, and those without soft delete wait for ``hard_delete()``."""
    made = club(0)
    Guest.objects.create(club=made, guest_id="g")
    Trophy.objects.create(club=made, year=1990)
    made.delete()
    assert Guest.objects.filter(club="c").count() == Trophy.objects.filter(club="c").count() == 1


def test_a_deletion_of_a_deleted_object_writes_nothing(sent: list[SentRequest]) -> None:
    """The second deletion does not find or count anything."""
    made = club()
    made.delete()
    sent.clear()
    assert made.delete() == (0, {"catalog.Club": 0})
    assert Club.all_objects.get(pk="c").delete() == (0, {"catalog.Club": 0})
    assert operations(sent) == []


def test_a_child_that_came_later_goes_with_a_repeated_deletion() -> None:
    """A live child of a deleted object is deleted with it, and restored with it."""
    made = club(0)
    made.delete()
    Team.objects.create(club=made, team_id="late")
    assert made.delete() == (1, {"catalog.Club": 0, "catalog.Team": 1})
    assert made.restore() == (4, {"catalog.Club": 1, "catalog.Team": 3})


def test_the_trash_of_one_parent_is_not_that_of_another() -> None:
    """Two clubs that are deleted separately are restored separately."""
    first, second = club(1, club_id="c"), club(1, club_id="d")
    first.delete()
    second.delete()
    assert first.restore()[0] == 4
    assert [team.pk for team in Team.deleted_objects.all()] == ["d~~a", "d~~b"]


# and back


def test_restore_brings_back_exactly_what_was_taken(table: Table) -> None:
    """The table has its former contents, and objects that were in the trash before stay there."""
    made = club()
    Team.objects.get(pk="c~~a").delete()
    Player.objects.get(pk="c000").delete()
    before = items(table)
    assert made.delete()[1] == {"catalog.Club": 1, "catalog.Team": 1, "catalog.Player": 1}
    assert made.restore() == (3, {"catalog.Club": 1, "catalog.Team": 1, "catalog.Player": 1})
    assert items(table) == before


def test_a_restore_of_a_live_object_writes_nothing(sent: list[SentRequest]) -> None:
    """The call does not find or count anything."""
    made = club()
    sent.clear()
    assert made.restore() == (0, {"catalog.Club": 0})
    assert operations(sent) == []


@pytest.mark.parametrize("size", SIZES)
def test_a_value_that_was_taken_refuses_the_whole(table: Table, size: int) -> None:
    """The error names a grandchild's taken unique value, and none of the needed transactions is sent."""
    made = club(size)
    made.delete()
    Player.objects.create(player_id="thief", team_id="x~~y", number="c007")
    before = items(table)
    with pytest.raises(UniqueViolation, match=r"Another catalog.Player has number 'c007'"):
        made.restore()
    assert items(table) == before
    assert made.is_deleted


def test_a_child_alone_is_not_restored_into_the_trash(table: Table) -> None:
    """The error names the parent, and the child stays where it is."""
    made = club(1)
    made.delete()
    before = items(table)
    for child in (Team.deleted_objects.get(pk="c~~b"), Player.deleted_objects.get(pk="c000")):
        with pytest.raises(
            ParentInTrash, match=r"it belongs to catalog\.(Club|Team) with pk 'c[^']*', which is in the"
        ):
            child.restore()
    assert items(table) == before


def test_a_child_that_was_deleted_by_itself_comes_back_by_itself() -> None:
    """Its own children come with it, its siblings do not."""
    club(2)
    team = Team.objects.get(pk="c~~b")
    assert team.delete()[0] == 3
    assert team.restore() == (3, {"catalog.Team": 1, "catalog.Player": 2})


def test_a_child_whose_parent_is_gone_can_be_restored() -> None:
    """There is nothing in the trash that it belongs to."""
    Team.objects.create(club_id="nowhere", team_id="t").delete()
    assert Team.deleted_objects.get(pk="nowhere~~t").restore() == (1, {"catalog.Team": 1})


def test_several_children_are_restored_in_one_block() -> None:
    """Both children check the same parent, which a transaction can contain once."""
    club(0)
    teams = list(Team.objects.filter(club="c"))
    with transactions.atomic():
        for team in teams:
            team.delete()
    with assert_requests(["Query", "Query", "TransactWriteItems"]), transactions.atomic():
        for team in teams:
            team.restore()
    assert Team.objects.filter(club="c").count() == 2


def test_a_block_takes_all_of_it_or_nothing(table: Table) -> None:
    """An exception in the block leaves parent and children as they are, in the table and in memory."""
    made = club()
    before = items(table)
    with pytest.raises(ZeroDivisionError), transactions.atomic():
        made.delete()
        raise ZeroDivisionError
    assert items(table) == before
    assert not made.is_deleted
    with transactions.atomic():
        made.delete()
    assert live(table) == set()


# permanently


def test_hard_delete_takes_the_children_too(table: Table) -> None:
    """Live children, deleted ones and those without a trash are deleted with their claims."""
    made = club()
    Trophy.objects.create(club=made, year=1990)
    Player.objects.get(pk="c000").delete()
    counts = {"catalog.Club": 1, "catalog.Team": 2, "catalog.Player": 2, "catalog.Trophy": 1}
    assert made.hard_delete() == (6, counts)
    assert items(table) == {}


def test_hard_delete_empties_the_trash_with_the_children(table: Table) -> None:
    """Children in their parent's trash are permanently deleted with it."""
    made = club()
    made.delete()
    assert Club.deleted_objects.all().hard_delete()[0] == 5
    assert items(table) == {}


def test_hard_delete_leaves_what_does_not_cascade() -> None:
    """``cascade=False`` also applies to permanent deletion."""
    made = club(0)
    Guest.objects.create(club=made, guest_id="g")
    made.hard_delete()
    assert Guest.objects.filter(club="c").count() == 1


@pytest.mark.parametrize("size", SIZES)
def test_a_purge_under_a_condition_takes_no_child_of_what_does_not_meet_it(table: Table, size: int) -> None:
    """A club that another process has renamed keeps its children, even if several transactions would be needed."""
    club(size)
    count = len(live(table))
    renamed = []

    def rename(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and not renamed:
            renamed.append(True)
            other = Club.objects.get(pk="c")
            other.name = "new"
            other.save()

    with intercept(rename):
        assert Club.objects.filter(name="name of c").hard_delete() == (0, {})
    assert renamed
    assert len(live(table)) == count


@pytest.mark.parametrize("size", [3, 120])
def test_counters_of_children_follow(table: Table, size: int) -> None:
    """A parent that counts its deleted children has the right number, after one transaction or several."""
    made = Hive.objects.create(hive_id="h")
    bees = [Bee(hive=made, bee_id=f"{number:03}") for number in range(size)]
    Bee.objects.bulk_create(bees, in_transactions=True)
    before = items(table)
    Bee.objects.get(pk="h~~000").delete()
    made = Hive.objects.get(pk="h")
    assert made.delete()[0] == size
    assert Hive.deleted_objects.get().bee_count == 0
    assert made.restore()[0] == size
    assert Hive.objects.get(pk="h").bee_count == size - 1
    Bee.deleted_objects.get().restore()
    assert items(table) == before
    assert Hive.objects.get(pk="h").hard_delete()[0] == size + 1
    assert items(table) == {}


# querysets and signals


def test_the_asynchronous_twins_do_the_same(table: Table) -> None:
    """``adelete()``, ``arestore()`` and ``ahard_delete()`` take the children along and count them."""
    made = club(1)
    counts = (4, {"catalog.Club": 1, "catalog.Team": 2, "catalog.Player": 1})

    async def steps() -> list[Any]:
        return [await made.adelete(), await made.arestore(), await made.ahard_delete()]

    assert async_to_sync(steps)() == [counts, counts, counts]
    assert items(table) == {}


def test_a_queryset_takes_the_children_along(table: Table) -> None:
    """``delete()`` and ``restore()`` of a queryset include the same children as for each object."""
    club(1, club_id="c")
    club(1, club_id="d")
    counts = {"catalog.Club": 2, "catalog.Team": 4, "catalog.Player": 2}
    before = items(table)
    assert Club.objects.all().delete() == (8, counts)
    assert live(table) == set()
    assert Club.deleted_objects.all().restore() == (8, counts)
    assert items(table) == before


def test_a_queryset_restores_only_what_still_meets_it() -> None:
    """The queryset's conditions apply to the restored item."""
    made = club(0)
    made.delete()
    changed = []

    def rename(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and not changed:
            changed.append(True)
            Club.all_objects.filter(pk="c").update(name="new")

    with intercept(rename):
        assert Club.deleted_objects.filter(name="name of c").restore() == (0, {})
    assert changed
    assert Club.deleted_objects.get(pk="c").name == "new"


@contextmanager
def heard(*signals: Any) -> Iterator[list[str]]:
    """Return the objects in the received signals."""
    told: list[str] = []

    def receive(sender: Any, instance: Any, **_: Any) -> None:
        assert sender is type(instance)
        told.append(f"{sender.__name__} {instance.pk}")

    for signal in signals:
        signal.connect(receive)
    try:
        yield told
    finally:
        for signal in signals:
            signal.disconnect(receive)


def test_every_object_has_its_signal() -> None:
    """The trash sends signals for parents first; restoration and permanent deletion for children first."""
    made = club(1)
    downwards = ["Club c", "Team c~~a", "Team c~~b", "Player c000"]
    with heard(post_soft_delete) as told:
        made.delete()
    assert told == downwards
    with heard(post_restore) as told:
        made.restore()
    assert told == downwards[::-1]
    with heard(post_delete) as told:
        made.hard_delete()
    assert told == downwards[::-1]


def test_what_a_handler_leaves_to_the_commit_is_called() -> None:
    """``on_commit()`` in a ``pre_delete`` handler runs once for each object, however many requests are sent."""
    made, called = club(), []

    def later(instance: Any, **kwargs: Any) -> None:
        transactions.on_commit(lambda: called.append(instance))

    pre_delete.connect(later, sender=Team)
    try:
        made.hard_delete()
    finally:
        pre_delete.disconnect(later, sender=Team)
    assert len(called) == 2


def test_a_purge_that_is_begun_anew_is_announced_once() -> None:
    """``pre_delete`` is sent once for each object, even if the write is retried."""
    club(1)
    changed = []

    def change(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and not changed:
            changed.append(True)
            Player.objects.filter(pk="c000").update(number="new")

    with heard(pre_delete) as told, intercept(change):
        assert Club.objects.filter(pk="c").hard_delete()[0] == 4
    assert changed
    assert sorted(told) == ["Club c", "Player c000", "Team c~~a", "Team c~~b"]


def test_another_writers_change_of_a_child_is_kept() -> None:
    """A child that changes during its parent's deletion is deleted with its new values."""
    made = club(1)
    changed = []

    def change(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems" and not changed:
            changed.append(True)
            Player.objects.filter(pk="c000").update(number="new")

    with intercept(change):
        assert made.delete()[0] == 4
    assert changed
    made.restore()
    assert Player.objects.get(pk="c000").number == "new"


@pytest.mark.parametrize("copies", [1, 2])
def test_cascade_is_composed_again_by_names_of_now(monkeypatch: pytest.MonkeyPatch, table: Table, copies: int) -> None:
    """The cascade uses new names if a rename starts between composing and sending its writes."""
    artist = Artist.objects.create(artist_id="a", name="Ada")
    for number in range(copies):
        painting = Painting.objects.create(painting_id=str(number), artist=artist)
        key = {name: painting._stored[name] for name in ("pk", "sk")}
        # Another process writes both names already.
        params = {"UpdateExpression": "SET maker = :m", "ExpressionAttributeValues": {":m": {"S": "a"}}}
        table.send(Request("UpdateItem", {"Key": key, **params}))
    grouped = Cascade._groups

    def begun(self: Cascade, parts: Any) -> Any:
        found = [*grouped(self, parts)]
        rename = Twin(Painting._meta.get_field("artist").attribute.attr_name, "maker", is_before=True)
        begin_rollout(Painting, Rollout((rename,)))
        return iter(found)

    monkeypatch.setattr(Cascade, "_groups", begun)
    try:
        artist.delete()
    finally:
        bindings.forget_states()
    stored = [item for item in items(table).values() if item["itemType"]["S"] == "Painting"]
    assert len(stored) == copies
    assert not any("maker" in item for item in stored)
