"""The demo's page with the e-mails and text messages that it would send."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from django.core import mail
from django.test import Client, override_settings

from dynamo_single.testing import assert_requests
from project.site.mails import outbox, show
from tests.contract.conftest import superuser
from tests.ready import table_ready

BACKEND = "project.site.mails.EmailBackend"
# Django 6.1 refuses EMAIL_BACKEND next to MAILERS.
MAILS = {"MAILERS": {"default": {"BACKEND": BACKEND}}} if hasattr(mail, "mailers") else {"EMAIL_BACKEND": BACKEND}

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def sending() -> Iterator[None]:
    """Send as the demo does; begin with no e-mails."""
    outbox.clear()
    with override_settings(DEBUG=True, **MAILS):
        yield
    outbox.clear()


def test_page_links_to_the_new_password(table: object, client: Client) -> None:
    """The link of the e-mail works, by a click on the page."""
    superuser(table_ready())
    client.post("/accounts/password_reset/", {"email": "admin@example.com"})
    page = client.get("/mails/").content.decode()
    (link,) = re.findall(r'href="http://[^/]+(/accounts/reset/[^"]+)"', page)
    assert "Set the password" in client.get(unescape(link), follow=True).content.decode()


def test_page_shows_texts_newest_first(client: Client) -> None:
    """A telephone receives nothing, and the page sends no request."""
    show("+12025550123", "1111")
    show("+12025550123", "2222")
    with assert_requests([]):
        page = client.get("/mails/").content.decode()
    assert re.findall("1111|2222", page) == ["2222", "1111"]


def test_old_mails_are_dropped(client: Client) -> None:
    """The page keeps 50."""
    for number in range(60):
        show("+12025550123", f"Text {number}.")
    assert [each.body for each in outbox] == [f"Text {number}." for number in range(10, 60)]


def test_page_is_missing_without_debug(client: Client) -> None:
    """The links lead to accounts."""
    with override_settings(DEBUG=False):
        assert client.get("/mails/").status_code == 404
