"""All spellings of a folded address lead to one object with any shards, and repairs move misplaced objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.checks import Warning
from django.core.management import call_command

from dynamo_single import transactions
from dynamo_single.checks.migrations import check_tables
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.exceptions import AlreadyExists, FormNotApplied, InvalidValue, UnexpectedItem, UniqueViolation
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.state_item import state_item
from dynamo_single.orm.rollout.states import StoredShards, TableState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Entry, Schedule
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, frozen_time
from tests.catalog.service import Alias, Mailbox
from tests.contract.tables import assert_consistent, everything

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
LAYOUT = registry.layout_of(Mailbox)
#: These addresses have different shards of eight if their spelling is hashed.
SPELLINGS = ("Anna@example.org", "anna@example.org", "ANNA@EXAMPLE.ORG")


@pytest.fixture
def clock(table: Table) -> Iterator[Any]:
    """Two o'clock, as the time of the models goes."""
    with frozen_time(NOON) as clock:
        yield clock


def spelled(*later: Entry) -> None:
    """Record eight shards that hash the exact spelling, as earlier releases did."""
    entries = (Entry(0, 8), *later)
    recorded = StoredShards("address", "at", entries, Schedule(entries).scheme)
    knowledge.change(
        knowledge.get_table("default"),
        lambda state: knowledge.replace(state, shards={**state.shards, "Mailbox": recorded}),
    )


@pytest.fixture
def folded(table: Table, clock: Any) -> Any:
    """Eight shards from the beginning."""
    shard_record.record_first(table, LAYOUT, 8)
    return clock


@pytest.fixture
def older(table: Table, clock: Any) -> Any:
    """Eight shards of spellings, with one mailbox, and eight folded ones from one o'clock on; it is two o'clock."""
    spelled()
    Mailbox.objects.create(address=SPELLINGS[0], at=NOON, ticket="t")
    shard_record.grow(table, LAYOUT, 8, LATER)
    clock.move(timedelta(hours=2))
    return clock


def places(table: Table) -> list[str]:
    """The partitions of all mailboxes."""
    return sorted(key[0] for key in everything(table) if key[0].startswith("mailbox"))


def test_an_entry_marks_that_it_folds(table: Table, folded: Any) -> None:
    """The state has the scheme that releases before refuse."""
    recorded = run_state(table).shards["Mailbox"]
    assert (recorded.entries, recorded.scheme) == ((Entry(0, 8, "canonical"),), 2)


def run_state(table: Table) -> TableState:
    """Return the state of the table."""
    return knowledge.run(knowledge.state_of(table))


def test_an_entry_of_exact_values_has_no_mark(table: Table, clock: Any) -> None:
    """Earlier releases can continue with such an entry."""
    shard_record.record_first(table, registry.layout_of(Mailbox), 1)
    item = state_item(run_state(table))["shards"]["S"]
    assert '"entries":[{"since":0,"shards":1}],"scheme":1' in item


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_finds_the_one_object(folded: Any, spelling: str) -> None:
    """By its identity, with a time, and by an index."""
    Mailbox.objects.create(address=SPELLINGS[0], at=NOON)
    assert Mailbox.objects.get(pk=spelling).address == SPELLINGS[0]
    assert Mailbox.objects.get(address=spelling, at=NOON).address == SPELLINGS[0]
    assert Mailbox.objects.filter(address=spelling, at__gte=NOON).count() == 1
    assert asyncio.run(Mailbox.objects.aget(pk=spelling)).address == SPELLINGS[0]


def test_an_address_has_one_object(table: Table, folded: Any) -> None:
    """By every way to create."""
    Mailbox.objects.create(address=SPELLINGS[0], at=NOON)
    for spelling in SPELLINGS[1:]:
        with pytest.raises(AlreadyExists):
            Mailbox.objects.create(address=spelling, at=NOON)
        assert Mailbox.objects.bulk_create([Mailbox(address=spelling, at=NOON)], ignore_conflicts=True).skipped
        with pytest.raises(AlreadyExists), transactions.atomic():
            Mailbox.objects.create(address=spelling, at=NOON)
    assert len(places(table)) == 1


def test_the_trash_and_restoring_stay_in_the_shard(table: Table, folded: Any) -> None:
    """The trash has the same number."""
    Mailbox.objects.create(address=SPELLINGS[0], at=NOON)
    (place,) = places(table)
    Mailbox.objects.get(pk=SPELLINGS[1]).delete()
    (item,) = (each for key, each in everything(table).items() if key[0] == place)
    assert item["gs1pk"] == {"S": f"TRASH#Mailbox!{place.rpartition('!')[2]}"}
    Mailbox.deleted_objects.get(pk=SPELLINGS[2]).restore()
    assert places(table) == [place]
    assert_consistent()


def test_an_index_reads_one_shard_of_a_folded_address(table: Table, clock: Any) -> None:
    """The primary key of the model is in no shards."""
    shard_record.record_first(table, registry.layout_of(Alias), 8)
    Alias.objects.create(address=SPELLINGS[0], at=NOON)
    found = Alias.objects.filter(address=SPELLINGS[1]).order_by("at").using_index("by_address")
    with assert_requests(["Query"]):
        assert [each.address for each in found] == [SPELLINGS[0]]


