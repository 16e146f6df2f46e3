"""Writing through querysets: checked first, each object under the queryset's own conditions, and reported exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models.functions import Lower

from dynamo_single import models
from dynamo_single.exceptions import BulkError, InvalidValue, NotSupported, RequestFailed, Throttled, UnknownField
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, intercept, refusal, refuse
from project.directory.models import Company, Person
from tests.catalog.boards import Board, Note
from tests.catalog.models import Member, Sample
from tests.contract.tables import claims

pytestmark = pytest.mark.usefixtures("people")


@pytest.fixture
def people(table: Table) -> None:
    """A company with three people, one of them in the trash."""
    Company.objects.create(company_id="c1", name="Acme", stock="ACM")
    for name in ("Anna", "Mike", "Zoe"):
        Person.objects.create(company_id="c1", person_id=name.lower(), name=name)
    Person.objects.get(person_id="zoe").delete()


def names(found: Any) -> list[str]:
    """The names of people or companies."""
    return [each.name for each in found]


def meanwhile(operation: str, change: Callable[[], Any]) -> Any:
    """Another writer, who is faster than the first request of this operation."""
    done: list[bool] = []

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked == operation and not done:
            done.append(True)
            change()

    return intercept(interceptor)


def failing_at(key: str, operation: str) -> Any:
    """Refuses an operation on one item."""

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked == operation and key in str(params):
            raise refusal(asked, "InternalServerError")

    return intercept(interceptor)


def test_update_sends_one_update_for_each_object() -> None:
    """One Query reads the queryset, and each object takes a conditional update."""
    with assert_requests(["Query", "UpdateItem", "UpdateItem"]):
        assert Person.objects.filter(company="c1").update(role="founder") == 2
    assert set(Person.objects.values_list("role", flat=True)) == {"founder"}


def test_update_moves_objects_in_their_indexes() -> None:
    """The index finds the new value, and does not find the old one."""
    Person.objects.filter(person_id="anna").update(name="Berta")
    assert names(Person.objects.filter(name="Berta")) == ["Berta"]
    assert names(Person.objects.filter(name="Anna")) == []


def test_update_takes_objects_for_references() -> None:
    """You can set a reference to an object, its ``pk``, or ``None`` if it is nullable."""
    board = Board.objects.create(board_id="b", name="B")
    Note.objects.create(note_id="n")
    for value, expected in ((board, "b"), (None, None), ("b", "b")):
        assert Note.objects.filter(pk="n").update(board=value) == 1
        assert Note.objects.get(pk="n").board_id == expected


def test_values_do_not_keep_update_from_writing() -> None:
    """As in Django, ``update()`` ignores the format of rows."""
    assert Person.objects.filter(company="c1").values("name").update(role="founder") == 2


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"nonsense": 1},
            UnknownField,
            "no attribute 'nonsense' to update. It has created_at, updated_at, deleted_at, deleted_with, name, email, "
            "role.",
        ),
        ({"is_deleted": True}, UnknownField, "no attribute 'is_deleted'"),
        ({"pk": "x"}, NotSupported, "directory.Person.pk is part of the primary key and cannot change here"),
        ({"person_id": "x"}, NotSupported, "directory.Person.person_id is part of the primary key"),
        ({"company": "x"}, NotSupported, "directory.Person.company is part of the primary key"),
        ({"name": 5}, InvalidValue, "directory.Person: name must be a string (str), not int 5"),
        ({"name": None}, InvalidValue, "directory.Person: name is missing"),
        ({"name": Lower("role")}, NotSupported, "Cannot set directory.Person.name to Lower(F(role)): DynamoDB adds"),
    ],
)
@pytest.mark.parametrize("person", ["anna", "nobody"])
def test_a_wrong_update_is_refused_before_anything_is_sent(
    changes: dict[str, Any], error: type[Exception], message: str, person: str
) -> None:
    """Names and values are checked even if no object matches."""
    with assert_requests(0), pytest.raises(error) as raised:
        Person.objects.filter(person_id=person).update(**changes)
    assert message in str(raised.value)


def test_an_object_of_another_model_is_no_reference() -> None:
    """A reference takes objects of its own model only."""
    with assert_requests(0), pytest.raises(InvalidValue, match=r"Cannot set catalog.Note.board to"):
        Note.objects.filter(pk="n").update(board=Company(name="x"))


def test_a_unique_value_is_not_given_to_several() -> None:
    """Two objects cannot have one unique value, so nothing is written if several match."""
    for number in (1, 2):
        Member.objects.create(member_id=f"m{number}", email=f"{number}@example.org", badge=number)
    with assert_requests(["Query"]), pytest.raises(NotSupported, match=r"Member.badge is unique, and 2 objects match"):
        Member.objects.filter(name="").update(badge=7)
    assert Member.objects.filter(name="").update(badge=None) == 2
    assert Member.objects.filter(pk="m1").update(badge=7) == 1


def test_an_update_is_made_only_if_the_condition_still_holds() -> None:
    """``filter(status="open").update(status="taken")`` lets one of two writers win."""
    winners = []

    def other() -> None:
        winners.append(Person.objects.filter(person_id="anna", role="member").update(role="manager"))

    with meanwhile("UpdateItem", other):
        winners.append(Person.objects.filter(person_id="anna", role="member").update(role="founder"))
    assert winners == [1, 0]
    assert Person.objects.get(person_id="anna").role == "manager"


def test_another_change_does_not_keep_an_update_from_being_made() -> None:
    """An object that still meets the conditions is updated, and keeps the other process's change."""

    def rename() -> None:
        Person.objects.filter(person_id="anna").update(name="Berta")

    with meanwhile("UpdateItem", rename):
        assert Person.objects.filter(person_id="anna", role="member").update(role="founder", name="Carla") == 1
    found = Person.objects.get(person_id="anna")
    assert (found.name, found.role) == ("Carla", "founder")
    assert names(Person.objects.filter(name="Berta")) == []


