"""Pages of the admin for the docs; each test checks the content of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page, expect

from dynamo_single.admin.log import LogEntry
from dynamo_single.contrib.doctor import patterns
from dynamo_single.orm.schema import registry
from dynamo_single.table import Request, Table
from project.directory.models import Company, Person

Screenshot = Callable[[str, int], None]


def test_the_login(page: Page, admin: Any, screenshot: Screenshot) -> None:
    """One field accepts a user name or an e-mail address."""
    page.goto("/admin/login/")
    screenshot("admin-login", 400)
    expect(page.get_by_label("E-mail address or user name")).to_be_focused()


@pytest.mark.usefixtures("acme")
def test_the_trash(signed_in: Page, screenshot: Screenshot) -> None:
    """The page shows who deleted a company, when, and what a restoration includes."""
    page = signed_in
    page.goto("/admin/directory/company/acme/delete/")
    page.get_by_role("button", name="Move to the trash").click()
    page.goto("/admin/directory/company/acme/change/")
    screenshot("admin-trash", 430)
    expect(page.get_by_role("link", name="Ghent").first).to_be_visible()


@pytest.mark.usefixtures("acme")
def test_the_list_of_the_trash(signed_in: Page) -> None:
    """The list shows when people were deleted, and with which object."""
    page = signed_in
    Person.objects.get(company_id="acme", person_id="ben").delete()
    Company.objects.get(pk="acme").delete()
    page.goto("/admin/directory/person/?trash=yes")
    expect(page.locator(".field-taken_with")).to_have_text(["-", "Company: Acme"])


@pytest.mark.usefixtures("acme")
def test_the_log(signed_in: Page, admin: Any, screenshot: Screenshot) -> None:
    """The log shows actions by time, with old and new values of a change."""
    page = signed_in
    clerk = get_user_model()._default_manager.create_user("clerk", "clerk@example.com", "a-good-password")
    for user, key, flag, text in (
        (clerk, "ann", 1, "Added."),
        (admin, "ben", 2, "Called, and asked for the new address."),
    ):
        LogEntry.objects.log_actions(user.pk, Person.objects.filter(company_id="acme", person_id=key), flag, text)
    page.goto("/admin/directory/company/acme/change/")
    page.fill("#id_name", "Acme and Sons")
    page.fill("#id_person_set-1-name", "Ben Ode-Lee")
    page.locator("input[name=_save]").click()
    page.goto("/admin/dynamodb/log/")
    screenshot("admin-log", 400)
    expect(page.locator(".dynamo-items")).to_contain_text('from "Acme" to "Acme and Sons"')


def test_the_access_patterns(signed_in: Page, screenshot: Screenshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows the keys of companies, people and offices, their queries, and a picture."""
    found = [model for model in registry.all_models() if model._meta.app_label == "directory"]
    monkeypatch.setattr(patterns.registry, "all_models", lambda: found)
    page = signed_in
    page.goto("/admin/dynamodb/patterns/")
    screenshot("admin-patterns", 680)
    expect(page.locator(".dynamo-picture svg")).to_contain_text("directory.Office")


@pytest.mark.usefixtures("acme")
def test_the_health(signed_in: Page, table: Table, screenshot: Screenshot) -> None:
    """The page shows inconsistencies and their repair."""
    key = {"pk": {"S": "COMPANY#acme"}, "sk": {"S": "PEOPLE#ann"}}
    wrong = {"UpdateExpression": "SET gs1sk = :wrong", "ExpressionAttributeValues": {":wrong": {"S": "wrong"}}}
    table.send(Request("UpdateItem", {"Key": key, **wrong}))
    item = {"pk": {"S": "INVOICE#7"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Invoice"}}
    table.send(Request("PutItem", {"Item": item}))
    page = signed_in
    page.goto("/admin/dynamodb/health/")
    page.get_by_role("link", name="Check the items").click()
    screenshot("admin-health", 430)
    expect(page.locator(".dynamo-items tbody tr")).to_have_count(2)


@pytest.mark.usefixtures("acme")
def test_the_pictures(signed_in: Page, table: Table, screenshot: Screenshot) -> None:
    """A company's partition, the claims of its people, and the sizes of all items."""
    page = signed_in
    page.goto("/admin/dynamodb/pictures/")
    page.get_by_role("button", name="Take a sample").click()
    screenshot("admin-pictures", 900)
    expect(page.locator(".dynamo-picture svg").first).to_contain_text("PEOPLE#ann")
    expect(page.get_by_role("button", name="Take a new sample")).to_be_visible()