def test_an_index_reads_all_shards_of_spellings(table: Table, clock: Any) -> None:
    """The shard depends on the stored spelling."""
    recorded = StoredShards("address", "at", (Entry(0, 8),))
    knowledge.change(table, lambda state: knowledge.replace(state, shards={"Alias": recorded}))
    Alias.objects.create(address=SPELLINGS[0], at=NOON)
    found = Alias.objects.filter(address=SPELLINGS[1]).using_index("by_address")
    with assert_requests(["Query"] * 8):
        assert [each.address for each in found] == [SPELLINGS[0]]


def test_older_entries_keep_their_rule(table: Table, older: Any) -> None:
    """The stored spelling still finds an object."""
    assert places(table) == ["mailbox!4"]
    assert Mailbox.objects.get(pk=SPELLINGS[0]).at == NOON
    assert not Mailbox.objects.filter(pk=SPELLINGS[1]).exists()


def test_the_same_number_begins_anew_if_it_folds(table: Table, older: Any) -> None:
    """Once only."""
    assert knowledge.schedule(LAYOUT).entries[1].fold == "canonical"
    with pytest.raises(InvalidValue, match="already"):
        shard_record.grow(table, LAYOUT, 8, LATER + timedelta(hours=3))


def test_repair_moves_an_object_to_the_folded_shard(table: Table, older: Any) -> None:
    """The object and its claim move, and every spelling then finds it."""
    (finding,) = verify()
    assert finding.kind == "shard of a spelling"
    assert repair(finding)
    assert_consistent()
    found = Mailbox.objects.get(pk=SPELLINGS[2])
    assert (found.address, found.at) == (SPELLINGS[0], NOON)
    found.ticket = "u"
    found.save()
    with pytest.raises(UniqueViolation):
        Mailbox.objects.create(address="b@example.org", at=LATER, ticket="u")
    with pytest.raises(AlreadyExists):
        Mailbox.objects.create(address=SPELLINGS[1], at=LATER)
    found.full_clean()
    found.move(ticket="v")
    found.delete()
    found.restore()
    assert Mailbox.objects.filter(pk=SPELLINGS[1]).update(ticket="w") == 1
    assert_consistent()
    assert len(places(table)) == 1


def test_repair_moves_what_is_in_the_trash(table: Table, older: Any) -> None:
    """Every spelling finds the object in the trash."""
    Mailbox.objects.get(pk=SPELLINGS[0]).delete()
    assert [repair(finding) for finding in verify()] == [True]
    assert Mailbox.deleted_objects.get(pk=SPELLINGS[1]).address == SPELLINGS[0]
    assert_consistent()


@pytest.mark.parametrize("at", [NOON, LATER])
def test_two_objects_of_one_address_are_told(table: Table, older: Any, at: datetime) -> None:
    """You have to change one of the objects."""
    Mailbox.objects.create(address=SPELLINGS[1], at=at)
    (finding,) = verify()
    assert "has the same address in another spelling" in finding.text
    assert not repair(finding)
    assert len(places(table)) == 2


def test_repair_leaves_what_was_changed_since(table: Table, older: Any) -> None:
    """Another process wrote it, or took the address."""
    (finding,) = verify()
    Mailbox.objects.filter(pk=SPELLINGS[0]).update(until=datetime(2999, 1, 1, tzinfo=UTC))
    assert not repair(finding)
    (finding,) = verify()
    Mailbox.objects.create(address=SPELLINGS[1], at=LATER)
    assert not repair(finding)
    assert Mailbox.objects.get(pk=SPELLINGS[0], at=NOON).until is not None


def test_repair_waits_until_every_process_knows(table: Table, clock: Any) -> None:
    """Before a folded entry has begun, another process could look into the shard of the spelling alone."""
    spelled()
    Mailbox.objects.create(address=SPELLINGS[0], at=NOON)
    (finding,) = verify()
    assert "manage.py dynamo_shards catalog.Mailbox 8" in finding.text
    assert not repair(finding)
    shard_record.grow(table, LAYOUT, 8, LATER)
    (finding,) = verify()
    assert "Repair it after 2026-01-01T13:00:00Z" in finding.text
    assert not repair(finding)
    clock.move(timedelta(hours=2))
    call_command("dynamo_verify", "--repair")
    assert_consistent()


def test_check_names_a_model_whose_shards_hash_spellings(table: Table, clock: Any) -> None:
    """Until a folded entry is the latest one."""
    spelled()
    (found,) = check_tables(databases=["default"])
    assert isinstance(found, Warning)
    assert (found.id, found.obj) == ("dynamo_single.W914", Mailbox)
    shard_record.grow(table, LAYOUT, 8, LATER)
    assert check_tables(databases=["default"]) == []


def test_a_fold_that_the_key_does_not_have_is_refused(table: Table, clock: Any) -> None:
    """Queries would look in the wrong shard."""
    spelled(Entry(60, 8, "unknown"))
    with pytest.raises(FormNotApplied, match="Declare the primary key as before"):
        Mailbox.objects.get(pk=SPELLINGS[0])


def test_a_mark_without_its_scheme_is_refused(table: Table, clock: Any) -> None:
    """Only another release writes that."""
    recorded = StoredShards("address", "at", (Entry(0, 8, "canonical"),))
    knowledge.change(table, lambda state: knowledge.replace(state, shards={"Mailbox": recorded}))
    with pytest.raises(UnexpectedItem, match="another release"):
        Mailbox.objects.get(pk=SPELLINGS[0])


def test_reading_a_folded_address_costs_one_request(folded: Any) -> None:
    """Only one shard is possible."""
    Mailbox.objects.create(address=SPELLINGS[0], at=NOON)
    with assert_requests(["GetItem"]):
        Mailbox.objects.get(pk=SPELLINGS[1])
