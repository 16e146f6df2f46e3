"""Clubs of two sizes, and their items in the table."""

from __future__ import annotations

from typing import Any

from dynamo_single.table import Request, Table
from tests.catalog.clubs import Club, Player, Team

#: Players of a club whose deletion fits into one transaction, and of one whose does not.
SIZES = (30, 150)


def club(players: int = 2, *, club_id: str = "c") -> Club:
    """A club with two teams; the players are in the second one, each with a unique value."""
    made = Club.objects.create(club_id=club_id, name=f"name of {club_id}")
    for team_id in ("a", "b"):
        Team.objects.create(club=made, team_id=team_id)
    texts = [f"{club_id}{number:03}" for number in range(players)]
    Player.objects.bulk_create(
        [Player(player_id=text, team_id=f"{club_id}~~b", number=text) for text in texts], in_transactions=True
    )
    return made


def items(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Every item, without the time of its last change."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    start: dict[str, Any] = {}
    while True:
        answer = table.send(Request("Scan", start))
        for item in answer["Items"]:
            item.pop("updatedAt", None)
            found[item["pk"]["S"], item["sk"]["S"]] = item
        if "LastEvaluatedKey" not in answer:
            return found
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
