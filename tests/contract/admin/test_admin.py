"""The admin over HTTP: a company is added, edited, deleted and restored, with exactly the expected requests."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from dynamo_single.admin import DynamoAdminSite
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Office, Person
from tests.contract.conftest import NO_INLINES, Pages, text_of

COMPANY = "directory/company/"


@pytest.fixture
def acme(pages: Pages) -> Company:
    """A stored company."""
    return Company.objects.create(name="Acme", stock="ACM")


def test_the_default_site_is_ours() -> None:
    """``django.contrib.admin.site`` is the site that DynamoAdminConfig names."""
    assert isinstance(admin.site._wrapped, DynamoAdminSite)  # type: ignore[attr-defined]  # made on first use


def test_the_login_page_sends_no_request(table: Any) -> None:
    """Without a session, only a submitted form sends requests."""
    with assert_requests([]):
        response = Client().get("/admin/login/")
    assert response.status_code == 200
    assert "Log in" in response.content.decode()


@pytest.mark.parametrize("identifier", ["admin", "Admin@Example.com"])
def test_logging_in_and_out(pages: Pages, identifier: str) -> None:
    """The admin's own form takes the user name or the e-mail address, and logging out ends the session."""
    client = Client()
    response = client.post("/admin/login/?next=/admin/", {"username": identifier, "password": "secret"})
    assert response.headers["Location"] == "/admin/"
    assert "Welcome, admin" in text_of(client.get("/admin/"))
    with assert_requests(["GetItem", "GetItem", "TransactWriteItems"]):
        assert "Logged out" in text_of(client.post("/admin/logout/"))
    assert client.get("/admin/").status_code == 302


def test_the_index_shows_what_can_be_stored(pages: Pages) -> None:
    """The index lists our models and reads the user's recent actions with one Query; SQL's groups are not on it."""
    page = pages.get("", sends=["Query"])
    text = text_of(page)
    assert all(name in text for name in ("Companies", "People", "Offices", "Groups", "None available"))
    assert "/admin/accounts/group/" in page.content.decode()
    assert "/admin/auth/group/" not in page.content.decode()
    assert pages.get("auth/").status_code == 404


def test_adding(pages: Pages) -> None:
    """An add takes one transaction with its log entry; the empty form does not send requests."""
    pages.get(f"{COMPANY}add/", sends=[])
    data = {"name": "Acme", "stock": "ACM", "founded": "1999-01-31", "public": "on", **NO_INLINES}
    response = pages.post(f"{COMPANY}add/", data, sends=["TransactWriteItems"])
    assert response.headers["Location"] == f"/admin/{COMPANY}"
    company = Company.objects.get(company_id=Company.objects.all()[0].pk)
    assert (company.name, company.stock, str(company.founded), company.public) == ("Acme", "ACM", "1999-01-31", True)


def test_editing(pages: Pages, acme: Company) -> None:
    """An edit reads the company once and sends one transaction with the log's entry."""
    response = pages.get(f"{COMPANY}{acme.pk}/change/", sends=["GetItem", "Query"])
    assert acme.pk in text_of(response)
    data = {"name": "Acme Ltd", "stock": "ACM", "founded": "", **NO_INLINES}
    response = pages.post(f"{COMPANY}{acme.pk}/change/", data, sends=["GetItem", "TransactWriteItems"])
    assert response.status_code == 302
    assert [company.name for company in Company.objects.all()] == ["Acme Ltd"]


def test_inlines_beside_each_other_are_read_by_one_query(pages: Pages, acme: Company) -> None:
    """The page shows people and offices, which are adjacent in the company's partition."""
    Person.objects.create(company=acme, name="Somebody")
    Office.objects.create(company=acme, city="Somewhere")
    page = pages.get(f"{COMPANY}{acme.pk}/change/", sends=["GetItem", "Query"]).content.decode()
    assert 'value="Somebody"' in page
    assert 'value="Somewhere"' in page


