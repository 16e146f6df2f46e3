"""The admin's list page: its requests, orders and searches, and its explanation of unsupported parts."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.sites import AdminSite
from django.test import RequestFactory

from dynamo_single.admin import DynamoModelAdmin
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Coupon
from tests.contract.conftest import Pages, shown, text_of

COMPANY = "directory/company/"
PERSON = "directory/person/"
#: The button next to the actions; Django renamed it in the release with actions on an object's page.
RUN = "Run" if hasattr(admin, "ActionLocation") else "Go"


@pytest.fixture
def paged(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Five companies, two on a page."""
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "list_per_page", 2)
    for name in "EBDAC":
        Company.objects.create(name=name, stock=f"X{name}")
    return pages


def test_a_short_list_is_one_query(pages: Pages) -> None:
    """One Query reads a one-page list in the order of its key, and provides its count."""
    for name in ("Bolt", "Acme"):
        Company.objects.create(name=name)
    response = pages.get(COMPANY, sends=["Query"])
    assert shown(response) == ["Acme", "Bolt"]
    assert "2 companies" in text_of(response)


@pytest.mark.parametrize(
    ("page", "names", "sends"),
    [
        ("", ["A", "B"], ["Query", "Query"]),
        ("?p=2", ["C", "D"], ["Query", "Query"]),
        ("?p=3", ["E"], ["Query"]),
        ("?all=", ["A", "B", "C", "D", "E"], ["Query", "Query", "Query"]),
    ],
)
def test_pages(paged: Pages, page: str, names: list[str], sends: list[str]) -> None:
    """A page takes one Query and another one for the count, which the last page does not need."""
    response = paged.get(f"{COMPANY}{page}", sends=sends)
    assert shown(response) == names
    assert "5 companies" in text_of(response)


@pytest.mark.parametrize("page", ["?p=4", "?p=0", "?p=-1"])
def test_a_page_that_is_not_there_leads_back(paged: Pages, page: str) -> None:
    """The response to a wrong page number is the same as Django's."""
    assert paged.get(f"{COMPANY}{page}").headers["Location"] == f"/admin/{COMPANY}?e=1"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("founded=soon", "founded must be a date, not str 'soon'"),
        ("nosuch=1", "Cannot resolve keyword 'nosuch' into field."),
        ("name__regex=a", "DynamoDB has no exact equivalent of the lookup 'regex'"),
        ("public__icontains=a", "public has the type BooleanAttribute, which is not a string"),
    ],
)
def test_bad_address_leads_back_to_list(pages: Pages, question: str, answer: str) -> None:
    """As in Django, the list shows a message; developers also see the problem with the URL."""
    response = pages.get(f"{COMPANY}?{question}", sends=[])
    assert response.headers["Location"] == f"/admin/{COMPANY}?e=1"
    page = text_of(pages.client.get(response.headers["Location"]))
    assert "The URL contains an invalid filter, order or search" in page
    assert answer in page


def test_only_developers_read_of_keys(staff: Any) -> None:
    """A user who may only view companies sees a text without keys."""
    client = staff("directory.view_company").client
    page = text_of(client.get(f"/admin/{COMPANY}?nosuch=1", follow=True))
    assert "The URL contains an invalid filter, order or search" in page
    assert "keyword" not in page


def test_bad_address_of_popup_stays_popup(pages: Pages) -> None:
    """The redirect keeps the parameters of a popup."""
    assert pages.get(f"{COMPANY}?nosuch=1&_popup=1").headers["Location"] == f"/admin/{COMPANY}?_popup=1&e=1"


def test_filters_and_references(pages: Pages) -> None:
    """A filter becomes the Query's filter expression; one batch reads the companies of a page."""
    acme, bolt = (Company.objects.create(name=name) for name in ("Acme", "Bolt"))
    Person.objects.create(company=acme, name="Mike", role="founder")
    Person.objects.create(company=bolt, name="Nora")
    response = pages.get(PERSON, sends=["Query", "BatchGetItem"])
    assert shown(response) == ["Mike", "Nora"]
    assert shown(pages.get(f"{PERSON}?role__exact=founder", sends=["Query", "GetItem"])) == ["Mike"]
    assert shown(pages.get(f"{PERSON}?company__exact={bolt.pk}", sends=["Query", "GetItem"])) == ["Nora"]


def test_the_trash_is_a_filter(pages: Pages) -> None:
    """The list shows live objects or, on request, the trash, each with one Query and separate actions."""
    Company.objects.create(name="Acme")
    Company.objects.create(name="Bolt").delete()
    live, deleted = pages.get(COMPANY, sends=["Query"]), pages.get(f"{COMPANY}?trash=yes", sends=["Query"])
    assert (shown(live), shown(deleted)) == (["Acme"], ["Bolt"])
    assert f"Delete selected companies {RUN}" in text_of(live)
    assert f"Restore selected companies Delete selected companies permanently {RUN}" in text_of(deleted)


def test_a_model_without_a_listing_is_explained(pages: Pages) -> None:
    """If every key of a model needs a value, the page names the missing key, and does not send requests."""
    request = RequestFactory().get("/")
    request.user = pages.user
    with assert_requests([]):
        response: Any = DynamoModelAdmin(Coupon, AdminSite()).changelist_view(request)
    assert response.status_code == 400
    assert "no key supports" in response.context_data["message"]


def test_list_editable_saves_rows(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list saves edited rows in their displayed order."""
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "list_editable", ("stock",))
    acme, bolt = (Company.objects.create(name=name) for name in ("Acme", "Bolt"))
    pages.get(COMPANY, sends=["Query"])
    data = {"form-TOTAL_FORMS": "2", "form-INITIAL_FORMS": "2", "_save": "Save"}
    for number, company in enumerate([acme, bolt]):
        data |= {f"form-{number}-company_id": company.pk, f"form-{number}-stock": f"S{number}"}
    assert pages.post(COMPANY, data).status_code == 302
    assert [company.stock for company in Company.objects.all()] == ["S0", "S1"]
