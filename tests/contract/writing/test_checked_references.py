"""Checked references are counted at their target, so that ``on_delete`` is exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from django.db.models import ProtectedError

from dynamo_single import models, transactions
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import ConfigurationError, DynamoSingleError, MissingReference, NotSupported, StaleObject
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, intercept
from tests.catalog.studios import Gallery, Lease, Play, Theatre, Tour
from tests.contract.clubs import items
from tests.contract.racing import before_write
from tests.contract.tables import assert_consistent
from tests.histories.app import history

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def globe(table: Table) -> Theatre:
    """A theatre to which nothing refers."""
    return Theatre.objects.create(theatre_id="globe")


@contextmanager
def late_index(partition: str) -> Iterator[None]:
    """Let an index omit a partition: redirect queries for it to another partition."""

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "Query":
            for value in params["ExpressionAttributeValues"].values():
                if value.get("S") == partition:
                    value["S"] = "NOTHING"

    with intercept(interceptor):
        yield


def counts(table: Table) -> dict[str, str]:
    """Return the counts of the theatre."""
    item = items(table)["THEATRE#globe", "#METADATA"]
    return {name: value["N"] for name, value in item.items() if name.startswith("refs:")}


def test_a_creation_is_one_transaction_that_the_target_counts(globe: Theatre, table: Table) -> None:
    with assert_requests(["TransactWriteItems"]):
        play = Play.objects.create(play_id="a", theatre=globe)
    Lease.objects.create(lease_id="b", theatre=globe)
    assert counts(table) == {"refs:Play.theatre_id": "1", "refs:Lease.theatre_id": "1"}
    play.hard_delete()
    Lease.objects.filter(pk="b").update(theatre=None)
    assert set(counts(table).values()) == {"0"}
    assert_consistent()


def test_it_costs_twice_the_units_and_those_of_the_other_item(globe: Theatre) -> None:
    """An item and its index entry cost two units, four in a transaction, and the counting object costs two more."""
    Gallery.objects.create(gallery_id="g")
    with measure_requests() as unchecked:
        Tour.objects.create(tour_id="t", gallery_id="g")
    with measure_requests() as checked:
        lease = Lease.objects.create(lease_id="l", theatre=globe)
    with measure_requests() as deleted:
        lease.delete()
    assert (unchecked.write_units, checked.write_units, deleted.write_units) == (2, 6, 6)


def test_other_changes_check_nothing(globe: Theatre) -> None:
    lease = Lease.objects.create(lease_id="b", theatre=globe)
    with assert_requests([]):
        lease.save()


def test_what_is_not_stored_or_in_the_trash_is_refused(globe: Theatre, table: Table) -> None:
    before = items(table)
    with pytest.raises(MissingReference, match="refers to an object that is not stored, pk='THEATRE#rose'"):
        Play.objects.create(play_id="a", theatre_id="rose")
    assert items(table) == before
    globe.delete()
    before = items(table)
    with pytest.raises(MissingReference, match="refers to an object in the trash, pk='THEATRE#globe'"):
        Play.objects.create(play_id="a", theatre_id="globe")
    lease = Lease.objects.create(lease_id="b")
    with pytest.raises(MissingReference, match="in the trash"):
        Lease.objects.filter(pk="b").update(theatre_id="globe")
    lease.delete()
    assert items(table) == before


def test_what_comes_to_protect_meanwhile_refuses(globe: Theatre) -> None:
    with before_write(1, lambda: Lease.objects.create(lease_id="b", theatre_id="globe")), pytest.raises(ProtectedError):
        globe.hard_delete()
    assert Theatre.objects.filter(pk="globe").exists()
    assert_consistent()


def test_what_comes_to_protect_before_the_trash_refuses(globe: Theatre) -> None:
    with before_write(1, lambda: Lease.objects.create(lease_id="b", theatre_id="globe")), pytest.raises(ProtectedError):
        globe.delete()
    assert Theatre.objects.filter(pk="globe").exists()


def test_what_cascades_and_comes_meanwhile_goes_along(globe: Theatre, table: Table) -> None:
    with before_write(1, lambda: Play.objects.create(play_id="a", theatre_id="globe")):
        assert globe.hard_delete()[0] == 2
    assert items(table) == {}


@pytest.mark.parametrize("method", ["delete", "hard_delete"])
def test_what_an_index_does_not_show_yet_is_known_by_its_number(globe: Theatre, table: Table, method: str) -> None:
    """The count reveals missing index entries: a protected deletion fails, and a cascade waits."""
    lease = Lease.objects.create(lease_id="b", theatre=globe)
    before = items(table)
    with late_index("LEASES#globe"), pytest.raises(ProtectedError, match=r"1 catalog\.Lease objects refer to it"):
        getattr(globe, method)()
    lease.delete()
    Play.objects.create(play_id="a", theatre=globe)
    with late_index("PLAYS#globe"), pytest.raises(StaleObject, match="but its key shows only 0 of them so far"):
        getattr(globe, method)()
    Play.objects.get(pk="a").hard_delete()
    assert before.keys() - items(table).keys() == {("LEASE#b", "#METADATA")}


@pytest.mark.parametrize("size", [2, 120])
def test_a_cascade_goes_to_the_trash_and_back_and_for_good(globe: Theatre, table: Table, size: int) -> None:
    plays = [Play(play_id=f"{number:03}", theatre=globe) for number in range(size)]
    Play.objects.bulk_create(plays, in_transactions=True)
    before = items(table)
    assert globe.delete()[0] == size + 1
    assert counts(table) == {"refs:Play.theatre_id": "0"}
    assert_consistent()
    assert globe.restore()[0] == size + 1
    assert items(table) == before
    assert globe.hard_delete()[0] == size + 1
    assert items(table) == {}


def test_both_are_made_and_deleted_in_one_block(table: Table) -> None:
    with transactions.atomic():
        made = Theatre.objects.create(theatre_id="globe")
        Play.objects.create(play_id="a", theatre=made)
    assert counts(table) == {"refs:Play.theatre_id": "1"}
    assert made.hard_delete()[0] == 2


def test_what_was_there_before_is_counted_by_a_rebuild(globe: Theatre, table: Table) -> None:
    Play.objects.create(play_id="a", theatre=globe)
    stored = items(table)["THEATRE#globe", "#METADATA"]
    table.send(
        Request(
            "UpdateItem",
            {
                "Key": {name: stored[name] for name in ("pk", "sk")},
                "UpdateExpression": "REMOVE #a",
                "ExpressionAttributeNames": {"#a": "refs:Play.theatre_id"},
            },
        )
    )
    (finding,) = verify()
    assert str(finding).endswith("refs:Play.theatre_id is 0, but 1 objects refer to it.")
    assert repair(finding)
    assert_consistent()


def test_fixtures_may_come_in_any_order(globe: Theatre, table: Table) -> None:
    play = Play.objects.create(play_id="a", theatre=globe)
    text = serializers.serialize("json", [play, Theatre.objects.get(pk="globe")])
    globe.hard_delete()
    for each in serializers.deserialize("json", text):
        each.save()
    assert counts(table) == {"refs:Play.theatre_id": "1"}
    assert_consistent()


def test_many_are_created_together(globe: Theatre, table: Table) -> None:
    Play.objects.bulk_create([Play(play_id=f"{number:03}", theatre=globe) for number in range(150)])
    assert counts(table) == {"refs:Play.theatre_id": "150"}
    with pytest.raises(DynamoSingleError):
        Play.objects.bulk_create([Play(play_id="x", theatre_id="rose")])


def test_it_takes_an_on_delete() -> None:
    with pytest.raises(ConfigurationError, match="checked=True requires an on_delete"):
        models.ReferenceAttribute(Theatre, on_delete=models.DO_NOTHING, checked=True)


def test_what_is_put_over_keeps_its_counts(table: Table, tmp_path: Path) -> None:
    """A model that checked references point to is not a plain model, so an overwrite keeps its counts."""
    with history(tmp_path) as app:
        hall = app.model("Hall", name=models.UnicodeAttribute())
        to_hall = models.ReferenceAttribute("histories.Hall", on_delete=models.PROTECT, checked=True)
        keys = {"by_hall": models.IndexKey("gs1", "HALL#{hall_id}", "{shop_id}")}
        event = app.model("Event", keys=keys, hall=to_hall)
        app.make()
        app.migrate()
        event.objects.create(shop_id="e", hall=hall.objects.create(shop_id="h", name="Old"))
        hall.objects.bulk_create([hall(shop_id="h", name="New")], update_conflicts=True)
        assert hall.objects.get(pk="h").name == "New"
        assert_consistent()


def test_pynamodbs_writers_are_refused_where_counts_are_kept(globe: Theatre) -> None:
    with pytest.raises(
        NotSupported, match=r"checked references: catalog\.Play\.theatre, catalog\.Lease\.theatre\. Use save"
    ):
        Theatre.batch_write()
