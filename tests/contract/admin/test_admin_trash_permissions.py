"""The admin's trash has separate permissions for restoring and for permanent deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from project.directory.models import Company, Person
from tests.contract.conftest import Pages, text_of

COMPANY = "directory/company/"
TRASH = f"{COMPANY}?trash=yes"
Staff = Callable[..., Pages]


def in_trash(name: str = "Acme") -> Company:
    """A company in the trash."""
    company = Company.objects.create(name=name)
    company.delete()
    return company


def offered(pages: Pages, company: Company) -> set[str]:
    """The buttons on the company's page and the actions of the trash's list."""
    page = pages.get(f"{COMPANY}{company.pk}/change/").content.decode()
    listing = pages.get(TRASH).content.decode()
    buttons = {name for name in ("restore", "delete") if f"/{company.pk}/{name}/" in page}
    return buttons | {name for name in ("restore_selected", "delete_selected") if f'value="{name}"' in listing}


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        (["add", "change", "delete", "view"], set()),
        (["view", "restore"], {"restore", "restore_selected"}),
        (["view", "hard_delete"], {"delete", "delete_selected"}),
        (["change", "restore", "hard_delete"], {"restore", "restore_selected", "delete", "delete_selected"}),
    ],
)
def test_the_pages_offer_what_is_allowed(staff: Staff, permissions: list[str], expected: set[str]) -> None:
    """The pages show a button or an action only to permitted users."""
    company = in_trash()
    assert offered(staff(*(f"directory.{name}_company" for name in permissions)), company) == expected


def test_a_superuser_is_offered_everything(pages: Pages) -> None:
    """Superusers see all buttons and actions."""
    assert offered(pages, in_trash()) == {"restore", "restore_selected", "delete", "delete_selected"}


@pytest.mark.parametrize("permission", ["restore", "hard_delete", "other"])
def test_the_views_refuse_what_is_not_allowed(staff: Staff, permission: str) -> None:
    """The submission of a hidden form returns status 403 and does not do anything."""
    company = in_trash()
    others = {"add", "change", "delete", "view"}
    pages = staff(*(f"directory.{name}_company" for name in {*others, permission} - {"other"}))
    page = f"{COMPANY}{company.pk}/"
    may_delete, may_restore = permission == "hard_delete", permission == "restore"
    assert pages.get(f"{page}delete/").status_code == (200 if may_delete else 403)
    if not may_delete:
        assert pages.post(f"{page}delete/", {"post": "yes"}).status_code == 403
        assert Company.all_objects.filter(pk=company.pk).exists()
    answer = pages.post(f"{page}restore/")
    assert answer.status_code == (302 if may_restore else 403)
    assert Company.objects.filter(pk=company.pk).exists() == may_restore


@pytest.mark.parametrize("action", ["restore_selected", "delete_selected"])
def test_an_action_that_is_not_allowed_does_nothing(staff: Staff, action: str) -> None:
    """The server checks submitted actions, in the trash and outside."""
    company = in_trash()
    pages = staff(*(f"directory.{name}_company" for name in ("add", "change", "delete", "view")))
    data = {"action": action, "_selected_action": company.pk, "post": "yes", "index": "0", "select_across": "0"}
    for path in (TRASH, COMPANY):
        pages.post(path, data)
    assert [each.pk for each in Company.deleted_objects.all()] == [company.pk]


@pytest.mark.parametrize(
    ("action", "permission", "live", "deleted"),
    [("restore_selected", "restore", 1, 0), ("delete_selected", "hard_delete", 0, 0)],
)
def test_an_allowed_action_works_without_the_permission_to_delete(
    staff: Staff, action: str, permission: str, live: int, deleted: int
) -> None:
    """The permissions of the trash stand alone."""
    company = in_trash()
    pages = staff("directory.view_company", f"directory.{permission}_company")
    data = {"action": action, "_selected_action": company.pk, "post": "yes"}
    assert pages.post(TRASH, data).status_code == 302
    assert (Company.objects.count(), Company.deleted_objects.count()) == (live, deleted)


def test_moving_to_the_trash_takes_the_permission_to_delete_only(staff: Staff) -> None:
    """Moving an object to the trash requires Django's delete permission."""
    company = Company.objects.create(name="Acme")
    pages = staff("directory.view_company", "directory.delete_company")
    assert pages.post(f"{COMPANY}{company.pk}/delete/", {"post": "yes"}).status_code == 302
    assert Company.deleted_objects.filter(pk=company.pk).exists()


def test_the_page_of_an_object_in_the_trash_says_who_deleted_it_and_what_comes_back(pages: Pages) -> None:
    """The page lists only the children that were deleted with the object; it omits earlier deletions."""
    company = Company.objects.create(company_id="acme", name="Acme")
    for name in ("Anna", "Bert"):
        Person.objects.create(company=company, person_id=name.lower(), name=name)
    Person.objects.get(company_id="acme", person_id="bert").delete()
    pages.post("directory/company/acme/delete/", {"post": "yes"})
    shown = text_of(pages.get("directory/company/acme/change/"))
    assert "Deleted by admin on" in shown
    assert "Person: Anna" in shown
    assert "Bert" not in shown


def test_hidden_children_are_left_out(staff: Any) -> None:
    """The page does not show them as restorable."""
    company = Company.objects.create(company_id="acme", name="Acme")
    Person.objects.create(company=company, person_id="anna", name="Anna")
    company.delete()
    shown = text_of(staff("directory.view_company").get("directory/company/acme/change/"))
    assert "Anna" not in shown
    assert "What restoring brings back" not in shown


def test_the_page_of_a_live_object_has_nothing_of_a_deletion(pages: Pages) -> None:
    """Only objects in the trash show the deletion and its time limit."""
    Company.objects.create(company_id="acme", name="Acme")
    shown = text_of(pages.get("directory/company/acme/change/"))
    assert "Name" in shown
    assert "Deleted" not in shown
