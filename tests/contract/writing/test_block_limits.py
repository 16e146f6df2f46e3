"""The limit of 100 actions in an ``atomic()`` block: action 101 raises an error before it is read or collected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single import models, transactions
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import NotSupported, PendingWrite, UniqueViolation
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.catalog.models import Order
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

TOO_MANY = r"at least \d+ actions, and a transaction takes 100"


def test_action_one_too_many_is_refused_when_added() -> None:
    """The block can continue without it."""
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        for number in range(100):
            Order.objects.create(customer="a", number=number)
        with pytest.raises(NotSupported, match=f"pk 'a~~100' in this .*{TOO_MANY}"):
            Order.objects.create(customer="a", number=100)
    assert len(sent[0].params["TransactItems"]) == Order.objects.filter(customer="a").count() == 100


def test_refused_object_is_as_it_was() -> None:
    last = Order(customer="a", number=100)
    with transactions.atomic():
        Order.objects.bulk_create([Order(customer="a", number=number) for number in range(100)])
        with pytest.raises(NotSupported):
            last.save()
    assert last._state.adding
    last.save()
    assert Order.objects.filter(customer="a").count() == 101


def test_unique_values_count() -> None:
    company = Company.objects.create(name="Acme")
    people = [Person(company=company, name=f"p{number}", email=f"p{number}@example.com") for number in range(51)]
    with pytest.raises(NotSupported, match="at least 102 actions"), assert_requests(0), transactions.atomic():
        for person in people:
            person.save()
    assert all(person._state.adding for person in people)


def test_items_written_twice_count_once() -> None:
    """Here the counters of a parent."""
    with forgotten():
        parent: Any = declare(
            "Box",
            ("BOX#{code}", "#META"),
            code=models.UnicodeAttribute(),
            balls=models.Children("Ball"),
            ball_count=models.CounterAttribute("balls"),
        )
        ball: Any = declare(
            "Ball",
            ("BOX#{box_id}", "BALL#{code}"),
            code=models.UnicodeAttribute(),
            box=models.ReferenceAttribute(parent, on_delete=models.CASCADE),
        )
        box = parent.objects.create(code="b")
        with transactions.atomic():
            for number in range(99):
                ball.objects.create(box=box, code=str(number))
            with pytest.raises(NotSupported, match="at least 101 actions"):
                ball.objects.create(box=box, code="99")
        assert parent.objects.get(pk="b").ball_count == 99


class Discarded(Exception):
    """The inner block changes its mind."""


def test_discarded_inner_block_gives_its_room_back() -> None:
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        Order.objects.bulk_create([Order(customer="a", number=number) for number in range(60)])
        for _ in range(3):
            with pytest.raises(Discarded), transactions.atomic():
                Order.objects.bulk_create([Order(customer="b", number=number) for number in range(40)])
                raise Discarded
        Order.objects.bulk_create([Order(customer="c", number=number) for number in range(40)])
    assert len(sent[0].params["TransactItems"]) == 100
    assert [Order.objects.filter(customer=customer).count() for customer in "abc"] == [60, 0, 40]


def test_refused_inner_block_gives_its_room_back() -> None:
    with transactions.atomic():
        Order.objects.create(customer="a", number=1)
        with pytest.raises(NotSupported, match=TOO_MANY), transactions.atomic():
            for number in range(100):
                Order.objects.create(customer="b", number=number)
        Order.objects.bulk_create([Order(customer="c", number=number) for number in range(99)])
    assert [Order.objects.filter(customer=customer).count() for customer in "abc"] == [1, 0, 99]


def test_discarded_claim_is_free_again() -> None:
    company = Company.objects.create(name="Acme")
    with transactions.atomic():
        with pytest.raises(Discarded), transactions.atomic():
            Person.objects.create(company=company, name="Mike", email="m@example.com")
            raise Discarded
        Person.objects.create(company=company, name="Mary", email="m@example.com")
        with pytest.raises(UniqueViolation):
            Person.objects.create(company=company, name="Max", email="m@example.com")
    assert [person.name for person in Person.objects.filter(company=company)] == ["Mary"]
    assert_consistent()


MANY = 350


def people(company: Company, count: int = MANY) -> None:
    """People of a company, in few requests."""
    made = [Person(company=company, person_id=f"p{number:04}", name=f"Name {number}") for number in range(count)]
    Person.objects.bulk_create(made, in_transactions=True)


def in_trash(company: Company) -> None:
    """Move the object to the trash, and return it."""
    people(company)
    company.delete()


WAYS: dict[str, tuple[Callable[[Company], object], Callable[[Company], object]]] = {
    "delete": (people, lambda company: company.delete()),
    "hard_delete": (people, lambda company: company.hard_delete()),
    "restore": (in_trash, lambda company: company.restore()),
    "queryset": (people, lambda company: Person.objects.filter(company=company).delete()),
    "update": (people, lambda company: Person.objects.filter(company=company).update(role="manager")),
}


@pytest.mark.parametrize("way", [*WAYS])
def test_objects_beyond_the_limit_are_not_read(way: str) -> None:
    """A hundred and one show it, of each Query, or one page; outside of the block the same call works."""
    company = Company.objects.create(company_id="company-acme", name="Acme")
    Office.objects.create(company=company, office_id="o", city="Berlin")
    prepare, act = WAYS[way]
    prepare(company)
    with measure_requests() as costs, pytest.raises(NotSupported, match=TOO_MANY), transactions.atomic():
        act(company)
    assert costs.write_units == 0
    assert costs.items_read <= (MANY if way in ("queryset", "update") else 2 * 101 + 1)
    act(company)
    assert_consistent()


def test_references_beyond_the_limit_are_not_reset() -> None:
    with forgotten():
        owner: Any = declare("Owner", ("OWNER#{code}", "#META"), code=models.UnicodeAttribute())
        thing: Any = declare(
            "Thing",
            ("THING#{code}", "#META"),
            {"by_owner": models.IndexKey("gs1", "OWNED#{owner_id}", "{code}")},
            code=models.UnicodeAttribute(),
            owner=models.ReferenceAttribute(owner, on_delete=models.SET_NULL, null=True),
        )
        found = owner.objects.create(code="o")
        thing.objects.bulk_create([thing(code=str(number), owner=found) for number in range(150)])
        with pytest.raises(NotSupported, match=TOO_MANY), transactions.atomic():
            found.delete()
        assert found.delete()[0] == 1
        assert thing.objects.get(pk="7").owner_id is None


@pytest.mark.parametrize("way", ["sync", "async"])
def test_later_pages_are_read_before_the_writes(way: str) -> None:
    """A page has a megabyte. The block has written the objects of the first page when it reads the second one."""
    large = [Order(customer="a", number=number, status="x" * 20_000) for number in range(60)]
    Order.objects.bulk_create(large, in_transactions=True)
    found = Order.objects.filter(customer="a")

    async def awaited() -> None:
        async with transactions.atomic():
            await found.aupdate(status="y")

    with assert_requests(["Query", "Query", "TransactWriteItems"]):
        if way == "async":
            asyncio.run(awaited())
        else:
            with transactions.atomic():
                found.update(status="y")
    assert {order.status for order in found.all()} == {"y"}
    with pytest.raises(PendingWrite), transactions.atomic():
        Order.objects.create(customer="a", number=60)
        found.all().delete()
