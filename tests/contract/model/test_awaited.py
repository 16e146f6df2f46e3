"""The parallel requests of the event loop itself, and the work that it leaves to a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from django.db.models.signals import post_init, post_save

from dynamo_single import models
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, capture_requests
from dynamo_single.transactions import atomic
from project.directory.models import Company, Person
from tests.catalog.models import Order
from tests.contract.model.awaiting import awaited, gathering, result

PEOPLE = 200


@pytest.fixture(autouse=True)
def stored(table: Table) -> None:
    """Two companies, and two people in one of them."""
    for company_id in ("c1", "c2"):
        Company.objects.create(company_id=company_id, name=company_id)
    for name in ("Anna", "Mike"):
        Person.objects.create(company_id="c1", person_id=name.lower(), name=name)


def of_company() -> Any:
    """Two people."""
    return Person.objects.filter(company="c1")


READS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "aget by key": (lambda: Person.objects.aget(pk="c1~~mike"), ["GetItem"]),
    "aget": (lambda: of_company().aget(name="Mike"), ["Query"]),
    "ain_bulk": (lambda: Company.objects.ain_bulk(["c1", "c2"]), ["BatchGetItem"]),
    "acount": (lambda: of_company().acount(), ["Query"]),
    "aexists": (lambda: of_company().aexists(), ["Query"]),
    "afirst": (lambda: of_company().afirst(), ["Query"]),
    "alast": (lambda: of_company().alast(), ["Query"]),
    "async for": (lambda: of_company(), ["Query"]),
    "async for rows": (lambda: of_company().values_list("name"), ["Query"]),
    "aiterator": (lambda: of_company().aiterator(), ["Query"]),
    "apage": (lambda: of_company().apage(1), ["Query"]),
    "several keys": (lambda: Company.objects.filter(pk__in=["c1", "c2"]), ["BatchGetItem"]),
    "children": (lambda: Company.objects.prefetch_related("people").filter(pk="c1"), ["Query"]),
}


@pytest.mark.parametrize("name", READS)
def test_the_loop_reads_itself(name: str) -> None:
    """The loop awaits every request, and threads do not send any."""
    ask, operations = READS[name]
    with assert_requests(operations), awaited() as found:
        asyncio.run(result(ask()))
    assert found == operations


async def person() -> Person:
    """Return a loaded person."""
    return await Person.all_objects.aget(pk="c1~~mike")


async def changed() -> None:
    """A person saved with another name."""
    found = await person()
    found.name = "Michael"
    await found.asave()


async def trashed_and_back() -> None:
    """A person put into the trash and restored."""
    found = await person()
    await found.adelete()
    await found.arestore()


async def several() -> None:
    """Two companies in one transaction."""
    async with atomic():
        await Company.objects.acreate(company_id="c8", name="Eight")
        await Company.objects.acreate(company_id="c9", name="Nine")


WRITES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "acreate": (lambda: Company.objects.acreate(company_id="c9", name="New"), ["PutItem"]),
    "acreate with a unique value": (
        lambda: Person.objects.acreate(company_id="c1", person_id="x", name="X", email="x@example.com"),
        ["TransactWriteItems"],
    ),
    "asave": (changed, ["GetItem", "UpdateItem"]),
    "arefresh_from_db": (lambda: Person(company_id="c1", person_id="mike").arefresh_from_db(), ["GetItem"]),
    "atomic": (several, ["TransactWriteItems"]),
    "trash": (trashed_and_back, ["GetItem", "UpdateItem", "TransactWriteItems"]),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_loop_writes_itself(name: str) -> None:
    """The loop awaits every request of a write without dependent items."""
    ask, operations = WRITES[name]
    with assert_requests(operations), awaited() as found:
        asyncio.run(result(ask()))
    assert found == operations


def test_deleting_for_good_is_awaited() -> None:
    """This applies to a model without children."""

    async def ask() -> None:
        order = await Order.objects.acreate(customer="c", number=1)
        await order.adelete()

    with assert_requests(["PutItem", "DeleteItem"]), awaited() as found:
        asyncio.run(ask())
    assert found == ["PutItem", "DeleteItem"]


def test_an_overridden_save_is_called_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """This includes an override that a test sets after the class was inspected."""
    threads: list[int] = []

    def save(self: Company, *args: Any, **options: Any) -> None:
        threads.append(threading.get_ident())
        super(Company, self).save(*args, **options)

    async def ask() -> None:
        await Company(company_id="c8", name="Eight").asave()
        monkeypatch.setattr(Company, "save", save)
        await Company(company_id="c9", name="Nine").asave()

    with assert_requests(["PutItem", "PutItem"]), awaited() as found:
        asyncio.run(ask())
    assert found == ["PutItem"]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_receivers_of_a_write_are_called_where_they_may_wait() -> None:
    """A synchronous receiver runs in a thread and an asynchronous one in the loop; the write itself is awaited."""
    heard: list[tuple[str, bool]] = []

    def synchronous(**kwargs: Any) -> None:
        heard.append(("synchronous", threading.get_ident() == here))

    async def asynchronous(**kwargs: Any) -> None:
        heard.append(("asynchronous", threading.get_ident() == here))

    here = threading.get_ident()
    post_save.connect(synchronous, sender=Company)
    post_save.connect(asynchronous, sender=Company)
    try:
        with awaited() as found:
            asyncio.run(result(Company.objects.acreate(company_id="c9", name="New")))
    finally:
        post_save.disconnect(synchronous, sender=Company)
        post_save.disconnect(asynchronous, sender=Company)
    assert found == ["PutItem"]
    assert sorted(heard) == [("asynchronous", True), ("synchronous", False)]


def test_creations_overlap() -> None:
    """All of them are under way together."""

    async def ask() -> None:
        with gathering(20):
            await asyncio.gather(
                *(Company.objects.acreate(company_id=f"n{number}", name="New") for number in range(20))
            )

    with assert_requests(["PutItem"] * 20):
        asyncio.run(ask())


def test_a_cancelled_save_says_that_its_outcome_is_unknown() -> None:
    """The object is in its former state, so that the same save can be repeated after a read."""

    async def never(*args: Any) -> Any:
        await asyncio.sleep(60)

    async def ask() -> Company:
        made = Company(company_id="c9", name="New")
        with mock.patch("dynamo_single.table.transport.send", never):
            task = asyncio.ensure_future(made.asave())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
        assert "may have been executed" in caught.value.__notes__[0]
        return made

    assert asyncio.run(ask())._state.adding


def test_gets_overlap() -> None:
    """All 200 are under way together."""

    async def ask() -> list[Any]:
        with gathering(PEOPLE):
            return await asyncio.gather(*(Person.objects.aget(pk="c1~~mike") for _ in range(PEOPLE)))

    with assert_requests(PEOPLE):
        assert {each.name for each in asyncio.run(ask())} == {"Mike"}


def test_partitions_are_read_at_once() -> None:
    """The first pages of a query's partitions are under way together, as in threads."""

    async def ask() -> list[str]:
        with gathering(2):
            return [each.name async for each in Person.objects.filter(company__in=["c1", "c2"])]

    with assert_requests(["Query", "Query"]):
        assert asyncio.run(ask()) == ["Anna", "Mike"]