@pytest.mark.parametrize("change", ["", "directory.change_company", "directory.change_person"])
def test_inlines_that_are_only_shown_are_read_by_one_query(staff: Any, acme: Company, change: str) -> None:
    """A user with view permission sees the same rows with the same requests, even if other rows are editable."""
    Person.objects.create(company=acme, name="Somebody")
    Office.objects.create(company=acme, city="Somewhere")
    views = ("directory.view_company", "directory.view_person", "directory.view_office")
    page = staff(*views, *([change] if change else [])).get(f"{COMPANY}{acme.pk}/change/", sends=["GetItem", "Query"])
    assert "Somebody" in page.content.decode()
    assert "Somewhere" in page.content.decode()


def test_saving_without_a_change_writes_only_the_log(pages: Pages, acme: Company) -> None:
    """A form without changes does not write the item."""
    data = {"name": "Acme", "stock": "ACM", "founded": "", **NO_INLINES}
    pages.post(f"{COMPANY}{acme.pk}/change/", data, sends=["GetItem", "PutItem"])
    assert Company.objects.get(pk=acme.pk).updated_at == acme.updated_at


def test_deleting_moves_to_the_trash_and_restoring_brings_back(pages: Pages, acme: Company) -> None:
    """Soft delete and restore take one UpdateItem and one PutItem for the log; a Query finds children."""
    address = f"{COMPANY}{acme.pk}/"
    children = ["Query"]
    page = text_of(pages.get(f"{address}delete/", sends=["GetItem", *children]))
    assert "Move the company “Acme” to the trash?" in page
    assert "goes along" not in page
    # The children are searched for the permission check, for the deletion, and for later additions.
    writes = ["UpdateItem", *children, "PutItem"]
    pages.post(f"{address}delete/", {"post": "yes"}, sends=["GetItem", *children, *children, *writes])
    assert not Company.objects.all().exists()
    page = text_of(pages.get(f"{COMPANY}?trash=yes", sends=["Query"]))
    assert "The company “Acme” was moved to the trash." in page
    assert "deleted successfully" not in page

    # A second search finds children that were added since.
    response = pages.post(f"{address}restore/", sends=["GetItem", *children, "UpdateItem", *children, "PutItem"])
    assert response.headers["Location"] == f"/admin/{address}change/"
    assert [company.pk for company in Company.objects.all()] == [acme.pk]
    assert not Company.deleted_objects.all().exists()


def test_the_question_names_the_children_that_go_along(pages: Pages, acme: Company) -> None:
    """Before a soft and a permanent deletion, the page announces the actual result for parent and children."""
    mike = Person.objects.create(company=acme, name="Mike")
    for question in ("to the trash?", "This cannot be undone."):
        page = pages.get(f"{COMPANY}{acme.pk}/delete/")
        assert question in text_of(page)
        assert "These related objects are included:" in text_of(page)
        assert f'<a href="/admin/directory/person/{mike.pk}/change/">Mike</a>' in page.content.decode()
        pages.post(f"{COMPANY}{acme.pk}/delete/", {"post": "yes"})
        assert not Person.objects.filter(company=acme.pk).exists()
    assert not Person.all_objects.filter(company=acme.pk).exists()


def test_a_child_of_what_is_in_the_trash_is_not_restored(pages: Pages, acme: Company) -> None:
    """The child's page shows the error, which names the parent."""
    mike = Person.objects.create(company=acme, name="Mike")
    acme.delete()
    pages.post(f"directory/person/{mike.pk}/restore/")
    assert f"it belongs to directory.Company with pk '{acme.pk}'" in text_of(
        pages.get(f"directory/person/{mike.pk}/change/")
    )
    assert acme.restore()[0] == 2


