"""The admin's messages if a valid form cannot be saved, and if DynamoDB is unreachable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client, override_settings

from dynamo_single.table import get_table
from dynamo_single.testing import intercept, refuse, unreachable
from project.directory.models import Company, Office, Person
from tests.catalog.models import Firm
from tests.contract.conftest import NO_INLINES, Pages, text_of

#: The other writer of a test writes within the page's own ``transaction.atomic()``, which then rolls back.
other_writer = pytest.mark.filterwarnings("ignore::dynamo_single.exceptions.NotRolledBackWarning")

COMPANY = "directory/company/"
PERSON = "directory/person/"


@contextmanager
def just_before(operation: str, act: Callable[[], Any]) -> Iterator[None]:
    """Let another writer act right before the first request of an operation."""
    acted = False

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        nonlocal acted
        if asked == operation and not acted:
            acted = True
            act()

    with intercept(interceptor):
        yield


@pytest.fixture
def acme(pages: Pages) -> Company:
    """A stored company."""
    return Company.objects.create(name="Acme")


@other_writer
def test_a_change_by_another_writer_is_the_forms_error(pages: Pages, acme: Company) -> None:
    """The form keeps the input and shows the reason, and can be submitted again."""

    def rename() -> None:
        Company.objects.filter(pk=acme.pk).update(name="Other")

    data = {"name": "Mine", **NO_INLINES}
    with just_before("TransactWriteItems", rename):
        response = pages.post(f"{COMPANY}{acme.pk}/change/", data)
    assert response.status_code == 200
    assert "was changed by another process since it was read" in text_of(response)
    assert 'value="Mine"' in response.content.decode()
    assert Company.objects.get(pk=acme.pk).name == "Other"
    assert pages.post(f"{COMPANY}{acme.pk}/change/", data).status_code == 302
    assert Company.objects.get(pk=acme.pk).name == "Mine"


def test_a_taken_unique_value_is_the_fields_error(pages: Pages, acme: Company) -> None:
    """Validation finds a taken address beforehand, and the form comes back with nothing written.

    One read of the company serves the field, the model's validation and its name in the form.
    """
    Person.objects.create(company=acme, name="Nora", email="mike@example.com")
    data = {"company": acme.pk, "name": "Mike", "email": "Mike@example.com", "role": "member"}
    response = pages.post(f"{PERSON}add/", data, sends=["GetItem", "GetItem"])
    assert response.context_data["adminform"].form.errors == {
        "email": ["Person with this E-mail address already exists."]
    }


@other_writer
def test_losing_the_race_for_a_unique_value_is_the_fields_error_too(pages: Pages, acme: Company) -> None:
    """The message is the same if another process takes the address between validation and save."""

    def take() -> None:
        Person.objects.create(company=acme, name="Nora", email="mike@example.com")

    data = {"company": acme.pk, "name": "Mike", "email": "mike@example.com", "role": "member"}
    with just_before("TransactWriteItems", take):
        response = pages.post(f"{PERSON}add/", data)
    assert response.context_data["adminform"].form.errors["email"] == [
        "Person with this E-mail address already exists."
    ]
    assert [person.name for person in Person.objects.filter(company=acme)] == ["Nora"]


def test_an_item_over_the_limit_is_the_forms_error(pages: Pages, acme: Company) -> None:
    """The error contains the sizes, and the table does not change."""
    data = {"company": acme.pk, "city": "Rome", "address": "x" * 410_000, "opened": ""}
    response = pages.post("directory/office/add/", data)
    assert response.status_code == 200
    assert "409600" in text_of(response)
    assert not Office.objects.all().exists()


def test_a_refusal_comes_in_words_for_the_people_who_run_a_site(staff: Any) -> None:
    """Only superusers see class names and keys of the table."""
    acme = Company.objects.create(company_id="acme", name="Acme")
    mike = Person.objects.create(company=acme, name="Mike", email="mike@example.com")
    mike.delete()
    Person.objects.create(company=acme, name="Nora", email="mike@example.com")
    pages = staff("directory.view_person", "directory.restore_person")
    pages.post(f"{PERSON}{mike.pk}/restore/")
    said = text_of(pages.get(f"{PERSON}{mike.pk}/change/"))
    assert "Person with this E-mail address already exists." in said
    assert "directory.Person" not in said


def test_a_child_of_what_is_in_the_trash_is_refused_in_such_words(staff: Any) -> None:
    """With what to do."""
    acme = Company.objects.create(company_id="acme", name="Acme")
    mike = Person.objects.create(company=acme, name="Mike")
    acme.delete()
    pages = staff("directory.view_person", "directory.restore_person")
    pages.post(f"{PERSON}{mike.pk}/restore/")
    said = text_of(pages.get(f"{PERSON}{mike.pk}/change/"))
    assert "It belongs to an object in the trash. Restore that object instead; this also restores its children." in said
    assert "directory.Company" not in said


@other_writer
def test_a_change_by_another_writer_comes_in_such_words(staff: Any) -> None:
    """The form shows such a message and keeps the input."""
    acme = Company.objects.create(company_id="acme", name="Acme")
    pages = staff("directory.change_company")

    def rename() -> None:
        Company.objects.filter(pk=acme.pk).update(name="Other")

    with just_before("TransactWriteItems", rename):
        said = text_of(pages.post(f"{COMPANY}acme/change/", {"name": "Mine", **NO_INLINES}))
    assert "This object was changed by someone else. Reload the page to see the current version." in said
    assert "directory.Company" not in said


def test_restoring_what_lost_its_unique_value_is_refused(pages: Pages, acme: Company) -> None:
    """An address that was taken during the trash stays with its new owner."""
    mike = Person.objects.create(company=acme, name="Mike", email="mike@example.com")
    mike.delete()
    Person.objects.create(company=acme, name="Nora", email="mike@example.com")
    pages.post(f"{PERSON}{mike.pk}/restore/", sends=["GetItem", "TransactWriteItems"])
    assert "Another directory.Person has email 'mike@example.com'. Nothing was written." in text_of(pages.get(""))
    assert [person.name for person in Person.deleted_objects.all()] == ["Mike"]


def no_engine(operation: str, params: Mapping[str, Any]) -> None:
    """Nothing listens at the table's endpoint."""
    raise unreachable(get_table().settings)


