"""Writes of sharded models: the shard of an object, one object per identity, and which code may write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from msgspec.structs import replace

from dynamo_single import clock as app_clock
from dynamo_single import transactions
from dynamo_single.exceptions import (
    AlreadyExists,
    Conflict,
    FormNotApplied,
    ImmutableAttribute,
    InvalidValue,
    NotSupported,
    PendingWrite,
    UnexpectedItem,
    UniqueViolation,
)
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.states import StoredShards
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Entry, Schedule
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, frozen_time
from tests.catalog.service import Visit
from tests.contract.tables import assert_consistent, everything

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
LAYOUT = registry.layout_of(Visit)


@pytest.fixture
def clock(table: Table) -> Iterator[Any]:
    """Noon."""
    with frozen_time(NOON) as clock:
        yield clock


@pytest.fixture
def grown(table: Table, clock: Any) -> Any:
    """Schedule one shard until one o'clock and eight after that; it is two o'clock."""
    Visit.objects.create(visit_id="old", at=NOON)
    shard_record.grow(table, LAYOUT, 8, LATER)
    clock.move(timedelta(hours=2))
    knowledge.schedule(LAYOUT)
    return clock


def keys(table: Table) -> list[str]:
    """The partitions of all visits, with their ids."""
    found = (key for key in everything(table) if key[1].startswith("visitId#"))
    return sorted(f"{partition} {sort.removeprefix('visitId#')}" for partition, sort in found)


def test_one_shard_has_no_number(table: Table, clock: Any) -> None:
    """One shard has the layout of an unsharded key, also in indexes."""
    Visit.objects.create(visit_id="a", at=NOON)
    item = everything(table)["visit", "visitId#a"]
    assert (item["gs1pk"], item["gs2pk"]) == ({"S": "visit"}, {"S": "visit#/"})


def test_several_shards_are_numbered(table: Table, clock: Any) -> None:
    """The table and each index use the same number."""
    shard_record.record_first(table, LAYOUT, 8)
    Visit.objects.create(visit_id="a", at=NOON)
    item = everything(table)["visit!2", "visitId#a"]
    assert (item["gs1pk"], item["gs2pk"]) == ({"S": "visit!2"}, {"S": "visit#/!2"})


def test_growth_leaves_older_items_where_they_are(table: Table, grown: Any) -> None:
    """An object's own time determines its shard, whenever it is written."""
    Visit.objects.create(visit_id="new", at=LATER)
    Visit.objects.create(visit_id="late", at=LATER - timedelta(seconds=1))
    assert keys(table) == ["visit late", "visit old", "visit!5 new"]


def test_the_first_item_records_one_shard(table: Table, clock: Any) -> None:
    """The first write reads and changes the state, which is then cached."""
    with assert_requests(["GetItem", "GetItem", "PutItem", "GetItem", "PutItem"]):
        Visit.objects.create(visit_id="a", at=NOON)
    with assert_requests(["PutItem"]):
        Visit.objects.create(visit_id="b", at=NOON)


def test_a_creation_checks_each_key_that_its_identity_can_have(grown: Any) -> None:
    """One transaction puts the item and checks the other possible keys."""
    with assert_requests(["TransactWriteItems"]) as sent:
        Visit.objects.create(visit_id="a", at=LATER)
    actions = sent[0].params["TransactItems"]
    assert [next(iter(action)) for action in actions] == ["Put", "ConditionCheck"]
    assert actions[1]["ConditionCheck"]["Key"] == {"pk": {"S": "visit"}, "sk": {"S": "visitId#a"}}


@pytest.mark.parametrize(("first", "second"), [(NOON, LATER), (LATER, NOON)])
def test_an_identity_has_one_object_on_both_sides_of_a_growth(
    table: Table, grown: Any, first: datetime, second: datetime
) -> None:
    """Whichever comes first."""
    Visit.objects.create(visit_id="a", at=first)
    before = keys(table)
    with pytest.raises(AlreadyExists, match=r"catalog\.Visit with pk 'a' already exists"):
        Visit.objects.create(visit_id="a", at=second)
    assert keys(table) == before


