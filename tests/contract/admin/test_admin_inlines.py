"""Inlines: permissions, and rows that another user deletes or adds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory

from dynamo_single import models
from dynamo_single.admin import DynamoStackedInline, DynamoTabularInline
from project.directory.models import Company, Person
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.conftest import Pages, text_of
from tests.unit.declaring import declare, forgotten

CHANGE = "directory/company/acme/change/"


@pytest.fixture
def visit() -> Iterator[Any]:
    """A child of a company that refers to a person too."""
    with forgotten():
        yield declare(
            "Viewing",
            ("COMPANY#{company_id}", "VISIT#{visit_id}"),
            visit_id=models.IdAttribute(),
            guest=models.ReferenceAttribute(Person, on_delete=models.DO_NOTHING),
            company=models.ReferenceAttribute(Company, on_delete=models.DO_NOTHING),
        )


@pytest.mark.parametrize("base", [DynamoTabularInline, DynamoStackedInline])
@pytest.mark.parametrize(
    ("permission", "allowed"),
    [
        ("catalog.view_viewing", {"view"}),
        ("catalog.add_viewing", {"add"}),
        ("catalog.change_viewing", {"change", "view"}),
        ("catalog.delete_viewing", {"delete"}),
        ("directory.change_person", set()),
        ("directory.change_company", set()),
    ],
)
def test_the_childs_own_permissions_decide(visit: Any, base: Any, permission: str, allowed: set[str]) -> None:
    """Django would treat the child as a many-to-many table, and check the model on its other side."""
    inline = type("VisitInline", (base,), {"model": visit, "fk_name": "company"})(Company, admin.site)
    request = RequestFactory().get("/")
    request.user = SimpleNamespace(has_perm=lambda asked: asked == permission)  # type: ignore[assignment]  # all it takes
    asked = ("add", "change", "delete", "view")
    assert {each for each in asked if getattr(inline, f"has_{each}_permission")(request, None)} == allowed


@pytest.fixture
def acme(pages: Pages) -> Company:
    """A company with Anna, Berta and Carla."""
    company = Company.objects.create(company_id="acme", name="Acme")
    for name in ("Anna", "Berta", "Carla"):
        Person.objects.create(company=company, person_id=name.lower(), name=name)
    return company


def names() -> list[str]:
    """Return the names of the company's people."""
    return sorted(person.name for person in Person.objects.filter(company="acme"))


def test_rows_are_read_once_when_they_are_sent(pages: Pages, acme: Company) -> None:
    """However many there are, by the one Query that shows them."""
    sent = {**form_of(pages.get(CHANGE)), "person_set-0-name": "Anne"}
    pages.post(CHANGE, sent, sends=["GetItem", "Query", "TransactWriteItems"])
    assert names() == ["Anne", "Berta", "Carla"]


def test_a_row_that_somebody_deleted_is_named_and_the_rest_can_be_saved(pages: Pages, acme: Company) -> None:
    """The other rows keep their input and their objects, and the first attempt does not save."""
    sent = {**form_of(pages.get(CHANGE)), "person_set-1-name": "Bertha", "person_set-2-name": "Clara"}
    Person.objects.get(company="acme", person_id="berta").delete()
    answer = pages.post(CHANGE, sent)
    assert "Bertha was deleted by someone else. Save again to save your other changes." in text_of(answer)
    again = form_of(answer)
    assert [again[f"person_set-{number}-name"] for number in (0, 1)] == ["Anna", "Clara"]
    assert "directory/person/acme~~carla/change/" in answer.content.decode()
    assert names() == ["Anna", "Carla"]
    assert pages.post(CHANGE, again).status_code == 302
    assert names() == ["Anna", "Clara"]


def test_a_row_that_both_have_deleted_is_no_error(pages: Pages, acme: Company) -> None:
    """The row has the intended result."""
    sent = {**form_of(pages.get(CHANGE)), "person_set-0-DELETE": "on", "person_set-2-name": "Clara"}
    Person.objects.get(company="acme", person_id="anna").delete()
    assert pages.post(CHANGE, sent).status_code == 302
    assert names() == ["Berta", "Clara"]


def test_a_form_shows_each_row_beside_its_own_object(pages: Pages, acme: Company) -> None:
    """A row that another user has added before them does not shift the others."""
    sent = {**form_of(pages.get(CHANGE)), "name": ""}
    Person.objects.create(company=acme, person_id="aaron", name="Aaron")
    page = pages.post(CHANGE, sent).content.decode()
    assert re.findall(r"acme~~(\w+)/change/", page) == ["anna", "berta", "carla"]


def test_a_row_of_another_parent_is_none_of_this_one(pages: Pages, acme: Company) -> None:
    """A key of another parent's row is not found, shown or written."""
    other = Company.objects.create(company_id="other", name="Other")
    Person.objects.create(company=other, person_id="zoe", name="Zoe")
    sent = {**form_of(pages.get(CHANGE)), "person_set-0-identity": "other~~zoe", "person_set-0-name": "Taken"}
    answer = pages.post(CHANGE, sent)
    assert answer.status_code == 200
    assert "Zoe" not in answer.content.decode()
    assert [person.name for person in Person.objects.filter(company="other")] == ["Zoe"]


def test_an_object_in_the_trash_shows_what_went_there_with_it(pages: Pages, acme: Company) -> None:
    """The rows are read-only, and omit children that were deleted earlier."""
    Person.objects.create(company=acme, person_id="dora", name="Dora").delete()
    acme.delete()
    page = pages.get(CHANGE)
    assert all(name in text_of(page) for name in ("Anna", "Berta", "Carla"))
    assert "Dora" not in text_of(page)
    assert 'name="person_set-0-name"' not in page.content.decode()


def test_children_in_the_trash_are_shown_to_those_who_may_view_them(staff: Any, acme: Company) -> None:
    """The permission for the company opens no people."""
    acme.delete()
    assert "Anna" not in text_of(staff("directory.view_company").get(CHANGE))


def test_live_children_are_not_shown_in_the_trash(pages: Pages, acme: Company) -> None:
    """The page of a live object does not show deleted children either."""
    Person.objects.get(company="acme", person_id="berta").delete()
    text = text_of(pages.get(CHANGE))
    assert "Berta" not in text
