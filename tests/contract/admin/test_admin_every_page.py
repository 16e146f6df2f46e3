"""The requests of every page of the demo's admin, by URL name: a new page needs an entry here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.urls import NoReverseMatch, URLPattern, reverse

from accounts.models import Group
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.testing import capture_requests
from project.chat.models import Member, Message, Profile, Server
from project.directory.models import Company, Office, Person
from project.records.models import Book
from project.service.models import Beneficiary, Email, User
from tests.contract.conftest import SIGNED_IN, Pages

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture
def stored(pages: Pages) -> dict[str, str]:
    """The keys of an object of each model, and of a job."""
    company = Company.objects.create(company_id="c", name="Acme")
    server = Server.objects.create(server_id="s", name="Chess")
    profile = Profile.objects.create(profile_id="p", username="pip")
    beneficiary = Beneficiary.objects.create(beneficiary_id="b", name="School")
    user = User.objects.create(user_id="u", beneficiary=beneficiary, first_name="Inés", last_name="Gómez")
    objects = [
        company,
        Person.objects.create(company=company, person_id="p", name="Anna"),
        Office.objects.create(company=company, office_id="o", city="Ulm"),
        Book.objects.create(id="book-1", data={"title": "A", "author": {"lastname": "Bee"}, "price": 3}),
        server,
        profile,
        Member.objects.create(server=server, user=profile),
        Message.objects.create(server=server, author="pip", text="Hello"),
        beneficiary,
        user,
        Email.objects.create(email="ines@example.com", user=user),
        Group.objects.create(name="Editors"),
    ]
    job = AdminJob.objects.create(
        user_key=str(pages.user.pk),
        label="directory.company",
        action="delete",
        keys=["c"],
        expires_at="2099-01-01T00:00:00Z",
    )
    return {
        **{obj._meta.label_lower: obj.pk for obj in objects},
        "accounts.user": pages.user.pk,
        "auth.user": pages.user.pk,
        "auth.group": "1",
        "dynamodb.job": job.job_id,
        "app.list": "directory",
    }


READ = ["GetItem"]
LOGGED = ["GetItem", "Query"]
#: The requests of each page in addition to the session and the user.
SENT: dict[str, list[str]] = {
    "index": ["Query"],
    "login": [],
    "password_change": [],
    "password_change_done": [],
    "jsi18n": [],
    "autocomplete": ["Query"],
    "view_on_site": [],
    "app_list": [],
    "dynamodb_table": ["Query"],
    "dynamodb_item": READ,
    "dynamodb_table_download": ["Query"],
    "dynamodb_pictures": READ,
    "dynamodb_patterns": [],
    "dynamodb_patterns_svg": [],
    "dynamodb_health": ["DescribeTable", "DescribeTimeToLive", "GetItem"],
    "dynamodb_log": ["Query"],
    "dynamodb_job": [*READ, "GetItem", "Query"],
    "dynamodb_jobs": ["Query"],
    "auth_user_password_change": READ,
}
#: The requests of each model's list, add page, object page and delete confirmation.
OF_MODELS: dict[str, tuple[list[str], list[str], list[str], list[str]]] = {
    "auth_group": ([], [], [], []),
    "accounts_group": (["Query"], [], READ, READ),
    # A deletion takes the user's tokens of dynamo_single.contrib.rest_framework along.
    "accounts_user": (["Query"], [], ["GetItem", "Query"], READ),
    "directory_company": (["Query"], [], ["GetItem", "Query"], ["GetItem", "Query"]),
    "directory_person": (["Query", "GetItem"], [], ["GetItem", "GetItem"], READ),
    "directory_office": (["Query", "GetItem"], [], ["GetItem", "GetItem"], READ),
    "records_book": (["Query"], [], READ, READ),
    "service_user": (["Query", "Query", "GetItem"], ["Query"], ["GetItem", "Query", "Query"], READ),
    "service_email": (["Query", "GetItem"], [], ["GetItem", "GetItem"], READ),
    "service_beneficiary": (["Query"], [], READ, READ),
    "chat_server": (["Query"], [], READ, ["GetItem", "Query", "Query"]),
    "chat_profile": (["Query"], [], ["GetItem", "Query", "GetItem"], ["GetItem", "Query"]),
    "chat_member": (["Query", "Query", "GetItem"], [], ["GetItem", "GetItem", "GetItem"], READ),
    "chat_message": (["Query", "Query", "GetItem"], [], ["GetItem", "GetItem"], READ),
}
PAGES = {
    **SENT,
    **{
        f"{model}_{page}": sent
        for model, counts in OF_MODELS.items()
        for page, sent in zip(("changelist", "add", "change", "delete"), counts, strict=True)
    },
    **{f"{model}_history": LOGGED if model != "auth_group" else [] for model in OF_MODELS},
}
#: Pages that only accept forms: the tests of these forms count their requests.
FORMS = {"logout", *(f"{model}_restore" for model in OF_MODELS if model.startswith(("directory_", "records_")))}
#: The query strings of some pages.
ASKED = {
    "autocomplete": "?app_label=directory&model_name=person&field_name=company&term=A",
    "dynamodb_table": "?pk=COMPANY%23c",
    "dynamodb_table_download": "?pk=COMPANY%23c",
    "dynamodb_item": "?pk=COMPANY%23c&sk=%23METADATA",
}
#: Pages without status 200: a logged-in user does not need the login, and there is no SQL.
STATUS = {"login": 302, "view_on_site": 404}


def names(patterns: Any = None) -> Iterator[str]:
    """The names of the admin's addresses."""
    for pattern in admin.site.get_urls() if patterns is None else patterns:
        if not isinstance(pattern, URLPattern):
            yield from names(pattern.url_patterns)
        elif pattern.name is not None:
            yield pattern.name


def address(name: str, stored: dict[str, str]) -> str:
    """Return the URL of a page, with the stored object if necessary."""
    key = stored.get(".".join(name.split("_")[:2]), "")
    for given in ([], [key], ["1", "x"]):
        try:
            return reverse(f"admin:{name}", args=given) + ASKED.get(name, "")
        except NoReverseMatch:
            continue
    raise AssertionError(f"{name} takes other arguments.")


def test_every_address_is_counted() -> None:
    """A page that is new, or of a model that is new, has its requests in this file."""
    assert {*names()} == {*PAGES, *FORMS}


def test_each_page_sends(pages: Pages, stored: dict[str, str]) -> None:
    """No page writes when it is shown, so all use the same data."""
    found: dict[str, tuple[int, list[str]]] = {}
    for name in PAGES:
        path = address(name, stored)
        with capture_requests() as sent:
            status = pages.client.get(path).status_code
        found[name] = status, [each.operation for each in sent]
    assert found == {
        name: (404 if name.startswith("auth_group") else STATUS.get(name, 200), [*SIGNED_IN, *sends])
        for name, sends in PAGES.items()
    }


def test_no_form_is_asked_for(pages: Pages, stored: dict[str, str]) -> None:
    """A link to a form does not send requests or change anything."""
    answers = {}
    for name in FORMS:
        answers[name] = pages.get(address(name, stored).removeprefix("/admin/"), sends=[]).status_code
    assert answers == dict.fromkeys(FORMS, 405)
