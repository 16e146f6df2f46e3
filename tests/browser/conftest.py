"""The demo in headless Chromium: a server in a thread of its own and a browser for all tests, and a page for each.

Only ``make test-browser`` and ``make screenshots`` collect these tests, and pass the path of Chromium.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application
from django.test import Client, override_settings

from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.clock import now
from dynamo_single.table import Table
from project.directory.models import Company, Office, Person

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = os.environ.get("TEST_BROWSER")
collect_ignore_glob = [] if CHROMIUM else ["test_*.py"]
if CHROMIUM:
    # Playwright's synchronous calls run an event loop in the thread of the tests, which prepare their data there.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

ROOT = Path(__file__).resolve().parents[2]
#: The folder for screenshots of pages.
PICTURES = ROOT / "var" / "pictures"
#: ``TEST_SCREENSHOTS=1`` runs only the tests that picture something for the docs, and keeps it there.
SCREENSHOTS = ROOT / "docs" / "images" if os.environ.get("TEST_SCREENSHOTS") else None
#: Seconds to wait for a page's content; more on a busy machine.
PATIENCE = float(os.environ.get("TEST_BROWSER_PATIENCE", "15"))
PASSWORD = "a-good-password"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Select the screenshots for the docs or for comparisons, on request."""
    if SCREENSHOTS:
        items[:] = [item for item in items if {"screenshot", "look"} & {*getattr(item, "fixturenames", ())}]


class Server(ThreadingMixIn, WSGIServer):
    """Respond to several requests in parallel, as a browser sends them."""

    daemon_threads = True


class Quiet(WSGIRequestHandler):
    """Prints no line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="session")
def address(engine: Table) -> Iterator[str]:
    """The demo's address."""
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        server = make_server("127.0.0.1", 0, StaticFilesHandler(get_wsgi_application()), Server, Quiet)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start one Chromium for all tests."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, address: str, table: Table) -> Iterator[Page]:
    """A page of a new visitor, with an empty table behind it; an error of a script on it fails the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    errors: list[Any] = []
    page.on("pageerror", lambda error: errors.append(error))
    yield page
    context.close()
    assert errors == []


@pytest.fixture
def admin(table: Table) -> Any:
    """A superuser."""
    return get_user_model()._default_manager.create_superuser("admin", "admin@example.com", PASSWORD)


@pytest.fixture
def signed_in(page: Page, admin: Any, address: str) -> Page:
    """A page of the superuser, who has signed in already; the tests of the logins do it themselves."""
    client = Client()
    client.force_login(admin)
    name = settings.SESSION_COOKIE_NAME
    page.context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": address}])
    return page


@pytest.fixture
def acme(table: object) -> Company:
    """A company with two people and an office."""
    company = Company.objects.create(company_id="acme", name="Acme", stock="ACM")
    Person.objects.create(company=company, person_id="ann", name="Ann Lee", email="ann@example.com", role="founder")
    Person.objects.create(company=company, person_id="ben", name="Ben Ode", email="ben@example.com")
    Office.objects.create(company=company, office_id="ghent", city="Ghent", address="1 Example Street")
    return company


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
        *("directory/company/?q=acme&scan=", "directory/company/?nothing=1", "directory/company/old/delete/"),
        *("password_change/", f"accounts/user/{admin.pk}/password/", "accounts/group/add/"),
        *(f"directory/company/{path}/" for path in ("add", "acme/change", "acme/delete", "acme/history", "old/change")),
        *("dynamodb/jobs/", f"dynamodb/jobs/{job.job_id}/"),
        *("dynamodb/table/", "dynamodb/table/?pk=COMPANY%23acme", "dynamodb/table/?begins=COMP"),
        "dynamodb/item/?pk=COMPANY%23acme&sk=PEOPLE%23ann",
        *(
            "dynamodb/pictures/",
            "dynamodb/patterns/",
            "dynamodb/health/?check=",
            "dynamodb/log/",
            "directory/person/add/",
        ),
    ]


@pytest.fixture
def picture(page: Page) -> Callable[[str], None]:
    """Keeps a picture of the page under a name."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    return lambda name: page.screenshot(path=PICTURES / f"{name}.png", full_page=True) and None


@pytest.fixture
def screenshot(page: Page) -> Callable[[str, int], None]:
    """Keeps a picture for the docs under a name, of a page so many pixels high."""
    folder = SCREENSHOTS or PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    # Hide the list of all models next to each page.
    page.add_init_script("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")

    def keep(name: str, height: int) -> None:
        page.set_viewport_size({"width": 1120, "height": height})
        page.screenshot(path=folder / f"{name}.png")

    return keep
