"""While DynamoDB is unavailable, every page returns status 503 in time, in the client's preferred format."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.checks import CheckMessage
from django.test import AsyncClient, Client, RequestFactory, override_settings

from dynamo_single.checks.settings import check_middleware, check_timeouts
from dynamo_single.exceptions import ConfigurationError, EndpointUnreachable, FormNotApplied, UnreadableItem
from dynamo_single.middleware import UnavailableMiddleware
from dynamo_single.table import Table
from dynamo_single.testing import fault
from dynamo_single.unavailable import RETRY_AFTER, unavailable_response
from project import settings as demo
from project.directory.models import Company
from tests.contract.table.scripted import Step, scripted

OURS = "dynamo_single.middleware.UnavailableMiddleware"
SESSIONS = "django.contrib.sessions.middleware.SessionMiddleware"
USERS = "django.contrib.auth.middleware.AuthenticationMiddleware"
WITH_SESSION, WITH_USER = (f"tests.contract.table.unavailable_urls.{name}" for name in ("with_session", "with_user"))
MIDDLEWARE = [OURS, "django.middleware.security.SecurityMiddleware", SESSIONS, USERS]
PAGES = ["read", "written", "awaited", "rendered", "stored", "streamed", "astreamed"]


@pytest.fixture(autouse=True)
def _project(table: Table) -> Iterator[None]:
    with override_settings(ROOT_URLCONF="tests.contract.table.unavailable_urls", MIDDLEWARE=MIDDLEWARE):
        yield


@pytest.fixture(params=["sync", "async"])
def get(request: pytest.FixtureRequest) -> Any:
    """Opens a page with a session's cookie, by a client of one of the two kinds, and gives the response."""

    def by_client(page: str, **headers: str) -> Any:
        client = Client(headers=headers)
        client.cookies["sessionid"] = "a" * 32
        return client.get(f"/{page}/")

    def by_async_client(page: str, **headers: str) -> Any:
        async def ask() -> Any:
            client = AsyncClient()
            client.cookies["sessionid"] = "a" * 32
            response = await client.get(f"/{page}/", headers=headers)
            if response.streaming and response.is_async:
                response.parts = [part async for part in response.streaming_content]
            return response

        return asyncio.run(ask())

    return by_client if request.param == "sync" else by_async_client


def assert_unavailable(response: Any) -> None:
    """Assert status 503 with a retry time and without caching."""
    assert response.status_code == 503
    assert response.headers["Retry-After"] == str(RETRY_AFTER)
    assert response.headers["Cache-Control"] == "no-store"


def leave_out(get: Any, page: str) -> None:
    """Skip what Django itself warns of: a synchronous handler that reads an asynchronous stream."""
    if get.__name__ == "by_client" and page == "astreamed":
        pytest.skip("a synchronous handler reads an asynchronous stream as a whole after its middlewares")


@pytest.mark.parametrize("page", PAGES)
def test_page_is_unavailable_wherever_it_asks(get: Any, page: str) -> None:
    """In the view, in its template, after it, and before the first part of a stream."""
    leave_out(get, page)
    with fault("unreachable"):
        assert_unavailable(get(page))


@pytest.mark.parametrize("middleware", [WITH_SESSION, WITH_USER])
def test_page_is_unavailable_if_a_middleware_asks(get: Any, middleware: str) -> None:
    """The error occurs before the view, and the test client does not report it as a failure."""
    with override_settings(MIDDLEWARE=[*MIDDLEWARE, middleware]), fault("unreachable"):
        assert_unavailable(get("nothing"))


@pytest.mark.parametrize("name", ["throttled", "conflict", "denied", "no table", "server error", "lost answer"])
def test_each_fault_is_unavailable(name: str) -> None:
    """This includes every reason that makes the table unusable."""
    with fault(name):
        assert_unavailable(Client().get("/read/"))


@pytest.mark.parametrize("page", PAGES)
def test_page_is_whole_while_dynamodb_answers(get: Any, page: str) -> None:
    """Streams give all of their parts."""
    leave_out(get, page)
    response = get(page)
    assert response.status_code == 200
    if page in {"streamed", "astreamed"}:
        content = b"".join(getattr(response, "parts", None) or list(response.streaming_content))
        assert content == b"False end"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "text/html; charset=utf-8"),
        ("text/html,application/json;q=0.9", "text/html; charset=utf-8"),
        ("application/json, text/javascript, */*; q=0.01", "application/json"),
        ("application/json", "application/json"),
        ("image/png", "text/plain; charset=utf-8"),
    ],
)
def test_response_is_of_the_type_that_is_preferred(get: Any, accept: str, kind: str) -> None:
    """By the header ``Accept``."""
    with fault("unreachable"):
        response = get("read", accept=accept)
    assert_unavailable(response)
    assert response.headers["Content-Type"] == kind
    assert b"The database did not respond." in response.content


