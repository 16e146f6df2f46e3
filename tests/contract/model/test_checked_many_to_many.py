"""Checked many-to-many relations: no edge to an object that is deleted concurrently, from either side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import BulkError, DynamoSingleError, MissingReference, StaleObject
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.servers import GameFan, GameGuild
from tests.contract.clubs import items
from tests.contract.racing import before_write
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def guild(table: Table) -> Any:
    """A guild without fans."""
    return GameGuild.objects.create(guild_id="g")


@pytest.fixture
def fans(table: Table) -> list[Any]:
    """Three fans of nothing."""
    return [GameFan.objects.create(fan_id=key) for key in "abc"]


def edges(table: Table) -> list[str]:
    """The stored edges."""
    return sorted(f"{key[0][-1]}{key[1]}" for key in items(table) if key[0].startswith("GameGuild_fans"))


def counts(table: Table, pk: str) -> list[str]:
    """Return the count of an object."""
    return [value["N"] for name, value in items(table)[pk, "#METADATA"].items() if name.startswith("refs:")]


def test_an_edge_is_one_transaction_that_both_sides_count(guild: Any, fans: list[Any], table: Table) -> None:
    with assert_requests(["TransactWriteItems"]):
        guild.fans.add(*fans)
    with assert_requests(["TransactWriteItems"]):
        guild.fans.add(fans[0])
    assert (counts(table, "GAMEGUILD#g"), counts(table, "GAMEFAN#a")) == (["3"], ["1"])
    fans[0].guilds.set([])
    guild.fans.remove("b")
    assert (edges(table), counts(table, "GAMEGUILD#g"), counts(table, "GAMEFAN#b")) == (["gc"], ["1"], ["0"])
    guild.fans.clear()
    assert counts(table, "GAMEGUILD#g") == ["0"]
    assert_consistent()


def test_what_a_checked_edge_costs(guild: Any, fans: list[Any]) -> None:
    """Each of three items takes two units in the table, as in every transaction, and one in its index."""
    with forgotten():
        plain: Any = declare(
            "PlainGuild",
            ("PLAINGUILD#{guild_id}", "#METADATA"),
            guild_id=models.UnicodeAttribute(),
            fans=models.ManyToMany(GameFan, related_name="plain_guilds"),
        )
        other = plain.objects.create(guild_id="p")
        with measure_requests() as unchecked:
            other.fans.add(fans[0])
    with measure_requests() as checked:
        guild.fans.add(fans[0])
    assert (unchecked.write_units, checked.write_units) == (2, 9)


@pytest.mark.parametrize("way", ["add", "set", "through", "reverse", "create"])
def test_nothing_is_added_to_what_is_being_deleted(guild: Any, fans: list[Any], table: Table, way: str) -> None:
    """The deletion happens just before the write, after all reads."""
    ways: dict[str, Any] = {
        "add": lambda: guild.fans.add(fans[0]),
        "set": lambda: guild.fans.set([fans[0], "b"]),
        "through": lambda: GameGuild.fans.through.objects.create(gameguild=guild, gamefan=fans[0]),
        "reverse": lambda: fans[0].guilds.add("g"),
        "create": lambda: guild.fans.create(fan_id="new"),
    }
    with (
        before_write(2 if way == "create" else 1, lambda: GameGuild.objects.get(pk="g").hard_delete()),
        pytest.raises((MissingReference, BulkError), match="refers to an object that is not stored"),
    ):
        ways[way]()
    GameGuild.objects.create(guild_id="g")
    assert edges(table) == []
    assert GameGuild.objects.get(pk="g").fans.count() == 0
    assert_consistent()


def test_the_other_side_is_held_as_well(guild: Any, fans: list[Any], table: Table) -> None:
    with before_write(1, lambda: GameFan.objects.get(pk="a").delete()), pytest.raises(DynamoSingleError):
        guild.fans.add("a", "b")
    assert [edge for edge in edges(table) if "a" in edge] == []
    assert_consistent()


def test_a_deletion_takes_what_joins_at_the_same_time(guild: Any, fans: list[Any], table: Table) -> None:
    """The deletion finds edges that were faster."""
    guild.fans.add("a")
    with before_write(1, lambda: fans[1].guilds.add("g")):
        assert guild.hard_delete()[0] == 3
    assert edges(table) == []
    assert_consistent()


def test_a_deletion_waits_for_an_index_that_is_late(guild: Any, fans: list[Any], table: Table) -> None:
    """An index lists a fan's edges: it omits both, so the deletion does not happen."""
    guild.fans.add("a")

    def late(operation: str, params: Any) -> Any:
        return {"Items": [], "Count": 0, "ScannedCount": 0} if operation == "Query" and "IndexName" in params else None

    with intercept(late), pytest.raises(StaleObject, match="Nothing was written"):
        fans[0].delete()
    assert edges(table) == ["ga"]
    assert fans[0].delete()[0] == 2
    assert counts(table, "GAMEGUILD#g") == ["0"]


def test_what_is_in_the_trash_keeps_its_edges_and_gets_none(guild: Any, fans: list[Any], table: Table) -> None:
    guild.fans.add("a", "b")
    guild.delete()
    for add in (lambda: guild.fans.add("c"), lambda: fans[2].guilds.add("g")):
        with pytest.raises((MissingReference, BulkError), match="refers to an object in the trash"):
            add()
    fans[0].delete()
    assert (edges(table), counts(table, "GAMEGUILD#g")) == (["gb"], ["1"])
    guild.restore()
    guild.fans.add("c")
    assert [fan.pk for fan in guild.fans.all()] == ["b", "c"]
    guild.delete()
    assert GameGuild.deleted_objects.get(pk="g").hard_delete()[0] == 3
    assert list(verify()) == []


def test_more_edges_than_a_transaction_takes(guild: Any, table: Table) -> None:
    GameFan.objects.bulk_create([GameFan(fan_id=f"f{number:03}") for number in range(120)])
    with measure_requests() as costs:
        guild.fans.add(*(f"f{number:03}" for number in range(120)))
    assert costs.requests <= 4
    with measure_requests() as costs:
        guild.fans.clear()
    assert costs.requests <= 5
    assert counts(table, "GAMEGUILD#g") == ["0"]
    assert_consistent()


@pytest.fixture
def people(table: Table) -> Iterator[Any]:
    """People who follow each other."""
    with forgotten():
        yield declare(
            "Follower",
            ("FOLLOWER#{person_id}", "#METADATA"),
            person_id=models.UnicodeAttribute(),
            follows=models.ManyToMany("self", related_name="followers", checked=True),
        )


def test_a_relation_to_the_same_model_counts_both_ends(people: Any, table: Table) -> None:
    """An object that follows itself counts twice in one transaction."""
    ann, ben = (people.objects.create(person_id=key) for key in ("ann", "ben"))
    ann.follows.add("ann", "ben")
    ben.follows.add(ann)
    assert sorted(counts(table, "FOLLOWER#ann")) == ["2", "2"]
    assert ann.delete()[0] == 4
    assert counts(table, "FOLLOWER#ben") == ["0", "0"]
    assert list(verify()) == []
