"""A project's usual admin code works: overridden methods, formsets, managers."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.sites import AdminSite
from django.core.exceptions import ValidationError
from django.forms import BaseModelFormSet
from django.test import RequestFactory

from dynamo_single.admin import DynamoModelAdmin, DynamoTabularInline
from project.directory.models import Company, Person
from tests.catalog.places import Place
from tests.contract.conftest import Pages, Registering, shown, text_of


class NoAcme(BaseModelFormSet):  # type: ignore[type-arg]  # not generic at run time
    """A formset without any knowledge of keys, as in Django's documentation."""

    def clean(self) -> None:
        """Refuse a name."""
        if any(form.cleaned_data.get("stock") == "BAD" for form in self.forms):
            raise ValidationError("No bad stock.")


def _with_formset(self: Any, request: Any, **kwargs: Any) -> Any:
    return DynamoModelAdmin.get_changelist_formset(self, request, formset=NoAcme, **kwargs)


EDITED = {"list_display": ("name", "stock"), "list_editable": ("stock",), "get_changelist_formset": _with_formset}


def test_a_list_is_edited_by_a_formset_of_the_projects_own(registered: Registering) -> None:
    """Its ``clean()`` runs, with the rows in the order of the list."""
    acme = Company.objects.create(name="Acme", stock="A")
    pages = registered(Company, **EDITED)
    assert shown(pages.get("directory/company/")) == ["Acme"]
    sent = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-company_id": acme.pk, "_save": "Save"}
    refused = pages.post("directory/company/", {**sent, "form-0-stock": "BAD"})
    assert "No bad stock." in text_of(refused)
    assert pages.post("directory/company/", {**sent, "form-0-stock": "B"}).status_code == 302
    acme.refresh_from_db()
    assert acme.stock == "B"


@pytest.mark.parametrize("held", [0, 2000])
def test_get_queryset_may_be_a_manager(registered: Registering, held: int) -> None:
    """The list, the object's page and its history use the manager's objects."""
    acme = Company.objects.create(name="Acme", stock="A")
    pages = registered(Company, get_queryset=lambda self, request: Company.objects, list_max_in_memory=held)
    assert pages.get("directory/company/").status_code == 200
    assert pages.get(f"directory/company/{acme.pk}/change/").status_code == 200
    assert pages.get(f"directory/company/{acme.pk}/history/").status_code == 200


@pytest.mark.parametrize("held", [0, 2000])
def test_a_column_may_be_the_other_side_of_a_one_to_one_relation(registered: Registering, held: int) -> None:
    """The column is shown, and cannot be sorted."""
    place = Place.objects.create(place_id="1", name="Harbour")
    pages = registered(Place, list_display=("name", "restaurant"), list_max_in_memory=held)
    page = pages.get("catalog/place/")
    assert page.status_code == 200
    assert shown(page) == [place.name]
    assert "sortable column-restaurant" not in page.content.decode()


@pytest.mark.parametrize("form", ["a text", object, object(), None])
def test_a_form_that_is_none_is_what_check_reports(form: Any) -> None:
    """The check has Django's message if the class could be created."""
    own = type("OwnAdmin", (DynamoModelAdmin,), {"form": form})
    assert [each.id for each in own(Company, AdminSite()).check()] == ["admin.E016"]


def test_the_list_outside_of_its_page_finds_what_the_page_finds(pages: Pages) -> None:
    """A custom view, such as an export, gets the rows from ``get_changelist_instance()``."""
    for name in ("Acme", "Bolt"):
        Company.objects.create(name=name, stock=f"X{name}")
    own = type("OwnAdmin", (DynamoModelAdmin,), {"search_fields": ("name", "stock"), "ordering": ("-stock",)})
    request = RequestFactory().get("/", {"q": "ol"})
    request.user = pages.user
    assert [each.name for each in own(Company, AdminSite()).get_changelist_instance(request).queryset] == ["Bolt"]


class PersonInline(DynamoTabularInline):
    """People of a company."""

    model = Person
    fields = ("name",)


def test_an_inline_is_asked_for_permission_as_often_as_by_django(
    registered: Registering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django calls the method twice to add an object; a custom method that reads is not called again."""
    asked: list[Any] = []

    def asks(self: Any, request: Any, obj: Any = None) -> bool:
        asked.append(obj)
        return True

    monkeypatch.setattr(PersonInline, "has_change_permission", asks)
    pages = registered(Company, inlines=(PersonInline,), fields=("name", "stock"))
    sent = {"name": "Acme", "stock": "A", "person_set-TOTAL_FORMS": "0", "person_set-INITIAL_FORMS": "0"}
    assert pages.post("directory/company/add/", sent).status_code == 302
    assert asked == [None, None]