def test_an_object_that_went_to_the_trash_is_not_updated() -> None:
    """The queryset's visibility is one of its conditions."""
    with meanwhile("UpdateItem", lambda: Person.objects.get(person_id="anna").delete()):
        assert Person.objects.filter(person_id="anna").update(role="founder") == 0
    assert Person.deleted_objects.get(person_id="anna").role == "member"


def test_a_canonical_condition_holds_as_long_as_the_value_is_the_same() -> None:
    """DynamoDB cannot compare canonical values, so the update requires the loaded value."""
    Member.objects.create(member_id="m", email="Anna@Example.org")
    of_anna = Member.objects.filter(email__canonical="anna@example.org")
    assert of_anna.update(name="Anna") == 1
    with meanwhile("UpdateItem", lambda: Member.objects.filter(pk="m").update(email="other@example.org")):
        assert of_anna.update(name="Berta") == 0
    assert Member.objects.get(pk="m").name == "Anna"


def test_a_deletion_is_made_only_if_the_condition_still_holds() -> None:
    """An object that has been renewed is not deleted or counted."""
    Sample.objects.create(sample_id="s", text="expired")
    Sample.objects.create(sample_id="t", text="expired")
    with meanwhile("DeleteItem", lambda: Sample.objects.filter(pk="s").update(text="renewed")):
        assert Sample.objects.filter(text="expired").delete() == (1, {"catalog.Sample": 1})
    assert Sample.objects.get().text == "renewed"


@pytest.mark.parametrize(
    ("write", "operation", "verb"),
    [
        (lambda: Sample.objects.all().update(text="new"), "UpdateItem", "update"),
        (lambda: Sample.objects.all().delete(), "DeleteItem", "delete"),
        (lambda: Sample.objects.all().hard_delete(), "DeleteItem", "hard_delete"),
    ],
)
def test_a_failure_midway_says_what_is_written(write: Callable[[], Any], operation: str, verb: str) -> None:
    """The error names the written objects and the failed one, and DynamoDB's error is its cause."""
    for number in (1, 2, 3):
        Sample.objects.create(sample_id=f"s{number}")
    with failing_at("SAMPLE#s2", operation), pytest.raises(BulkError) as raised:
        write()
    error = raised.value
    assert (error.written, [*error.failed]) == (("s1", "s3"), ["s2"])
    assert error.__cause__ is error.failed["s2"]
    assert isinstance(error.__cause__, RequestFailed)
    assert f"{verb}() wrote 2 catalog.Sample objects, then failed at pk 's2': " in str(error)


def test_a_failure_before_anything_is_written_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The original error is enough, since no object was written or tried."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    with refuse("ProvisionedThroughputExceededException", operation="UpdateItem"), pytest.raises(Throttled):
        Person.objects.filter(company="c1").update(role="founder")


# the trash


def test_delete_puts_each_object_into_the_trash() -> None:
    """Deleting a queryset does what deleting each object does."""
    assert Person.objects.filter(company="c1").delete() == (2, {"directory.Person": 2})
    assert names(Person.deleted_objects.all()) == ["Zoe", "Anna", "Mike"]


def test_delete_in_the_trash_says_what_to_do() -> None:
    """The error names the two alternatives to a second deletion."""
    with (
        assert_requests(0),
        pytest.raises(NotSupported, match=r"hard_delete\(\) to delete them permanently, or restore\(\)"),
    ):
        Person.deleted_objects.all().delete()


