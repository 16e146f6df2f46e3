"""The account pages of the demo: content, links and signals."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.test import Client

from accounts.models import User
from dynamo_single.table import Table

PASSWORD = "a-good-password"

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture
def mike(table: Table) -> User:
    """The scenario's user."""
    return User.objects.create_user("Mike", "user1@example.com", PASSWORD, user_id="1")


def test_an_address_of_the_longest_kind_logs_in(table: Table, client: Client) -> None:
    """The login page and the admin's take an identifier that is longer than a user name may be."""
    address = "a" * 60 + "@" + ".".join(["b" * 60] * 3) + ".example"
    boss = User.objects.create_superuser("Boss", address, PASSWORD)
    settings_of_page = {"username": address, "password": PASSWORD}
    assert client.post("/accounts/login/", settings_of_page).status_code == 302
    assert client.get("/accounts/").status_code == 200
    admin = Client()
    assert "E-mail address or user name" in admin.get("/admin/login/").content.decode()
    assert admin.post("/admin/login/?next=/admin/", settings_of_page).url == "/admin/"
    assert boss.check_password(PASSWORD)


@pytest.mark.parametrize(
    ("page", "prefix", "suffix"), [("/accounts/login/", "a", ""), ("/admin/login/", "the", " for a staff account")]
)
def test_a_refused_login_does_not_tell_who_exists(
    mike: User, client: Client, page: str, prefix: str, suffix: str
) -> None:
    """Wrong password and unknown name get one message."""
    pages = [
        client.post(page, {"username": identifier, "password": "wrong"})
        for identifier in ("Mike", "nobody", "n@o.example")
    ]
    messages = {tuple(answer.context["form"].non_field_errors()) for answer in pages}
    assert messages == {
        (
            f"Please enter {prefix} correct e-mail address or user name and password{suffix}. "
            "Passwords are case-sensitive.",
        )
    }


def test_the_admin_is_for_the_staff(mike: User, client: Client) -> None:
    """The right password of another user has the same response as a wrong one."""
    pages = [client.post("/admin/login/", {"username": "Mike", "password": each}) for each in (PASSWORD, "wrong")]
    first, second = (page.context["form"].non_field_errors() for page in pages)
    assert first == second
    assert client.get("/admin/").status_code == 302


def test_the_signals_are_sent(mike: User, client: Client) -> None:
    """Django's three signals report a login, a failure (without the password) and a logout."""
    told: list[Any] = []

    def logged_in(user: Any, **kwargs: Any) -> None:
        told.append(("in", user))

    def failed(credentials: Any, **kwargs: Any) -> None:
        told.append(("failed", credentials["username"], credentials["password"] == "wrong"))

    def logged_out(user: Any, **kwargs: Any) -> None:
        told.append(("out", user))

    receivers = ((user_logged_in, logged_in), (user_login_failed, failed), (user_logged_out, logged_out))
    for signal, receiver in receivers:
        signal.connect(receiver)
    try:
        client.post("/accounts/login/", {"username": "Mike", "password": "wrong"})
        client.post("/accounts/login/", {"username": "Mike", "password": PASSWORD})
        client.post("/accounts/logout/")
    finally:
        for signal, receiver in receivers:
            signal.disconnect(receiver)
    assert told == [("failed", "Mike", False), ("in", mike), ("out", mike)]


def test_the_account_pages(mike: User, client: Client) -> None:
    """Pages that need a login redirect to it, the others are shown. All templates have their variables."""
    for path in ("", "password_change/", "password_change/done/", "email_change/", "email_change/done/"):
        assert client.get(f"/accounts/{path}").url == f"/accounts/login/?next=/accounts/{path}"
    public = ("login/", "password_reset/", "password_reset/done/", "reset/done/", "sign_up/", "sign_up/done/")
    for path in (*public, "sign_up/again/", "confirm/done/", "confirm/x/"):
        page = client.get(f"/accounts/{path}")
        assert page.status_code == 200
        assert f"<h1>{page.context['title']}</h1>" in page.content.decode()
    client.force_login(mike)
    for path in ("", "password_change/", "password_change/done/", "email_change/", "email_change/done/"):
        page = client.get(f"/accounts/{path}")
        assert f"<h1>{page.context['title']}</h1>" in page.content.decode()
    assert client.get("/accounts/logout/").status_code == 405
    assert "You are logged out" in client.post("/accounts/logout/", follow=True).content.decode()


def test_a_login_leads_on_inside_the_site_only(mike: User, client: Client) -> None:
    """The login keeps the next URL, unless it is on another site."""
    form = {"username": "Mike", "password": PASSWORD}
    assert 'name="next" value="/admin/"' in client.get("/accounts/login/?next=/admin/").content.decode()
    assert client.post("/accounts/login/", {**form, "next": "/admin/"}).url == "/admin/"
    assert client.post("/accounts/login/", {**form, "next": "https://evil.example/"}).url == "/accounts/"
