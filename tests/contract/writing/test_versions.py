"""``VersionAttribute`` counts every write; a write with an older version fails and names both."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from django.db.models import F, Q

from dynamo_single import counters, models, transactions
from dynamo_single.exceptions import ConditionNotMet, InvalidValue, NotSupported, StaleObject
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.catalog.stocks import Ledger
from tests.contract.tables import stored
from tests.unit.declaring import declare, forgotten, messages

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def ledger() -> Ledger:
    """A stored object of version 1."""
    return Ledger.objects.create(code="l", total=10)


def version() -> int | None:
    """The stored version."""
    return Ledger.all_objects.get(code="l").version


def save(ledger: Ledger) -> None:
    """Save a value."""
    ledger.note = "mine"
    ledger.save()


def save_unique(ledger: Ledger) -> None:
    """Save a unique value, by a transaction."""
    ledger.serial = 5
    ledger.save()


def save_sum(ledger: Ledger) -> None:
    """Save a sum."""
    ledger.total = F("total") + 1
    ledger.save()


def save_unique_sum(ledger: Ledger) -> None:
    """Save a sum that Python computes."""
    ledger.serial = F("total") + 1
    ledger.save()


def save_one(ledger: Ledger) -> None:
    """Save one attribute."""
    ledger.note = "mine"
    ledger.save(update_fields=["note"])


def save_in_block(ledger: Ledger) -> None:
    """Save in a block."""
    with transactions.atomic():
        save(ledger)


WRITES: list[Callable[[Ledger], Any]] = [
    save,
    save_unique,
    save_sum,
    save_unique_sum,
    save_one,
    save_in_block,
    lambda ledger: ledger.save(force_update=True),
    lambda ledger: ledger.delete(),
]


def test_creation_is_version_one(table: Table, ledger: Ledger) -> None:
    """A new object, such as a copy, has version 1, whatever value it was given."""
    assert ledger.version == 1
    assert stored(table)["LEDGER#l"]["version"] == {"N": "1"}
    save(ledger)
    copy = Ledger.objects.get(code="l")
    copy.code, copy._state.adding = "m", True
    copy.save()
    assert copy.version == 1


@pytest.mark.parametrize("write", WRITES)
def test_every_write_counts(ledger: Ledger, write: Callable[[Ledger], Any]) -> None:
    """The version is one more, in the table and on the object."""
    write(ledger)
    assert version() == 2
    assert ledger.version == 2
    if ledger.is_deleted:
        ledger.restore()
    else:
        save(ledger)
        ledger.note = "again"
        ledger.save()
    assert ledger.version == version()
    assert version() in (3, 4)


def test_a_save_without_a_change_does_not_count(ledger: Ledger) -> None:
    """The save does not send a request."""
    with assert_requests(0):
        ledger.save()
    assert ledger.version == 1


@pytest.mark.parametrize("write", [*WRITES, lambda ledger: ledger.hard_delete()])
def test_another_writers_change_is_not_written_over(
    table: Table, ledger: Ledger, write: Callable[[Ledger], Any]
) -> None:
    """The error contains the loaded and the stored version, and the table does not change."""
    theirs = Ledger.objects.get(code="l")
    for note in ("a", "b"):
        theirs.note = note
        theirs.save()
    before = stored(table)
    with pytest.raises(StaleObject) as raised:
        write(ledger)
    assert (raised.value.expected, raised.value.found) == (1, 3)
    assert stored(table) == before


def test_the_same_change_of_another_writer_is_noticed(ledger: Ledger) -> None:
    """Two processes that subtract one from ten would write nine, so the second one fails."""
    theirs = Ledger.objects.get(code="l")
    for each in (theirs, ledger):
        each.total -= 1
    theirs.save()
    with pytest.raises(StaleObject):
        ledger.save()


def test_deleting_and_restoring_twice_is_harmless(ledger: Ledger) -> None:
    """A repeated deletion or restoration does not raise an error."""
    theirs = Ledger.objects.get(code="l")
    theirs.delete()
    assert ledger.delete()[0] == 0
    theirs.restore()
    in_trash = Ledger.objects.get(code="l")
    in_trash.hard_delete()
    assert theirs.hard_delete()[0] == 0


@pytest.mark.parametrize(
    ("query", "operations"), [({"code": "l"}, ["UpdateItem"]), ({"total": 10}, ["Query", "UpdateItem"])]
)
def test_a_queryset_counts_too(ledger: Ledger, query: dict[str, Any], operations: list[str]) -> None:
    """``update()`` adds one with and without a read, so that other processes notice."""
    with assert_requests(operations):
        assert Ledger.objects.filter(**query).update(note="theirs") == 1
    assert version() == 2
    with pytest.raises(StaleObject):
        save(ledger)


def test_an_item_without_a_version_gets_one(table: Table, ledger: Ledger) -> None:
    """An item that is older than the attribute has version ``None`` until it is written."""
    key = {"pk": {"S": "LEDGER#l"}, "sk": {"S": "#METADATA"}}
    params = {"Key": key, "UpdateExpression": "REMOVE #v", "ExpressionAttributeNames": {"#v": "version"}}
    table.send(Request("UpdateItem", params))
    mine, theirs = Ledger.objects.get(code="l"), Ledger.objects.get(code="l")
    assert mine.version is None
    save(theirs)
    assert (theirs.version, version()) == (1, 1)
    with pytest.raises(StaleObject) as raised:
        save_sum(mine)
    assert (raised.value.expected, raised.value.found) == (None, 1)
    table.send(Request("UpdateItem", params))
    Ledger.objects.filter(code="l").update(note="x")
    assert version() == 1


def test_a_version_is_not_set_by_hand(ledger: Ledger) -> None:
    """Every way to set the version raises an error."""
    ledger.version = 7
    with assert_requests(0), pytest.raises(InvalidValue, match="counts the writes and cannot be set to 7"):
        ledger.save()
    with assert_requests(0), pytest.raises(NotSupported, match="version"):
        Ledger.objects.filter(code="l").update(version=7)
    with assert_requests(0), pytest.raises(NotSupported, match="version"):
        ledger.save(update_fields=["version"])
    assert not Ledger._meta.get_field("version").editable


def test_a_condition_comes_before_the_version(ledger: Ledger) -> None:
    """If the caller's condition fails, the error reports it with the stored object."""
    Ledger.objects.filter(code="l").update(total=1)
    ledger.note = "x"
    with pytest.raises(ConditionNotMet) as raised:
        ledger.save(condition=Q(total=10))
    assert raised.value.current.version == 2
    with pytest.raises(StaleObject):
        ledger.save(condition=Q(total=1))


