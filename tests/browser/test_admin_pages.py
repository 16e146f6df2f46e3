"""All pages of the admin that are ours, on a small screen and under a strict policy for what they may load."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from dynamo_single.admin.jobs.models import AdminJob
from dynamo_single.clock import now
from project.directory.models import Company, Office, Person

#: What a browser is told to refuse: scripts and styles within a page, and whatever comes from elsewhere.
STRICT = "default-src 'self'; img-src 'self' data:"


@pytest.fixture
def paths(signed_in: Page, admin: Any) -> list[str]:
    """Addresses with something on them: lists, forms, the trash, a job, the pages of the table, health and the log."""
    acme = Company.objects.create(company_id="acme", name="Acme " + "and Sons " * 8, stock="ACM")
    Person.objects.create(company=acme, person_id="ann", name="Ann Lee", email=f"{'a' * 60}@example.com")
    Office.objects.create(company=acme, office_id="ghent", city="Ghent", address="1 Example Street, " * 9)
    Company.objects.create(company_id="old", name="Old").delete()
    job = AdminJob.objects.create(
        user_key=str(admin.pk),
        label="directory.company",
        action="delete",
        keys=["acme"],
        expires_at=now() + timedelta(hours=1),
    )
    return [
        *("", "directory/company/", "directory/company/?trash=yes", "directory/company/?q=acme"),
        *(f"directory/company/{path}/" for path in ("add", "acme/change", "acme/delete", "acme/history", "old/change")),
        f"dynamodb/jobs/{job.job_id}/",
        *("dynamodb/table/", "dynamodb/table/?pk=COMPANY%23acme", "dynamodb/table/?begins=COMP"),
        "dynamodb/item/?pk=COMPANY%23acme&sk=PEOPLE%23ann",
        *("dynamodb/patterns/", "dynamodb/health/?check=", "dynamodb/log/", "directory/person/add/"),
    ]


def test_no_page_is_wider_than_a_small_screen(
    signed_in: Page, paths: list[str], picture: Callable[[str], None]
) -> None:
    """Nothing has to be scrolled sideways, whatever is long."""
    signed_in.set_viewport_size({"width": 360, "height": 800})
    signed_in.emulate_media(color_scheme="dark")
    wide = []
    for number, path in enumerate(paths):
        signed_in.goto(f"/admin/{path}")
        picture(f"admin-phone-{number:02}")
        if signed_in.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            wide.append(path)
    assert wide == []


def test_every_page_works_under_a_strict_content_security_policy(signed_in: Page, paths: list[str]) -> None:
    """The browser refuses nothing: no script and no style is within a page, and nothing comes from elsewhere."""

    def strict(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": STRICT})

    signed_in.route(re.compile(r":\d+/admin/"), strict)
    refused: list[str] = []
    signed_in.on("console", lambda message: refused.append(f"{signed_in.url}: {message.text}"))
    for path in paths:
        signed_in.goto(f"/admin/{path}")
    assert refused == []
