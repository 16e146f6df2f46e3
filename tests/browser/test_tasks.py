"""Fifteen everyday tasks, each in at most three clicks after the login.

A click leads to a page or acts on one. Filling in a form does not count: typing, checkboxes, choices.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth import get_user_model
from django.urls import clear_url_caches, path
from playwright.sync_api import Locator, Page, expect

from accounts.models import Group
from dynamo_single.admin import DynamoModelAdmin, DynamoTabularInline
from dynamo_single.testing import frozen_time
from project.directory.models import Company, Person
from tests.catalog.shops import Purchase, Shopper

#: The most clicks of a task; Enter is one.
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

    def button(self, name: str) -> None:
        """Click a button in the content, by its name."""
        self.on(self.page.locator("#content").get_by_role("button", name=name).first)

    def on(self, place: Locator) -> None:
        """Click, and wait for the next page."""
        self.count()
        with self.page.expect_navigation():
            place.click()

    def count(self) -> None:
        """Count a click."""
        self.number += 1
        assert self.number <= MOST

    def search(self, text: str) -> None:
        """Type a text into the search of a list, and press Enter."""
        self.count()
        self.page.fill("#searchbar", text)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def act(self, action: str) -> None:
        """Choose an action for the ticked rows, and click on the button next to it."""
        self.page.select_option("select[name=action]", action)
        self.on(self.page.locator(".actions button[name=index]"))

    def filter(self, name: str) -> None:
        """Click a choice of a filter."""
        self.on(self.page.locator("#changelist-filter").get_by_role("link", name=name, exact=True).first)


@pytest.fixture
def clicks(acme: Company, signed_in: Page) -> Clicks:
    """The index page, with a company, its people and its office."""
    return Clicks(signed_in)


class PurchaseInline(DynamoTabularInline):
    """A shopper's purchases."""

    model = Purchase
    fields = ("number", "placed_at", "state", "price")
    extra = 0


class ShopperAdmin(DynamoModelAdmin):
    """Shoppers with their purchases."""

    inlines = (PurchaseInline,)


class PurchaseAdmin(DynamoModelAdmin):
    """Purchases, newest first."""

    list_display = ("number", "shopper", "state", "placed_at")
    list_filter = ("shopper", "state")
    ordering = ("-placed_at",)


@pytest.fixture
def shop(settings: Any, acme: Company, signed_in: Page) -> Iterator[Clicks]:
    """The index page, with two shoppers and their purchases."""
    for name in ("Ann", "Ben"):
        shopper = Shopper.objects.create(name=name, shopper_id=name.lower())
        for number in range(4):
            placed = datetime.datetime(2026, 1, 1 + number, tzinfo=datetime.UTC)
            state = "sent" if number == 1 else "open"
            Purchase.objects.create(shopper=shopper, number=number, placed_at=placed, state=state)
    site, urls = django_admin.site, ModuleType("urls")
    site.register(Shopper, ShopperAdmin)
    site.register(Purchase, PurchaseAdmin)
    urls.urlpatterns = [path("admin/", site.urls)]  # type: ignore[attr-defined]
    settings.ROOT_URLCONF = urls
    clear_url_caches()
    yield Clicks(signed_in)
    site.unregister([Shopper, Purchase])
    clear_url_caches()


def rows(page: Page, column: str = "name") -> list[str]:
    """Return the cells of a list's column."""
    return page.locator(f"#result_list .field-{column}").all_inner_texts()


def test_person_is_found_by_email(clicks: Clicks, picture: Callable[[str], None]) -> None:
    """By the beginning, or any part."""
    clicks.link("People")
    clicks.search("ben@example")
    assert rows(clicks.page) == ["Ben Ode"]
    picture("task-email")


def test_person_is_found_by_part_of_name(clicks: Clicks) -> None:
    """In any case."""
    clicks.link("People")
    clicks.search("ode")
    assert rows(clicks.page) == ["Ben Ode"]


def test_state_of_order_is_changed_from_page_of_customer(shop: Clicks, picture: Callable[[str], None]) -> None:
    """Among the customer's orders in its form."""
    shop.link("Shoppers")
    shop.link("Ann")
    picture("task-customer")
    shop.page.locator("select[name$=-state]").first.select_option("sent")
    shop.on(shop.page.locator("input[name=_save]"))
    assert sorted(Purchase.objects.filter(shopper_id="ann").values_list("state", flat=True)) == [
        *("open", "open", "sent", "sent"),
    ]


def test_open_orders_of_customer_are_listed_newest_first(shop: Clicks, picture: Callable[[str], None]) -> None:
    """By two filters; the order is the list's own."""
    shop.link("Purchases")
    shop.filter("Ann")
    shop.filter("Open")
    picture("task-open-orders")
    assert (rows(shop.page, "number"), {*rows(shop.page, "shopper")}) == (["3", "2", "0"], {"Ann"})


