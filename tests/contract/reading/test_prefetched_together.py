"""One Query per partition reads children of many parents, whatever the number of relations is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from django.db.models import Prefetch
from rest_framework import serializers

from dynamo_single import transactions
from dynamo_single.exceptions import PendingWrite
from dynamo_single.testing import assert_requests, intercept
from project.directory.models import Company, Office, Person
from tests.catalog.clubs import Club, Guest, Player, Team, Trophy
from tests.contract.conftest import Registering, shown

pytestmark = pytest.mark.usefixtures("table")

COMPANIES = 5
#: After this many seconds, a Query without a parallel one raises an error; a busy machine takes far less.
PATIENCE = 60.0


@pytest.fixture
def companies() -> Any:
    """Five companies with two people each, and as many offices as their number, with their people and offices."""
    for number in range(COMPANIES):
        company = Company.objects.create(company_id=f"c{number}", name=f"Acme {number}")
        for place in range(2):
            Person.objects.create(company=company, person_id=f"p{place}", name=f"P{place}")
        for place in range(number):
            Office.objects.create(company=company, office_id=f"o{place}", city=f"C{place}")
    return Company.objects.prefetch_related("people", "offices")


def sizes(found: Any) -> list[tuple[int, int]]:
    """Return the numbers of each company's people and offices."""
    return [(len(company.people.all()), len(company.offices.all())) for company in found]


ALL = [(2, number) for number in range(COMPANIES)]


async def awaited(queryset: Any) -> list[Any]:
    """The results of a queryset, awaited."""
    return [each async for each in queryset]


@pytest.mark.parametrize(
    "read",
    [
        list,
        lambda queryset: list(queryset.iterator(COMPANIES)),
        lambda queryset: list(queryset.page(COMPANIES)),
        lambda queryset: list(queryset[:COMPANIES]),
        lambda queryset: asyncio.run(awaited(queryset)),
    ],
    ids=["list", "iterator", "page", "slice", "awaited"],
)
def test_children_of_many_take_a_query_each_parent(companies: Any, read: Any) -> None:
    """The Query that lists the companies, and one for each, not two."""
    with assert_requests(["Query"] * (1 + COMPANIES)):
        assert sizes(read(companies)) == ALL


def test_partitions_of_children_are_read_in_parallel(companies: Any) -> None:
    """All five are under way together."""
    together, sent = threading.Barrier(COMPANIES), list[str]()

    def meet(operation: str, params: Mapping[str, Any]) -> None:
        sent.append(operation)
        if len(sent) > 1:
            together.wait(PATIENCE)

    with intercept(meet):
        assert sizes(list(companies)) == ALL


def test_a_nested_serializer_reads_each_partition_once(companies: Any) -> None:
    """A page of a REST API whose companies contain their people and offices."""

    class Named(serializers.Serializer[Any]):
        name = serializers.CharField()

    class Located(serializers.Serializer[Any]):
        city = serializers.CharField()

    class Nested(serializers.Serializer[Any]):
        name = serializers.CharField()
        people = Named(many=True)
        offices = Located(many=True)

    with assert_requests(["Query"] * (1 + COMPANIES)):
        data = Nested(companies.page(COMPANIES), many=True).data
    assert [(len(each["people"]), len(each["offices"])) for each in data] == ALL


def test_a_list_of_the_admin_reads_each_partition_once(companies: Any, registered: Registering) -> None:
    """A column that shows children of both kinds."""
    site = registered(
        Company,
        get_queryset=lambda self, request: companies.all(),
        list_display=["name", "children"],
        children=lambda self, obj: f"{len(obj.people.all())}+{len(obj.offices.all())}",
    )
    page = site.get("directory/company/", sends=["Query"] * (1 + COMPANIES))
    assert shown(page) == [f"Acme {number}" for number in range(COMPANIES)]


def test_children_know_their_parent(companies: Any) -> None:
    """The app assigns the parent like Django's function."""
    for company in companies:
        assert all(child.company is company for child in (*company.people.all(), *company.offices.all()))


def test_children_in_the_trash_are_left_out(companies: Any) -> None:
    """Each relation keeps its own filter."""
    Person.objects.get(company="c4", person_id="p0").delete()
    Office.objects.get(company="c4", office_id="o0").delete()
    assert sizes(companies)[-1] == (1, COMPANIES - 2)


def test_relations_below_a_reference_are_read_together(companies: Any) -> None:
    """The company of the people, and its people and offices by one Query."""
    people = Person.objects.filter(company="c2").prefetch_related("company__people", "company__offices")
    with assert_requests(["Query", "GetItem", "Query"]):
        assert sizes(person.company for person in people) == [(2, 2)] * 2


def test_a_level_below_children_is_read_too(companies: Any) -> None:
    """Teams and guests share a Query, and the players of each team have another key."""
    for number in range(2):
        club = Club.objects.create(club_id=f"c{number}", name=f"C{number}")
        team = Team.objects.create(club=club, team_id="a")
        Player.objects.create(player_id=f"p{number}", team=team)
    clubs = Club.objects.filter(name__startswith="C").prefetch_related("teams__players", "guests")
    with assert_requests(["Query"] * (1 + 2 + 2)):
        found = [[player.pk for team in club.teams.all() for player in team.players.all()] for club in clubs]
    assert found == [["p0"], ["p1"]]


def test_relations_that_are_not_adjacent_are_read_separately() -> None:
    """Any number of teams may be between guests and trophies."""
    club = Club.objects.create(club_id="c", name="C")
    Guest.objects.create(club=club, guest_id="g")
    Trophy.objects.create(club=club, year=1990)
    clubs = Club.objects.filter(name="C").prefetch_related("guests", "trophies")
    with assert_requests(["Query", "Query", "Query"]):
        (found,) = clubs
    assert (len(found.guests.all()), len(found.trophies.all())) == (1, 1)


def test_a_queryset_of_its_own_is_read_separately(companies: Any) -> None:
    """The queryset may contain other objects."""
    offices = Prefetch("offices", Office.objects.filter(address="Main street"))
    found = Company.objects.prefetch_related("people", offices)
    with assert_requests(["Query"] * (1 + 2 * COMPANIES)):
        assert sizes(found) == [(2, 0)] * COMPANIES


def test_a_second_queryset_of_a_relation_is_an_error(companies: Any) -> None:
    """Django's function raises the same error."""
    with pytest.raises(ValueError, match="'people' lookup was already seen with a different queryset"):
        list(companies.prefetch_related(Prefetch("people", Person.objects.filter(name="P0"))))


def test_an_unknown_relation_is_djangos_error(companies: Any) -> None:
    """Other relations exist."""
    with pytest.raises(AttributeError, match="Cannot find 'staff' on Company object"):
        list(companies.prefetch_related("staff"))


def test_a_pending_child_is_refused(companies: Any) -> None:
    """In a block, the read would miss it."""
    with transactions.atomic():
        Office.objects.create(company_id="c1", office_id="new", city="Bonn")
        with pytest.raises(PendingWrite):
            list(companies)


def test_explain_names_relations_that_share_a_query(companies: Any) -> None:
    assert "prefetch_related('people', 'offices'): 1 + N, a Query for each object" in companies.explain()
