"""A scan of a large list for unsupported queries: in steps, within a limit, for users who may view the list."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.admin.lists import stepwise
from dynamo_single.testing import assert_requests
from project.directory.models import Company, Person
from tests.catalog.models import Firm
from tests.contract.conftest import SIGNED_IN, Pages, link, shown, text_of
from tests.deep import deep

COMPANY = "directory/company/"
PERSON = "directory/person/"


class CompanyAdmin(DynamoModelAdmin):
    """Few rows are many here, and steps are short."""

    list_display = ("name", "stock")
    list_filter = ("public",)
    search_fields = ("name", "stock")
    list_max_in_memory = 4


class PersonAdmin(DynamoModelAdmin):
    """People with their companies."""

    list_display = ("name", "company")
    list_filter = ("company", "role")
    search_fields = ("name",)
    list_max_in_memory = 1


class FirmAdmin(DynamoModelAdmin):
    """A model that no key lists."""

    list_display = ("name",)


site = DynamoAdminSite()
site.register(Company, CompanyAdmin)
site.register(Person, PersonAdmin)
site.register(Firm, FirmAdmin)
all_sites.discard(site)
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def large(catalog: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Return ten companies with every third one matching; a step reads four."""
    monkeypatch.setattr(stepwise, "_CHUNK", 4)
    for number in range(10):
        Company.objects.create(name=f"{number} {'the Zeta' if number % 3 == 0 else 'Acme'}", public=number % 2 == 0)
    return catalog


def offered(response: Any) -> str:
    """Return the URL of the first step."""
    (found,) = re.findall(r'<a href="([^"]*)">Search all', response.content.decode())
    return found.replace("&amp;", "&")


@pytest.mark.parametrize("address", ["?public__exact=1&o=2", "?q=the&public__exact=1", "?q=zeta"])
def test_unsupported_list_shows_first_step(large: Pages, address: str) -> None:
    """An address without a position reads one step, shows its cost, and waits for a click."""
    page = large.get(f"{COMPANY}{address}")
    assert page.status_code == 200
    assert "Searched 4 of up to 100000 items" in text_of(page)
    assert "1 requests, 0.5 units." in text_of(page)
    assert "data-goes-on" not in page.content.decode()


def test_link_of_large_list_continues_by_itself(large: Pages) -> None:
    """A choice of a filter leads to a scan that continues: its address contains a signed position."""
    (choice,) = re.findall(r'<a href="([^"]*)">Yes</a>', large.get(COMPANY).content.decode())
    page = large.get(COMPANY + choice.replace("&amp;", "&"))
    assert shown(page) == ["0 the Zeta", "2 Acme"]
    assert "data-goes-on" in page.content.decode()


def test_search_form_of_large_list_continues_by_itself(large: Pages) -> None:
    """The form of the search contains a signed position too."""
    (place,) = re.findall(r'<input type="hidden" name="scan" value="([^"]*)">', large.get(COMPANY).content.decode())
    page = large.get(f"{COMPANY}?q=zeta&scan={place}")
    assert shown(page) == ["0 the Zeta", "3 the Zeta"]
    assert "data-goes-on" in page.content.decode()


def test_supported_link_is_not_scanned(large: Pages) -> None:
    """A position in a link does not matter if keys support the list."""
    (place,) = re.findall(r'<input type="hidden" name="scan" value="([^"]*)">', large.get(COMPANY).content.decode())
    page = large.get(f"{COMPANY}?q=0&scan={place}")
    assert shown(page) == ["0 the Zeta"]
    assert "Searched" not in text_of(page)


