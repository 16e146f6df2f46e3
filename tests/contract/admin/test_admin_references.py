"""References in the admin: what their fields choose from, how many requests a list sends for them, and addresses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q
from django.test import RequestFactory
from django.urls import path

from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, references
from project.directory.models import Company, Office, Person
from tests.catalog.models import Employee, Firm, Sample
from tests.contract.conftest import Pages

EMPLOYEE = "catalog/employee/"
SAMPLE = "catalog/sample/"

site = DynamoAdminSite()
site.register(Employee, type("EmployeeAdmin", (DynamoModelAdmin,), {}))
site.register(Firm, type("FirmAdmin", (DynamoModelAdmin,), {"search_fields": ("name",)}))
site.register(Sample, type("SampleAdmin", (DynamoModelAdmin,), {"list_display": ("text", "parent")}))
all_sites.discard(site)  # checks inspect all models, and report an error for this one
urlpatterns = [path("admin/", site.urls)]


@pytest.mark.parametrize("chosen_by", ["autocomplete_fields", "raw_id_fields", "list_display"])
def test_where_no_key_lists_what_to_choose_from_the_key_is_typed(
    catalog: Pages, monkeypatch: pytest.MonkeyPatch, chosen_by: str
) -> None:
    """The add page does not send requests, even if its admin sets a different widget."""
    monkeypatch.setattr(type(site.get_model_admin(Employee)), chosen_by, ("firm",))
    page = catalog.get(f"{EMPLOYEE}add/", sends=[]).content.decode()
    assert '<input type="text" name="firm" class="vTextField"' in page
    assert "The key of the firm." in page


def test_a_typed_key_is_looked_up(catalog: Pages) -> None:
    """The key's object is saved: one GetItem for the field, and one for the validation."""
    Firm.objects.create(firm_id="f1", name="Acme", stock="A")
    sent = {"firm": "f1", "employee_id": "e1", "name": "Mike"}
    assert catalog.post(f"{EMPLOYEE}add/", sent).status_code == 302
    assert Employee.objects.get(employee_id="e1").firm_id == "f1"


@pytest.mark.parametrize("key", ["f2", "\x00", "x" * 5000, "ü"])
def test_a_key_that_nothing_has_is_the_fields_error(catalog: Pages, key: str) -> None:
    """The form reports the missing object, and does not write anything."""
    response = catalog.post(f"{EMPLOYEE}add/", {"firm": key, "employee_id": "e1"})
    assert response.status_code == 200
    assert list(response.context_data["adminform"].form.errors) == ["firm"]
    assert not Employee.objects.filter(employee_id="e1").exists()


