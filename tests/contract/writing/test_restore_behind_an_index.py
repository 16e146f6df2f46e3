"""If an index is late, a restoration waits until it has found all counted objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dynamo_single import transactions
from dynamo_single.exceptions import StaleObject
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.clubs import Club, Player, Team
from tests.contract.clubs import items
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")


@contextmanager
def lagging(times: int) -> Iterator[list[str]]:
    """Let the first Queries of the index omit the trash, and record them."""
    asked: list[str] = []

    def behind(operation: str, params: Mapping[str, Any]) -> Any:
        if operation != "Query" or params.get("IndexName") != "gs1":
            return None
        asked.append(operation)
        return {"Items": [], "Count": 0, "ScannedCount": 0} if len(asked) <= times else None

    with intercept(behind):
        yield asked


@pytest.fixture
def team(table: Table) -> Any:
    """A team of three players, which an index lists."""
    club = Club.objects.create(club_id="c", name="c")
    team = Team.objects.create(club=club, team_id="t")
    for key in "123":
        Player.objects.create(player_id=key, team=team)
    return team


def number(table: Table) -> str | None:
    """Return the number stored with the team."""
    return items(table)["CLUB#c", "TEAM#t"].get("deletedAlong", {}).get("N")


def live() -> str:
    """The players that are live."""
    return "".join(sorted(player.pk for player in Player.all_objects.filter(pk__in=[*"123x"]) if not player.is_deleted))


def test_restore_waits_for_the_index(team: Any, table: Table) -> None:
    """Objects that the index shows late are restored too, and the last one removes the number."""
    team.delete()
    assert number(table) == "3"
    with lagging(1) as asked:
        assert team.restore() == (4, {"catalog.Team": 1, "catalog.Player": 3})
    assert (live(), number(table), len(asked)) == ("123", None, 3)
    assert_consistent()


def test_restore_writes_nothing_while_the_index_is_behind(team: Any, table: Table) -> None:
    team.delete()
    before = items(table)
    with lagging(9), pytest.raises(StaleObject, match=r"3 objects went to the trash with it .* Nothing was written"):
        Team.deleted_objects.get(pk=team.pk).restore()
    assert items(table) == before
    assert Team.deleted_objects.get(pk=team.pk).restore()[0] == 4


def test_restore_with_a_number_costs_nothing(team: Any) -> None:
    """The number is loaded with the object, and no additional transaction is sent."""
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        team.delete()
    gone = Team.deleted_objects.get(pk=team.pk)
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        gone.restore()


def test_what_is_deleted_permanently_leaves_the_number(team: Any, table: Table) -> None:
    """With two remaining objects, the restoration waits for two."""
    team.delete()
    player = Player.deleted_objects.get(pk="2")
    with assert_requests(["GetItem", "TransactWriteItems"]):
        player.hard_delete()
    assert number(table) == "2"
    assert Team.deleted_objects.get(pk=team.pk).restore()[0] == 3
    assert number(table) is None


def test_what_moves_to_another_parent_leaves_the_number(team: Any, table: Table) -> None:
    """A child that changes its parent in the trash belongs to the new one, and is restored separately."""
    team.delete()
    other = Team.objects.create(club_id="c", team_id="other")
    player = Player.deleted_objects.get(pk="1")
    player.team = other
    player.save()
    assert number(table) == "2"
    assert Team.deleted_objects.get(pk=team.pk).restore()[0] == 3
    player.restore()
    assert live() == "123"


def test_a_deletion_in_several_transactions_counts_all(team: Any, table: Table) -> None:
    """Each transaction adds its objects to the number, and a restoration subtracts them."""
    Player.objects.bulk_create([Player(player_id=f"p{n:03}", team=team) for n in range(147)], in_transactions=True)
    assert team.delete()[0] == 151
    assert number(table) == "150"
    assert team.restore()[0] == 151
    assert number(table) is None
    assert_consistent()


def test_an_interrupted_deletion_counts_what_it_took(team: Any, table: Table) -> None:
    """The number equals the objects in the trash, so the deletion can be restored or completed."""
    Player.objects.bulk_create([Player(player_id=f"p{n:03}", team=team) for n in range(147)], in_transactions=True)
    sent: list[str] = []

    def interrupted(operation: str, params: Any) -> None:
        sent.extend([operation] if operation == "TransactWriteItems" else [])
        if len(sent) == 2:
            raise ConnectionError("the process ends here")

    with intercept(interrupted), pytest.raises(ConnectionError):
        team.delete()
    marked = Player.deleted_objects.count()
    assert number(table) == str(marked)
    assert 0 < marked < 150
    gone = Team.deleted_objects.get(pk=team.pk)
    gone.delete()
    assert number(table) == "150"
    assert Team.deleted_objects.get(pk=team.pk).restore()[0] == 151


def test_an_item_without_a_number_is_restored_as_ever(team: Any, table: Table) -> None:
    """Items that were deleted before such numbers existed do not need one."""
    team.delete()
    key = {"pk": {"S": "CLUB#c"}, "sk": {"S": "TEAM#t"}}
    table.send(Request("UpdateItem", {"Key": key, "UpdateExpression": "REMOVE deletedAlong"}))
    Player.deleted_objects.get(pk="1").hard_delete()
    assert Team.deleted_objects.get(pk=team.pk).restore()[0] == 3


def test_a_number_that_something_else_made_wrong_is_repaired(team: Any, table: Table) -> None:
    """If another program deletes an item, the number is detected as wrong and counted again."""
    team.delete()
    table.send(Request("DeleteItem", {"Key": {"pk": {"S": "PLAYER#1"}, "sk": {"S": "#METADATA"}}}))
    with pytest.raises(StaleObject, match=r"run manage\.py dynamo_rebuild"):
        Team.deleted_objects.get(pk=team.pk).restore()
    with pytest.raises(CommandError, match="1 findings"):
        call_command("dynamo_verify", stdout=StringIO())
    call_command("dynamo_rebuild", stdout=StringIO())
    assert number(table) == "2"
    assert Team.deleted_objects.get(pk=team.pk).restore()[0] == 3


def test_a_number_that_older_code_left_is_not_added_to(team: Any, table: Table) -> None:
    """Code of an earlier version restores an object and keeps its number."""
    key = {"pk": {"S": "CLUB#c"}, "sk": {"S": "TEAM#t"}}
    values = {":n": {"N": "7"}}
    update = {"Key": key, "UpdateExpression": "SET deletedAlong = :n", "ExpressionAttributeValues": values}
    table.send(Request("UpdateItem", update))
    Team.objects.get(pk=team.pk).delete()
    assert number(table) == "3"
    assert Team.deleted_objects.get(pk=team.pk).restore()[0] == 4


def test_a_root_counts_all_levels_below_it(team: Any, table: Table) -> None:
    """The deleted object has the number, for any depth below it."""
    team.club.delete()
    assert items(table)["CLUB#c", "#METADATA"]["deletedAlong"] == {"N": "3"}
    with lagging(9), pytest.raises(StaleObject):
        Club.deleted_objects.get(pk="c").restore()
    assert Club.deleted_objects.get(pk="c").restore()[0] == 5
    assert_consistent()


def test_the_trash_is_emptied_with_what_went_along(team: Any, table: Table) -> None:
    team.delete()
    Team.deleted_objects.get(pk=team.pk).hard_delete()
    assert live() == ""
    assert [key for key in items(table) if key[1] == "TEAM#t" or key[0].startswith("PLAYER")] == []


def test_a_block_restores_under_the_same_rule(team: Any, table: Table) -> None:
    with transactions.atomic():
        team.delete()
    assert number(table) == "3"
    gone = Team.deleted_objects.get(pk=team.pk)
    with lagging(9), pytest.raises(StaleObject), transactions.atomic():
        gone.restore()
    with transactions.atomic():
        gone.restore()
    assert (live(), number(table)) == ("123", None)


def test_a_coroutine_waits_too(team: Any) -> None:
    async def delete_and_restore() -> int:
        await team.adelete()
        with lagging(1):
            return (await team.arestore())[0]

    assert asyncio.run(delete_and_restore()) == 4


def test_what_another_deletion_adds_is_not_left_behind(team: Any, table: Table) -> None:
    """A child that goes to the trash while the others come back comes back as well."""
    late = Player(player_id="x", team=team)
    team.delete()
    late.save()
    done: list[str] = []

    def meanwhile(operation: str, params: Any) -> None:
        if operation == "TransactWriteItems" and not done:
            done.append(operation)
            Team.deleted_objects.get(pk=team.pk).delete()

    gone = Team.deleted_objects.get(pk=team.pk)
    with intercept(meanwhile):
        gone.restore()
    assert (live(), number(table)) == ("123x", None)
