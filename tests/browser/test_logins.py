"""Both login pages: the admin's, and the project's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import PASSWORD


def test_the_admins_own(page: Page, admin: Any, picture: Callable[[str], None]) -> None:
    """A wrong password shows a message, and the right one leads to the requested page."""
    page.goto("/admin/directory/company/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", "wrong")
    page.click("input[type=submit]")
    expect(page.locator(".errornote")).to_be_visible()
    picture("login-refused")
    page.fill("#id_username", "admin@example.com")
    page.fill("#id_password", PASSWORD)
    page.click("input[type=submit]")
    expect(page.locator("#content h1")).to_have_text("Select company to change")
    page.click("#logout-form button")
    expect(page.locator("#content h1")).to_have_text("Logged out")


def test_the_projects_own(page: Page, admin: Any, picture: Callable[[str], None]) -> None:
    """The account page requires a login, and is shown after it."""
    page.goto("/accounts/")
    assert page.url.endswith("/accounts/login/?next=/accounts/")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", PASSWORD)
    picture("login")
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url("**/accounts/")
    picture("account")
