"""Beginners' mistakes: each error contains the intended code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db.models import Q

from dynamo_single.exceptions import ConditionNotMet, InvalidValue, NotSupported, UnknownField
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Sample

pytestmark = pytest.mark.usefixtures("table")

NOT_NAMED: dict[str, Callable[[], Any]] = {
    "get": lambda: Company.objects.get("c1"),
    "filter": lambda: Company.objects.filter("Acme"),
    "exclude": lambda: Company.objects.exclude(None),
    "a Q": lambda: Company.objects.filter(Q("Acme") | Q(name="B")),
    "an object": lambda: Company.objects.filter(Company(company_id="c1")),
    "a dict": lambda: Company.objects.filter({"name": "Acme"}),
    "a condition of PynamoDB": lambda: Company.objects.filter(Company.name == "Acme"),
}


@pytest.mark.parametrize("ask", NOT_NAMED.values(), ids=NOT_NAMED)
def test_a_value_without_a_name_is_no_condition(ask: Callable[[], Any]) -> None:
    """Django fails at it by "too many values to unpack"."""
    way_out = (
        r"is not a condition on directory\.Company\. Name the attribute, .* filter\(name=\.\.\.\) and "
        r"get\(pk=\.\.\.\), or pass"
    )
    with assert_requests(0), pytest.raises(InvalidValue, match=way_out):
        ask()


def test_a_pair_is_a_condition_as_in_django() -> None:
    company = Company.objects.create(name="Acme")
    assert list(Company.objects.filter(("name", "Acme"))) == [company]


@pytest.mark.parametrize("text", ["Acme", b"Acme"])
def test_a_text_is_no_list_of_its_letters(text: Any) -> None:
    with assert_requests(0), pytest.raises(InvalidValue, match=r"name__in must be a list of values, not b?'Acme'"):
        list(Company.objects.filter(name__in=text))


def test_a_part_of_a_key_is_no_pk() -> None:
    """As in Django, no object is found, and the message names the parts of the pk."""
    with assert_requests(0), pytest.raises(Person.DoesNotExist) as caught:
        Person.objects.get(pk="person-1")
    assert str(caught.value) == (
        "No directory.Person matches pk='person-1'. Its pk consists of company_id and person_id: filter by these, "
        "or pass the pk of an object."
    )


@pytest.mark.parametrize("pk", ["c1~~p1", "c%C3~~p1"])
def test_a_pk_of_nobody_is_just_not_there(pk: str) -> None:
    with pytest.raises(Person.DoesNotExist) as caught:
        Person.objects.get(pk=pk)
    assert str(caught.value) == f"No directory.Person matches pk={pk!r}."


@pytest.mark.parametrize("write", ["save", "bulk_update"])
@pytest.mark.parametrize("name", ["nme", "company_id"])
def test_names_that_cannot_be_written_are_reported_with_those_that_can(write: str, name: str) -> None:
    """The message starts with Django's text, which is the same for wrong names and for the key."""
    company = Company.objects.create(name="Acme")
    told = rf"non-concrete fields: {name}\. There are .*name.*; move\(\) changes the primary key\."
    with assert_requests(0), pytest.raises(ValueError, match=told):
        company.save(update_fields=[name]) if write == "save" else Company.objects.bulk_update([company], [name])


def test_a_changed_key_is_named_in_the_singular() -> None:
    company = Company.objects.create(company_id="c1", name="Acme")
    company.company_id = "c2"
    with assert_requests(0), pytest.raises(NotSupported, match=r"company_id makes up the primary key, .*move\("):
        company.save()


def test_what_is_no_object_is_not_created() -> None:
    told = (
        r"bulk_create\(\) of directory\.Company got \{'name': 'Acme'\}\. It takes objects: Company\(\.\.\.\) makes one"
    )
    with assert_requests(0), pytest.raises(TypeError, match=told):
        Company.objects.bulk_create([{"name": "Acme"}])  # type: ignore[list-item]  # the mistake


def test_a_request_in_an_event_loop_names_its_ways_out() -> None:
    async def ask() -> None:
        Company.objects.get(pk="c1")

    with (
        assert_requests(0),
        pytest.raises(SynchronousOnlyOperation, match=r"aget\(\), asave\(\) or async for.*select_"),
    ):
        asyncio.run(ask())


def test_a_condition_that_is_not_met_reads_as_it_was_written() -> None:
    """Not as DynamoDB stores its value."""
    company = Company.objects.create(company_id="c1", name="Acme")
    with pytest.raises(
        ConditionNotMet, match=r"does not meet the condition of the write, name = 'Beta'. Nothing was written"
    ):
        company.save(force_update=True, condition=Q(name="Beta"))


def test_a_move_to_what_is_no_attribute_is_reported_with_those_there_are() -> None:
    company = Company.objects.create(name="Acme")
    with assert_requests(0), pytest.raises(TypeError, match=r"move\(\) got .* 'nme'\. It takes .*company_id.*, name"):
        company.move(nme="x")


def test_a_place_in_a_set_is_refused_with_the_way_to_add_to_it() -> None:
    way_out = r"only maps and lists have elements: write update\(words=models\.AddToSet\(\{\.\.\.\}\)\)"
    with assert_requests(0), pytest.raises(UnknownField, match=way_out):
        Sample.objects.filter(pk="s").update(words__add={"x"})
