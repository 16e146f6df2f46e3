"""The admin with a strict content security policy: loaded resources, and the effects of clicks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin import site as admin_site
from django.test import override_settings
from playwright.sync_api import ConsoleMessage, Page, Route, expect

from dynamo_single.admin.lists import stepwise
from dynamo_single.table import Table, get_table
from dynamo_single.testing import unreachable
from project.directory.models import Company

#: The policy blocks inline scripts and styles, and resources from other sites.
STRICT = "default-src 'self'; img-src 'self' data:"
#: The browser's message for a page with a status other than 200.
STATUS = "Failed to load resource: the server responded with a status of"


@pytest.fixture
def refused(signed_in: Page) -> list[str]:
    """Return the resources that the browser blocks, and its errors, on pages with the policy."""
    found: list[str] = []

    def strict(route: Route) -> None:
        answer = route.fetch(max_redirects=0)
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": STRICT})

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith(STATUS):
            found.append(f"{signed_in.url}: {message.text}")

    signed_in.route(re.compile(r":\d+/admin/"), strict)
    signed_in.on("console", note)
    return found


def test_the_policy_is_in_force(signed_in: Page, refused: list[str]) -> None:
    """Otherwise the tests of this file would show nothing."""
    signed_in.goto("/admin/")
    signed_in.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'alert(1)'}))")
    assert "Content Security Policy" in refused[0]


def test_every_page_is_shown_with_its_costs(signed_in: Page, refused: list[str], paths: list[str]) -> None:
    """No script and no style is within a page, nothing comes from elsewhere, and the panel opens by a click."""
    with override_settings(DYNAMO_SINGLE_COSTS={"ADMIN_PANEL": True}):
        for path in paths:
            signed_in.goto(f"/admin/{path}")
            signed_in.locator("#dynamo-costs summary").click()
            expect(signed_in.locator("#dynamo-costs table")).to_be_visible()
    assert refused == []


def test_the_login_is_shown(signed_in: Page, refused: list[str]) -> None:
    """This includes the message for a wrong password."""
    signed_in.context.clear_cookies()
    signed_in.goto("/admin/")
    signed_in.fill("#id_username", "admin")
    signed_in.fill("#id_password", "wrong")
    signed_in.click("input[type=submit]")
    expect(signed_in.locator(".errornote")).to_be_visible()
    assert refused == []


def test_the_page_in_the_place_of_others_is_shown(
    signed_in: Page, refused: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DynamoDB is unreachable."""

    async def fail(*args: object, **kwargs: object) -> Any:
        raise unreachable(get_table().settings)

    monkeypatch.setattr(Table, "_call", fail)
    answer = signed_in.goto("/admin/directory/company/")
    monkeypatch.undo()
    assert answer is not None
    assert answer.status == 503
    assert refused == []


def test_a_form_works(signed_in: Page, refused: list[str], acme: Company) -> None:
    """Calendar, clock, another row, autocomplete, a window for another object, the theme, a merge."""
    page = signed_in
    page.goto("/admin/directory/company/acme/change/")
    page.locator(".field-founded .date-icon").click()
    page.locator(".calendarbox:visible td.today a").click()
    page.locator("#person_set-group .add-row a").click()
    expect(page.locator("#id_person_set-2-name")).to_be_visible()
    page.locator("#person_set-2 .inline-deletelink").click()
    page.locator(".theme-toggle:visible").first.click()
    Company.objects.filter(pk="acme").update(name="Acme Limited")
    page.fill("#id_name", "Acme and Sons")
    page.locator("input[name=_save]").click()
    expect(page.locator(".field-name .errorlist")).to_be_visible()
    page.locator("input[name=_save]").click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    page.goto("/admin/directory/person/add/")
    page.locator(".field-company .select2-selection").click()
    page.locator(".select2-results__option", has_text="Acme").click()
    with page.expect_popup() as popup:
        page.locator(".field-company .add-related").click()
    popup.value.wait_for_load_state()  # the page calls one of its functions when it is left
    popup.value.close()
    assert refused == []


def test_a_list_works(signed_in: Page, refused: list[str], acme: Company) -> None:
    """This includes its filters, its actions and their confirmations."""
    page = signed_in
    page.goto("/admin/directory/company/")
    page.locator("#changelist-filter summary").first.click()
    page.locator("#action-toggle").check()
    page.select_option("select[name=action]", "delete_selected")
    page.locator(".actions button[name=index]").click()
    expect(page.get_by_role("button", name="Move to the trash")).to_be_visible()
    page.get_by_role("link", name="No, take me back").click()
    expect(page.locator("#result_list")).to_be_visible()
    assert refused == []


def test_looking_through_a_list_works(
    signed_in: Page, refused: list[str], acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page requests the steps."""
    monkeypatch.setattr(stepwise, "_CHUNK", 1)
    monkeypatch.setattr(type(admin_site.get_model_admin(Company)), "list_max_in_memory", 1)
    Company.objects.create(name="Bolt")
    page = signed_in
    page.goto("/admin/directory/company/?q=x&scan=")
    page.get_by_role("link", name="Continue the search").click()
    expect(page.locator(".scan-progress")).to_contain_text("All items were searched.")
    assert refused == []


def test_a_job_works(signed_in: Page, refused: list[str]) -> None:
    """This includes its confirmation and its end."""
    Company.objects.bulk_create(Company(name=f"Company {number}") for number in range(60))
    page = signed_in
    page.goto("/admin/directory/company/")
    page.locator("#action-toggle").check()
    page.select_option("select[name=action]", "delete_selected")
    page.locator(".actions button[name=index]").click()
    page.locator("#job-form [type=submit]").click()
    expect(page.locator("#content")).to_contain_text("The job is done.")
    assert refused == []


def test_the_table_works(signed_in: Page, refused: list[str], acme: Company) -> None:
    """From a partition to an item, and to another index."""
    page = signed_in
    page.goto("/admin/dynamodb/table/")
    page.fill("#id_pk", "COMPANY#acme")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="PEOPLE#ann").click()
    expect(page.locator(".dynamo-json")).to_be_visible()
    assert refused == []


@pytest.mark.usefixtures("acme")
def test_a_row_is_added_to_a_list(signed_in: Page, refused: list[str]) -> None:
    """A script from the site adds it."""
    signed_in.goto("/admin/directory/office/acme~~ghent/change/")
    signed_in.click(".dynamo-add button")
    expect(signed_in.locator("[name='hours.3_0']")).to_be_focused()
    assert refused == []
