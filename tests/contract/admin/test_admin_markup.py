"""Stored markup is text on every page of the admin, for every user."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import Group
from dynamo_single.admin.batch_actions.models import AdminJob
from project.directory.models import Company, Office, Person
from tests.contract.conftest import NO_INLINES, Pages

MARKUP = "<script>alert('x')</script>&amp;"
COMPANY = "directory/company/"


@pytest.fixture
def marked(pages: Pages) -> dict[str, str]:
    """The keys of a company, its person, a company in the trash, a group and a job, each with markup for a name."""
    company = Company.objects.create(company_id="c", name=MARKUP, stock=MARKUP)
    Person.objects.create(company=company, person_id="p", name=MARKUP)
    Office.objects.create(company=company, office_id="o", city=MARKUP, address=MARKUP)
    binned = Company.objects.create(company_id="b", name=MARKUP)
    pages.post(f"{COMPANY}b/delete/", {"post": "yes"})
    group = Group.objects.create(name=MARKUP)
    job = AdminJob.objects.create(
        user_key=str(pages.user.pk),
        label="directory.company",
        action="delete",
        keys=["c"],
        failures=[["c", MARKUP, MARKUP]],
        failed=1,
        expires_at="2099-01-01T00:00:00Z",
    )
    return {"company": company.pk, "binned": binned.pk, "group": group.pk, "job": job.pk.rpartition("~")[2]}


def shows_as_text(page: Any) -> bool:
    """Return whether a page contains the markup only as text."""
    body = page.content.decode()
    assert page.status_code == 200
    assert MARKUP not in body
    assert "<script>alert" not in body
    return html.escape(MARKUP) in body or MARKUP in html.unescape(body)


@pytest.mark.parametrize(
    "path",
    [
        *("", COMPANY, f"{COMPANY}?trash=yes", "directory/person/", "directory/office/"),
        *(f"{COMPANY}{{company}}/{page}/" for page in ("change", "delete", "history")),
        *(f"{COMPANY}{{binned}}/{page}/" for page in ("change", "delete", "history")),
        *("accounts/group/", "accounts/group/{group}/change/", "accounts/group/{group}/delete/", "accounts/user/add/"),
        *("dynamodb/table/?pk=COMPANY%23c", "dynamodb/table/?begins=COMPANY", "dynamodb/jobs/{job}/"),
        "dynamodb/item/?pk=COMPANY%23c&sk=%23METADATA",
    ],
)
def test_a_page_shows_it_as_text(pages: Pages, marked: dict[str, str], path: str) -> None:
    """This includes names, values, keys and reasons."""
    assert shows_as_text(pages.get(path.format(**marked)))


@pytest.mark.parametrize(
    "path", [f"{COMPANY}?q={{0}}", f"{COMPANY}?stock={{0}}", f"{COMPANY}?q={{0}}&scan=", f"{COMPANY}add/?name={{0}}"]
)
def test_what_an_address_asks_is_shown_as_text(pages: Pages, path: str) -> None:
    """A link can be anybody's."""
    address = path.format(MARKUP.replace("&", "%26").replace(";", "%3B"))
    assert b"<script>alert" not in pages.get(address).content


def _answer_of(pages: Pages, path: str, data: dict[str, Any]) -> Any:
    answer = pages.post(path, data)
    return pages.client.get(answer.headers["Location"]) if answer.status_code == 302 else answer


CHANGED = {"name": MARKUP, "stock": "S", **NO_INLINES}


@pytest.mark.parametrize(
    "send",
    [
        lambda pages: _answer_of(pages, f"{COMPANY}add/", {"name": MARKUP, **NO_INLINES}),
        lambda pages: _answer_of(pages, f"{COMPANY}c/change/", CHANGED),
        lambda pages: _answer_of(pages, f"{COMPANY}c/delete/", {"post": "yes"}),
        lambda pages: _answer_of(pages, f"{COMPANY}b/restore/", {}),
        lambda pages: _answer_of(pages, f"{COMPANY}c/change/", {"name": "", "stock": MARKUP, **NO_INLINES}),
        lambda pages: _answer_of(pages, COMPANY, {"action": "delete_selected", "_selected_action": ["c"]}),
    ],
    ids=["added", "changed", "deleted", "restored", "refused", "asked"],
)
def test_an_answer_shows_it_as_text(pages: Pages, marked: dict[str, str], send: Callable[[Pages], Any]) -> None:
    """This includes messages, invalid forms and confirmations."""
    assert shows_as_text(send(pages))
