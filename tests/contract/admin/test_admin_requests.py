"""The requests of each page in addition to the session and the user, unless another test counts them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import Group
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.testing import assert_requests, capture_requests
from project.directory.models import Company, Office, Person
from tests.contract.conftest import NO_INLINES, SIGNED_IN, Pages

COMPANY = "directory/company/"


@pytest.fixture
def filled(pages: Pages) -> dict[str, str]:
    """A company with a person and an office, one in the trash, a group, a job: by name."""
    company = Company.objects.create(company_id="c", name="Acme")
    person = Person.objects.create(company=company, person_id="p", name="Anna")
    Office.objects.create(company=company, office_id="o", city="Ulm")
    Company.objects.create(company_id="b", name="Bolt")
    pages.post(f"{COMPANY}b/delete/", {"post": "yes"})
    group = Group.objects.create(name="Editors")
    job = AdminJob.objects.create(
        user_key=str(pages.user.pk),
        label="directory.company",
        action="delete",
        keys=["c"],
        expires_at="2099-01-01T00:00:00Z",
    )
    return {"person": person.pk, "group": group.pk, "job": job.job_id, "me": pages.user.pk}


READ = {
    "directory/": [],
    "jsi18n/": [],
    "password_change/": [],
    "password_change/done/": [],
    "r/1/x/": [],
    f"{COMPANY}?q=A": ["Query"],
    f"{COMPANY}?q=A&scan=": ["Query"],
    f"{COMPANY}nothing/change/": ["GetItem"],
    f"{COMPANY}c/history/": ["GetItem", "Query"],
    f"{COMPANY}b/change/": ["GetItem", "Query", "Query", "Query", "Query", "GetItem"],
    f"{COMPANY}b/delete/": ["GetItem", "Query"],
    f"{COMPANY}b/history/": ["GetItem", "Query", "GetItem"],
    f"{COMPANY}c/restore/": [],
    "directory/person/?q=A": ["Query", "GetItem"],
    "directory/person/{person}/change/": ["GetItem", "GetItem"],
    "directory/person/{person}/delete/": ["GetItem"],
    "directory/person/{person}/history/": ["GetItem", "Query"],
    "directory/office/": ["Query", "GetItem"],
    "directory/office/add/": [],
    "accounts/group/": ["Query"],
    "accounts/group/add/": [],
    "accounts/group/{group}/change/": ["GetItem"],
    "accounts/group/{group}/delete/": ["GetItem"],
    "accounts/group/{group}/history/": ["GetItem", "Query"],
    "accounts/user/add/": [],
    "accounts/user/{me}/delete/": ["GetItem"],
    "accounts/user/{me}/history/": ["GetItem", "Query"],
    "accounts/user/{me}/password/": ["GetItem"],
    "autocomplete/?app_label=directory&model_name=office&field_name=company&term=": ["Query"],
    "autocomplete/?app_label=directory&model_name=nothing&field_name=company&term=": [],
    "dynamodb/table/": [],
    "dynamodb/table/?index=gs1&pk=COMPANY": ["Query"],
    "dynamodb/table/?index=gs9&pk=COMPANY": [],
    "dynamodb/table/?pk=nothing": ["Query"],
    "dynamodb/item/?pk=nothing&sk=nothing": ["GetItem"],
    "dynamodb/item/?pk=nothing": [],
    "dynamodb/health/?check=": ["Scan", "BatchGetItem", "DescribeTable"],
    "dynamodb/health/?check=wrong": [],
    "dynamodb/jobs/{job}/": ["GetItem", "GetItem", "Query"],
    "dynamodb/jobs/nothing/": ["GetItem"],
}


def test_each_page_sends(pages: Pages, filled: dict[str, str]) -> None:
    """No page writes when it is shown, so all use the same data."""
    found: dict[str, list[str]] = {}
    for path in READ:
        with capture_requests() as sent:
            pages.get(path.format(**filled))
        found[path] = [each.operation for each in sent]
    assert found == {path: [*SIGNED_IN, *sends] for path, sends in READ.items()}


def _acting(action: str, *keys: str, **more: str) -> dict[str, Any]:
    return {"action": action, "_selected_action": keys, **more}


WRITTEN: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a form that is refused": (f"{COMPANY}c/change/", {"name": "", **NO_INLINES}, ["GetItem", "Query", "Query"]),
    "a new form that is refused": (f"{COMPANY}add/", {"name": "", **NO_INLINES}, []),
    "an action that is not there": (COMPANY, _acting("nothing", "c"), []),
    "an action on nothing": (COMPANY, _acting("delete_selected"), []),
    "an action on what is gone": (COMPANY, _acting("delete_selected", "gone", post="yes"), ["GetItem"]),
    "restored by the list": (
        f"{COMPANY}?trash=yes",
        _acting("restore_selected", "b"),
        ["GetItem", "Query", "UpdateItem", "Query", "PutItem"],
    ),
    "deleted for good": (
        f"{COMPANY}b/delete/",
        {"post": "yes"},
        ["GetItem", "Query", "Query", "DeleteItem", "Query", "PutItem"],
    ),
    "restored though it is not in the trash": (f"{COMPANY}c/restore/", {}, ["GetItem"]),
    "restored though it is gone": (f"{COMPANY}gone/restore/", {}, ["GetItem"]),
    "a group": ("accounts/group/add/", {"name": "Readers"}, ["GetItem", "TransactWriteItems"]),
    "a group changed": (
        "accounts/group/{group}/change/",
        {"name": "Readers"},
        ["GetItem", "GetItem", "TransactWriteItems"],
    ),
    "a group deleted": (
        "accounts/group/{group}/delete/",
        {"post": "yes"},
        ["GetItem", "TransactWriteItems", "Query", "PutItem"],
    ),
    "a person deleted": ("directory/person/{person}/delete/", {"post": "yes"}, ["GetItem", "UpdateItem", "PutItem"]),
    "a job carried on": (
        "dynamodb/jobs/{job}/",
        {},
        ["GetItem", "UpdateItem", "GetItem", "Query", "Query", "TransactWriteItems", "Query", "PutItem", "UpdateItem"],
    ),
    "a password refused": (
        "password_change/",
        {"old_password": "wrong"},
        ["BatchGetItem", "UpdateItem", "UpdateItem", "UpdateItem"],
    ),
    "somebody's password refused": ("accounts/user/{me}/password/", {"password1": "a", "password2": "b"}, ["GetItem"]),
}


@pytest.mark.parametrize("what", WRITTEN)
def test_a_form_sends(pages: Pages, filled: dict[str, str], what: str) -> None:
    """Count the requests of a submitted form."""
    path, data, sends = WRITTEN[what]
    pages.post(path.format(**filled), data, sends=sends)


def test_the_login_page_sends_nothing(table: object) -> None:
    """To a visitor."""
    with assert_requests(0):
        assert Client().get("/admin/login/").status_code == 200


def test_a_visitor_is_sent_to_the_login_page_without_a_request(table: object) -> None:
    """From any page."""
    with assert_requests(0):
        assert Client().get(f"/admin/{COMPANY}").status_code == 302


#: The number of attempts, the current attempt, and the user's name.
ASKED = ["BatchGetItem", "UpdateItem", "Query", "GetItem"]


@pytest.mark.parametrize(
    ("password", "sends"),
    [
        ("secret", [*ASKED, "DeleteItem", "UpdateItem", "PutItem"]),
        ("wrong", [*ASKED, "UpdateItem", "UpdateItem"]),
    ],
)
def test_logging_in_sends(pages: Pages, password: str, sends: list[str]) -> None:
    """A login clears the attempts, records the login and stores the session; a failure is counted."""
    client = Client()
    with assert_requests(sends):
        client.post("/admin/login/", {"username": "admin@example.com", "password": password})


def test_logging_out_takes_the_session_away(pages: Pages) -> None:
    """The session and the user come in addition."""
    pages.post("logout/", sends=["TransactWriteItems"])
