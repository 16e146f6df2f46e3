"""A project that shuts all its pages but those that say otherwise can still be logged in to."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, override_settings

from dynamo_single.table import Table
from project import settings as demo


@pytest.fixture(autouse=True)
def _shut(table: Table) -> Any:
    """Django's middleware that asks everybody to log in."""
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
    """Whoever is not logged in yet sees the page."""
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