def test_what_is_in_the_trash_can_only_be_looked_at(pages: Pages, acme: Company) -> None:
    """The page of a deleted company offers to restore it, and refuses to change it in plain words."""
    acme.delete()
    response = pages.get(f"{COMPANY}{acme.pk}/change/")
    assert "This company is in the trash." in text_of(response)
    assert f'formaction="/admin/{COMPANY}{acme.pk}/restore/"' in response.content.decode()
    assert 'name="name"' not in response.content.decode()

    response = pages.post(f"{COMPANY}{acme.pk}/change/", {"name": "Other", **NO_INLINES})
    assert response.headers["Location"] == f"/admin/{COMPANY}{acme.pk}/change/"
    assert "to the trash in the meantime. Nothing was saved" in text_of(pages.get(""))
    assert Company.deleted_objects.get(pk=acme.pk).name == "Acme"


def test_deleting_from_the_trash_is_for_good(pages: Pages, acme: Company) -> None:
    """The page warns that this deletion is final, and sends one DeleteItem."""
    acme.delete()
    page = text_of(pages.get(f"{COMPANY}{acme.pk}/delete/"))
    assert "permanently delete the company “Acme”? This cannot be undone." in page
    children = ["Query"]
    sends = ["GetItem", *children, *children, "DeleteItem", *children, "PutItem"]
    pages.post(f"{COMPANY}{acme.pk}/delete/", {"post": "yes"}, sends=sends)
    assert not Company.all_objects.filter(pk=acme.pk).exists()
    page = text_of(pages.get(COMPANY))
    assert "The company “Acme” was deleted successfully." in page
    assert "moved to the trash" not in page


def test_restoring_takes_a_post(pages: Pages, acme: Company) -> None:
    """A link alone restores nothing."""
    acme.delete()
    assert pages.get(f"{COMPANY}{acme.pk}/restore/").status_code == 405
    assert not Company.objects.all().exists()


def test_actions_move_to_the_trash_restore_and_delete_for_good(pages: Pages) -> None:
    """A single request reads the selected objects of an action, and each object and its log entry are written."""
    pks = [Company.objects.create(name=name).pk for name in ("Acme", "Bolt")]
    data = {"action": "delete_selected", "_selected_action": pks}
    children = ["Query"]
    page = text_of(pages.post(COMPANY, data, sends=["BatchGetItem", *children, *children]))
    assert "Move 2 companies to the trash?" in page
    writes = [*(*children, "UpdateItem", *children), *(*children, "UpdateItem", *children), "PutItem", "PutItem"]
    pages.post(COMPANY, {**data, "post": "yes"}, sends=["BatchGetItem", *children, *children, *writes])
    assert Company.deleted_objects.count() == 2
    assert "Moved 2 companies to the trash." in text_of(pages.get(COMPANY))

    writes = [*children, "UpdateItem", *children, "PutItem", *children, "UpdateItem", *children, "PutItem"]
    data = {"action": "restore_selected", "_selected_action": pks}
    pages.post(f"{COMPANY}?trash=yes", data, sends=["BatchGetItem", *writes])
    assert Company.objects.count() == 2

    for company in Company.objects.all():
        company.delete()
    data = {"action": "delete_selected", "_selected_action": pks}
    assert "This cannot be undone." in text_of(pages.post(f"{COMPANY}?trash=yes", data))
    writes = [*children, "DeleteItem", *children, *children, "DeleteItem", *children, "PutItem", "PutItem"]
    sends = ["BatchGetItem", *children, *children, *writes]
    pages.post(f"{COMPANY}?trash=yes", {**data, "post": "yes"}, sends=sends)
    assert Company.all_objects.filter(pk__in=pks).count() == 0
    assert "Successfully deleted 2 companies." in text_of(pages.get(COMPANY))