def test_hard_delete_empties_the_trash() -> None:
    """Each object is permanently deleted with one request."""
    with assert_requests(["Query", "TransactWriteItems"]):
        Person.objects.filter(person_id="anna").update(email="anna@example.org")
    Person.objects.filter(person_id="anna").delete()
    with assert_requests(["Query", "DeleteItem", "DeleteItem"]):
        assert Person.deleted_objects.all().hard_delete() == (2, {"directory.Person": 2})
    assert names(Person.all_objects.filter(company="c1")) == ["Mike"]


def test_hard_delete_purges_live_objects_with_their_unique_values(table: Table) -> None:
    """A queryset of live objects is permanently deleted, and its unique values are released."""
    Member.objects.create(member_id="m", email="a@example.org", badge=1)
    assert Member.objects.filter(pk="m").hard_delete() == (1, {"catalog.Member": 1})
    assert claims(table) == {}
    assert not Member.all_objects.filter(pk="m").exists()


def test_what_was_restored_in_the_meantime_is_not_purged() -> None:
    """A purge of the trash skips restored objects."""
    with meanwhile("DeleteItem", lambda: Person.deleted_objects.get(pk="c1~~zoe").restore()):
        assert Person.deleted_objects.all().hard_delete() == (0, {})
    assert names(Person.objects.filter(company="c1")) == ["Anna", "Mike", "Zoe"]


def test_restore_takes_each_object_out_of_the_trash() -> None:
    """Restored objects are counted, and live ones stay the same."""
    Person.objects.filter(person_id="anna").delete()
    assert Person.all_objects.filter(company="c1").restore() == (2, {"directory.Person": 2})
    assert names(Person.objects.filter(company="c1")) == ["Anna", "Mike", "Zoe"]
    assert Person.deleted_objects.all().restore() == (0, {})


def test_restore_reports_what_it_could_not_do() -> None:
    """If a unique value is taken, the restoration stops, and the error names the restored objects."""
    for number in (1, 2):
        Member.objects.create(member_id=f"m{number}", email=f"{number}@example.org").delete()
    Member.objects.create(member_id="m3", email="2@example.org")
    with pytest.raises(BulkError, match=r"restore\(\) wrote 1 catalog.Member objects") as raised:
        Member.deleted_objects.all().restore()
    assert (raised.value.written, [*raised.value.failed]) == (("m1",), ["m2"])
    assert isinstance(raised.value, IntegrityError)


def test_a_model_without_trash_restores_nothing() -> None:
    """There is no trash to restore from."""
    with assert_requests(0), pytest.raises(NotSupported, match=r"catalog.Sample has no soft delete"):
        Sample.objects.all().restore()


@pytest.mark.parametrize("name", ["delete", "hard_delete"])
def test_a_manager_deletes_nothing(name: str) -> None:
    """As in Django, deleting everything requires ``all()``."""
    assert not hasattr(Company.objects, name)


@pytest.mark.parametrize("name", ["delete", "hard_delete", "restore", "update"])
def test_templates_do_not_write(name: str) -> None:
    """A template that names a writing method does not call it."""
    assert getattr(models.QuerySet, name).alters_data is True


@pytest.mark.parametrize("name", ["delete", "hard_delete", "restore"])
def test_slices_and_rows_are_not_deleted(name: str) -> None:
    """As in Django, only complete querysets of objects can be deleted."""
    with assert_requests(0), pytest.raises(TypeError, match=name):
        getattr(Company.objects.all()[:1], name)()
    with assert_requests(0), pytest.raises(TypeError, match=name):
        getattr(Company.objects.values("name"), name)()


# one object


def test_get_or_create_reads_and_writes_once_each() -> None:
    """The first call creates under a condition, the second finds."""
    with assert_requests(["GetItem", "PutItem"]):
        _, created = Company.objects.get_or_create(company_id="c9", defaults={"name": "New"})
    with assert_requests(["GetItem"]):
        found, again = Company.objects.get_or_create(company_id="c9", defaults={"name": "Other"})
    assert (created, again, found.name) == (True, False, "New")


def test_update_or_create_changes_what_it_finds() -> None:
    """The call updates an existing object and creates a missing one."""
    found, created = Company.objects.update_or_create(company_id="c1", defaults={"name": "Renamed"})
    other, made = Company.objects.update_or_create(company_id="c8", defaults={"name": "Made"})
    assert (found.name, created, other.name, made) == ("Renamed", False, "Made", True)


def test_a_moment_in_the_condition_is_compared_as_it_was_given() -> None:
    """The condition of a write is the filter of the read, to the microsecond."""
    Sample.objects.create(sample_id="s", moment=datetime(2024, 1, 1, tzinfo=UTC))
    assert Sample.objects.filter(pk="s", moment__lt=datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)).update(text="x") == 1