def test_small_list_offers_no_scan(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its links contain what Django's do."""
    monkeypatch.setattr(CompanyAdmin, "list_max_in_memory", 100)
    assert "scan=" not in large.get(COMPANY).content.decode()


@pytest.mark.parametrize("header", ["Sec-Purpose", "Purpose"])
def test_step_fetched_in_advance_reads_nothing(large: Pages, header: str) -> None:
    """The browser discards the response and requests the step again for a click."""
    begin = offered(large.get(f"{COMPANY}?q=0"))
    with assert_requests(SIGNED_IN):
        page = large.client.get(f"/admin/{COMPANY}{begin}", headers={header: "prefetch;prerender"})
    assert page.status_code == 503


def test_edited_row_leads_back_without_position(large: Pages) -> None:
    """The list that a form returns to does not begin the scan again."""
    page = large.get(COMPANY + offered(large.get(f"{COMPANY}?q=0")))
    (row,) = re.findall(r'href="(/admin/directory/company/[^"]*/change/[^"]*)"', page.content.decode())
    assert row.endswith("?_changelist_filters=q%3D0")


def test_found_rows_belong_to_user_and_search(large: Pages, staff: Any) -> None:
    """The browser keeps found rows under a name that another user or search does not have."""
    others = staff("directory.view_company")
    pages = [(large, "?q=zeta"), (others, "?q=zeta"), (large, "?q=acme")]
    owners = [re.search(r'data-owner="(\w+)"', each.get(COMPANY + q).content.decode())[1] for each, q in pages]
    assert len({*owners}) == 3


def test_steps_go_on_to_the_end(large: Pages) -> None:
    """Each step starts at the end of the last one, the last step reports the end, and the total is counted."""
    found, address = [], f"{COMPANY}?q=zeta&scan="
    for _step in range(2):
        response = large.get(address, sends=["Query"])
        found += shown(response)
        address = COMPANY + link(response, "next")
    last = large.get(address, sends=["Query"])
    assert [*found, *shown(last)] == ["0 the Zeta", "3 the Zeta", "6 the Zeta", "9 the Zeta"]
    assert "Searched 10 of" in text_of(last)
    assert "found 4 companies" in text_of(last)
    assert "All items were searched." in text_of(last)
    assert 'rel="next"' not in last.content.decode()


def test_the_budget_ends_it(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page does not offer further steps."""
    monkeypatch.setattr(CompanyAdmin, "list_scan_budget", 6)
    first = large.get(f"{COMPANY}?q=zeta&scan=")
    second = large.get(COMPANY + link(first, "next"))
    assert "The limit is reached." in text_of(second)
    assert 'rel="next"' not in second.content.decode()


def test_without_a_budget_nothing_is_offered_or_read(large: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typed URL does not start a scan either."""
    monkeypatch.setattr(CompanyAdmin, "list_scan_budget", 0)
    assert large.get(f"{COMPANY}?public__exact=1").status_code == 400
    assert "Search all" not in text_of(large.get(f"{COMPANY}?public__exact=1"))
    assert large.get(f"{COMPANY}?public__exact=1&scan=").status_code == 400


def test_what_keys_found_of_a_search_may_not_be_all(large: Pages) -> None:
    """The page shows results that start with the text, and offers a scan."""
    response = large.get(f"{COMPANY}?q=0")
    assert shown(response) == ["0 the Zeta"]
    assert shown(large.get(COMPANY + offered(response))) == ["0 the Zeta"]


def test_a_filter_that_a_key_answers_narrows_what_is_read(large: Pages) -> None:
    """The scan reads only the people of one company, and the company once for all rows."""
    for company in Company.objects.all()[:2]:
        for number in range(3):
            Person.objects.create(company=company, name=f"The {number}")
    company = Company.objects.all()[0]
    found = large.get(
        f"{PERSON}?company__company_id__exact={company.pk}&q=the&scan=", sends=["Query", "Query", "GetItem"]
    )
    assert len(shown(found)) == 3
    assert "Searched 3 of" in text_of(found)


def test_a_model_that_no_key_lists_is_found_in_the_table(large: Pages) -> None:
    """Its page offers that, and the items of all models count."""
    Firm.objects.create(firm_id="f1", name="Acme", stock="A")
    refused = large.get("catalog/firm/")
    assert "firms cannot be listed" in text_of(refused)
    address, found = "catalog/firm/" + offered(refused), []
    for _step in range(20):
        response = large.get(address)
        found += shown(response)
        if 'rel="next"' not in response.content.decode():
            break
        address = "catalog/firm/" + link(response, "next")
    assert found == ["Acme"]


@pytest.mark.parametrize("place", ["x", "é", "\x00", "WyJ4IiwwLDAsMCwwXQ:x:y", "x" * 5000])
def test_invalid_position_leads_to_first_step(large: Pages, place: str) -> None:
    """The page keeps the search, and waits for a click."""
    page = large.client.get(f"/admin/{COMPANY}", {"q": "zeta", "scan": place})
    assert page.headers["Location"] == f"/admin/{COMPANY}?q=zeta"


def test_position_of_another_list_leads_to_first_step(large: Pages) -> None:
    """The page does not read another model there."""
    place = link(large.get(f"{COMPANY}?q=zeta&scan="), "next").partition("scan=")[2]
    page = large.get(f"{PERSON}?q=zeta&scan={place}")
    assert page.headers["Location"] == f"/admin/{PERSON}?q=zeta"


def test_position_of_another_user_leads_to_first_step(large: Pages, staff: Any) -> None:
    """Only the user who began a scan continues it; others begin by a click."""
    place = link(large.get(f"{COMPANY}?q=zeta&scan="), "next")
    page = staff("directory.view_company").get(COMPANY + place)
    assert page.headers["Location"] == f"/admin/{COMPANY}?q=zeta"


def test_what_the_page_offers_goes_on_by_itself(large: Pages) -> None:
    """The start position is also signed for the user."""
    begin = offered(large.get(f"{COMPANY}?q=0"))
    assert "data-goes-on" in large.get(COMPANY + begin).content.decode()


def test_what_another_site_links_to_is_one_step(large: Pages) -> None:
    """The step costs as much as any page of the list, and the next step needs a click."""
    page = large.get(f"{COMPANY}?q=zeta&scan=", sends=["Query"]).content.decode()
    assert "data-goes-on" not in page


def test_first_position_of_another_user_does_not_continue(large: Pages, staff: Any) -> None:
    """A user's own link is of no use to make another user's page read on."""
    begin = offered(staff("directory.view_company").get(f"{COMPANY}?q=0"))
    assert large.get(COMPANY + begin).headers["Location"] == f"/admin/{COMPANY}?q=0"


def test_a_step_stores_nothing(large: Pages) -> None:
    """The scan has no stored state: you can close the page and start again."""
    second = COMPANY + link(large.get(f"{COMPANY}?q=zeta&scan="), "next")
    first_time = shown(large.get(second, sends=["Query"]))
    assert shown(large.get(second, sends=["Query"])) == first_time


@pytest.mark.parametrize(("permission", "status"), [("directory.view_company", 200), ("directory.view_person", 403)])
def test_who_may_see_the_list_may_look_through_it(large: Pages, staff: Any, permission: str, status: int) -> None:
    """Other users cannot read anything."""
    assert staff(permission).get(f"{COMPANY}?q=zeta&scan=").status_code == status


def test_what_was_found_is_acted_on(large: Pages) -> None:
    """The key of a row in a step identifies it."""
    zeta = Company.objects.get(name="3 the Zeta")
    data = {"action": "delete_selected", "_selected_action": [zeta.pk], "post": "yes"}
    assert large.post(f"{COMPANY}?q=zeta&scan=", data).status_code == 302
    assert not Company.objects.filter(pk=zeta.pk).exists()


@deep
def test_hundred_thousand_rows_show_first_matches_soon(catalog: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches after 4,500 rows are shown within two seconds, and the scan ends."""
    monkeypatch.setattr(CompanyAdmin, "list_max_in_memory", None)
    monkeypatch.setattr(CompanyAdmin, "list_scan_budget", 200_000)
    wanted = range(4500, 100_000, 50)
    Company.objects.bulk_create(Company(name=f"{number:06}", public=number in wanted) for number in range(100_000))
    begun, address, found, first = time.monotonic(), f"{COMPANY}?public__exact=1&scan=", 0, 0.0
    while address:
        page = catalog.get(address)
        found += len(shown(page))
        first = first or (found and time.monotonic() - begun)
        further = 'rel="next"' in page.content.decode()
        address = COMPANY + link(page, "next") if further else ""
    assert found == len(wanted)
    assert "All items were searched." in text_of(page)
    assert first < 2