@pytest.mark.parametrize("debug", [True, False])
def test_an_engine_that_does_not_answer_is_a_page_of_its_own(pages: Pages, debug: bool) -> None:
    """Without DynamoDB, every page returns a 503; only developers see the endpoint."""
    with override_settings(DEBUG=debug), intercept(no_engine):
        responses = [pages.get(""), pages.post(f"{COMPANY}add/", {"name": "x"})]
        responses.append(Client().post("/admin/login/", {"username": "admin", "password": "secret"}))
    for response in responses:
        assert response.status_code == 503
        assert "Changes that were not confirmed may not have been saved. Try again in a moment." in text_of(response)
        assert ("127.0.0.1" in text_of(response)) == debug


def test_an_engine_that_stops_answering_while_a_page_is_rendered(pages: Pages) -> None:
    """The template reads the recent actions, and the page then also returns a 503."""

    def no_queries(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "Query":
            raise unreachable(get_table().settings)

    with intercept(no_queries):
        response = pages.get("")
    assert response.status_code == 503
    assert "The database did not respond" in text_of(response)


def test_what_is_refused_while_a_list_is_rendered_is_explained(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column with an unsupported query does not cause a server error of the list."""

    def firms(company: Company) -> int:
        return len(Firm.objects.all())

    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "list_display", ("name", firms))
    Company.objects.create(name="Acme")
    response = pages.get(COMPANY)
    assert response.status_code == 400
    assert "This list cannot be shown" in text_of(response)


def test_a_table_that_is_not_there_is_not_waited_for(pages: Pages) -> None:
    """The page reports the missing table, and does not suggest to try again."""
    with refuse("ResourceNotFoundException"):
        response = pages.get("")
    assert response.status_code == 503
    assert "There is no table to read from" in text_of(response)
    assert "again" not in text_of(response)


def test_a_throttled_save_is_a_page_of_its_own(pages: Pages) -> None:
    """The page reports the throttled save, and the table does not change."""
    with refuse("ProvisionedThroughputExceededException", operation="TransactWriteItems"):
        response = pages.post(f"{COMPANY}add/", {"name": "Acme", **NO_INLINES})
    assert response.status_code == 503
    assert not Company.objects.all().exists()
