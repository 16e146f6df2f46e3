"""Inlines with more children than a form allows: the page shows a note, and saves the rest."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin

from dynamo_single.admin import DynamoTabularInline
from project.directory.models import Company, Person
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.conftest import Pages, Registering, text_of

CHANGE = "directory/company/acme/change/"
SAID = "There are more people than can be shown and saved in this form. Saving the form does not change them."


class PeopleInline(DynamoTabularInline):
    """The people of a company, with a limit of three."""

    model = Person
    fields = ("name",)
    max_rows = 3


@pytest.fixture
def large(registered: Registering) -> Pages:
    """The page of a company with four people."""
    company = Company.objects.create(company_id="acme", name="Acme")
    for name in ("anna", "berta", "carla", "dora"):
        Person.objects.create(company=company, person_id=name, name=name.title())
    return registered(Company, inlines=(PeopleInline,), fields=("name",))


def test_more_children_than_the_bound_are_not_shown(large: Pages) -> None:
    """The page sends as many requests as for few children."""
    page = large.get(CHANGE, sends=["GetItem", "Query"])
    assert SAID in text_of(page)
    assert "Anna" not in text_of(page)


def test_as_many_as_the_bound_are_shown(large: Pages) -> None:
    """The form has each of them."""
    Person.objects.get(company="acme", person_id="dora").delete()
    page = large.get(CHANGE)
    assert SAID not in text_of(page)
    assert form_of(page)["person_set-2-name"] == "Carla"


def test_a_form_without_its_children_is_saved(large: Pages) -> None:
    """The children stay the same, and are not read."""
    sent = {**form_of(large.get(CHANGE)), "name": "Bolt"}
    assert large.post(CHANGE, sent, sends=["GetItem", "TransactWriteItems"]).status_code == 302
    assert Company.objects.get(pk="acme").name == "Bolt"
    assert Person.objects.filter(company="acme").count() == 4


def test_a_form_that_comes_back_says_it_again(large: Pages) -> None:
    """An empty table would look like a company without people."""
    answer = large.post(CHANGE, {**form_of(large.get(CHANGE)), "name": ""})
    assert SAID in text_of(answer)


def test_a_form_that_was_shown_with_its_children_saves_them(large: Pages) -> None:
    """The form saves them, although another user has added one beyond the limit."""
    dora = Person.objects.get(company="acme", person_id="dora")
    dora.delete()
    sent = {**form_of(large.get(CHANGE)), "person_set-0-name": "Anne"}
    dora.restore()
    assert large.post(CHANGE, sent).status_code == 302
    assert Person.objects.get(company="acme", person_id="anna").name == "Anne"


@pytest.mark.parametrize(("number", "is_shown"), [(35, True), (20, False)])
def test_a_form_of_more_inputs_than_a_request_may_have_is_not_shown(
    large: Pages, settings: Any, monkeypatch: pytest.MonkeyPatch, number: int, is_shown: bool
) -> None:
    """Django would return status 400 for its submission."""
    monkeypatch.setattr(PeopleInline, "max_rows", 200)
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = number
    page = large.get(CHANGE)
    assert (SAID not in text_of(page)) == is_shown
    assert large.post(CHANGE, form_of(page)).status_code == 302


def people_inline() -> Any:
    """The inline of the project's own page of companies."""
    (inline,) = (each for each in admin.site.get_model_admin(Company).inlines if each.model is Person)
    return inline


def test_the_list_of_the_children_is_a_link_away(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link leads to the list of this object's children."""
    monkeypatch.setattr(people_inline(), "max_rows", 0)
    for name in ("acme", "bolt"):
        company = Company.objects.create(company_id=name, name=name)
        Person.objects.create(company=company, person_id=f"p{name}", name=f"Of {name}")
    (address,) = re.findall(r'<a href="/admin/([^"]*)">Show the list of people', pages.get(CHANGE).content.decode())
    listed = text_of(pages.get(address))
    assert "Of acme" in listed
    assert "Of bolt" not in listed


def test_who_may_only_look_is_told_the_same(staff: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the link, as they may view the list."""
    monkeypatch.setattr(people_inline(), "max_rows", 0)
    company = Company.objects.create(company_id="acme", name="Acme")
    Person.objects.create(company=company, person_id="anna", name="Anna")
    text = text_of(staff("directory.view_company", "directory.view_person").get(CHANGE))
    assert SAID in text
    assert "Anna" not in text
    assert "Show the list of people" in text


def test_who_may_not_view_the_children_is_not_told_of_them(staff: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not how many they are either."""
    monkeypatch.setattr(people_inline(), "max_rows", 0)
    company = Company.objects.create(company_id="acme", name="Acme")
    Person.objects.create(company=company, person_id="anna", name="Anna")
    text = text_of(staff("directory.change_company").get(CHANGE))
    assert "Acme" in text
    assert SAID not in text


def test_children_that_went_to_the_trash_have_no_link_to_the_live_ones(large: Pages) -> None:
    """The page of the company shows only the note."""
    Company.objects.get(pk="acme").delete()
    text = text_of(large.get(CHANGE))
    assert SAID in text
    assert "Show the list of people" not in text