def test_reference_has_search_by_default(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key must find the objects by the beginning of a string; the page does not read them."""
    company = Company.objects.create(name="Acme")
    monkeypatch.delattr(type(admin.site.get_model_admin(Office)), "autocomplete_fields")
    page = pages.get("directory/office/add/", sends=[]).content.decode()
    assert re.search(r'<select name="company"[^>]* class="admin-autocomplete"', page)
    found = pages.get("autocomplete/?app_label=directory&model_name=office&field_name=company&term=Ac").json()
    assert found["results"] == [{"id": company.pk, "text": "Acme"}]


@pytest.mark.parametrize("fields", [("=name",), ("stock",), ()])
def test_reference_without_key_for_search_has_select(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, fields: tuple[str, ...]
) -> None:
    """A search by a complete text, or by no key, would not find an object while a user types."""
    monkeypatch.delattr(type(admin.site.get_model_admin(Office)), "autocomplete_fields")
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "search_fields", fields)
    assert "admin-autocomplete" not in pages.get("directory/office/add/", sends=["Query"]).content.decode()


def test_reference_to_hidden_objects_has_no_search(staff: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address would refuse a user who may not view them."""
    monkeypatch.delattr(type(admin.site.get_model_admin(Office)), "autocomplete_fields")
    page = staff("directory.add_office").get("directory/office/add/").content.decode()
    assert "admin-autocomplete" not in page


def test_objects_to_choose_from_come_in_a_keys_order_if_none_has_their_admins(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A select ignores an order that no key supports, and takes one Query."""
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "ordering", ("stock",))
    monkeypatch.setattr(type(admin.site.get_model_admin(Office)), "autocomplete_fields", ())
    for name in ("Bolt", "Acme"):
        Company.objects.create(name=name, stock=name[::-1])
    page = pages.get("directory/office/add/", sends=["Query"]).content.decode()
    assert page.index(">Acme</option>") < page.index(">Bolt</option>")


def test_of_too_many_objects_the_key_is_typed(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A select reads objects up to a limit; the form looks up a typed key like a chosen object."""
    monkeypatch.setattr(references, "MAX_CHOICES", 2)
    monkeypatch.setattr(type(admin.site.get_model_admin(Office)), "autocomplete_fields", ())
    companies = [Company.objects.create(name=name) for name in "AB"]
    page = pages.get("directory/office/add/", sends=["Query"]).content.decode()
    (select,) = re.findall(r'<select name="company".*?</select>', page, flags=re.DOTALL)
    assert select.count("<option") == 3
    companies.append(Company.objects.create(name="C"))
    page = pages.get("directory/office/add/", sends=["Query"]).content.decode()
    assert '<input type="text" name="company" class="vTextField"' in page
    sent = {"company": companies[2].pk, "city": "Rome", "address": "", "opened": ""}
    assert pages.post("directory/office/add/", sent).status_code == 302
    assert Office.objects.get(city="Rome").company_id == companies[2].pk


@pytest.mark.parametrize("select_related", [False, True, ("parent",)])
def test_references_that_may_be_empty_are_read_together(
    catalog: Pages, monkeypatch: pytest.MonkeyPatch, select_related: Any
) -> None:
    """A column of references, some of them empty, is one BatchGetItem."""
    monkeypatch.setattr(type(site.get_model_admin(Sample)), "list_select_related", select_related)
    one, two = (Sample.objects.create(text=text) for text in "ab")
    for parent in (one, two, None):
        Sample.objects.create(text="child", parent=parent)
    catalog.get(SAMPLE, sends=["Query", "BatchGetItem"])


def test_rows_of_inlines_have_an_address_of_their_own(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link next to a row contains its content type and key, as in Django."""
    monkeypatch.setattr(Person, "get_absolute_url", lambda self: f"/people/{self.name}/", raising=False)
    acme = Company.objects.create(name="Acme")
    mike = Person.objects.create(company=acme, name="mike")
    address = f"/admin/r/{ContentType.objects.get_for_model(Person).pk}/{mike.pk}/"
    assert f'href="{address}"' in pages.get(f"directory/company/{acme.pk}/change/").content.decode()


def test_a_search_without_a_key_finds_what_has_the_key_that_is_typed(catalog: Pages) -> None:
    """No key lists firms: the search sends one GetItem, or no request without a text."""
    Firm.objects.create(firm_id="acme", name="Acme", stock="ACM")
    asked = "autocomplete/?app_label=catalog&model_name=employee&field_name=firm&term="
    found = catalog.get(f"{asked}acme", sends=["GetItem"]).json()
    assert found == {"results": [{"id": "acme", "text": "Firm object (acme)"}], "pagination": {"more": False}}
    assert catalog.get(f"{asked}nobody").json()["results"] == []
    assert catalog.get(asked, sends=[]).json()["results"] == []


def test_a_search_by_key_asks_for_the_same_permission(catalog: Pages, staff: Any) -> None:
    """A user without view permission does not find firms."""
    Firm.objects.create(firm_id="acme", name="Acme", stock="ACM")
    asked = "autocomplete/?app_label=catalog&model_name=employee&field_name=firm&term=acme"
    assert staff("catalog.add_employee").get(asked).status_code == 403


@pytest.mark.parametrize("limit", [{"name__startswith": "A"}, lambda: Q(name__in=["Acme", "Axel"])])
def test_choices_of_a_reference_may_be_limited(pages: Pages, monkeypatch: pytest.MonkeyPatch, limit: Any) -> None:
    """``limit_choices_to``: a form offers and takes no others."""
    monkeypatch.setattr(Office._meta.get_field("company").remote_field, "limit_choices_to", limit)
    monkeypatch.setattr(type(admin.site.get_model_admin(Office)), "autocomplete_fields", ())
    acme, bolt = (Company.objects.create(name=name) for name in ("Acme", "Bolt"))
    page = pages.get("directory/office/add/").content.decode()
    assert re.findall(r"<option[^>]*>(Acme|Bolt)</option>", page) == ["Acme"]
    sent = {"city": "Rome", "address": "", "opened": ""}
    refused = pages.post("directory/office/add/", {**sent, "company": bolt.pk})
    assert list(refused.context_data["adminform"].form.errors) == ["company"]
    assert pages.post("directory/office/add/", {**sent, "company": acme.pk}).status_code == 302


def test_a_limit_of_choices_is_declared_as_in_django() -> None:
    reference = models.ReferenceAttribute(Company, on_delete=models.CASCADE, limit_choices_to={"name": "A"})
    assert reference.make_field().remote_field.limit_choices_to == {"name": "A"}


@pytest.mark.parametrize(("limit", "found"), [(2000, ["Big Acme"]), (1, [])])
def test_a_search_in_a_view_of_a_package_finds_words_up_to_the_bound(
    pages: Pages, rf: RequestFactory, monkeypatch: pytest.MonkeyPatch, limit: int, found: list[str]
) -> None:
    """Such as Django's own autocomplete by another address; above the bound keys find the beginning of a text."""
    own = admin.site.get_model_admin(Company)
    monkeypatch.setattr(own, "list_max_in_memory", limit)
    for name in ("Big Acme", "Bolt"):
        Company.objects.create(name=name)
    request = rf.get("/", {"term": "acme", "app_label": "directory", "model_name": "office", "field_name": "company"})
    request.user = pages.user
    answer = json.loads(AutocompleteJsonView.as_view(admin_site=admin.site)(request).content)
    assert [each["text"] for each in answer["results"]] == found
