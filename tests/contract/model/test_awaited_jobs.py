"""Jobs of many requests in an event loop: failures, cancellations and calls in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from django.db.models import Count
from django.db.models.signals import post_delete, post_init

from dynamo_single import models
from dynamo_single.exceptions import BulkError
from dynamo_single.table import transport
from dynamo_single.testing import assert_requests, intercept, refusal, setup_table
from project.directory.models import Company, Person
from tests.contract.model.awaiting import awaited

pytestmark = pytest.mark.usefixtures("table")


def companies(number: int) -> list[Company]:
    """Return unsaved companies."""
    return [Company(company_id=f"c{each:02d}", name=f"{each}") for each in range(number)]


@contextmanager
def failing(operation: str, *keys: str, code: str = "InternalServerError") -> Iterator[None]:
    """Refuses an operation on some items."""

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked == operation and any(f"#{key}'" in str(params) for key in keys):
            raise refusal(asked, code)

    with intercept(interceptor):
        yield


JOBS: dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]] = {
    "bulk_create": (
        "PutItem",
        lambda: Company.objects.bulk_create(companies(12), batch_size=1),
        lambda: Company.objects.abulk_create(companies(12), batch_size=1),
    ),
    "bulk_update": (
        "UpdateItem",
        lambda: Company.objects.bulk_update(changed(), ["name"]),
        lambda: Company.objects.abulk_update(changed(), ["name"]),
    ),
    "update": (
        "UpdateItem",
        lambda: Company.objects.update(name="Other"),
        lambda: Company.objects.aupdate(name="Other"),
    ),
    "delete": (
        "UpdateItem",
        lambda: Company.objects.all().delete(),
        lambda: Company.objects.all().adelete(),
    ),
    "hard_delete": (
        "DeleteItem",
        lambda: Company.objects.all().hard_delete(),
        lambda: Company.objects.all().ahard_delete(),
    ),
}


def changed() -> list[Company]:
    """The stored companies with other names."""
    found = companies(12)
    for each in found:
        each._state.adding = False
        each._stored = dict(STORED[each.pk])
        each.name = "Other"
    return found


STORED: dict[str, Any] = {}


def fill(name: str) -> None:
    """Store what a job works on."""
    setup_table()
    if name != "bulk_create":
        made = Company.objects.in_transactions().bulk_create(companies(12))
        STORED.update({each.pk: each._stored for each in made})


def told(error: BulkError) -> Any:
    """Return an error's report by object."""
    return sorted(error.written), sorted(error.failed), sorted(error.not_tried), str(error).partition(": ")[0]


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("code", ["InternalServerError", "AccessDeniedException", "RequestLimitExceeded"])
def test_a_failure_is_told_as_in_synchronous_code(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No further request is started, running ones are awaited, and each object is reported."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    operation, call, twin = JOBS[name]
    fill(name)
    with failing(operation, "c01", code=code), pytest.raises(BulkError) as raised:
        call()
    fill(name)

    async def ask() -> None:
        await twin()

    with failing(operation, "c01", code=code), pytest.raises(BulkError) as awaited_too:
        asyncio.run(ask())
    assert told(awaited_too.value) == told(raised.value)
    assert list(awaited_too.value.failed) == ["c01"]


@contextmanager
def stuck(after: int) -> Iterator[asyncio.Event]:
    """Block all requests after a number; the event is set when one waits."""
    waits = asyncio.Event()
    send, sent = transport.send, 0

    async def held(*args: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent > after:
            waits.set()
            await asyncio.sleep(60)
        return await send(*args)

    with mock.patch("dynamo_single.table.transport.send", held):
        yield waits


def test_a_cancelled_job_says_what_is_written_and_is_resumed() -> None:
    """Written objects are kept, as after a kill, and the same call writes the rest."""

    async def ask() -> str:
        with stuck(after=3) as waits:
            task = asyncio.ensure_future(Company.objects.abulk_create(companies(12), batch_size=1))
            await waits.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
        assert [each for each in asyncio.all_tasks() if each is not asyncio.current_task()] == []
        return " ".join(caught.value.__notes__)

    assert "bulk_create() was cancelled after it had written" in asyncio.run(ask())
    left = 12 - Company.objects.count()
    assert left >= 8

    async def again() -> Any:
        return await Company.objects.abulk_create(companies(12), ignore_conflicts=True)

    assert len(asyncio.run(again()).skipped) == 12 - left
    assert Company.objects.count() == 12


def test_an_error_of_a_callback_lets_what_is_under_way_be_written() -> None:
    """Requests under way are completed, as in synchronous code."""

    def progress(done: int, total: int | None) -> None:
        if done == 2:
            raise ZeroDivisionError

    async def ask() -> None:
        await Company.objects.on_progress(progress).abulk_create(companies(12), batch_size=1)

    with assert_requests(["PutItem"] * 9), awaited() as found, pytest.raises(ZeroDivisionError):
        asyncio.run(ask())
    assert len(found) == 9
    assert Company.objects.count() == 9


def test_progress_is_called_in_a_thread() -> None:
    """After each object, since it may wait."""
    heard: list[tuple[int, bool]] = []
    here = threading.get_ident()

    async def ask() -> None:
        told = Company.objects.on_progress(lambda done, total: heard.append((done, threading.get_ident() == here)))
        await told.abulk_create(companies(3))

    asyncio.run(ask())
    assert heard == [(1, False), (2, False), (3, False)]


def test_receivers_of_a_deletion_keep_it_one_after_the_other() -> None:
    """Synchronous receivers run in a thread, and the requests are awaited."""
    heard: list[bool] = []
    here = threading.get_ident()

    def receive(**kwargs: Any) -> None:
        heard.append(threading.get_ident() == here)

    fill("hard_delete")

    async def ask() -> Any:
        return await Company.objects.all().ahard_delete()

    post_delete.connect(receive, sender=Company)
    try:
        with awaited() as found:
            assert asyncio.run(ask())[0] == 12
    finally:
        post_delete.disconnect(receive, sender=Company)
    assert heard == [False] * 12
    assert found.count("DeleteItem") == 12


class Own(models.QuerySet[Any]):
    """A project's queryset with writing methods of its own."""

    def bulk_create(self, *args: Any, **options: Any) -> Any:
        """Call the original method."""
        return super().bulk_create(*args, **options)

    def update(self, **values: Any) -> int:
        """Call the original method."""
        return super().update(**values)

    def delete(self) -> Any:
        """Call the original method."""
        return super().delete()

    def get_or_create(self, *args: Any, **values: Any) -> Any:
        """Call the original method."""
        return super().get_or_create(*args, **values)

    def aggregate(self, *args: Any, **values: Any) -> Any:
        """Call the original method."""
        return super().aggregate(*args, **values)

    def earliest(self, *fields: Any) -> Any:
        """Call the original method."""
        return super().earliest(*fields)


THREADED: dict[str, Callable[[], Any]] = {
    "abulk_create": lambda: Own(Company).abulk_create(companies(1)),
    "aupdate": lambda: Own(Company).filter(pk="c00").aupdate(name="Other"),
    "adelete": lambda: Own(Company).filter(pk="c00").adelete(),
    "aget_or_create": lambda: Own(Company).aget_or_create(pk="c00"),
    "aupdate_or_create": lambda: Own(Company).aupdate_or_create(company_id="c99", defaults={"name": "New"}),
    "aaggregate": lambda: Own(Company).aaggregate(n=Count("pk")),
    "aearliest": lambda: Own(Company).aearliest("name"),
}


@pytest.mark.parametrize("name", THREADED)
def test_what_a_project_overrides_is_called_in_a_thread(name: str) -> None:
    """An override may send requests."""
    fill("update" if name != "abulk_create" else "bulk_create")

    async def ask() -> None:
        await THREADED[name]()

    with awaited() as found:
        asyncio.run(ask())
    assert not found


def test_children_that_somebody_hears_made_are_deleted_in_a_thread() -> None:
    """A receiver of ``post_init`` of a child's model does not run in the loop's thread."""
    company = Company.objects.create(company_id="c", name="C")
    Person.objects.create(company=company, person_id="p", name="P")
    threads: list[int] = []

    def receive(**kwargs: Any) -> None:
        threads.append(threading.get_ident())

    async def ask() -> None:
        assert (await company.adelete())[0] == 2

    post_init.connect(receive, sender=Person)
    try:
        with awaited() as found:
            asyncio.run(ask())
    finally:
        post_init.disconnect(receive, sender=Person)
    assert not found
    assert threads
    assert threading.get_ident() not in threads
