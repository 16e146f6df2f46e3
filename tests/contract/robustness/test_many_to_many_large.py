"""Many-to-many relations with thousands of edges: pages with names, and a deletion that is killed and repeated."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.contrib.doctor import verify
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.servers import GameMember, GamePlayer, GameServer
from tests.contract.clubs import items
from tests.contract.robustness.crashing import Crash, crash_behind
from tests.deep import examples

MEMBERS = examples(220, 5_000)
#: The requests before the deletion is killed: during reads, between two transactions, before the last one.
KILLS = (1, 4, examples(6, 45))


@pytest.fixture
def gaming(table: Table) -> Any:
    """Create a server with many members by writing their items directly."""
    server = GameServer.objects.create(server_id="1", name="Gaming")
    puts = []
    for number in range(MEMBERS):
        pk = f"{number:04}"
        player = GamePlayer(player_id=pk, username=f"name-{pk}")
        puts += [
            {
                "pk": {"S": f"PLAYER#{pk}"},
                "sk": {"S": "#METADATA#GAME"},
                "gs1pk": {"S": "GAMEPLAYER"},
                "gs1sk": {"S": f"{player.username}#{pk}"},
                "itemType": {"S": "GamePlayer"},
                "player_id": {"S": pk},
                "username": {"S": player.username},
            },
            {
                "pk": {"S": "SERVER#1"},
                "sk": {"S": f"PLAYER#{pk}"},
                "gs1pk": {"S": f"MEMBERSOF#{pk}"},
                "gs1sk": {"S": "1"},
                "itemType": {"S": "GameMember"},
                "server_id": {"S": "1"},
                "player_id": {"S": pk},
                "role": {"S": "member"},
                "username": {"S": player.username},
            },
        ]
    for start in range(0, len(puts), 25):
        some = [{"PutRequest": {"Item": item}} for item in puts[start : start + 25]]
        table.send(Request("BatchWriteItem", {"RequestItems": {table.name: some}}))
    return server


def test_what_was_put_is_what_the_relation_writes(gaming: Any) -> None:
    assert list(verify()) == []


def test_each_page_of_members_with_names_is_one_request(gaming: Any) -> None:
    seen: list[str] = []
    cursor = None
    while cursor is not None or not seen:
        with assert_requests(["Query"]):
            page = GameMember.objects.filter(server=gaming).page(100, cursor)
        seen += [member.username for member in page]
        cursor = page.next_cursor
    assert seen == [f"name-{number:04}" for number in range(MEMBERS)]


def test_all_members_are_read_by_the_hundred(gaming: Any) -> None:
    with assert_requests(["Query"]):
        assert gaming.players.count() == MEMBERS
    assert len(gaming.players.all()) == MEMBERS


@pytest.mark.usefixtures("small_transactions")
@pytest.mark.parametrize("kill", KILLS)
def test_a_deletion_that_is_killed_is_completed_when_it_is_called_again(gaming: Any, table: Table, kill: int) -> None:
    with crash_behind(kill) as asked, pytest.raises(Crash):
        gaming.delete()
    assert len(asked) == kill + 1
    again = GameServer.objects.get(pk="1")
    deleted = again.delete()[1]
    assert deleted["catalog.GameServer"] == 1
    left = items(table)
    assert len(left) == MEMBERS
    assert {item["itemType"]["S"] for item in left.values()} == {"GamePlayer"}
    assert list(verify()) == []
