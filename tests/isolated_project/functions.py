"""Tests of pytest: with the mark, with pytest-django's fixtures, and with the plugin's."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from dynamo_single import clock
from dynamo_single.exceptions import AccessOutsideTest, AlreadyExists, TableUnavailable
from dynamo_single.pytest_plugin import Clock, Faults
from dynamo_single.table import get_table
from dynamo_single.testing import Requests, local_engine
from tests.isolated_project import MANY
from tests.isolated_project.notes.models import Note
from tests.isolated_project.stock import write


@pytest.mark.django_db
@pytest.mark.parametrize("number", range(MANY))
def test_many_tests_write_the_same_keys(number: int) -> None:
    """Each finds its table empty."""
    for each in range(3):
        Note.objects.create(note_id=f"note{each}")
    assert Note.objects.count() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", range(2))
def test_a_transactional_test_writes_the_same_keys(number: int) -> None:
    """Each finds its table empty."""
    write()


def test_the_fixture_opens_the_table(db: None) -> None:
    """Without the mark the fixture does."""
    write()


def test_without_the_mark_a_request_is_refused() -> None:
    """pytest-django's own sentence names the missing mark."""
    with pytest.raises(AccessOutsideTest, match='use the "django_db" mark'):
        write()


def test_an_engine_of_its_own_is_reached_without_the_mark() -> None:
    """Within local_engine() the test has a table."""
    with local_engine():
        write()


def test_the_blocker_is_asked(django_db_setup: None, django_db_blocker: Any) -> None:
    """A test that may use the database may use the table."""
    with django_db_blocker.unblock():
        assert not Note.objects.exists()


@pytest.mark.django_db
def test_the_table_is_the_workers_own(worker_id: str) -> None:
    """Its name has the worker's."""
    expected = "test_notes" if worker_id == "master" else f"test_notes_{worker_id}"
    assert re.sub("_run[0-9a-f]{8}$", "", get_table().name) == expected
    assert settings.DYNAMO_SINGLE["default"].count("test_") == 0


@pytest.mark.django_db
def test_requests_are_counted_as_queries(django_assert_num_queries: Any) -> None:
    """pytest-django's fixture counts requests."""
    with django_assert_num_queries(1):
        write()


@pytest.mark.django_db
def test_requests_are_listed(dynamo_requests: Requests) -> None:
    """The fixture contains each request and its text."""
    write()
    Note.objects.get(pk="same")
    assert len(dynamo_requests) == 2
    assert dynamo_requests.operations == ["PutItem", "GetItem"]
    assert str(dynamo_requests).startswith("Requests: 2, capacity units: ")
    dynamo_requests.clear()
    assert dynamo_requests.operations == []


@pytest.mark.django_db
def test_a_fault_happens_as_often_as_asked(dynamo_fault: Faults) -> None:
    """Only the first request of the operation fails."""
    dynamo_fault("unreachable", operation="PutItem", times=1)
    with pytest.raises(TableUnavailable):
        write()
    write()


@pytest.mark.django_db
def test_a_fault_ends_when_it_is_cleared(dynamo_fault: Faults) -> None:
    """Until then every request fails."""
    dynamo_fault("throttled")
    for _ in range(2):
        with pytest.raises(TableUnavailable):
            write()
    dynamo_fault.clear()
    write()


@pytest.mark.django_db
def test_a_lost_answer_is_that_of_a_write_that_was_carried_out(dynamo_fault: Faults) -> None:
    """The note is there."""
    dynamo_fault("lost answer", operation="PutItem", times=1)
    with pytest.raises((TableUnavailable, AlreadyExists)):
        write()
    assert Note.objects.count() == 1


@pytest.mark.django_db
def test_a_fault_does_not_outlive_its_test() -> None:
    """The next test does not have it."""
    write()


def test_an_unknown_fault_is_named(dynamo_fault: Faults) -> None:
    """The error lists the known ones."""
    with pytest.raises(ValueError, match="no fault 'slow'; there are 'throttled'"):
        dynamo_fault("slow")


@pytest.mark.django_db
def test_the_clock_reaches_times_to_live(dynamo_clock: Clock) -> None:
    """Only expired items are deleted from the table."""
    Note.objects.create(note_id="soon", expires_at=clock.now() + timedelta(days=1))
    Note.objects.create(note_id="later", expires_at=clock.now() + timedelta(days=3))
    dynamo_clock.move(timedelta(days=2))
    items = get_table().call("Scan", {"TableName": get_table().name})["Items"]
    assert [item["pk"]["S"] for item in items] == ["NOTE#later"]
