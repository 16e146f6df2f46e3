"""Lists whose elements have rows: further rows come with a click."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib import admin
from django.test import RequestFactory, override_settings
from playwright.sync_api import Browser, Page, expect

import dynamo_single
from dynamo_single.admin import DynamoModelAdmin
from project.directory.admin import OfficeInline
from project.directory.models import Company, Office
from tests.browser.test_objects import press
from tests.catalog.records import Receipt

SCRIPT = Path(dynamo_single.__file__).parent / "static/dynamo_single/admin/rows.js"
ANOTHER = ".dynamo-add button"
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


@pytest.fixture
def office(signed_in: Page, acme: Company) -> Page:
    """The page of an office without opening hours."""
    signed_in.goto("/admin/directory/office/acme~~ghent/change/")
    return signed_in


def fill(page: Page, number: int, day: str, prefix: str = "") -> None:
    """Fill a row in."""
    page.select_option(f"[name='{prefix}hours.{number}_0']", day)
    page.fill(f"[name='{prefix}hours.{number}_1']", "09:00")
    page.fill(f"[name='{prefix}hours.{number}_2']", "17:00")


def days_of(office_id: str = "ghent") -> list[str]:
    """Return the stored days in order."""
    found = Office.objects.get(company_id="acme", office_id=office_id).hours
    return [] if found is None else [each["day"] for each in found]


def test_more_rows_than_were_shown_are_added_at_once(office: Page) -> None:
    """The added row has the focus and its number."""
    for _ in DAYS[3:]:
        office.click(ANOTHER)
    expect(office.locator("[name='hours.4_0']")).to_be_focused()
    expect(office.locator(".dynamo-row legend").last).to_have_text("Row 5, new")
    for number, day in enumerate(DAYS):
        fill(office, number, day)
    press(office, "Save")
    assert days_of() == [*DAYS]


def test_an_added_row_is_put_in_its_place(office: Page) -> None:
    """A row that stays empty is ignored."""
    fill(office, 0, "Tuesday")
    press(office, "Save and continue editing")
    for _ in range(2):
        office.click(ANOTHER)
    fill(office, 5, "Monday")
    office.fill("[name='hours.5.position']", "1")
    press(office, "Save")
    assert days_of() == ["Monday", "Tuesday"]


def test_no_more_rows_are_added_than_the_form_can_send(signed_in: Page, acme: Company) -> None:
    """A message replaces the button."""
    with override_settings(DATA_UPLOAD_MAX_NUMBER_FIELDS=45):
        signed_in.goto("/admin/directory/office/acme~~ghent/change/")
        for _ in range(20):
            if signed_in.locator(ANOTHER).is_visible():
                signed_in.click(ANOTHER)
        expect(signed_in.locator(".dynamo-full")).to_be_visible()
        fill(signed_in, 3, "Monday")
        press(signed_in, "Save")
    assert days_of() == ["Monday"]


def test_a_list_of_a_row_that_was_added_itself_has_them_too(
    signed_in: Page, acme: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django's script has numbered the inline's row."""
    monkeypatch.setattr(OfficeInline, "fields", ("city", "hours"))
    page = signed_in
    page.goto("/admin/directory/company/acme/change/")
    page.locator("#office_set-group .add-row a").click()
    page.fill("#id_office_set-1-city", "Ulm")
    added = page.locator("#office_set-1")
    added.locator(ANOTHER).click()
    fill(page, 3, "Friday", "office_set-1-")
    press(page, "Save")
    ulm = next(each for each in Office.objects.filter(company="acme") if each.city == "Ulm")
    assert days_of(ulm.office_id) == ["Friday"]
    assert days_of() == []


