"""Sessions with Django's middleware: the requests of each page, its cookie, and the messages framework."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.test import AsyncClient, Client, override_settings

from dynamo_single import exceptions, testing
from dynamo_single.sessions import Session, key_hash
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests

Sent = list[SentRequest]
MEMORY = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "sessions-over-http"}}
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
STORAGES = ["cookie.CookieStorage", "session.SessionStorage", "fallback.FallbackStorage"]


@pytest.fixture
def pages(table: Table) -> Iterator[None]:
    """Install only the middleware of sessions and messages."""
    with override_settings(ROOT_URLCONF="tests.contract.sessions.session_views", MIDDLEWARE=MIDDLEWARE, CACHES=MEMORY):
        yield


@pytest.fixture
def browser(pages: None) -> Client:
    """Return the client of a visitor with a session."""
    browser = Client()
    browser.get("/change/?colour=green")
    return browser


def get(browser: Client, address: str, sends: Sequence[str]) -> Any:
    """Open a page that sends exactly these requests."""
    with assert_requests(sends):
        return browser.get(address)


def stored(browser: Client) -> Session:
    """The session of a cookie."""
    return Session.objects.get(pk=key_hash(browser.cookies["sessionid"].value))


def test_a_page_sends_what_it_needs(browser: Client) -> None:
    """A used session takes one read, a changed one takes one write, and an unused one no request."""
    get(browser, "/ignore/", [])
    assert get(browser, "/show/", ["GetItem"]).json() == {"colour": "green"}
    get(browser, "/change/?colour=red", ["GetItem", "UpdateItem"])
    assert get(browser, "/show/", ["GetItem"]).json() == {"colour": "red"}


def test_a_first_page(pages: None) -> None:
    """The first stored value creates the session in one write."""
    browser = Client()
    get(browser, "/show/", [])
    assert "sessionid" not in browser.cookies
    get(browser, "/change/?a=1", ["PutItem"])
    assert stored(browser).get_decoded() == {"a": "1"}


def test_saving_with_every_request(browser: Client) -> None:
    """SESSION_SAVE_EVERY_REQUEST writes once per page, even if the page does not use the session."""
    with override_settings(SESSION_SAVE_EVERY_REQUEST=True):
        get(browser, "/show/", ["GetItem", "UpdateItem"])
        before = stored(browser).updated_at
        get(browser, "/ignore/", ["GetItem", "UpdateItem"])
        assert stored(browser).updated_at > before


def test_logging_out(browser: Client) -> None:
    """The item and the cookie are deleted, and the old cookie is invalid."""
    cookie = browser.cookies["sessionid"].value
    get(browser, "/log_out/", ["TransactWriteItems"])
    assert browser.cookies["sessionid"].value == ""
    browser.cookies["sessionid"] = cookie
    assert get(browser, "/show/", ["GetItem"] * 2).json() == {}


def test_a_page_that_fails_saves_nothing(browser: Client) -> None:
    """Django does not save the session of a page with a server error."""
    browser.raise_request_exception = False
    get(browser, "/fail/", ["GetItem"])
    assert browser.get("/show/").json() == {"colour": "green"}


def test_a_session_that_ends_while_a_page_is_made(browser: Client) -> None:
    """The page has Django's error, and the session is not recreated."""
    answer = browser.get("/overtaken/")
    assert answer.status_code == 400
    assert Session.objects.using_index("primary").allow_scan().count() == 0


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ResourceNotFoundException"])
@pytest.mark.parametrize("address", ["/show/", "/change/?a=1", "/log_out/"])
def test_a_table_that_does_not_answer_is_no_logout(browser: Client, code: str, address: str) -> None:
    """The page fails, the cookie stays, and afterwards the session is as it was."""
    with testing.refuse(code), pytest.raises(exceptions.TableUnavailable):
        browser.get(address)
    browser.raise_request_exception = False
    cookie = browser.cookies["sessionid"].value
    with testing.refuse(code):
        answer = browser.get(address)
    assert answer.status_code == 500
    assert not answer.cookies
    assert browser.cookies["sessionid"].value == cookie
    assert browser.get("/show/").json() == {"colour": "green"}


def test_a_write_that_fails_is_no_logout(browser: Client) -> None:
    """This includes a session that can be read but not written."""
    with testing.refuse("ThrottlingException", operation="UpdateItem"), pytest.raises(exceptions.Throttled):
        browser.get("/change/?a=1")
    assert browser.get("/show/").json() == {"colour": "green"}


def test_an_asynchronous_page(pages: None) -> None:
    """The page sends the requests of a synchronous page, outside the event loop."""

    async def visit() -> list[int]:
        browser = AsyncClient()
        return [(await browser.get("/count/")).json()["visits"] for _ in range(3)]

    with assert_requests(["PutItem", *["GetItem", "UpdateItem"] * 2]):
        assert asyncio.run(visit()) == [1, 2, 3]


def test_a_cached_session(pages: None) -> None:
    """A loaded session is not read again; a change is written, and the table is read until it is cached again."""
    with override_settings(SESSION_ENGINE="dynamo_single.cached_sessions"):
        browser = Client()
        get(browser, "/change/?colour=green", ["PutItem"])
        get(browser, "/show/", ["GetItem"])
        assert get(browser, "/show/", []).json() == {"colour": "green"}
        get(browser, "/ignore/", [])
        get(browser, "/change/?colour=red", ["GetItem", "UpdateItem"])
        assert get(browser, "/show/", ["GetItem"]).json() == {"colour": "red"}
        get(browser, "/log_out/", ["TransactWriteItems"])


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("engine", ["dynamo_single.sessions", "dynamo_single.cached_sessions"])
def test_messages(pages: None, storage: str, engine: str) -> None:
    """A message is shown once with any storage; the fallback stores long ones in the session."""
    long = "x" * 3000
    with override_settings(MESSAGE_STORAGE=f"django.contrib.messages.storage.{storage}", SESSION_ENGINE=engine):
        browser = Client()
        texts = ["saved", "sent"] if "Cookie" in storage else ["saved", long]
        for text in texts:
            browser.get("/say/", {"text": text})
        assert browser.get("/hear/").json() == texts
        assert browser.get("/hear/").json() == []