def test_deletion_of_yesterday_is_undone_with_children(clicks: Clicks, picture: Callable[[str], None]) -> None:
    """The trash shows when and with which object each object was deleted."""
    with frozen_time(datetime.datetime.now(tz=datetime.UTC) - datetime.timedelta(days=1)):
        Company.objects.get(pk="acme").delete()
    clicks.link("Companies")
    clicks.filter("In the trash")
    picture("task-trash")
    clicks.page.locator("#result_list input.action-select").first.check()
    clicks.act("restore_selected")
    assert (Company.objects.count(), Person.objects.count()) == (1, 2)


@pytest.fixture
def sixty(clicks: Clicks) -> Clicks:
    """Create sixty more companies."""
    Company.objects.bulk_create(Company(company_id=f"c{number:02}", name=f"Zed {number:02}") for number in range(60))
    return clicks


def delete_sixty(clicks: Clicks) -> None:
    """Find and tick them all, and confirm the deletion."""
    clicks.page.goto("/admin/directory/company/?q=Zed")
    clicks.page.locator("#action-toggle").check()
    clicks.act("delete_selected")
    clicks.count()
    clicks.page.locator("#job-form [type=submit]").click()
    expect(clicks.page.locator("#content")).to_contain_text("The job is done.")


def test_sixty_objects_are_deleted(sixty: Clicks, picture: Callable[[str], None]) -> None:
    """The whole page is deleted after a confirmation that counts the objects."""
    Company.objects.get(pk="acme").delete()
    sixty.link("Companies")
    sixty.page.locator("#action-toggle").check()
    sixty.act("delete_selected")
    expect(sixty.page.locator("#content")).to_contain_text("Move 60 companies to the trash?")
    picture("task-question")
    sixty.count()
    sixty.page.locator("#job-form [type=submit]").click()
    expect(sixty.page.locator("#content")).to_contain_text("The job is done.")
    picture("task-job-done")
    assert (Company.objects.count(), Company.deleted_objects.count()) == (0, 61)


def test_deletion_of_sixty_objects_is_undone(sixty: Clicks, picture: Callable[[str], None]) -> None:
    """From the list of jobs, a day later too."""
    delete_sixty(Clicks(sixty.page))
    again = Clicks(sixty.page)
    again.link("Jobs")
    again.link("Delete 60 companies")
    again.button("Undo")
    expect(again.page.locator("#content")).to_contain_text("The job is done.")
    picture("task-undone")
    assert Company.objects.count() == 61


def test_who_changed_price_and_when_is_seen(shop: Clicks, picture: Callable[[str], None]) -> None:
    """In the object's history."""
    oldest = Purchase.objects.order_by("-placed_at").last()
    shop.page.goto(f"/admin/catalog/purchase/{oldest.pk}/change/")
    shop.page.fill("input[name=price]", "2.50")
    shop.page.locator("input[name=_save]").click()
    again = Clicks(shop.page)
    again.link("Purchases")
    again.on(again.page.locator("#result_list a").last)
    again.link("History")
    picture("task-history")
    expect(again.page.locator("#content")).to_contain_text("Changed Price.")
    expect(again.page.locator("#content")).to_contain_text("admin")


def test_item_behind_object_is_seen(clicks: Clicks) -> None:
    """From the object's form."""
    clicks.link("Companies")
    clicks.link("Acme")
    clicks.on(clicks.page.locator(".object-tools a[href*='dynamodb/item']"))
    expect(clicks.page.locator("#content")).to_contain_text("COMPANY#acme")


def test_objects_of_partition_are_seen(clicks: Clicks, picture: Callable[[str], None]) -> None:
    """By the key, which the page of each item shows."""
    clicks.link("Table")
    picture("task-table")
    clicks.page.locator("#content input[type=text]").first.fill("COMPANY#acme")
    clicks.button("Show")
    picture("task-partition")
    expect(clicks.page.locator("#content")).to_contain_text("PEOPLE#ann")


def test_largest_item_is_found(clicks: Clicks, picture: Callable[[str], None]) -> None:
    """In the pictures of the table, after a sample."""
    clicks.link("Pictures")
    clicks.button("Take a sample")
    picture("task-pictures")
    expect(clicks.page.locator("#content")).to_contain_text("largest")


def test_cost_of_list_is_seen(clicks: Clicks) -> None:
    """A list in memory shows its cost."""
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


def test_group_is_given_right(clicks: Clicks, picture: Callable[[str], None]) -> None:
    """A double click on the permission chooses it."""
    Group.objects.create(name="Editors")
    clicks.link("Groups")
    clicks.link("Editors")
    clicks.page.locator("#id_permissions_input").press_sequentially("add person")
    picture("task-group")
    clicks.page.locator("#id_permissions_from option").first.dblclick()
    clicks.on(clicks.page.locator("input[name=_save]"))
    assert "directory.add_person" in Group.objects.get(name="Editors").permission_names


def test_filtered_list_is_downloaded(clicks: Clicks, picture: Callable[[str], None]) -> None:
    """The rows that the filter leaves, with the columns of the list."""
    clicks.link("People")
    clicks.filter("Founder")
    picture("task-download")
    clicks.count()
    with clicks.page.expect_download() as download:
        clicks.page.get_by_role("link", name="Download as CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert [row[0] for row in csv.reader(lines)] == ["name", "Ann Lee"]
