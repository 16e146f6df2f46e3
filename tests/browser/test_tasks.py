"""Everyday tasks, each in at most three clicks after the login."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Locator, Page, expect

from accounts.models import Group
from project.directory.models import Company

#: The most clicks of a task; typing is none, and Enter is one.
MOST = 3


class Clicks:
    """The index page of a signed-in user, and the clicks that a task has taken."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.number = 0
        page.goto("/admin/")

    def link(self, name: str) -> None:
        """Click a link in the content, by its name."""
        self.on(self.page.locator("#content").get_by_role("link", name=name, exact=True).first)

    def on(self, place: Locator) -> None:
        """Click, and wait for the next page."""
        self.number += 1
        assert self.number <= MOST
        with self.page.expect_navigation():
            place.click()

    def search(self, text: str) -> None:
        """Type a text into the search of a list, and press Enter."""
        self.number += 1
        assert self.number <= MOST
        self.page.fill("#searchbar", text)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")


@pytest.fixture
def clicks(acme: Company, signed_in: Page) -> Clicks:
    """The index page, with a company, its people and its office."""
    return Clicks(signed_in)


def test_person_is_found_by_part_of_name(clicks: Clicks) -> None:
    """In any case."""
    clicks.link("People")
    clicks.search("ode")
    expect(clicks.page.locator("#result_list tbody tr")).to_have_count(1)
    expect(clicks.page.locator("#result_list")).to_contain_text("Ben Ode")


def test_item_behind_object_is_seen(clicks: Clicks) -> None:
    """From the object's form."""
    clicks.link("Companies")
    clicks.link("Acme")
    clicks.on(clicks.page.locator(".object-tools a[href*='dynamodb/item']"))
    expect(clicks.page.locator("#content")).to_contain_text("COMPANY#acme")


def test_people_of_company_are_seen(clicks: Clicks) -> None:
    """In the form of the company."""
    clicks.link("Companies")
    clicks.link("Acme")
    expect(clicks.page.locator("#content")).to_contain_text("Ben Ode")


def test_cost_of_list_is_seen(clicks: Clicks) -> None:
    """A list that is computed in memory shows its cost."""
    clicks.link("People")
    clicks.search("ode")
    expect(clicks.page.locator("#changelist")).to_contain_text("units.")


def test_groups_of_user_are_seen(clicks: Clicks, admin: Any) -> None:
    """In the user's form."""
    group = Group.objects.create(name="Editors")
    user = get_user_model()._default_manager.create_user("clerk", "clerk@example.com", "secret", is_staff=True)
    user.groups.add(group)
    clicks.link("Users")
    clicks.link("clerk")
    expect(clicks.page.locator("#content")).to_contain_text("Editors")
