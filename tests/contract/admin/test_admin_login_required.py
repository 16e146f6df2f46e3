"""Users can log in to a project that requires a login for all other pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client, override_settings

from dynamo_single.checks.admin import check_login_required
from dynamo_single.exceptions import EndpointUnreachable
from dynamo_single.table import Table, get_table
from dynamo_single.testing import intercept, unreachable
from project import settings as demo

OURS = "dynamo_single.admin.middleware.LoginRequiredMiddleware"


@pytest.fixture(autouse=True)
def _shut(table: Table) -> Any:
    """Install Django's middleware that requires a login."""
    with override_settings(MIDDLEWARE=[*demo.MIDDLEWARE, "django.contrib.auth.middleware.LoginRequiredMiddleware"]):
        yield


@pytest.mark.parametrize(
    "page",
    [
        "/admin/login/",
        "/accounts/login/",
        "/accounts/sign_up/",
        "/accounts/sign_up/done/",
        "/accounts/sign_up/again/",
        "/accounts/password_reset/",
        "/accounts/password_reset/done/",
        "/accounts/reset/MQ/x/",
        "/accounts/reset/done/",
        "/accounts/confirm/x/",
        "/accounts/confirm/done/",
    ],
)
def test_what_leads_to_an_account_is_open(client: Client, page: str) -> None:
    """A visitor can see the page."""
    assert client.get(page).status_code == 200


@pytest.mark.parametrize(
    ("page", "login"),
    [
        ("/admin/", "/admin/login/?next=/admin/"),
        ("/admin/r/1/x/", "/admin/login/?next=/admin/r/1/x/"),
        ("/accounts/", "/accounts/login/?next=/accounts/"),
        ("/accounts/email_change/", "/accounts/login/?next=/accounts/email_change/"),
    ],
)
def test_everything_else_asks_to_log_in(client: Client, page: str, login: str) -> None:
    """The admin's pages lead to the admin's login."""
    assert client.get(page).headers["Location"] == login


def no_engine(operation: str, params: Mapping[str, Any]) -> None:
    """Nothing listens at the table's endpoint."""
    raise unreachable(get_table().settings)


@pytest.fixture
def _ours() -> Any:
    """Install the app's middleware instead of Django's."""
    with override_settings(MIDDLEWARE=[*demo.MIDDLEWARE, OURS]):
        yield


@pytest.mark.usefixtures("_ours")
@pytest.mark.parametrize("page", ["/admin/", "/admin/login/", "/admin/directory/company/acme/change/"])
def test_an_engine_that_does_not_answer_is_the_admins_page(pages: Any, page: str) -> None:
    """The page is the same as without the middleware, which reads the user before the view runs."""
    with intercept(no_engine):
        answer = pages.client.get(page)
    assert answer.status_code == 503
    assert "The database did not respond" in answer.content.decode()


@pytest.mark.usefixtures("_ours")
def test_elsewhere_the_error_is_the_projects(pages: Any, settings: Any) -> None:
    """If no middleware handles the error, the project's page can report it."""
    unavailable, *others = settings.MIDDLEWARE
    assert unavailable == "dynamo_single.middleware.UnavailableMiddleware"
    settings.MIDDLEWARE = others
    with intercept(no_engine), pytest.raises(EndpointUnreachable):
        pages.client.get("/accounts/")


@pytest.mark.usefixtures("_ours")
def test_everybody_is_asked_to_log_in_by_it_as_well(client: Client) -> None:
    """Everything else works like Django's middleware."""
    assert client.get("/accounts/").headers["Location"] == "/accounts/login/?next=/accounts/"
    assert client.get("/admin/login/").status_code == 200


def test_djangos_middleware_is_warned_of() -> None:
    """Only W909 is reported."""
    assert [warning.id for warning in check_login_required()] == ["dynamo_single.W909"]
    with override_settings(MIDDLEWARE=[*demo.MIDDLEWARE, OURS]):
        assert check_login_required() == []