def test_who_creates_one_identity_on_both_sides_at_once_is_refused_but_for_one(table: Table, grown: Any) -> None:
    """DynamoDB decides which transaction is first."""

    def create(given: tuple[str, datetime]) -> bool:
        try:
            Visit.objects.create(visit_id=given[0], at=given[1])
        except AlreadyExists:
            return False
        return True

    ids = [f"race{number}" for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(create, [(each, at) for each in ids for at in (NOON, LATER)]))
    assert [sum(made[place : place + 2]) for place in range(0, 40, 2)] == [1] * 20
    assert sorted(key.split()[1] for key in keys(table) if "race" in key) == sorted(ids)


def test_what_is_there_already_is_found_whatever_its_time_is(grown: Any) -> None:
    """By get_or_create(), update_or_create(), bulk_create() and a form's check."""
    now = grown_now()
    assert Visit.objects.get_or_create(visit_id="old", defaults={"at": now})[1] is False
    assert (
        Visit.objects.update_or_create(visit_id="old", defaults={"page": "/a"}, create_defaults={"at": now})[1] is False
    )
    assert Visit.objects.bulk_create([Visit(visit_id="old", at=now)], ignore_conflicts=True).skipped != []
    Visit.objects.bulk_create(
        [Visit(visit_id="old", at=now, page="/b")], update_conflicts=True, update_fields=["page"], unique_fields=["pk"]
    )
    assert [(visit.at, visit.page) for visit in Visit.objects.all()] == [(NOON, "/b")]
    with pytest.raises(ValidationError, match="already exists"):
        Visit(visit_id="old", at=now).full_clean()


def grown_now() -> datetime:
    """Schedule the growth for the current time."""
    return app_clock.instant()


def test_one_object_is_read_from_all_places_where_it_can_be(grown: Any) -> None:
    """One BatchGetItem reads all possible keys; a known time or a single shard takes one GetItem."""
    with assert_requests(["BatchGetItem", "GetItem", "BatchGetItem", "BatchGetItem"]):
        assert Visit.objects.get(pk="old").at == NOON
        assert Visit.objects.get(pk="old", at=NOON).at == NOON
        assert Visit.objects.consistent().get(visit_id="old").at == NOON
        assert Visit(visit_id="old").refresh_from_db() is None
    with assert_requests(["BatchGetItem"]):
        assert Visit.objects.in_bulk(["old", "missing"]).keys() == {"old"}


def test_every_way_to_write_keeps_an_object_in_its_shard(table: Table, grown: Any) -> None:
    """Saved, updated, put into the trash, restored and deleted, on either side of the growth."""
    Visit.objects.create(visit_id="new", at=LATER, ticket="t")
    for pk in ("old", "new"):
        visit = Visit.objects.get(pk=pk)
        visit.page = "/saved"
        with assert_requests(["UpdateItem"]):
            visit.save()
        Visit.objects.filter(pk=pk).update(page="/updated")
        visit.refresh_from_db()
        visit.delete()
    trashed = {key[0]: item["gs1pk"]["S"] for key, item in everything(table).items() if "deletedAt" in item}
    assert trashed == {"visit": "TRASH#Visit", "visit!5": "TRASH#Visit!5"}
    assert {visit.pk for visit in Visit.deleted_objects.order_by("deleted_at")} == {"old", "new"}
    for visit in Visit.deleted_objects.all():
        visit.restore()
    assert keys(table) == ["visit old", "visit!5 new"]
    assert_consistent()
    assert Visit.objects.filter(page="/updated").delete()[0] == 2
    for visit in Visit.deleted_objects.all():
        visit.hard_delete()
    assert keys(table) == []


def test_an_object_moves_to_another_identity(table: Table, grown: Any) -> None:
    """To the shard of that, unless there is such an object in any."""
    Visit.objects.create(visit_id="new", at=LATER)
    visit = Visit.objects.get(pk="new")
    with pytest.raises(AlreadyExists):
        visit.move(visit_id="old")
    visit.move(visit_id="other")
    assert keys(table) == ["visit old", "visit!0 other"]


def test_unique_values_are_unique_over_all_shards(grown: Any) -> None:
    """A claim is no part of a shard."""
    Visit.objects.create(visit_id="a", at=NOON, ticket="t")
    with pytest.raises(UniqueViolation):
        Visit.objects.create(visit_id="b", at=LATER, ticket="t")
    assert Visit.objects.get(pk="a").ticket == "t"


def test_a_time_that_lies_ahead_is_refused(clock: Any) -> None:
    """The number of shards at that time is not known yet."""
    with pytest.raises(InvalidValue, match="is in the future"):
        Visit.objects.create(visit_id="a", at=NOON + timedelta(seconds=61))
    assert Visit.objects.count() == 0


