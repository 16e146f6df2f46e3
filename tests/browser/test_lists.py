"""Lists in the admin, used as people use them: search, order, filters, and pages there and back."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Locator, Page, Route, expect

from dynamo_single.admin.lists import stepwise
from project.directory.models import Company

WORDS = ("Zeta", "Bakery", "harbour", "Works", "Kettle", "Zetaland")


@pytest.fixture
def companies(table: object) -> None:
    """528 companies."""
    Company.objects.bulk_create(
        Company(
            name=f"{WORDS[number % 6]} {WORDS[number % 5]} {number:03}",
            stock=f"T{(number * 7) % 528:03}",
            founded=datetime.date(1990 + number % 30, 1, 1),
            public=number % 3 == 0,
        )
        for number in range(528)
    )


def rows(page: Page, column: str = "name") -> list[str]:
    """Return the cells of a column."""
    return page.locator(f"#result_list .field-{column}").all_inner_texts()


def follow(page: Page, link: Locator) -> None:
    """Click, and wait for the next page."""
    with page.expect_navigation():
        link.click()


@pytest.mark.usefixtures("companies")
def test_search_order_and_filters(
    signed_in: Page,
    picture: Callable[[str], None],
    screenshot: Callable[[str, int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Words in any case and order, any column by a click, and filters with their numbers."""
    company_admin = type(admin.site.get_model_admin(Company))
    monkeypatch.setattr(company_admin, "list_filter", ("public", "founded"))
    monkeypatch.setattr(company_admin, "date_hierarchy", "founded")
    page = signed_in
    page.goto("/admin/directory/company/")
    picture("list")
    page.fill("#searchbar", "WORKS zetaland")
    follow(page, page.locator("#changelist-search input[type=submit]"))
    found = rows(page)
    assert found
    assert all("Zetaland" in name and "Works" in name for name in found)
    picture("list-searched")
    page.fill("#searchbar", "")
    follow(page, page.locator("#changelist-search input[type=submit]"))

    follow(page, page.locator("th.column-stock a").first)
    assert rows(page, "stock")[:2] == ["T000", "T001"]
    follow(page, page.locator("th.column-stock .toggle"))
    assert rows(page, "stock")[:2] == ["T527", "T526"]
    picture("list-ordered")

    follow(page, page.get_by_role("link", name="Show counts"))
    expect(page.locator("#changelist-filter")).to_contain_text("Yes (176)")
    picture("list-facets")
    screenshot("admin-list", 600)
    follow(page, page.get_by_role("link", name="Yes (176)"))
    expect(page.locator(".paginator")).to_contain_text("176 companies")
    follow(page, page.locator(".toplinks a", has_text="1993"))
    expect(page.locator(".paginator")).to_contain_text("18 companies")
    picture("list-filtered")


@pytest.mark.usefixtures("companies")
def test_pages_by_number(signed_in: Page) -> None:
    """This includes the last page and the one before it."""
    page = signed_in
    page.goto("/admin/directory/company/")
    follow(page, page.locator(".paginator a", has_text="6"))
    assert len(rows(page)) == 28
    follow(page, page.locator(".paginator a", has_text="5"))
    assert len(rows(page)) == 100


def test_pages_of_five_thousand_there_and_back(
    signed_in: Page, picture: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page starts at the end of the previous one, and the way back shows the same pages."""
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "list_per_page", 500)
    Company.objects.bulk_create(Company(name=f"Company {number:04}") for number in range(5000))
    page = signed_in
    page.goto("/admin/directory/company/")
    picture("large-list")
    names, first = [], rows(page)
    while True:
        names += rows(page)
        following = page.locator(".paginator a[rel=next]")
        if not following.count():
            break
        follow(page, following)
    assert names == [f"Company {number:04}" for number in range(5000)]
    while page.locator(".paginator a[rel=prev]").count():
        follow(page, page.locator(".paginator a[rel=prev]"))
    assert rows(page) == first

    page.fill("#searchbar", "Company 49")
    follow(page, page.locator("#changelist-search input[type=submit]"))
    assert rows(page)[0] == "Company 4900"
    picture("large-list-searched")
    page.goto("/admin/directory/company/?public__exact=1")
    picture("large-list-first-step")
    expect(page.locator(".scan-progress")).to_contain_text("Searched 2000 of up to 100000 items and found 0 companies")
    expect(page.get_by_role("link", name="Continue the search")).to_be_visible()


def test_looking_through_a_large_list(signed_in: Page, picture: Callable[[str], None]) -> None:
    """Each step shows the results so far, until the end or until it is stopped."""
    Company.objects.bulk_create(
        Company(name=f"{number:04} {'the harbour' if number % 500 == 7 else 'Company'}") for number in range(5000)
    )
    page = signed_in
    page.goto("/admin/directory/company/")
    page.fill("#searchbar", "HARBOUR")
    follow(page, page.locator("#changelist-search input[type=submit]"))
    expect(page.locator(".scan-progress")).to_contain_text("All items were searched.")
    expect(page.locator(".scan-progress")).to_contain_text("Searched 5000 of up to 100000 items and found 10 companies")
    assert rows(page) == [f"{number:04} the harbour" for number in range(7, 5000, 500)]
    expect(page.locator("#scan-stop")).to_be_hidden()
    picture("list-looked-through")


@pytest.fixture
def fifty(table: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty companies, where twenty are as many as a list holds, and as a step looks at."""
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "list_max_in_memory", 20)
    monkeypatch.setattr(stepwise, "_CHUNK", 10)
    Company.objects.bulk_create(Company(name=f"Company {number:04}") for number in range(50))


