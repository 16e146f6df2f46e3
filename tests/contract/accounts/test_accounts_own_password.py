"""An open session does not make guesses of its password faster than the login page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import LoginFailures, User
from dynamo_single.table import Table
from tests.contract.accounts.account_pages import PASSWORD

pytestmark = pytest.mark.urls("project.urls")

#: Pages that require the password again, and the name of its field.
PAGES = {
    "/accounts/email_change/": ("password", {"email": "new@example.com"}),
    "/accounts/password_change/": ("old_password", {"new_password1": "Other-Good-9", "new_password2": "Other-Good-9"}),
    "/admin/password_change/": ("old_password", {"new_password1": "Other-Good-9", "new_password2": "Other-Good-9"}),
}


@pytest.fixture(autouse=True)
def mike(table: Table, client: Client) -> User:
    """Return a logged-in staff user."""
    user = User.objects.create_user("Mike", "user1@example.com", PASSWORD, is_staff=True, user_id="1")
    client.force_login(user)
    return user


def send(client: Client, page: str, password: str) -> Any:
    """Send the form with a password."""
    field, rest = PAGES[page]
    return client.post(page, {field: password, **rest})


def said(answer: Any) -> str:
    """Return the errors of the password field; empty if the form was valid."""
    return "" if answer.status_code == 302 else str(answer.context["form"].errors)


@pytest.mark.parametrize("page", PAGES)
def test_wrong_passwords_delay_further_ones(client: Client, page: str) -> None:
    """Five are free; then even the right one is too early, and the page shows the delay."""
    for _ in range(5):
        assert "Please wait" not in said(send(client, page, "wrong"))
    assert "Please wait 5 seconds" in said(send(client, page, PASSWORD))


@pytest.mark.parametrize("page", PAGES)
def test_the_right_password_forgets_the_wrong_ones(client: Client, page: str) -> None:
    """The counter of the page is cleared; failures of the account and the address stay."""
    send(client, page, "wrong")
    assert said(send(client, page, PASSWORD)) == ""
    assert sorted(counter.failures for counter in LoginFailures.objects.allow_scan()) == [1, 1]


def test_all_pages_count_together_with_the_login(client: Client) -> None:
    """Failures of one page delay the others."""
    for page in PAGES:
        send(client, page, "wrong")
        send(client, page, "wrong")
    page = Client().post("/accounts/login/", {"username": "Mike", "password": PASSWORD}).content.decode()
    assert "Too many failed attempts" in page


def test_nothing_is_counted_where_the_lockout_is_off(client: Client, settings: Any) -> None:
    """The setting is one for all."""
    settings.ACCOUNTS = {"LOCKOUT": False}
    for _ in range(7):
        send(client, "/accounts/email_change/", "wrong")
    assert said(send(client, "/accounts/email_change/", PASSWORD)) == ""
    assert not list(LoginFailures.objects.allow_scan())
