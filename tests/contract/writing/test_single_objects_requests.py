"""Restorations and permanent deletions of an object without dependents take one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.references import cascading_children, checked_references
from dynamo_single.orm.write.on_delete import has_references
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, intercept
from project.directory.models import Company, Person
from tests.catalog.clubs import Club, Guest, Player, Team
from tests.catalog.models import Member, Resident
from tests.contract.conftest import Registering

pytestmark = pytest.mark.usefixtures("table")

Make = Callable[[int], Any]


def residents(number: int) -> Resident:
    """An object alone."""
    return Resident.objects.create(resident_id=f"r{number}", last_name="Adams")


def members(number: int) -> Member:
    """An object with a unique value, which is an item of its own."""
    return Member.objects.create(member_id=f"m{number}", email=f"m{number}@example.com")


def guests(number: int) -> Guest:
    """A child that does not cascade."""
    Club.objects.get_or_create(club_id="c", defaults={"name": "Chess"})
    return Guest.objects.create(club_id="c", guest_id=f"g{number}")


def people(number: int) -> Person:
    """A child that cascades: its restoration checks that the parent is not in the trash."""
    Company.objects.get_or_create(company_id="c", defaults={"name": "Acme"})
    return Person.objects.create(company_id="c", person_id=f"p{number}", name="Anna")


def players(number: int) -> Player:
    """A child that an index lists, with a unique value."""
    Club.objects.get_or_create(club_id="c", defaults={"name": "Chess"})
    Team.objects.get_or_create(club_id="c", team_id="a")
    return Player.objects.create(team_id="c~~a", player_id=f"p{number}", number=str(number))


#: The write that restores an object, and the write that permanently deletes it.
KINDS: list[tuple[Make, str]] = [
    (residents, "UpdateItem"),
    (members, "TransactWriteItems"),
    (guests, "UpdateItem"),
    (people, "TransactWriteItems"),
    (players, "TransactWriteItems"),
]
each_kind = pytest.mark.parametrize(("make", "write"), KINDS, ids=[make.__name__ for make, _ in KINDS])


def deleted(make: Make, number: int = 1) -> Any:
    """Return an object loaded from the trash."""
    obj = make(number)
    obj.delete()
    return type(obj).deleted_objects.get(pk=obj.pk)


@each_kind
def test_kinds_have_no_dependents(make: Make, write: str) -> None:
    """No reference leads to them that a deletion has to follow."""
    model = type(make(1))
    assert registry.has_soft_delete(model)
    assert not (cascading_children(model) or checked_references(model) or has_references(model))


@each_kind
def test_a_restoration_is_one_request(make: Make, write: str) -> None:
    """No Query is sent before or after the write."""
    obj = deleted(make)
    with assert_requests([write]):
        assert obj.restore()[0] == 1


@each_kind
def test_an_awaited_restoration_is_one_request(make: Make, write: str) -> None:
    """In an event loop as in a thread."""
    obj = deleted(make)
    with assert_requests([write]):
        assert asyncio.run(obj.arestore())[0] == 1


@each_kind
def test_a_permanent_deletion_is_one_request(make: Make, write: str) -> None:
    """An object in the trash no longer has unique values."""
    obj = deleted(make)
    with assert_requests(["DeleteItem"]):
        assert obj.hard_delete()[0] == 1


@each_kind
def test_a_queryset_restores_by_one_request_an_object(make: Make, write: str) -> None:
    """The Query that lists the trash comes in addition."""
    found = [deleted(make, number) for number in range(3)]
    trash: Any = type(found[0]).deleted_objects.all()
    with assert_requests(["Query", write, write, write]):
        assert trash.restore()[0] == 3


@each_kind
def test_a_queryset_deletes_by_one_request_an_object(make: Make, write: str) -> None:
    """The Query that lists the trash comes in addition."""
    found = [deleted(make, number) for number in range(3)]
    trash: Any = type(found[0]).deleted_objects.all()
    with assert_requests(["Query", "DeleteItem", "DeleteItem", "DeleteItem"]):
        assert trash.hard_delete()[0] == 3


@each_kind
def test_the_admin_restores_by_one_request(make: Make, write: str, registered: Registering) -> None:
    """The requests that read the object and log the action come in addition."""
    obj = deleted(make)
    pages = registered(type(obj))
    pages.post(f"{obj._meta.label_lower.replace('.', '/')}/{obj.pk}/restore/", sends=["GetItem", write, "PutItem"])


@each_kind
def test_the_admin_deletes_by_one_request(make: Make, write: str, registered: Registering) -> None:
    """The object is not read again for the trash."""
    obj = deleted(make)
    pages = registered(type(obj))
    address = f"{obj._meta.label_lower.replace('.', '/')}/{obj.pk}/delete/"
    pages.post(address, {"post": "yes"}, sends=["GetItem", "DeleteItem", "PutItem"])


def test_a_child_that_is_created_meanwhile_is_deleted_too(table: Table) -> None:
    """The searches of a model with children stay: before the deletion, and after it."""
    company = Company.objects.create(company_id="c", name="Acme")
    company.delete()
    created: list[Person] = []

    def create(operation: str, params: object) -> None:
        if operation == "DeleteItem" and not created:
            created.append(Person(company_id="c", person_id="late", name="Late"))
            created[0].save()

    with intercept(create), assert_requests(["Query", "PutItem", "DeleteItem", "Query", "DeleteItem", "Query"]):
        company.hard_delete()
    assert not Person.all_objects.filter(company="c").exists()
