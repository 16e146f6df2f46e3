"""The error for a name over relations or documents names the alternative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db.models import Q

from accounts.models import Group
from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Employee, Product, Sample

pytestmark = pytest.mark.usefixtures("table")

JOINED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Person.objects.order_by("-company__name"), r"Sort in Python.*CopiedAttribute\(.company."),
    (lambda: Product.objects.values("data__title").distinct(), r"models.ExtractedAttribute\('data__title'\)"),
    (
        lambda: Product.objects.order_by("data__price"),
        r"Call .allow_in_memory\(limit=1000\), or keep it .*: price = models.ExtractedAttribute\(.data__price.\)",
    ),
    (lambda: Company.objects.filter(people__role="member"), r"Person\.objects\.filter\(.*values_list\('company_id'"),
    (
        lambda: Company.objects.filter(person__role="member"),
        r"Person.*filter\(role=.*values_list\('company_id'",
    ),
    (lambda: Company.objects.exclude(people__role="member"), r"Person\.objects\.filter"),
    (lambda: Company.objects.filter(Q(people__role="member") | Q(name="x")), r"Person\.objects\.filter"),
    (lambda: get_user_model()._default_manager.filter(groups__name="g"), r"User\.groups\.through\.objects\.filter"),
    (lambda: Group.objects.filter(user_set="u"), r"names the relation 'user': filter\(user=\.\.\.\)"),
]


@pytest.mark.parametrize(("ask", "way_out"), JOINED)
def test_what_would_be_a_join_names_the_way_out(ask: Callable[[], Any], way_out: str) -> None:
    with assert_requests([]), pytest.raises(NotSupported, match=way_out):
        list(ask())


OF_ITSELF: list[Callable[[], Any]] = [
    lambda: Sample.objects.filter(parent__text="x"),
    lambda: Sample.objects.filter(Q(text="x") | Q(parent__text="x")),
    lambda: Sample.objects.filter(parent__text=None),
    lambda: Sample.objects.filter(parent__moment__year=2024),
    lambda: Sample.objects.filter(sample__text="x"),
]


@pytest.mark.parametrize("ask", OF_ITSELF)
def test_a_reference_of_a_model_to_itself_is_a_join_too(ask: Callable[[], Any]) -> None:
    Sample.objects.create(sample_id="a", text="x")

    with pytest.raises(NotSupported, match="no joins"):
        list(ask())


def test_a_name_of_nobody_lists_the_names_that_there_are() -> None:
    with pytest.raises(UnknownField, match=r"values\(\)\. It has .*name"):
        list(Person.objects.values("nobody__name"))


def test_the_key_of_a_reference_is_read_from_the_reference() -> None:
    Person.objects.create(company_id="c1", person_id="p1", name="Ann")

    with assert_requests(["Query"]):
        found = list(Person.objects.values("company__pk", "company__company_id", "name"))

    assert found == [{"company__pk": "c1", "company__company_id": "c1", "name": "Ann"}]


def test_a_flat_list_of_keys_of_references_is_read_from_the_references() -> None:
    Person.objects.create(company_id="c1", person_id="p1", name="Ann")

    assert list(Person.objects.values_list("company__pk", flat=True)) == ["c1"]


def test_an_order_by_the_key_of_a_reference_is_one_by_the_reference() -> None:
    Employee.objects.create(firm_id="f", employee_id="e2", name="Bob")
    Employee.objects.create(firm_id="f", employee_id="e1", name="Ann")

    found = Employee.objects.filter(firm="f").order_by("firm__pk", "employee_id")

    assert [each.name for each in found] == ["Ann", "Bob"]