def test_no_update_is_lost(ledger: Ledger) -> None:
    """The result contains each process's change."""
    done: list[int] = []

    def work() -> None:
        for _ in range(60):
            mine = Ledger.objects.consistent().get(code="l")
            mine.total += 1
            try:
                mine.save()
            except StaleObject:
                continue
            done.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Ledger.objects.consistent().get(code="l")
    assert (found.total, found.version) == (10 + len(done), 1 + len(done))
    assert done


def test_a_block_that_is_discarded_takes_the_version_back(ledger: Ledger) -> None:
    """You can save the object again."""
    with pytest.raises(RuntimeError), transactions.atomic():
        save(ledger)
        raise RuntimeError
    assert ledger.version == 1
    save(ledger)
    assert (ledger.version, version()) == (2, 2)


def test_fixtures_keep_versions(ledger: Ledger, tmp_path: Path) -> None:
    """A loaded object has the version of the fixture."""
    save(ledger)
    text = serializers.serialize("json", [ledger])
    ledger.hard_delete()
    for _ in range(2):
        for each in serializers.deserialize("json", text):
            each.save()
    assert version() == 2


def test_writers_that_cannot_keep_versions_are_refused(ledger: Ledger) -> None:
    """PynamoDB's put and counters would pass them by."""
    with assert_requests(0), pytest.raises(NotSupported, match="version"), Ledger.batch_write() as batch:
        batch.save(ledger)
    with assert_requests(0), pytest.raises(NotSupported, match="version"):
        counters.add(Ledger(code="l", total=1), "total")


def test_a_model_has_one_version_in_no_key() -> None:
    """Two would count the same, and a key would not follow."""
    with forgotten():
        twice = declare(
            "Twice",
            ("TWICE#{name}", "#METADATA"),
            name=models.UnicodeAttribute(),
            one=models.VersionAttribute(),
            two=models.VersionAttribute(),
        )
        ((_, message),) = messages(twice)
    assert "one" in message and "two" in message
    with forgotten():
        keyed = declare(
            "Keyed", ("KEYED#{name}", "V#{version}"), name=models.UnicodeAttribute(), version=models.VersionAttribute()
        )
        ((_, message),) = messages(keyed)
    assert "no key can follow it" in message