def test_lost_write_says_that_it_may_be_saved() -> None:
    """In words, and in JSON as a value."""
    with fault("lost answer", operation="PutItem"):
        page = Client().get("/written/")
        data = Client(headers={"accept": "application/json"}).get("/written/?id=c2").json()
    assert "Your changes may have been saved" in page.content.decode()
    assert data["outcome_unknown"] is True


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (FormNotApplied, 503, "The database is being changed."),
        (UnreadableItem, 500, "Stored data cannot be read."),
    ],
)
def test_scripts_are_told_what_is_wrong(error: type[Exception], status: int, told: str) -> None:
    """The short message has the same meaning as the admin's page."""
    request = RequestFactory().get("/", headers={"accept": "application/json"})
    response = unavailable_response(request, error("private"), status=status)
    assert response.status_code == status
    assert response.content.decode().startswith('{"detail": "' + told)
    assert ("Retry-After" in response.headers) == (status == 503)


def test_error_is_shown_to_developers_alone(caplog: pytest.LogCaptureFixture) -> None:
    """It names endpoints and commands; the log always contains it once."""
    with fault("unreachable"):
        assert b"dynamo_local" not in Client().get("/read/").content
        logged = [record for record in caplog.records if record.name == "dynamo_single.unavailable"]
        with override_settings(DEBUG=True):
            assert b"dynamo_local" in Client().get("/read/").content
    assert [record.levelno for record in logged] == [logging.ERROR]
    assert logged[0].exc_info is not None


@override_settings(TEMPLATES=[])
def test_project_without_templates_has_a_page() -> None:
    """For example, an API has no templates."""
    with fault("unreachable"):
        assert b"The database did not respond." in Client().get("/read/").content


@override_settings(MIDDLEWARE=MIDDLEWARE[1:])
def test_without_the_middleware_the_error_is_raised() -> None:
    """The error is the same as ever."""
    with fault("unreachable"), pytest.raises(EndpointUnreachable):
        Client().get("/read/")


@override_settings(MIDDLEWARE=[*MIDDLEWARE, "tests.contract.table.unavailable_urls.failing"])
def test_other_errors_are_raised() -> None:
    """The error comes from the middleware itself."""
    with pytest.raises(ZeroDivisionError):
        Client().get("/nothing/")


def silent(port: int) -> Any:
    """Return settings of a server that accepts requests without responding, with a short limit for pages."""
    declared = {"TABLE_NAME": "single-table", "ENDPOINT_URL": f"http://127.0.0.1:{port}", "MIGRATIONS": "trust"}
    return override_settings(DYNAMO_SINGLE={"default": declared}, DYNAMO_SINGLE_WEB_TIMEOUT=0.3)


def test_silent_engine_costs_a_page_its_timeout(get: Any) -> None:
    """The bounds of a single request are much longer."""
    with scripted(*[Step(delay=60)] * 9) as server, silent(server.port):
        begun = time.monotonic()
        assert_unavailable(get("awaited"))
        assert time.monotonic() - begun < 20


def test_page_that_goes_on_sends_no_more(get: Any) -> None:
    """Twenty reads have the time of one."""
    with scripted(*[Step(delay=60)] * 30) as server, silent(server.port):
        begun = time.monotonic()
        assert get("repeated").content == b"20"
        assert time.monotonic() - begun < 20
        assert len(server.requests) <= 2


def test_web_timeout_is_seconds_or_none() -> None:
    """Any other value raises an error at the project's start."""
    with override_settings(DYNAMO_SINGLE_WEB_TIMEOUT=None):
        assert UnavailableMiddleware(lambda request: None).seconds is None
    with (
        override_settings(DYNAMO_SINGLE_WEB_TIMEOUT=0),
        pytest.raises(ConfigurationError, match="WEB_TIMEOUT must be a number of seconds above 0, or None"),
    ):
        UnavailableMiddleware(lambda request: None)


def ids(found: list[CheckMessage]) -> list[str | None]:
    """Return the ids of check messages."""
    return [message.id for message in found]


def test_middleware_after_sessions_is_warned_of() -> None:
    """Errors in sessions would be server errors."""
    assert ids(check_middleware()) == []
    with override_settings(MIDDLEWARE=[SESSIONS, OURS]):
        assert ids(check_middleware()) == ["dynamo_single.W918"]


def test_timeout_beyond_the_total_one_is_warned_of() -> None:
    """It would have no effect."""
    assert ids(check_timeouts()) == []
    with override_settings(DYNAMO_SINGLE={"default": "dynamodb://127.0.0.1:1/single-table?read_timeout=16"}):
        assert ids(check_timeouts()) == ["dynamo_single.W919"]


@pytest.mark.parametrize(
    "page", ["/companies/", "/books/", "/users/", "/servers/", "/accounts/", "/admin/", "/admin/login/", "/"]
)
@override_settings(ROOT_URLCONF=demo.ROOT_URLCONF, MIDDLEWARE=demo.MIDDLEWARE)
def test_pages_of_demo_are_unavailable(page: str) -> None:
    """This applies to users with a session; a login form sends requests only on submission."""
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    with fault("unreachable"):
        assert_unavailable(client.get(page))


def test_admin_tells_its_script_in_json(pages: Any) -> None:
    """Autocomplete uses the same format."""
    Company.objects.create(company_id="c1", name="Acme")
    with override_settings(ROOT_URLCONF=demo.ROOT_URLCONF, MIDDLEWARE=demo.MIDDLEWARE[1:]), fault("unreachable"):
        response = pages.client.get("/admin/", headers={"accept": "application/json, */*; q=0.01"})
    assert_unavailable(response)
    assert response.json()["outcome_unknown"] is False