def test_the_time_that_decides_never_changes(grown: Any) -> None:
    """By no way to write."""
    visit = Visit.objects.get(pk="old")
    visit.at = LATER
    with pytest.raises(ImmutableAttribute):
        visit.save()
    with pytest.raises(ImmutableAttribute):
        Visit.objects.filter(pk="old").update(at=LATER)


def test_a_process_asks_again_in_time(table: Table, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process learns of another process's entry before it takes effect."""
    Visit.objects.create(visit_id="a", at=NOON)
    monkeypatch.setattr(knowledge, "stale", lambda: None)
    shard_record.grow(table, LAYOUT, 8, LATER)
    assert knowledge.schedule(LAYOUT) == Schedule()
    knowledge._tables[table].renew_at = 0.0
    clock.move(timedelta(hours=2))
    Visit.objects.create(visit_id="b", at=LATER)
    assert keys(table) == ["visit a", "visit!2 b"]


def test_an_entry_begins_after_all_leases() -> None:
    """The lease of a process, the margin, the time that an object may lie ahead, and wrong clocks."""
    assert knowledge.LEASE + knowledge.MARGIN + knowledge.AHEAD + knowledge.SKEW <= knowledge.LEAD


def test_block_is_refused_if_shards_change(clock: Any, table: Table) -> None:
    """The old block was composed with the former shards."""
    with pytest.raises(Conflict, match="do the block again"), transactions.atomic():
        Visit.objects.create(visit_id="a", at=NOON)
        shard_record.grow(table, LAYOUT, 8, shard_record.earliest_start())
    assert keys(table) == []


def test_a_block_creates_in_several_shards_at_once(table: Table, grown: Any) -> None:
    """One transaction creates them, and the block cannot read them before."""
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        Visit.objects.create(visit_id="a", at=LATER)
        Visit.objects.create(visit_id="new", at=LATER)
        with pytest.raises(PendingWrite):
            Visit.objects.get(pk="new")
    assert keys(table) == ["visit old", "visit!2 a", "visit!5 new"]


def test_a_model_that_is_divided_otherwise_goes_on_when_the_table_was_put_right(
    table: Table, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code with other shards also continues after the table is corrected."""
    Visit.objects.create(visit_id="a", at=NOON)
    right = knowledge._tables[table].state.shards["Visit"]
    wrong = replace(right, attribute="clubId")
    knowledge.change(table, lambda state: knowledge.replace(state, shards={"Visit": wrong}))
    with pytest.raises(FormNotApplied, match="Declare the shards as before"):
        Visit.objects.get(pk="a")
    known = knowledge._tables[table]
    knowledge.change(table, lambda state: knowledge.replace(state, shards={"Visit": right}))
    knowledge._tables[table] = known
    monkeypatch.setattr(knowledge, "REFUSED_REFRESH", 0.0)
    assert Visit.objects.get(pk="a").at == NOON


@pytest.mark.parametrize(
    ("recorded", "error", "message"),
    [
        (StoredShards("ticket", "at", (Entry(0, 8),)), FormNotApplied, "they are stored by ticket and at"),
        (StoredShards("visit_id", "at", (Entry(0, 8),), scheme=2), UnexpectedItem, "another release"),
    ],
)
def test_shards_by_something_else_are_refused(
    table: Table, recorded: StoredShards, error: type[Exception], message: str
) -> None:
    """Queries would look in the wrong shard."""
    knowledge.change(table, lambda state: knowledge.replace(state, shards={"Visit": recorded}))
    with pytest.raises(error, match=message):
        list(Visit.objects.all())
    with pytest.raises(error, match=message):
        Visit.objects.create(visit_id="a", at=NOON)


def test_pynamodbs_writers_are_refused(clock: Any) -> None:
    """They check nothing."""
    with pytest.raises(NotSupported, match="immutable"):
        Visit.batch_write()


def test_objects_are_written_and_read_in_an_event_loop(table: Table, clock: Any) -> None:
    """By the same requests."""

    async def work() -> list[str]:
        await Visit.objects.acreate(visit_id="a", at=NOON)
        assert (await Visit.objects.aget(pk="a")).at == NOON
        assert await Visit.objects.acount() == 1
        return [visit.pk async for visit in Visit.objects.order_by("at")]

    assert asyncio.run(work()) == ["a"]