def test_a_list_within_a_row_has_a_button_of_its_own(page: Page) -> None:
    """In an added row, the names of its list's rows contain both numbers."""
    form = DynamoModelAdmin(Receipt, admin.site).get_form(RequestFactory().get("/"))()
    page.set_content(f"<form>{form['lines']}</form>")
    page.add_script_tag(path=SCRIPT)
    page.evaluate("document.dispatchEvent(new Event('DOMContentLoaded'))")
    page.locator(f".dynamo-list > {ANOTHER}").last.click()
    page.locator(".dynamo-row").filter(has=page.locator("[name='lines.3_0']")).locator(ANOTHER).click()
    sent = page.evaluate("[...new FormData(document.querySelector('form')).keys()]")
    assert [name for name in sent if name.startswith("lines.3_2.1")] == ["lines.3_2.1", "lines.3_2.1.position"]
    assert page.locator("[name='lines.3_2.count']").input_value() == "2"
    assert page.locator("[name='lines.count']").input_value() == "4"
    assert [name for name in sent if "__" in name] == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len({*ids})


def test_without_scripts_there_is_no_button(browser: Browser, office: Page) -> None:
    """Rows come by saving."""
    context = browser.new_context(java_script_enabled=False, storage_state=office.context.storage_state())
    page = context.new_page()
    page.goto(office.url)
    expect(page.locator(ANOTHER)).to_be_hidden()
    expect(page.get_by_text("Save and continue editing to add more rows.")).to_be_visible()
    fill(page, 0, "Monday")
    page.locator("input[name=_continue]").click()
    expect(page.locator("[name='hours.3_0']")).to_be_visible()
    context.close()


@pytest.fixture
def three_days(signed_in: Page, acme: Company) -> Page:
    """The page of an office with opening hours on three days."""
    hours = [{"day": day, "opens": "09:00:00", "closes": "17:00:00"} for day in DAYS[:3]]
    Office.objects.filter(pk="acme~~ghent").update(hours=hours)
    signed_in.goto("/admin/directory/office/acme~~ghent/change/")
    return signed_in


def test_rows_are_moved_by_buttons(three_days: Page) -> None:
    """The button keeps the focus, and a new row can be moved too."""
    fill(three_days, 3, "Friday")
    for _ in range(2):
        three_days.locator(".dynamo-row").nth(3).get_by_role("button", name="Move up").click()
        three_days.locator(".dynamo-row").nth(2).get_by_role("button", name="Move down").click()
        three_days.locator(".dynamo-row").nth(3).get_by_role("button", name="Move up").click()
    three_days.locator(".dynamo-row").first.get_by_role("button", name="Move down").press("Enter")
    expect(three_days.locator(".dynamo-row").nth(1).get_by_role("button", name="Move down")).to_be_focused()
    press(three_days, "Save")
    assert days_of() == ["Tuesday", "Monday", "Wednesday", "Friday"]


def test_rows_are_moved_by_the_keyboard(three_days: Page) -> None:
    three_days.locator("[name='hours.2_0']").focus()
    three_days.keyboard.press("Alt+ArrowUp")
    three_days.keyboard.press("Alt+ArrowUp")
    expect(three_days.locator("[name='hours.2_0']")).to_be_focused()
    press(three_days, "Save")
    assert days_of() == ["Wednesday", "Monday", "Tuesday"]


def test_rows_are_moved_by_dragging(three_days: Page) -> None:
    handles = three_days.locator(".dynamo-row [draggable]")
    handles.first.drag_to(three_days.locator(".dynamo-row").nth(3), target_position={"x": 100, "y": 4})
    press(three_days, "Save")
    assert days_of() == ["Tuesday", "Wednesday", "Monday"]


@pytest.mark.parametrize("width", [1280, 360])
def test_three_rows_fit_on_a_screen(three_days: Page, width: int) -> None:
    """With the empty rows below them, and without scrolling sideways."""
    three_days.set_viewport_size({"width": width, "height": 800})
    assert three_days.locator(".dynamo-list").bounding_box()["height"] < (780 if width > 1000 else 1000)
    assert three_days.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
