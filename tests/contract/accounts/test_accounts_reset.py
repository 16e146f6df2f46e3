"""Setting a new password by e-mail through HTTP: who gets a link, and until when it works."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Login, User
from dynamo_single.table import SentRequest, Table

Sent = list[SentRequest]
PASSWORD = "a-good-password"
NEW = {"new_password1": "Quite-Another-9", "new_password2": "Quite-Another-9"}

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def mike(table: Table) -> User:
    """Return a user with a forgotten password."""
    return User.objects.create_user("Mike", "user1@example.com", PASSWORD, user_id="1")


def ask(client: Client, address: str = "user1@example.com") -> Any:
    """Submit the form that requests the link."""
    return client.post("/accounts/password_reset/", {"email": address})


def link(mailbox: Any) -> str:
    """The link in the last mail."""
    found = re.search(r"http://testserver(/accounts/reset/\S+)", mailbox[-1].body)
    assert found
    return found[1]


def follow(client: Client, path: str, passwords: dict[str, str] = NEW) -> Any:
    """Open the link and submit the new password; return the last response."""
    page = client.get(path, follow=True)
    if not page.redirect_chain:
        return page
    return client.post(page.redirect_chain[-1][0], passwords)


def log_in(client: Client, username: str, password: str) -> bool:
    """Return whether the login page accepts a user."""
    form = {"username": username, "password": password}
    return bool(client.post("/accounts/login/", form).status_code == 302)


def operations(sent: Sent) -> list[str]:
    """Return the operations sent."""
    return [request.operation for request in sent]


def test_a_new_password_by_mail(client: Client, mailoutbox: Any, sent: Sent) -> None:
    """The link leads to a page that sets the password, which also confirms the address; other sessions end."""
    elsewhere = Client()
    assert log_in(elsewhere, "Mike", PASSWORD)
    sent.clear()
    assert ask(client).url == "/accounts/password_reset/done/"
    assert operations(sent) == [
        "UpdateItem",
        "UpdateItem",
        "GetItem",
        "GetItem",
    ]  # the mail counted, then claim and user
    assert all(request.params["ConsistentRead"] for request in sent[2:])
    assert mailoutbox[0].to == ["user1@example.com"]
    assert mailoutbox[0].subject == "Set a new password for testserver"
    assert "Your user name is Mike." in mailoutbox[0].body
    sent.clear()
    path = link(mailoutbox)
    opened = client.get(path)
    assert opened.url == "/accounts/reset/MQ/set-password/"
    assert operations(sent) == ["GetItem", "PutItem"]
    sent.clear()
    assert client.post(opened.url, NEW).url == "/accounts/reset/done/"
    assert operations(sent) == ["GetItem", "GetItem", "TransactWriteItems", "UpdateItem"]
    assert elsewhere.get("/accounts/").status_code == 302
    assert not log_in(Client(), "Mike", PASSWORD)
    assert log_in(client, "user1@example.com", NEW["new_password1"])
    assert Login.objects.find("EMAIL", "user1@example.com").confirmed is True


@pytest.mark.parametrize("address", ["USER1@example.com", "User1@Example.COM", " user1@example.com "])
def test_case_does_not_count(client: Client, mailoutbox: Any, address: str) -> None:
    """The mail goes to the stored address."""
    ask(client, address)
    assert [mail.to for mail in mailoutbox] == [["user1@example.com"]]


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("nobody@example.com", None),
        ("gone@example.com", {"password": PASSWORD, "is_active": False}),
        ("guest@example.com", {"password": None}),
    ],
)
def test_others_get_no_mail(client: Client, mailoutbox: Any, address: str, options: Any) -> None:
    """Unknown and inactive users, and users without a password, get no mail, and see the same page."""
    if options is not None:
        User.objects.create_user("Other", address, **options)
    assert ask(client, address).url == "/accounts/password_reset/done/"
    assert mailoutbox == []


def test_a_link_works_once(client: Client, mailoutbox: Any) -> None:
    """After its use it opens nothing."""
    ask(client)
    path = link(mailoutbox)
    assert follow(client, path).status_code == 302
    assert "already used" in follow(Client(), path).content.decode()


def test_a_login_makes_the_link_void(client: Client, mailoutbox: Any) -> None:
    """A user who remembers the password does not need the link."""
    ask(client)
    path = link(mailoutbox)
    assert log_in(Client(), "Mike", PASSWORD)
    assert "already used" in follow(client, path).content.decode()


@pytest.mark.parametrize("change", [{"email": "new@example.com"}, {"is_active": False}])
def test_a_change_makes_the_link_void(client: Client, mailoutbox: Any, mike: User, change: dict[str, Any]) -> None:
    """A link to a former address is invalid, and a deactivated user's link does not log in."""
    ask(client)
    path = link(mailoutbox)
    for name, value in change.items():
        setattr(mike, name, value)
    mike.save()
    page = follow(client, path)
    if "email" in change:
        assert "already used" in page.content.decode()
    assert not log_in(Client(), "Mike", NEW["new_password1"])


@pytest.mark.parametrize("path", ["/accounts/reset/MQ/abc-def/", "/accounts/reset/!!/x-y/", "/accounts/reset/_w/x-y/"])
def test_a_made_up_link_opens_nothing(client: Client, path: str) -> None:
    """The page reports it without an error."""
    page = client.get(path)
    assert page.status_code == 200
    assert "is incomplete" in page.content.decode()


def test_a_bad_password_is_refused(client: Client, mailoutbox: Any) -> None:
    """Django's validators see it, and the link still works."""
    ask(client)
    path = link(mailoutbox)
    assert b"too short" in follow(client, path, {"new_password1": "x", "new_password2": "x"}).content
    assert follow(client, path).status_code == 302