def test_what_is_left_early_is_cancelled() -> None:
    """Unneeded parallel reads of pages are cancelled, so that every task ends."""

    async def ask() -> list[asyncio.Task[Any]]:
        found = Person.objects.filter(company__in=["c1", "c2"]).aiterator()
        async for _ in found:
            break
        await found.aclose()
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(ask()) == []


class Shouting(models.QuerySet[Any]):
    """A project's queryset with a ``get()`` that sends a request of its own."""

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """The object, after a look at another."""
        Company.objects.get(pk="c1")
        return super().get(*args, **kwargs)


class Filtering(models.QuerySet[Any]):
    """A project's queryset with a method of its own, which passes by nothing of ours."""

    def named(self, name: str) -> Any:
        """Return the objects with a name."""
        return self.filter(name=name)


def test_an_overridden_method_is_called_in_a_thread() -> None:
    """An override may send requests."""
    with assert_requests(["GetItem", "GetItem"]), awaited() as found:
        assert asyncio.run(Shouting(Person).aget(pk="c1~~mike")).name == "Mike"
    assert not found


def test_a_method_more_costs_no_thread() -> None:
    """The loop reads a project's queryset unless it overrides a method."""
    with awaited() as found:
        assert asyncio.run(Filtering(Person).named("Mike").aget(company="c1")).name == "Mike"
    assert found == ["Query"]


def test_a_receiver_of_objects_that_are_made_is_called_in_a_thread() -> None:
    """And not in the event loop's."""
    threads: list[int] = []

    def receive(**kwargs: Any) -> None:
        threads.append(threading.get_ident())

    post_init.connect(receive, sender=Person)
    try:
        with awaited() as found:
            asyncio.run(Person.objects.aget(pk="c1~~mike"))
    finally:
        post_init.disconnect(receive, sender=Person)
    assert not found
    assert threads
    assert threading.get_ident() not in threads


def test_requests_of_a_task_are_captured() -> None:
    """The block in which the task was started captures them."""

    async def ask() -> Any:
        return await asyncio.gather(*(Person.objects.aget(pk="c1~~mike") for _ in range(3)))

    with capture_requests() as sent:
        asyncio.run(ask())
    assert [request.operation for request in sent] == ["GetItem"] * 3


def test_synchronous_code_may_run_a_loop_while_it_is_run() -> None:
    """A thread's own read continues after a loop that ran within it."""

    async def ask() -> Any:
        return await Person.objects.aget(pk="c1~~mike")

    names = []
    for each in Person.objects.filter(company="c1").iterator():
        names.append((each.name, asyncio.run(ask()).name))
    assert names == [("Anna", "Mike"), ("Mike", "Mike")]