@pytest.fixture
def looking(signed_in: Page, fifty: None) -> Iterator[tuple[Page, list[Route]]]:
    """Open a page that scans, with its held steps."""
    held: list[Route] = []
    page = signed_in
    page.goto("/admin/directory/company/")
    page.fill("#searchbar", "harbour")
    page.route(re.compile(r"scan=.*"), lambda route: held.append(route) if is_step(route) else route.continue_())
    follow(page, page.locator("#changelist-search input[type=submit]"))
    expect(page.locator("#scan-stop")).to_be_visible()
    yield page, held
    page.unroute_all(behavior="ignoreErrors")


def is_step(route: Route) -> bool:
    """Return whether the page's script requests it, rather than the browser."""
    return route.request.resource_type == "fetch"


def let_through(page: Page, held: list[Route]) -> None:
    """Release the step that the page waits for."""
    while not held:
        page.wait_for_timeout(20)
    held.pop(0).continue_()


def test_a_look_through_a_list_is_stopped(looking: tuple[Page, list[Route]]) -> None:
    """The running step is shown, and no other is requested."""
    page, held = looking
    page.locator("#scan-stop").click()
    let_through(page, held)
    expect(page.locator("#scan-stop")).to_be_hidden()
    expect(page.locator(".scan-progress")).to_contain_text("Searched 40 of")
    assert held == []


def test_stopped_scan_continues_in_place(looking: tuple[Page, list[Route]]) -> None:
    """It continues from its position with the remaining link, which has the focus."""
    page, held = looking
    page.locator("#scan-stop").focus()
    page.keyboard.press("Enter")
    let_through(page, held)
    link = page.get_by_role("link", name="Continue the search")
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    let_through(page, held)
    expect(page.locator(".scan-progress")).to_contain_text("All items were searched.")


def test_a_look_through_a_list_that_fails_says_why(looking: tuple[Page, list[Route]]) -> None:
    """If the session ends in the meantime, the login is shown."""
    page, held = looking
    page.context.clear_cookies()
    let_through(page, held)
    expect(page.locator("#id_username")).to_be_visible()


@pytest.mark.usefixtures("fifty")
def test_a_link_from_elsewhere_does_not_look_through_a_list(signed_in: Page) -> None:
    """It waits for a click after the first step."""
    page = signed_in
    page.goto("/admin/directory/company/?q=harbour&scan=")
    page.wait_for_load_state("networkidle")
    expect(page.locator("#scan-stop")).to_be_hidden()
    expect(page.locator(".scan-progress")).to_contain_text("Searched 20 of")


@pytest.fixture
def third(signed_in: Page, table: object, monkeypatch: pytest.MonkeyPatch) -> Page:
    """A search of fifty companies that finds every third, and has read them all."""
    monkeypatch.setattr(type(admin.site.get_model_admin(Company)), "list_max_in_memory", 20)
    monkeypatch.setattr(stepwise, "_CHUNK", 10)
    Company.objects.bulk_create(Company(name=f"{n:02} {'harbour' if n % 3 == 0 else 'mill'}") for n in range(50))
    signed_in.goto("/admin/directory/company/")
    signed_in.fill("#searchbar", "harbour")
    follow(signed_in, signed_in.locator("#changelist-search input[type=submit]"))
    expect(signed_in.locator(".scan-progress")).to_contain_text("All items were searched.")
    return signed_in


def steps_of(page: Page) -> list[str]:
    """Record the steps that the page's script requests and shows."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url) if request.resource_type == "fetch" else None)
    return found


def test_reload_keeps_rows_and_restarts_nothing(third: Page) -> None:
    """The rows of all steps are shown again, and no step is requested."""
    steps, found = steps_of(third), rows(third)
    third.reload()
    expect(third.locator(".scan-progress")).to_contain_text("All items were searched.")
    third.wait_for_load_state("networkidle")
    assert (rows(third), steps) == (found, [])


def test_way_back_from_a_row_restarts_nothing(third: Page) -> None:
    """The list is unchanged."""
    found = rows(third)
    follow(third, third.locator("#result_list a", has_text=found[-1]))
    steps = steps_of(third)
    third.go_back()
    expect(third.locator(".scan-progress")).to_contain_text("All items were searched.")
    assert (rows(third), steps) == (found, [])


def test_next_user_of_a_tab_sees_no_rows_of_the_last(third: Page, address: str) -> None:
    """The stored rows belong to a user; another one sees the first step, and a link."""
    other = get_user_model()._default_manager.create_superuser("other", "other@example.com", "secret")
    found, client, name = rows(third), Client(), settings.SESSION_COOKIE_NAME
    client.force_login(other)
    third.context.clear_cookies()
    third.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": address}])
    third.reload()
    expect(third.get_by_role("link", name="Continue the search")).to_be_visible()
    assert 0 < len(rows(third)) < len(found)
