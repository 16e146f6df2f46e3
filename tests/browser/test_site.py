"""The demo's public pages: read and written as visitors do, on a large and a small screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dynamo_single.table import Table
from project.chat.models import Message, Profile, Server
from project.directory.models import Company, Office, Person
from project.records.models import Book
from project.service.models import Beneficiary, Email, User
from tests.browser.conftest import PASSWORD


@pytest.fixture
def shown(table: Table) -> list[str]:
    """Addresses of pages with something on them, some of it long."""
    acme = Company.objects.create(company_id="acme", name="Acme " + "and Sons " * 8, stock="ACM")
    person = Person.objects.create(company=acme, name="A" * 60, email=f"{'a' * 60}@example.com")
    Office.objects.create(company=acme, city="Ghent", address="1 Example Street\nsecond floor")
    book = Book.objects.create(
        id="book-1", data={"title": "t" * 60, "author": {"lastname": "l" * 40}, "note": "n" * 300}
    )
    Beneficiary.objects.create(beneficiary_id="school", name="School")
    user = User.objects.create(user_id="ines", beneficiary_id="school", first_name="Inés", last_name="Gómez" * 12)
    Email.objects.create(email=person.email, user=user)
    gaming = Server.objects.create(server_id="gaming", name="Gaming", topic="Play")
    profile = Profile.objects.create(profile_id="pip", username="p" * 60)
    gaming.users.add(profile)
    Message.objects.create(server=gaming, author="m" * 60, text="w" * 200)
    return [
        *(
            "/",
            "/companies/",
            f"/companies/{acme.pk}/",
            "/books/",
            f"/books/{book.pk}/",
            "/users/",
            f"/users/{user.pk}/",
        ),
        *("/servers/", "/servers/gaming/", "/servers/gaming/members/", f"/servers/profiles/{profile.pk}/"),
        "/accounts/login/",
    ]


@pytest.mark.parametrize(("size", "scheme"), [("desk", "light"), ("phone", "dark")])
def test_no_page_is_wider_than_the_screen(
    page: Page, shown: list[str], picture: Callable[[str], None], size: str, scheme: Any
) -> None:
    """Long content does not require horizontal scrolling; an image of each page is kept."""
    page.set_viewport_size({"width": 1280 if size == "desk" else 360, "height": 800})
    page.emulate_media(color_scheme=scheme)
    for path in shown:
        page.goto(path)
        picture(f"site-{size}{path.replace('/', '-')}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path


@pytest.mark.usefixtures("shown", "admin")
def test_a_message_is_written_after_a_login(page: Page) -> None:
    """The login leads back to the chat, where the message comes first."""
    page.goto("/servers/gaming/")
    page.get_by_role("link", name="Log in").first.click()
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", PASSWORD)
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url("**/servers/gaming/")
    page.fill("textarea", "Hello")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".messages li").first).to_contain_text("Hello")
    expect(page.locator("footer")).to_contain_text("4 requests")