def test_a_reference_is_searched_and_checked_with_bounded_requests(pages: Pages, acme: Company) -> None:
    """A Query finds the company of a person, and a transaction adds a person with it."""
    Company.objects.create(name="Bolt")
    pages.get("directory/person/add/", sends=[])
    query = "app_label=directory&model_name=person&field_name=company&term=Ac"
    found = pages.get(f"autocomplete/?{query}", sends=["Query"]).json()
    assert found == {"results": [{"id": acme.pk, "text": "Acme"}], "pagination": {"more": False}}

    data = {"company": acme.pk, "name": "Mike", "email": "mike@example.com", "role": "member"}
    # The form reads the company, and validation reads the claim of the address.
    sends = ["GetItem", "GetItem", "TransactWriteItems"]
    pages.post("directory/person/add/", data, sends=sends)
    (mike,) = Person.objects.filter(company=acme)
    page = text_of(pages.get(f"directory/person/{mike.pk}/change/", sends=["GetItem", "GetItem"]))
    assert "Company: Acme" in page
    assert mike.person_id in page


def test_what_makes_up_the_key_is_shown_and_not_changed(pages: Pages, acme: Company) -> None:
    """You can choose a person's company only when you add the person."""
    mike = Person.objects.create(company=acme, name="Mike")
    response = pages.get(f"directory/person/{mike.pk}/change/")
    assert 'name="company"' not in response.content.decode()
    assert 'name="company"' in pages.get("directory/person/add/").content.decode()
    data = {"company": "company-2", "person_id": "person-2", "name": "Mike", "email": "", "role": "founder"}
    pages.post(f"directory/person/{mike.pk}/change/", data, sends=["GetItem", "TransactWriteItems"])
    (stored,) = Person.objects.filter(company=acme)
    assert (stored.pk, stored.role) == (mike.pk, "founder")


def test_inlines_add_change_and_delete_children(pages: Pages, acme: Company) -> None:
    """A company's page reads its people with one Query and writes each of them that changed."""
    mike = Person.objects.create(company=acme, name="Mike")
    nora = Person.objects.create(company=acme, name="Nora")
    rows = {}
    for number, (pk, name) in enumerate([(mike.pk, "Michael"), (nora.pk, "Nora"), ("", "Olga")]):
        row = {"identity": pk, "company": acme.pk, "name": name, "email": "", "role": "member"}
        rows |= {f"person_set-{number}-{field}": value for field, value in row.items()}
    order = [person.pk for person in Person.objects.filter(company=acme)].index(nora.pk)
    if order == 0:  # children come in the order of their identifiers
        for field in ("identity", "name"):
            first, second = f"person_set-0-{field}", f"person_set-1-{field}"
            rows[first], rows[second] = rows[second], rows[first]
    rows |= {"person_set-TOTAL_FORMS": "3", "person_set-INITIAL_FORMS": "2", f"person_set-{order}-DELETE": "on"}
    data = {"name": "Acme", "stock": "ACM", "founded": "", **NO_INLINES, **rows}
    response = pages.post(f"{COMPANY}{acme.pk}/change/", data)
    assert response.status_code == 302, text_of(response)
    assert sorted(person.name for person in Person.objects.filter(company=acme)) == ["Michael", "Olga"]
    assert [person.name for person in Person.deleted_objects.all()] == ["Nora"]


def test_every_page_of_the_demo_opens(pages: Pages, acme: Company) -> None:
    """List, add, change, delete and history open for each model of the demo."""
    objects = [acme, Person.objects.create(company=acme, name="Mike"), Office.objects.create(company=acme, city="Rome")]
    for obj in objects:
        base = f"directory/{obj._meta.model_name}/"
        for page in ("", "add/", f"{obj.pk}/change/", f"{obj.pk}/delete/", f"{obj.pk}/history/"):
            assert pages.get(base + page).status_code == 200, base + page
    assert pages.get("directory/").status_code == 200


def test_a_page_of_nothing_leads_to_the_index(pages: Pages) -> None:
    """A missing object is reported as missing, as in Django."""
    response = pages.get(f"{COMPANY}company-0/change/", sends=["GetItem"])
    assert response.headers["Location"] == "/admin/"
    assert pages.post(f"{COMPANY}company-0/restore/").headers["Location"] == "/admin/"
