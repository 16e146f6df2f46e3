"""Health checks the whole table after one click, with progress and a total."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from dynamo_single.contrib.table_admin import health
from dynamo_single.table import Request, Table
from project.directory.models import Company


def test_one_click_checks_whole_table(signed_in: Page, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts of the table are read, and their findings are listed."""
    monkeypatch.setattr(health, "PAGE", 10)
    Company.objects.bulk_create(Company(company_id=f"c{number:02}", name="Acme") for number in range(40))
    for number in (3, 17, 38):
        item = {"pk": {"S": f"OTHER#{number}"}, "sk": {"S": "#"}, "itemType": {"S": "Other"}}
        table.send(Request("PutItem", {"Item": item}))
    page = signed_in
    page.goto("/admin/dynamodb/health/")
    page.get_by_role("link", name="Check the items").click()
    expect(page.locator(".scan-progress")).to_contain_text("This is the end of the table.")
    expect(page.locator(".scan-progress")).to_contain_text("3 problems were found.")
    assert page.locator("#findings tbody tr").count() == 3
    assert page.locator("progress").evaluate("bar => bar.value === bar.max")
