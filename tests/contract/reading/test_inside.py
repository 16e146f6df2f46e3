"""A queryset after ``__in`` is read first, up to a limit, and provides the values of the condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Prefetch, Q

from dynamo_single.exceptions import InvalidValue, NotSupported, TooManyMatches, UnknownField
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person

pytestmark = pytest.mark.usefixtures("people")


@pytest.fixture
def people(table: Any) -> None:
    """Two companies with a person each."""
    for pk, name, person in [("c1", "Acme", "Ann"), ("c2", "Beta", "Bob")]:
        Company.objects.create(company_id=pk, name=name)
        Person.objects.create(company_id=pk, person_id=person.lower(), name=person)


ACME = Company.objects.filter(name="Acme")
BOTH = ["Query", "Query", "Query"]
ASKED: list[tuple[Callable[[], Any], list[str], list[str]]] = [
    (lambda: Person.objects.filter(company__in=Company.objects.all()), ["Ann", "Bob"], BOTH),
    (lambda: Person.objects.filter(company_id__in=Company.objects.values("pk")), ["Ann", "Bob"], BOTH),
    (lambda: Person.objects.filter(company__in=Company.objects.values_list("company_id")), ["Ann", "Bob"], BOTH),
    (lambda: Person.objects.filter(company__in=Company.objects.all()[:1]), ["Ann"], ["Query", "Query"]),
    (lambda: Person.objects.filter(Q(company__in=ACME) & ~Q(name="x")), ["Ann"], ["Query", "Query"]),
    (lambda: Person.objects.filter(company="c1").exclude(company__in=ACME), [], ["Query", "Query"]),
    (lambda: Person.objects.filter(company__in=ACME.filter(stock="x")), [], ["Query"]),
    (lambda: Person.objects.filter(company__in=Company.objects.none()), [], []),
    (
        lambda: Company.objects.filter(pk__in=Person.objects.filter(name="Bob").values_list("company_id", flat=True)),
        ["Beta"],
        ["Query", "GetItem"],
    ),
]


@pytest.mark.parametrize(("ask", "names", "requests"), ASKED)
def test_the_inner_queryset_is_read_first(ask: Any, names: list[str], requests: list[str]) -> None:
    asked = ask()

    with assert_requests(requests):
        found = [each.name for each in asked]

    assert found == names


def test_nothing_is_sent_before_the_outer_queryset_is_evaluated() -> None:
    with assert_requests([]):
        Person.objects.filter(company__in=Company.objects.all()).order_by("name").values("name")


def test_counting_reads_the_inner_queryset_too() -> None:
    with assert_requests(["Query", "Query"]):
        assert Person.objects.filter(company__in=ACME).count() == 1


def test_an_update_is_of_what_the_inner_queryset_gave() -> None:
    assert Person.objects.filter(company__in=ACME).update(role="manager") == 1


def test_prefetched_objects_are_those_that_the_inner_queryset_gave() -> None:
    people = Prefetch("people", queryset=Person.objects.filter(company__in=ACME))

    assert [len(company.people.all()) for company in Company.objects.prefetch_related(people)] == [1, 0]


def test_more_than_the_limit_is_an_error_of_the_inner_queryset() -> None:
    asked = Person.objects.filter(company__in=Company.objects.allow_in_memory(limit=1))

    with pytest.raises(TooManyMatches, match=r"of directory\.Company in company__in returns more than 1 values"):
        list(asked)


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: Person.objects.filter(company__in=Company.objects.values("pk", "name")),
        InvalidValue,
        "name one, by values_list",
    ),
    (lambda: Person.objects.filter(company__in=Person.objects.all()), InvalidValue, r"takes directory\.Company"),
    (lambda: Person.objects.filter(comany__in=Company.objects.all()), UnknownField, "comany"),
]


@pytest.mark.parametrize(("ask", "error", "text"), WRONG)
def test_what_cannot_be_meant_is_refused_at_once(ask: Any, error: type[Exception], text: str) -> None:
    with assert_requests([]), pytest.raises(error, match=text):
        ask()


def test_the_condition_of_a_write_is_not_dropped() -> None:
    company = Company.objects.get(pk="c1")

    with assert_requests([]), pytest.raises(NotSupported, match="make a list of it first"):
        company.save(condition=Q(company_id__in=ACME))
