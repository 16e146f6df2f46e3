"""The admin by keyboard: the reached elements, the visible focus, and the effect of keys."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect

from project.directory.models import Company, Person

#: The maximum number of tab steps on a page; some lists have more.
STEPS = 60
#: The differences between an element with and without focus, for all elements of the page.
LOOKS = """() => [...document.querySelectorAll('*')].map(element => {
    const style = getComputedStyle(element);
    const looks = ['outlineStyle', 'outlineWidth', 'boxShadow', 'borderColor', 'backgroundColor', 'color',
                   'textDecorationLine'].map(name => style[name]);
    return JSON.stringify(looks);
})"""
#: The focused element: its type, its name, and its position in the page.
FOCUSED = """() => {
    const element = document.activeElement;
    const within = each => [each.textContent, ...[...each.querySelectorAll('img')].map(image => image.alt)];
    const called = (element.getAttribute('aria-labelledby') || '').split(' ').map(id => document.getElementById(id));
    const texts = [element.ariaLabel, ...[...called, ...(element.labels || [])].filter(each => each).flatMap(within)];
    if (element.matches('a, button, summary')) texts.push(...within(element));
    if (element.matches('[type=submit], [type=button]')) texts.push(element.value);
    const name = [...texts, element.title].find(text => text && text.trim());
    const all = [...document.querySelectorAll('*')];
    return {place: all.indexOf(element), is_in_content: !!element.closest('#content'), name: String(name || '').trim(),
            tag: element.outerHTML.slice(0, 120)};
}"""


def into_content(page: Page) -> None:
    """Skip to the content, with the first link of the page."""
    page.locator(".skip-to-content-link").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#content-start")).to_be_focused()


def walk(page: Page) -> list[dict[str, Any]]:
    """Return the elements that the tab key reaches in the content, and whether each shows its focus."""
    found: list[dict[str, Any]] = []
    before = page.evaluate(LOOKS)
    for _step in range(STEPS):
        page.keyboard.press("Tab")
        reached = page.evaluate(FOCUSED)
        if not reached["is_in_content"]:
            break
        place = reached["place"]
        found.append({**reached, "is_seen": page.evaluate(LOOKS)[place] != before[place]})
    return found


def test_the_first_link_of_a_page_skips_to_its_content(signed_in: Page) -> None:
    """The link is shown when the tab key reaches it."""
    signed_in.goto("/admin/dynamodb/table/")
    signed_in.keyboard.press("Tab")
    expect(signed_in.locator(".skip-to-content-link")).to_be_focused()
    expect(signed_in.locator(".skip-to-content-link")).to_be_in_viewport()


def test_every_control_is_reached_in_its_order_and_seen(signed_in: Page, paths: list[str]) -> None:
    """Each control comes after the previous one, shows its focus, and has a name on our own pages."""
    wrong = []
    for path in paths:
        signed_in.goto(f"/admin/{path}")
        into_content(signed_in)
        before = 0
        for reached in walk(signed_in):
            is_named = bool(reached["name"]) or not (path.startswith("dynamodb/") or "scan=" in path)
            # A field for a date has several stops, the last of which is the browser's own button.
            if reached["place"] < before or not is_named or not (reached["is_seen"] or reached["place"] == before):
                wrong.append(f"{path}: {reached}")
            before = reached["place"]
    assert wrong == []


def test_no_control_is_out_of_the_tabulators_order(signed_in: Page, paths: list[str]) -> None:
    """Clickable elements are links, buttons or fields, and none is first or skipped."""
    found = "[...document.querySelectorAll('#content :is([onclick], [tabindex]:not([tabindex=\"0\"]))')]"
    for path in paths:
        signed_in.goto(f"/admin/{path}")
        ours = signed_in.evaluate(f"{found}.map(each => each.outerHTML).filter(each => !each.includes('select2'))")
        assert [each for each in ours if "content-start" not in each] == [], path


def press(page: Page, *keys: str) -> None:
    """Press keys, the last of which leads to another page."""
    for key in keys[:-1]:
        page.keyboard.press(key)
    with page.expect_navigation():
        page.keyboard.press(keys[-1])


@pytest.mark.usefixtures("acme")
def test_a_company_is_deleted_and_restored(signed_in: Page) -> None:
    """By the link and the buttons of the pages."""
    page = signed_in
    page.goto("/admin/directory/company/acme/change/")
    page.get_by_role("link", name="Delete", exact=True).focus()
    press(page, "Enter")
    page.get_by_role("button", name="Move to the trash").focus()
    press(page, "Space")
    assert Company.objects.count() == 0
    page.goto("/admin/directory/company/?trash=yes")
    page.get_by_role("link", name="Acme").focus()
    press(page, "Enter")
    page.get_by_role("button", name="Restore").focus()
    press(page, "Enter")
    assert (Company.objects.count(), Person.objects.count()) == (1, 2)


def test_a_job_is_carried_out(signed_in: Page) -> None:
    """Rows and the action are chosen, and the confirmation is submitted."""
    Company.objects.bulk_create(Company(name=f"Company {number}") for number in range(60))
    page = signed_in
    page.goto("/admin/directory/company/")
    page.locator("#action-toggle").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+Tab")
    page.locator("select[name=action]").focus()
    page.keyboard.type("Delete")
    page.keyboard.press("Tab")
    press(page, "Enter")
    page.locator("#job-form [type=submit]").focus()
    page.keyboard.press("Space")
    expect(page.locator("#content")).to_contain_text("The job is done.")
    assert Company.objects.count() == 0


@pytest.mark.usefixtures("acme")
def test_a_reference_is_chosen(signed_in: Page) -> None:
    """The list opens, finds the typed text, and returns the focus."""
    page = signed_in
    page.goto("/admin/directory/person/add/")
    page.locator(".field-company .select2-selection").focus()
    page.keyboard.press("Space")
    page.keyboard.type("Ac")
    expect(page.locator(".select2-results__option--highlighted")).to_have_text("Acme")
    page.keyboard.press("Enter")
    expect(page.locator(".field-company .select2-selection")).to_be_focused()
    expect(page.locator("#id_company")).to_have_value("acme")


@pytest.mark.usefixtures("acme")
def test_the_list_of_a_reference_is_closed(signed_in: Page) -> None:
    """Escape closes it and returns the focus."""
    page = signed_in
    page.goto("/admin/directory/person/add/")
    page.locator(".field-company .select2-selection").focus()
    page.keyboard.press("Space")
    expect(page.locator(".select2-search__field")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".select2-search__field")).to_have_count(0)
    expect(page.locator(".field-company .select2-selection")).to_be_focused()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_panel_of_costs_opens(signed_in: Page, key: str) -> None:
    """And closes."""
    with override_settings(DYNAMO_SINGLE_COSTS={"ADMIN_PANEL": True}):
        signed_in.goto("/admin/")
    signed_in.locator("#dynamo-costs summary").focus()
    signed_in.keyboard.press(key)
    expect(signed_in.locator("#dynamo-costs table")).to_be_visible()
    signed_in.keyboard.press(key)
    expect(signed_in.locator("#dynamo-costs table")).to_be_hidden()


@pytest.mark.usefixtures("acme")
def test_the_table_is_asked(signed_in: Page) -> None:
    """A typed key and Enter show its items, and lead to one of them."""
    page = signed_in
    page.goto("/admin/dynamodb/table/")
    page.get_by_label("Partition key").focus()
    page.keyboard.type("COMPANY#acme")
    press(page, "Enter")
    page.get_by_role("link", name="PEOPLE#ann").focus()
    press(page, "Enter")
    expect(page.locator(".dynamo-json")).to_be_visible()
