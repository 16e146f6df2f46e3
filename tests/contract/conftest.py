"""Helpers for tests of the admin: its pages for a logged-in user, with their requests."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from copy import deepcopy
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import clear_url_caches, path
from msgspec import Struct

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.table import Request, Table, batches
from dynamo_single.table.batches import Item
from dynamo_single.test_tables import contents
from dynamo_single.testing import assert_requests

#: The first requests of every page of a logged-in user: the session and the user.
SIGNED_IN = ("GetItem", "GetItem")
#: The empty management forms of the company's inlines.
NO_INLINES = {
    f"{prefix}-{name}": "0" for prefix in ("person_set", "office_set") for name in ("TOTAL_FORMS", "INITIAL_FORMS")
}


class Pages:
    """The admin's pages for one user; each call asserts the page's requests after the session and the user."""

    def __init__(self, user: Any, client: Client | None = None) -> None:
        self.user = user
        self.client = client or Client()
        if client is None:
            self.client.force_login(user)

    def get(self, path: str, *, sends: Sequence[str] | None = None) -> Any:
        """Open a page."""
        return self._asserted(lambda: self.client.get(f"/admin/{path}"), sends)

    def post(self, path: str, data: Any = None, *, sends: Sequence[str] | None = None) -> Any:
        """Send a form."""
        return self._asserted(lambda: self.client.post(f"/admin/{path}", data or {}), sends)

    def _asserted(self, call: Any, sends: Sequence[str] | None) -> Any:
        if sends is None:
            return call()
        with assert_requests([*SIGNED_IN, *sends]):
            return call()


#: Registers a model with an admin of these options, and gives the pages.
Registering = Callable[..., Pages]


def text_of(response: Any) -> str:
    """Return the text of a page without its tags."""
    body = re.sub(r"<(script|style).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


def shown(response: Any, column: str = "name") -> list[str]:
    """Return the cells of the list's column with links."""
    return re.findall(rf'class="field-{column}"><a [^>]*>([^<]*)</a>', response.content.decode())


def link(response: Any, which: str) -> str:
    """Return the target of the link to the previous or next page."""
    (found,) = re.findall(rf'<a href="([^"]*)" rel="{which}"', response.content.decode())
    return html.unescape(found)


class SignedIn(Struct, frozen=True):
    """A logged-in user: the items of the user and the session, the object at that time, and the cookies."""

    items: Sequence[Item]
    user: Any
    cookies: Any

    @classmethod
    def superuser(cls, table: Table) -> SignedIn:
        """Create a user with the requests of any project."""
        before = contents.read(table)
        pages = Pages(get_user_model()._default_manager.create_superuser("admin", "admin@example.com", "secret"))
        after = contents.read(table)
        return cls([after[key] for key in after.keys() - before.keys()], pages.user, pages.client.cookies)

    def again(self, table: Table) -> Pages:
        """Restore the user in another test's table with one BatchWriteItem."""
        writes = [{"PutRequest": {"Item": item}} for item in self.items]
        # Counts of a test's requests exclude it.
        Context().run(table.send, Request("BatchWriteItem", {"RequestItems": {table.name: writes}}))
        client = Client()
        client.cookies = deepcopy(self.cookies)
        return Pages(deepcopy(self.user), client)


_superuser: list[SignedIn] = []


def superuser(table: Table) -> Pages:
    """Return the admin for a superuser, who is created once."""
    if not _superuser:
        _superuser.append(SignedIn.superuser(table))
    return _superuser[0].again(table)


@pytest.fixture
def attempts_at_once(monkeypatch: pytest.MonkeyPatch, table: Table) -> Iterator[None]:
    """Attempts run without pauses, and tests do not know each other's permissions."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    monkeypatch.setattr("dynamo_single.table.batches.LONGEST_PAUSE", 0.0)
    batches._warn.cache_clear()
    yield
    table.takes_statements = True


@pytest.fixture
def pages(table: Table) -> Pages:
    """The admin as a superuser sees it."""
    return superuser(table)


@pytest.fixture
def catalog(pages: Pages, request: pytest.FixtureRequest, settings: Any) -> Pages:
    """The admin of the models that the test's own module registers, by its ``urlpatterns``."""
    settings.ROOT_URLCONF = request.module.__name__
    return pages


@pytest.fixture
def staff(table: Table) -> Any:
    """Return the admin for a user with only the named permissions."""

    def with_permissions(*permissions: str) -> Pages:
        user = get_user_model()._default_manager.create_user(
            "staff", "staff@example.com", "secret", is_staff=True, permissions=set(permissions) or None
        )
        return Pages(user)

    return with_permissions


@pytest.fixture(autouse=True)
def _jobs_run_on_their_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a worker, except in the tests of tasks: the settings of Django 6 have one."""
    if find_spec("django.tasks") is not None and "contrib/tasks" not in str(request.path):
        monkeypatch.setattr(DynamoAdminSite, "enqueue_job", lambda *args: False)


@pytest.fixture
def registered(pages: Pages, settings: Any) -> Iterator[Registering]:
    """Registers a model with an admin of these options, on a site of its own, and gives the pages."""

    def register(model: Any, **options: Any) -> Pages:
        site = DynamoAdminSite()
        all_sites.discard(site)  # the checks look at all of them
        site.register(model, type("OwnAdmin", (DynamoModelAdmin,), options))
        urls: Any = ModuleType("urls")
        urls.urlpatterns = [path("admin/", site.urls)]
        settings.ROOT_URLCONF = urls
        return pages

    yield register
    clear_url_caches()
