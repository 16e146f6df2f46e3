"""The demo in headless Chromium: a server in a thread of its own, a browser for all tests, and a page for each.

Collected by ``make test-browser`` only, which says where Chromium is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application
from django.test import override_settings

from dynamo_single.table import Table

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = os.environ.get("TEST_BROWSER")
collect_ignore_glob = [] if CHROMIUM else ["test_*.py"]
if CHROMIUM:
    # Playwright's synchronous calls run an event loop in the thread of the tests, which prepare their data there.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

#: Where pages are pictured, to be looked at.
PICTURES = Path(__file__).resolve().parents[2] / "var" / "pictures"
PASSWORD = "a-good-password"


class Server(ThreadingMixIn, WSGIServer):
    """Answers several requests at once, as a browser sends them."""

    daemon_threads = True


class Quiet(WSGIRequestHandler):
    """Prints no line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def address(table: Table) -> Iterator[str]:
    """The demo's address, with an empty table behind it."""
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
    """One Chromium for all tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page of a new visitor; an error of a script on it fails the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
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
def signed_in(page: Page, admin: Any) -> Page:
    """The admin's index, as the superuser sees it."""
    page.goto("/admin/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.click("input[type=submit]")
    page.wait_for_url("**/admin/")
    return page


@pytest.fixture
def picture(page: Page) -> Callable[[str], None]:
    """Keeps a picture of the page under a name."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    return lambda name: page.screenshot(path=PICTURES / f"{name}.png", full_page=True) and None
