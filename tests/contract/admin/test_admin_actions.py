"""Actions on an object's own page, which Django's admin has since 6.1."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin

from dynamo_single.exceptions import InvalidValue
from project.directory.models import Company
from tests.contract.conftest import Pages

COMPANY = "directory/company/"

pytestmark = pytest.mark.skipif(
    not hasattr(admin, "ActionLocation"), reason="before 6.1 Django has actions on the list only"
)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names that the company's action received; it rejects a company called Bolt."""
    names: list[str] = []

    def note(modeladmin: Any, request: Any, queryset: Any) -> None:
        names.extend(company.name for company in queryset)
        if "Bolt" in names:
            raise InvalidValue("Bolt takes part in nothing.")

    note.locations = [admin.ActionLocation.CHANGE_FORM]  # type: ignore[attr-defined]  # what admin.action() sets
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "actions", [note])
    return names


def run(pages: Pages, company: Any) -> Any:
    """Choose the action on a company's page."""
    data = {"CHANGE_FORM-action": "note", "_selected_action": company.pk}
    return pages.post(f"{COMPANY}{company.pk}/change/", data)


def test_an_action_runs_on_an_objects_own_page(pages: Pages, done: list[str]) -> None:
    """The page offers the action, which receives only this object."""
    company = Company.objects.create(name="Acme")
    assert b"CHANGE_FORM-action" in pages.get(f"{COMPANY}{company.pk}/change/").content
    assert run(pages, company).status_code == 302
    assert done == ["Acme"]


def test_a_refused_action_is_a_message(pages: Pages, done: list[str]) -> None:
    """DynamoDB's error is shown, and the action is not retried."""
    company = Company.objects.create(name="Bolt")
    response = run(pages, company)
    assert response.status_code == 302
    assert b"Bolt takes part in nothing." in pages.client.get(response.url).content
    assert done == ["Bolt"]


def test_an_object_in_the_trash_has_no_actions(pages: Pages, done: list[str]) -> None:
    """Its page offers none: Django would look for it among the live ones."""
    company = Company.objects.create(name="Acme")
    company.delete()
    page = pages.get(f"{COMPANY}{company.pk}/change/")
    assert page.status_code == 200
    assert b"CHANGE_FORM-action" not in page.content
