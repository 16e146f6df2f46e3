"""If a migration starts or ends during a cascade, remaining writes use the current names and keys."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import bindings
from dynamo_single.orm.schema.bindings import Rollout
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.write import move_references
from dynamo_single.orm.write.cascade import Cascade
from dynamo_single.table import Table
from dynamo_single.testing import frozen_time, intercept
from tests.catalog.clubs import Club, Player
from tests.catalog.library import Aisle, Volume
from tests.contract.clubs import club, items
from tests.contract.writing.test_direct_writes import emptied
from tests.rollouts import begin_rollout

pytestmark = pytest.mark.usefixtures("table")

NOON = datetime.datetime(2025, 5, 1, 12, tzinfo=datetime.UTC)
#: Migration states: items are written without index keys, or with a reference under two names.
ROLLOUTS: dict[str, Any] = {
    "keys": (Player, Rollout(keys=())),
    "names": (Player, Rollout((Twin("number", "shirt", is_before=True),))),
}
TITLE = Rollout((Twin("title", "heading", is_before=True),))
#: Operations on a club with its teams and players.
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "delete": lambda found: found.delete(),
    "restore": lambda found: found.restore(),
    "hard_delete": lambda found: found.hard_delete(),
}


@pytest.fixture(autouse=True)
def no_rollout() -> Iterator[None]:
    """No migration is open after a test."""
    yield
    bindings.forget_states()


def prepared(operation: str, players: int) -> Any:
    """Return a stored club, in the trash if the test restores it."""
    bindings.forget_states()
    found = club(players)
    if operation == "restore":
        found.delete()
    return Club.all_objects.get(pk=found.pk)


def stored_after(table: Table, operation: str, rollout: Any, monkeypatch: pytest.MonkeyPatch, change: str) -> Any:
    """Return all items after an operation on a small club; the migration's state changes at the given time."""
    emptied()
    found = prepared(operation, 2)
    composed, changes = Cascade._composed, [lambda: begin_rollout(*rollout)]

    async def changing(self: Any, *arguments: Any) -> Any:
        parts = await composed(self, *arguments)
        while changes:
            changes.pop()()
        return parts

    if change == "before":
        changes.pop()()
    with monkeypatch.context() as patch:
        patch.setattr(Cascade, "_composed", changing)
        OPERATIONS[operation](found)
    assert changes == []
    return items(table)


@pytest.mark.parametrize("rollout", ROLLOUTS.values(), ids=ROLLOUTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_cascade_is_composed_again(table: Table, monkeypatch: pytest.MonkeyPatch, operation: str, rollout: Any) -> None:
    """The cascade is composed again if the state changes before its writes are sent."""
    with frozen_time(NOON):
        expected = stored_after(table, operation, rollout, monkeypatch, "before")
        assert stored_after(table, operation, rollout, monkeypatch, "between") == expected


@pytest.mark.parametrize("operation", ["delete", "restore"])
def test_later_transactions_are_composed_again(table: Table, operation: str) -> None:
    """If a migration ends after the first transaction, the second one writes the keys of now."""
    found = prepared(operation, 60)
    begin_rollout(Player, Rollout(keys=()))
    first: list[Mapping[str, Any]] = []

    def ended(name: str, params: Mapping[str, Any]) -> None:
        if name == "TransactWriteItems" and not first:
            first.extend(params["TransactItems"])
            bindings.forget_states()

    with intercept(ended):
        OPERATIONS[operation](found)

    early = {each["Update"]["Key"]["pk"]["S"] for each in first if "Update" in each}
    late = {
        key[0]: item for key, item in items(table).items() if item["itemType"]["S"] == "Player" and key[0] not in early
    }
    assert len(late) > 10
    wanted = {"delete": "TRASH#", "restore": "TEAM#"}[operation]
    assert [pk for pk, item in late.items() if wanted not in item.get("gs1pk", {"S": ""})["S"]] == []


def test_cascade_asks_for_migration_between_transactions(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a process pauses after the first transaction, the table tells it that the migration has ended."""
    found = prepared("restore", 60)
    begin_rollout(Player, Rollout(keys=()))
    asked, sent = knowledge.binding_for, list[Mapping[str, Any]]()

    def stopped(name: str, params: Mapping[str, Any]) -> None:
        if name == "TransactWriteItems":
            sent.append(params)
            knowledge._tables.clear()
            for binding in bindings.current().bindings.values():
                binding.is_settled = False

    async def learning(model: Any) -> Any:
        if sent:
            bindings.forget_states()
        return await asked(model)

    monkeypatch.setattr(knowledge, "binding_for", learning)
    with intercept(stopped):
        found.restore()

    early = {each["Update"]["Key"]["pk"]["S"] for each in sent[0]["TransactItems"] if "Update" in each}
    lists = {
        key[0]: item.get("gs1pk", {}).get("S", "").startswith("TEAM#")
        for key, item in items(table).items()
        if item["itemType"]["S"] == "Player"
    }
    assert len(sent) == 2
    assert {pk for pk, is_listed in lists.items() if not is_listed} <= early


def test_move_is_made_again(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The move is repeated if a rename starts between building and sending the new item."""
    aisle = Aisle.objects.create(aisle_id="a", name="north")
    volume = Volume.objects.create(aisle=aisle, number=1, title="one")
    made, changes = move_references.new_item, [lambda: begin_rollout(Volume, TITLE)]

    async def changing(*arguments: Any, **options: Any) -> Any:
        found = await made(*arguments, **options)
        while changes:
            changes.pop()()
        return found

    monkeypatch.setattr(move_references, "new_item", changing)
    volume.move(number=2, title="two")

    item = items(table)["AISLE#a", "VOLUME#p5002"]
    assert (item["title"], item["heading"]) == ({"S": "two"}, {"S": "two"})
