"""Code that is older than a model's shards raises an error before it reads or writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dynamo_single.exceptions import FormNotApplied
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.schedules import without_schedule
from dynamo_single.orm.rollout.states import StoredShards
from dynamo_single.orm.schema.keys.shards import Entry
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.clubs import Club, Team

EIGHT = StoredShards("club_id", "createdAt", (Entry(0, 8),))


def recorded_of_clubs(table: Table, *entries: Entry) -> None:
    """Later code has let clubs have shards."""
    recorded = replace(EIGHT, entries=entries) if entries else EIGHT
    knowledge.change(table, lambda state: knowledge.replace(state, shards={"Club": recorded}))


def without_migrations(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the table look shared by models of apps without migrations."""
    monkeypatch.setattr(table, "replaced", 0)
    monkeypatch.setattr(knowledge, "_serves", lambda table: False)


def test_a_model_without_sharded_keys_is_refused(table: Table, settings: Any) -> None:
    """Older code would look into one shard only."""
    settings.MIGRATION_MODULES = {"catalog": "tests.backend_project.shop.migrations"}
    recorded_of_clubs(table)
    with pytest.raises(FormNotApplied, match="divided into shards"):
        list(Club.objects.all())


#: Operations of older code.
OLDER: dict[str, Callable[[], object]] = {
    "list": lambda: list(Club.objects.all()),
    "get": lambda: Club.objects.get(pk="c"),
    "create": lambda: Club.objects.create(club_id="c", name="Acme"),
    "count": Club.objects.count,
    "update": lambda: Club.objects.filter(pk="c").update(name="Acme"),
    "aget": lambda: asyncio.run(Club.objects.aget(pk="c")),
}


@pytest.mark.parametrize("work", OLDER.values(), ids=OLDER)
def test_older_code_of_an_app_without_migrations_is_refused(
    table: Table, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]
) -> None:
    """Before it reads or writes an item."""
    without_migrations(table, monkeypatch)
    recorded_of_clubs(table)
    with assert_requests(["GetItem"]), pytest.raises(FormNotApplied, match=r"divided into shards \(8 shards\)"):
        work()


def test_older_code_that_is_running_is_refused_before_the_number_changes(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older code reads the state as often as code with shards."""
    knowledge.forget()
    without_migrations(table, monkeypatch)
    monkeypatch.setattr(knowledge, "UNDIVIDED_REFRESH", 0.0)
    assert list(Club.objects.all()) == []
    monkeypatch.setattr(knowledge, "stale", lambda: None)
    recorded_of_clubs(table, Entry(0, 1), Entry(4_000_000_000, 8))
    with pytest.raises(FormNotApplied, match="1 shard, 8 shards from 2096-"):
        list(Club.objects.all())


def test_whether_later_code_has_shards_costs_one_request_for_all_models(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process reads the state once for all models of the table."""
    knowledge.forget()
    without_migrations(table, monkeypatch)
    with assert_requests(["GetItem", "Query", "Query", "Query"]):
        for model in (Club, Club, Team):
            assert list(model.objects.all()) == []


def test_a_process_that_was_refused_goes_on_when_the_table_was_put_right(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process reads the state again before the next error, and does not need a restart."""
    without_migrations(table, monkeypatch)
    recorded_of_clubs(table)
    with pytest.raises(FormNotApplied):
        list(Club.objects.all())
    monkeypatch.setattr(knowledge, "stale", lambda: None)
    knowledge.change(table, lambda state: without_schedule(state, "Club"))
    monkeypatch.setattr(knowledge, "REFUSED_REFRESH", 0.0)
    with assert_requests(["GetItem", "Query", "Query"]):
        assert list(Club.objects.all()) + list(Club.objects.all()) == []


@pytest.mark.parametrize(("seconds", "sent"), [(3600.0, []), (0.0, ["GetItem"] * 3)])
def test_a_process_that_refuses_asks_no_more_than_once_a_second(
    seconds: float, sent: list[str], table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of operations does not matter."""
    without_migrations(table, monkeypatch)
    recorded_of_clubs(table)
    with pytest.raises(FormNotApplied):
        list(Club.objects.all())
    assert knowledge.REFUSED_REFRESH == 1.0
    monkeypatch.setattr(knowledge, "REFUSED_REFRESH", seconds)
    with assert_requests(sent):
        for work in (OLDER["list"], OLDER["create"], OLDER["aget"]):
            with pytest.raises(FormNotApplied):
                work()


def test_older_code_runs_on_while_there_is_one_shard(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """One shard has the same layout as an unsharded key, so both versions can run until the number changes."""
    without_migrations(table, monkeypatch)
    recorded_of_clubs(table, Entry(0, 1))
    assert list(Club.objects.all()) == []
