"""Partially loaded objects are loaded completely before a write, so that keys and unique values stay correct."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models.signals import post_delete

from dynamo_single.exceptions import StaleObject
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, frozen_time
from project.directory.models import Company, Person
from tests.catalog.models import Firm, Member, Sample
from tests.contract.tables import stored
from tests.ready import table_ready

pytestmark = pytest.mark.usefixtures("people")


@pytest.fixture
def people(table: Table) -> None:
    """Return a company with a person whose address is unique."""
    fill()


def fill() -> None:
    """Put the objects of the tests into an empty table."""
    Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    Person.objects.create(company_id="c1", person_id="mike", name="Mike", email="mike@x.org", role="founder")


def change(obj: Any, **values: Any) -> None:
    """Set attributes and save."""
    for name, value in values.items():
        setattr(obj, name, value)
    obj.save()


def change_one(obj: Any, **values: Any) -> None:
    """Set attributes and save the last of them alone."""
    for name, value in values.items():
        setattr(obj, name, value)
    obj.save(update_fields=[name])


def put(obj: Any) -> None:
    """Write an object as PynamoDB does."""
    with type(obj).batch_write() as batch:
        batch.save(obj)


def put_copy(obj: Any) -> None:
    """Store a copy, as Django's documentation does it."""
    obj.pk, obj._state.adding = None, True
    obj.company_id = "c2"
    obj.save()


COMPANY = Company.all_objects.filter(pk="c1")
PERSON = Person.all_objects.filter(pk="c1~~mike")
WRITES: list[tuple[str, Any, Callable[[Any], Any], list[str]]] = [
    ("what was read", COMPANY, lambda obj: change(obj, name="New"), ["GetItem", "UpdateItem"]),
    ("what was not read", COMPANY, lambda obj: change(obj, stock="NEW"), ["GetItem", "UpdateItem"]),
    ("an empty value", COMPANY, lambda obj: change(obj, stock=None), ["GetItem", "UpdateItem"]),
    ("the value that is stored", COMPANY, lambda obj: change(obj, stock="ACM"), ["GetItem"]),
    ("nothing", COMPANY, lambda obj: obj.save(), []),
    ("one of several", COMPANY, lambda obj: change_one(obj, name="New", stock="NEW"), ["GetItem", "UpdateItem"]),
    ("a unique value", PERSON, lambda obj: change(obj, email="n@x.org"), ["GetItem", "TransactWriteItems"]),
    ("no unique value", PERSON, lambda obj: change(obj, email=None), ["GetItem", "TransactWriteItems"]),
    ("all keys, which are as they were", COMPANY, lambda obj: obj.save(force_update=True), ["GetItem", "UpdateItem"]),
    ("a copy", COMPANY, put_copy, ["GetItem", "PutItem"]),
    ("a soft delete", COMPANY, lambda obj: obj.delete(), ["GetItem", "Query", "TransactWriteItems", "Query"]),
    ("a soft delete with a unique value", PERSON, lambda obj: obj.delete(), ["GetItem", "TransactWriteItems"]),
    ("a restore of what is live", COMPANY, lambda obj: obj.restore(), ["GetItem"]),
    ("a deletion for good", PERSON, lambda obj: obj.hard_delete(), ["GetItem", "TransactWriteItems"]),
    ("PynamoDB's writer", COMPANY, put, ["GetItem", "BatchWriteItem"]),
]


@pytest.mark.parametrize(("query", "write", "operations"), [row[1:] for row in WRITES], ids=[row[0] for row in WRITES])
def test_a_write_leaves_the_table_as_that_of_a_whole_object_does(
    table: Table, query: Any, write: Any, operations: list[str]
) -> None:
    """One GetItem is sent first if something changed; the table then has the same items, keys and claims."""
    with frozen_time(datetime(2030, 1, 1, tzinfo=UTC)):
        table_ready()
        fill()
        write(query.get())
        expected = stored(table)
        table_ready()
        fill()
        partial = query.only("name").get()
        with assert_requests(operations):
            write(partial)
    assert stored(table) == expected


def test_a_restore_takes_the_unique_values_back(table: Table) -> None:
    """The object's restoration claims a value that was not loaded."""
    before = stored(table)
    PERSON.get().delete()
    person = Person.deleted_objects.only("name").get(person_id="mike")
    with assert_requests(["GetItem", "TransactWriteItems"]):
        assert person.restore() == (1, {"directory.Person": 1})
    assert stored(table).keys() == before.keys()
    assert person.email == "mike@x.org"


def test_what_was_loaded_by_access_is_not_read_again() -> None:
    """After an attribute was loaded on access, a save sends only the write."""
    company = COMPANY.only("name").get()
    assert company.stock == "ACM"
    with assert_requests(["UpdateItem"]):
        change(company, stock="NEW")


