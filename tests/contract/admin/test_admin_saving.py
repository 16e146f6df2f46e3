"""One transaction saves a form, its inlines and the log entry; if it is too large, the page reports several parts."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile

from dynamo_single.admin import history
from dynamo_single.admin.log import LogEntry
from dynamo_single.testing import refuse
from project.directory.models import Company, Person
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.admin.test_admin_refusals import just_before
from tests.contract.conftest import NO_INLINES, Pages, text_of

#: The other writer of a test writes within the page's own ``transaction.atomic()``, which then rolls back.
other_writer = pytest.mark.filterwarnings("ignore::dynamo_single.exceptions.NotRolledBackWarning")

CHANGE = "directory/company/acme/change/"
IN_PARTS = "The changes were too large for one transaction, so the admin saved them in several steps."
CompanyAdmin = type(admin.site.get_model_admin(Company))


@pytest.fixture
def acme(pages: Pages) -> Company:
    """A company with Anna and Berta."""
    company = Company.objects.create(company_id="acme", name="Acme")
    for name in ("Anna", "Berta"):
        Person.objects.create(company=company, person_id=name.lower(), name=name)
    return company


def new_people(count: int) -> dict[str, str]:
    """Return rows of new people."""
    rows = {"person_set-TOTAL_FORMS": str(count), "person_set-INITIAL_FORMS": "0"}
    for number in range(count):
        rows |= {f"person_set-{number}-name": f"New {number}", f"person_set-{number}-role": "member"}
        rows |= {f"person_set-{number}-company": "acme", f"person_set-{number}-email": ""}
    return {**NO_INLINES, **rows}


def stored() -> tuple[str, list[str]]:
    """Return the names of the company and its people."""
    return Company.objects.get(pk="acme").name, sorted(person.name for person in Person.objects.filter(company="acme"))


def logged() -> int:
    """Count the log entries of the company."""
    return int(LogEntry.objects.filter(object_type="directory.company", object_id="acme").count())


def test_an_object_its_inlines_and_the_log_are_one_transaction(pages: Pages, acme: Company) -> None:
    """A changed company with a row changed, one deleted and one added: written by one request."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Apex", "person_set-0-name": "Anne", "person_set-1-DELETE": "on"}
    sent |= {"person_set-TOTAL_FORMS": "3", "person_set-2-name": "Carla", "person_set-2-role": "member"}
    pages.post(CHANGE, sent, sends=["GetItem", "Query", "TransactWriteItems"])
    assert (stored(), logged()) == (("Apex", ["Anne", "Carla"]), 1)


def test_a_refused_transaction_has_written_nothing(pages: Pages, acme: Company) -> None:
    """This includes the object, its rows and the log entry."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Apex", "person_set-0-name": "Anne"}
    with refuse("ProvisionedThroughputExceededException", operation="TransactWriteItems"):
        assert pages.post(CHANGE, sent).status_code == 503
    assert (stored(), logged()) == (("Acme", ["Anna", "Berta"]), 0)


@other_writer
def test_a_row_that_somebody_changed_meanwhile_lets_nothing_be_written(pages: Pages, acme: Company) -> None:
    """The form shows the reason and keeps the input."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Apex", "person_set-0-name": "Anne"}

    def rename() -> None:
        Person.objects.get(company="acme", person_id="anna").move(person_id="anna-2")

    with just_before("TransactWriteItems", rename):
        answer = pages.post(CHANGE, sent)
    assert answer.status_code == 200
    assert "directory.Person with pk 'acme~~anna'" in text_of(answer)
    assert (stored(), logged()) == (("Acme", ["Anna", "Berta"]), 0)


@other_writer
def test_a_unique_value_of_a_row_that_was_taken_meanwhile_is_the_rows_error(pages: Pages, acme: Company) -> None:
    """Nothing is written, and the row's field shows the error."""
    sent = {**form_of(pages.get(CHANGE)), "name": "Apex", "person_set-1-email": "Mike@example.com"}

    def take() -> None:
        Person.objects.create(company_id="acme", name="Nora", email="mike@example.com")

    with just_before("TransactWriteItems", take):
        answer = pages.post(CHANGE, sent)
    people = answer.context_data["inline_admin_formsets"][0].formset
    assert [form.errors for form in people.forms] == [
        {},
        {"email": ["Person with this E-mail address already exists."]},
    ]
    assert answer.context_data["adminform"].form.errors.keys() == {"__all__"}
    assert (stored(), logged()) == (("Acme", ["Anna", "Berta", "Nora"]), 0)


