"""``manage.py dynamo_shards``: recorded and allowed numbers of shards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dynamo_single.exceptions import Conflict
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.states import StoredShards
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Entry, Schedule
from dynamo_single.table import Table, get_table
from dynamo_single.testing import assert_requests, frozen_time
from tests.catalog.service import Visit

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LAYOUT = registry.layout_of(Visit)


@pytest.fixture
def clock(table: Table) -> Iterator[Any]:
    """Noon."""
    with frozen_time(NOON) as clock:
        yield clock


def said(capsys: pytest.CaptureFixture[str], *arguments: Any, **options: Any) -> str:
    """Return the output of the command."""
    call_command("dynamo_shards", *arguments, **options)
    return capsys.readouterr().out.strip()


def test_nothing_recorded_is_said(clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Each sharded model of the table takes one GetItem."""
    with assert_requests(["GetItem"] * 5):
        said_of_each = said(capsys).splitlines()
    models = ("service.User", "service.Email", "catalog.Visit", "catalog.Mailbox", "catalog.Alias")
    nothing = "nothing recorded; the first item that is written makes it 1 shard."
    assert said_of_each == [f"{model}: {nothing}" for model in models]


def test_the_first_number_counts_at_once(clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The table belongs to this project and has no items; a repetition does not write."""
    with assert_requests(["GetItem", "Query", "GetItem", "PutItem"]):
        assert said(capsys, "catalog.Visit", 8, first=True) == "catalog.Visit: 8 shards."
    with assert_requests(["GetItem", "Query", "GetItem"]):
        assert said(capsys, "catalog.Visit", 8, first=True) == "catalog.Visit: 8 shards."
    assert said(capsys, "catalog.Visit") == "catalog.Visit: 8 shards."


def test_the_first_number_is_refused_where_items_are(clock: Any) -> None:
    """Queries would no longer find them."""
    Visit.objects.create(visit_id="a", at=NOON)
    with pytest.raises(CommandError, match=r"holds items of catalog\.Visit"):
        call_command("dynamo_shards", "catalog.Visit", 8, first=True)


def test_the_first_number_is_refused_where_another_is_recorded(clock: Any) -> None:
    """An item may have been written with it, and deleted."""
    call_command("dynamo_shards", "catalog.Visit", 4, first=True)
    with pytest.raises(CommandError, match=r"already records shards for .*: 4 shards"):
        call_command("dynamo_shards", "catalog.Visit", 8, first=True)


def test_the_number_changes_as_early_as_every_process_knows(clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """After the longest lease, and as long as an object's time may lie ahead; to the minute."""
    clock.move(timedelta(seconds=1))
    expected = "catalog.Visit: 1 shard, 8 shards from 2026-01-01T12:08:00Z on."
    assert said(capsys, "catalog.Visit", 8) == expected


def test_the_number_changes_at_a_given_time(clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The time follows all recorded entries."""
    said(capsys, "catalog.Visit", 8, since="2026-02-01T00:00Z")
    assert said(capsys, "catalog.Visit", 16, since="2026-03-01T01:00+01:00") == (
        "catalog.Visit: 1 shard, 8 shards from 2026-02-01T00:00:00Z on, 16 shards from 2026-03-01T00:00:00Z on."
    )
    assert knowledge.schedule(LAYOUT) == Schedule((Entry(0, 1), Entry(1769904000, 8), Entry(1772323200, 16)))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("catalog.Visit", 8), {"since": "2026-01-01T12:07Z"}, "into the former shards until then"),
        (("catalog.Visit", 8), {"since": "2026-02-01T00:00Z"}, "has 4 shards from 2026-03-01T00:00:00Z on: a further"),
        (("catalog.Visit", 4), {}, "has 4 shards from 2026-03-01T00:00:00Z on already"),
        (("catalog.Visit", 65), {"since": "2026-04-01T00:00Z"}, "1 to 64 shards, not 65"),
        (("catalog.Visit", 0), {"since": "2026-04-01T00:00Z"}, "1 to 64 shards, not 0"),
        (("catalog.Visit", 8), {"since": "soon"}, "takes a date and time such as"),
        (("catalog.Visit", 8), {"since": "2026-13-01T00:00Z"}, "takes a date and time such as"),
        (("catalog.Visit",), {"first": True}, "Give the number of shards too"),
        (("catalog.Club",), {}, "has no sharded key"),
        (("catalog.Nothing",), {}, "catalog"),
    ],
)
def test_what_cannot_be_is_one_line(clock: Any, arguments: Any, options: Any, message: str) -> None:
    """Nothing is written."""
    call_command("dynamo_shards", "catalog.Visit", 4, since="2026-03-01T00:00Z")
    before = knowledge.schedule(LAYOUT)
    with pytest.raises(CommandError, match=message):
        call_command("dynamo_shards", *arguments, **options)
    assert knowledge.schedule(LAYOUT) == before


def test_two_who_record_at_once_are_both_recorded_or_refused(
    clock: Any, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one writes its read state with a condition."""
    original, raced = knowledge._stored_state, []

    async def slow(table: Table) -> Any:
        state = await original(table)
        if not raced:
            raced.append(True)
            shard_record.record_first(table, LAYOUT, 2)
        return state

    monkeypatch.setattr(knowledge, "_stored_state", slow)
    Visit.objects.create(visit_id="a", at=NOON)
    assert knowledge.schedule(LAYOUT) == Schedule((Entry(0, 2),))
    assert Visit.objects.get(pk="a").at == NOON


def test_a_table_that_others_change_all_the_time_is_an_error(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After as many attempts as a transaction has."""
    original = knowledge._stored_state

    async def outdated(table: Table) -> Any:
        state, served_at = await original(table)
        return knowledge.replace(state, revision=7), served_at

    monkeypatch.setattr(knowledge, "_stored_state", outdated)
    with pytest.raises(Conflict):
        Visit.objects.create(visit_id="a", at=NOON)


def test_the_status_of_the_table_says_it_too(clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Each model with a recorded number has a line."""
    call_command("dynamo_shards", "catalog.Visit", 4, first=True)
    capsys.readouterr()
    call_command("dynamo_status")
    assert "Shards         Visit: 4 shards\n" in capsys.readouterr().out


def test_the_same_number_folds_from_then_on(clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """This concerns a model whose shards hash a value that its primary key folds."""
    recorded = StoredShards("address", "at", (Entry(0, 8),))
    knowledge.change(get_table("default"), lambda state: knowledge.replace(state, shards={"Mailbox": recorded}))
    begins = "2026-01-01T12:08:00Z"
    assert said(capsys, "catalog.Mailbox", 8) == f"catalog.Mailbox: 8 shards, 8 shards (canonical) from {begins} on."