def test_an_object_is_whole_after_it_was_written() -> None:
    """The write loads the missing attributes."""
    company = COMPANY.only("name").get()
    change(company, name="New")
    with assert_requests(0):
        assert (company.stock, company.get_deferred_fields()) == ("ACM", set())
        company.save()


def test_nothing_of_another_writers_is_undone() -> None:
    """Unchanged attributes have the item's values, whether or not they were loaded before."""
    company = COMPANY.only("name", "public").get()
    COMPANY.update(stock="NEW", public=True)
    change(company, name="Mine")
    found = COMPANY.get()
    assert (found.name, found.stock, found.public) == ("Mine", "NEW", True)
    assert (company.stock, company.public) == ("NEW", True)


def test_another_writers_change_of_the_same_key_is_noticed() -> None:
    """A key that this and another process have changed raises StaleObject, as for a whole object."""
    company = COMPANY.only("name").get()
    COMPANY.update(name="Theirs")
    with pytest.raises(StaleObject, match="changed by another process"):
        change(company, name="Mine")
    assert COMPANY.get().name == "Theirs"


def test_another_writers_change_is_noticed_after_the_rest_was_read() -> None:
    """Loading one attribute does not hide another process's change of a different one."""
    company = COMPANY.only("name").get()
    company.name = "Mine"
    COMPANY.update(name="Theirs")
    assert (company.stock, company.name) == ("ACM", "Mine")
    with pytest.raises(StaleObject, match="changed by another process"):
        company.save()


def test_another_writers_value_in_the_place_of_none_is_noticed(table: Table) -> None:
    """If both processes set a missing unique value, the other one's claim is kept."""
    Member.objects.create(member_id="m", email="m@x.org")
    member = Member.objects.only("badge").get(pk="m")
    Member.objects.filter(pk="m").update(badge=1)
    with pytest.raises(StaleObject):
        change(member, badge=2)
    assert Member.objects.get(pk="m").badge == 1


def test_a_unique_value_of_another_writers_is_given_free(table: Table) -> None:
    """A deletion releases the claim of the stored item rather than the loaded one."""
    person = PERSON.only("name").get()
    change(PERSON.get(), email="new@x.org")
    person.hard_delete()
    assert not any(key.startswith("UNIQUE#") for key in stored(table))


def test_an_object_that_is_gone_is_told_as_a_whole_one_is() -> None:
    """Saving raises StaleObject, deleting counts no object, and restoring does not find any."""
    found = [COMPANY.only("name").get() for _ in range(4)]
    COMPANY.get().hard_delete()
    with pytest.raises(StaleObject, match="Nothing was written"):
        change(found[0], name="New")
    assert found[1].delete() == (0, {"directory.Company": 0})
    assert found[2].hard_delete() == (0, {"directory.Company": 0})
    with pytest.raises(Company.DoesNotExist):
        found[3].restore()


def test_an_object_that_was_deleted_since_is_not_deleted_again() -> None:
    """The trash keeps the time of the first deletion."""
    company = COMPANY.only("name").get()
    COMPANY.get().delete()
    deleted_at = COMPANY.get().deleted_at
    with assert_requests(["GetItem", "Query"]):
        assert company.delete() == (0, {"directory.Company": 0})
    assert COMPANY.get().deleted_at == company.deleted_at == deleted_at


def test_after_a_deletion_everything_is_there() -> None:
    """Receivers of ``post_delete`` see each attribute, although the item is deleted."""
    Firm.objects.create(firm_id="f", name="F", stock="S")
    seen = []

    def receive(instance: Any, **_: Any) -> None:
        seen.append(instance.stock)

    post_delete.connect(receive, sender=Firm)
    try:
        firm = Firm.objects.only("name").get(pk="f")
        with assert_requests(["GetItem", "DeleteItem"]):
            firm.delete()
    finally:
        post_delete.disconnect(receive, sender=Firm)
    assert seen == ["S"]


def test_writing_through_a_queryset_reads_whole_items() -> None:
    """``only()`` does not affect ``update()`` and ``delete()``, which read each object once."""
    Sample.objects.create(sample_id="s", text="a", integer=1)
    asked = Sample.objects.filter(pk="s").only("text")
    with assert_requests(["UpdateItem"]):
        assert asked.update(integer=2) == 1
    with assert_requests(["Query", "UpdateItem"]):
        assert Sample.objects.filter(text="a").only("text").update(integer=5) == 1
    with assert_requests(["GetItem", "GetItem", "UpdateItem"]):
        asked.update_or_create({"integer": 3}, pk="s")
    with assert_requests(["DeleteItem"]):
        assert asked.delete() == (1, {"catalog.Sample": 1})