def test_a_hundred_actions_are_one_transaction(pages: Pages, acme: Company) -> None:
    """The company, 98 people and the log's entry."""
    pages.post(CHANGE, {"name": "Apex", **new_people(98)}, sends=["GetItem", "TransactWriteItems"])
    assert len(stored()[1]) == 100


def test_what_is_more_than_a_transaction_takes_is_saved_in_parts(pages: Pages, acme: Company) -> None:
    """The page reports separate writes of the company, 99 people and the log entry; the company is read again."""
    parts = ["UpdateItem", *["PutItem"] * 100]
    answer = pages.post(CHANGE, {"name": "Apex", **new_people(99)}, sends=["GetItem", "GetItem", *parts])
    assert answer.status_code == 302
    assert IN_PARTS in text_of(pages.get("directory/company/"))
    assert (len(stored()[1]), logged()) == (101, 1)


def test_what_does_not_fit_is_not_stored_twice_with_its_files(pages: Pages, acme: Company) -> None:
    """The storage already has the file."""
    data = {"name": "Apex", **new_people(99), "logo": SimpleUploadedFile("logo.txt", b"x")}
    answer = pages.post(CHANGE, data)
    assert "This is more than can be saved in one step. Nothing was saved." in text_of(answer)
    assert (stored(), logged()) == (("Acme", ["Anna", "Berta"]), 0)


def test_code_of_a_project_that_reads_what_it_wrote_makes_it_parts(pages: Pages, acme: Company) -> None:
    """A transaction cannot do that."""

    def save_model(self: Any, request: Any, obj: Any, form: Any, change: bool) -> None:
        obj.save()
        obj.refresh_from_db()

    with mock.patch.object(CompanyAdmin, "save_model", save_model):
        pages.post(CHANGE, {"name": "Apex", **NO_INLINES})
    assert IN_PARTS in text_of(pages.get("directory/company/"))
    assert (stored()[0], logged()) == ("Apex", 1)


def test_an_admin_may_save_in_parts_always(pages: Pages, acme: Company) -> None:
    """``save_at_once = False``; no page mentions it."""
    with mock.patch.object(CompanyAdmin, "save_at_once", False):
        pages.post(CHANGE, {"name": "Apex", **NO_INLINES}, sends=["GetItem", "UpdateItem", "PutItem"])
    assert IN_PARTS not in text_of(pages.get("directory/company/"))


@other_writer
def test_a_refused_row_of_what_is_saved_in_parts_does_not_lose_the_parent(pages: Pages, acme: Company) -> None:
    """The page reports that the company was saved, and lists the rows that were not."""

    def take() -> None:
        Person.objects.create(company_id="acme", name="Nora", email="mike@example.com")

    row = {"identity": "", "company": "acme", "name": "Mike", "email": "mike@example.com", "role": "member"}
    rows = {f"person_set-0-{field}": value for field, value in row.items()}
    data = {"name": "Acme Ltd", **NO_INLINES, **rows, "person_set-TOTAL_FORMS": "1"}
    with mock.patch.object(CompanyAdmin, "save_at_once", False), just_before("TransactWriteItems", take):
        response = pages.post(CHANGE, data)
    assert response.headers["Location"] == f"/admin/{CHANGE}"
    text = text_of(pages.get(""))
    assert (
        "The admin saved the company “Acme Ltd”. It did not save some related objects: "
        "Person with this E-mail address already exists." in text
    )
    assert stored() == ("Acme Ltd", ["Anna", "Berta", "Nora"])


def test_a_log_elsewhere_is_written_after_the_object(pages: Pages, acme: Company) -> None:
    """The table of the users is not the model's: one transaction has one table."""
    with mock.patch.object(history, "is_in_same_table", lambda model: False):
        pages.post(CHANGE, {"name": "Apex", **NO_INLINES}, sends=["GetItem", "UpdateItem", "PutItem"])
    assert logged() == 1


def test_what_answers_a_save_reads_what_was_written(pages: Pages, acme: Company) -> None:
    """``response_change()`` comes after the transaction."""
    found = []

    def response_post_save_change(self: Any, request: Any, obj: Any) -> Any:
        found.append(Company.objects.consistent().get(pk="acme").name)
        return super(CompanyAdmin, self).response_post_save_change(request, obj)

    with mock.patch.object(CompanyAdmin, "response_post_save_change", response_post_save_change):
        pages.post(CHANGE, {"name": "Apex", **NO_INLINES})
    assert found == ["Apex"]
