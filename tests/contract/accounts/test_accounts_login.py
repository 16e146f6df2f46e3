"""Logins and logouts with Django's own views, and all requests."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import aauthenticate, authenticate
from django.contrib.auth.hashers import MD5PasswordHasher, PBKDF2PasswordHasher
from django.test import Client

from accounts.models import Login, User
from dynamo_single import exceptions, testing
from dynamo_single.contrib.accounts.backends import EmailOrUsernameBackend
from dynamo_single.sessions import Session, key_hash
from dynamo_single.table import SentRequest, Table

Sent = list[SentRequest]
PASSWORD = "a-good-password"
FORM = "{{ form.errors }}{{ form.non_field_errors }}"

pytestmark = pytest.mark.urls("tests.contract.accounts.accounts_urls")


@pytest.fixture(autouse=True)
def _views(settings: Any) -> None:
    """The views' templates, and their addresses."""
    loader = ("django.template.loaders.locmem.Loader", {"form.html": FORM})
    settings.TEMPLATES = [
        {"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {"loaders": [loader]}}
    ]
    settings.LOGIN_URL = "/login/"


@pytest.fixture
def mike(table: Table) -> User:
    """The scenario's user."""
    return User.objects.create_user("Mike", "user1@example.com", PASSWORD, user_id="1")


def shown(sent: Sent) -> list[str]:
    """Return each request's operation and subject."""
    found = []
    for request in sent:
        key = request.params.get("Key") or request.params.get("Item") or {}
        about = key["pk"]["S"].split("#")[0] if key else request.params.get("IndexName", "")
        found.append(f"{request.operation} {about}".strip())
    return found


def log_in(client: Client, username: str, password: str = PASSWORD) -> Any:
    """Send the login form."""
    return client.post("/login/", {"username": username, "password": password})


COUNT = "UpdateItem LOGINFAILURES"
READS = ["BatchGetItem", COUNT, "Query gs1", "GetItem USER"]
COUNTS = [COUNT, COUNT]
TAKEN_BACK = "DeleteItem LOGINFAILURES"
LOGIN = [*READS, TAKEN_BACK, "UpdateItem USER", "PutItem SESSIONHASH"]


@pytest.mark.parametrize("identifier", ["user1@example.com", "USER1@Example.com", "Mike", "mike", " Mike "])
def test_a_login_takes_three_reads(mike: User, client: Client, sent: Sent, identifier: str) -> None:
    """Failures, login item and user; then what Django writes: last_login, and the session once."""
    response = log_in(client, identifier)
    assert response.status_code == 302
    assert response.url == "/me/"
    assert shown(sent) == LOGIN
    kind = "EMAIL#user1@example.com" if "@" in identifier else "USERNAME#mike"
    assert kind in str(sent[2].params["ExpressionAttributeValues"])
    assert sent[3].params["ConsistentRead"] is True
    sent.clear()
    assert client.get("/me/").content == b"Mike"
    assert shown(sent) == ["GetItem SESSIONHASH", "GetItem USER"]
    assert all(request.params["ConsistentRead"] for request in sent)


def test_the_last_login_is_written(mike: User, client: Client) -> None:
    """Django's signal handler is connected, although last_login is not an SQL field."""
    assert mike.last_login is None
    log_in(client, "Mike")
    mike.refresh_from_db()
    assert mike.last_login is not None


def test_a_page_without_a_session_sends_nothing(client: Client, table: Table, sent: Sent) -> None:
    """An anonymous visitor does not cause requests."""
    assert client.get("/me/").content == b"nobody"
    assert client.get("/private/").url == "/login/?next=/private/"
    assert sent == []


def test_logging_out_deletes_the_session(mike: User, client: Client, sent: Sent) -> None:
    """The session's item is deleted, and its cookie is invalid."""
    log_in(client, "Mike")
    cookie = client.cookies["sessionid"].value
    sent.clear()
    client.post("/logout/")
    assert shown(sent) == ["GetItem SESSIONHASH", "GetItem USER", "TransactWriteItems"]
    assert not Session.objects.filter(pk=key_hash(cookie)).exists()
    client.cookies["sessionid"] = cookie
    assert client.get("/me/").content == b"nobody"


def test_a_password_change_ends_the_other_sessions(mike: User, client: Client, sent: Sent) -> None:
    """The stock view changes the password, keeps this session under a new key and ends all others."""
    other = Client()
    log_in(client, "Mike")
    log_in(other, "user1@example.com")
    sent.clear()
    passwords = {"old_password": PASSWORD, "new_password1": "Quite-Another-9", "new_password2": "Quite-Another-9"}
    assert client.post("/password/", passwords).url == "/me/"
    assert shown(sent) == [
        "GetItem SESSIONHASH",
        "GetItem USER",
        "UpdateItem USER",
        "TransactWriteItems",
        "PutItem SESSIONHASH",
    ]
    assert client.get("/me/").content == b"Mike"
    assert other.get("/me/").content == b"nobody"
    assert log_in(other, "Mike", "Quite-Another-9").status_code == 302


UNKNOWN = ["BatchGetItem", COUNT, "Query gs1", "GetItem UNIQUE"]
REFUSED = {
    "wrong password": ("Mike", "wrong", READS),
    "wrong password by address": ("user1@example.com", "wrong", READS),
    "unknown name": ("Nobody", PASSWORD, UNKNOWN),
    "unknown address": ("nobody@example.com", PASSWORD, UNKNOWN),
    "inactive": ("Gone", PASSWORD, READS),
    "no password": ("Guest", PASSWORD, READS),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_logins_cannot_be_told_apart(mike: User, client: Client, case: str) -> None:
    """An unknown name and a wrong password have the same response, six requests and one hash."""
    User.objects.create_user("Gone", "gone@example.com", PASSWORD, is_active=False)
    User.objects.create_user("Guest", None, None)
    identifier, password, requests = REFUSED[case]
    encode = MD5PasswordHasher.encode
    hashing = mock.patch.object(MD5PasswordHasher, "encode", autospec=True, side_effect=encode)
    with hashing as hashed, testing.capture_requests() as sent:
        response = log_in(client, identifier, password)
    assert response.status_code == 200
    assert b"Please enter a correct username and password." in response.content
    assert hashed.call_count == 1
    assert shown(sent) == [*requests, *COUNTS]
    assert "sessionid" not in client.cookies


def test_a_right_password_is_hashed_once_too(mike: User) -> None:
    """A successful attempt costs what a refused one does."""
    encode = MD5PasswordHasher.encode
    with mock.patch.object(MD5PasswordHasher, "encode", autospec=True, side_effect=encode) as hashed:
        assert authenticate(username="Mike", password=PASSWORD) == mike
    assert hashed.call_count == 1


def test_an_old_hash_is_renewed_on_login(mike: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preferred hasher writes the password again, in one write of the user's item."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1_000)  # Django's million takes half a second
    assert authenticate(username="Mike", password=PASSWORD) == mike
    mike.refresh_from_db()
    assert mike.password.startswith("pbkdf2_sha256$")
    assert authenticate(username="user1@example.com", password=PASSWORD) == mike


@pytest.mark.parametrize("identifier", ["Mike", "user1@example.com"])
def test_who_signed_up_just_now_can_log_in(mike: User, sent: Sent, identifier: str) -> None:
    """While the index does not know a login yet, the claim finds the user, strongly consistent: three reads."""

    def lagging(operation: str, params: Any) -> Any:
        return {"Items": [], "Count": 0, "ScannedCount": 0} if operation == "Query" else None

    with testing.intercept(lagging):
        assert authenticate(username=identifier, password=PASSWORD) == mike
    assert shown(sent)[-2:] == ["GetItem UNIQUE", "GetItem USER"]
    assert len([request for request in sent if request.operation != "Query"]) == 2


def test_an_address_that_was_given_up_opens_nothing(mike: User, table: Table) -> None:
    """While the index still shows the old login, the user's own item refuses it; a new owner of the address gets in."""
    old = Login.objects.get(user=mike, kind="EMAIL", identifier="user1@example.com")
    with testing.capture_requests() as sent:
        Login.objects.find("EMAIL", "user1@example.com")
    answer = {"Items": [old._stored], "Count": 1, "ScannedCount": 1}
    assert sent[0].operation == "Query"
    mike.email = "new@example.com"
    mike.save()
    with testing.intercept(lambda operation, params: answer if operation == "Query" else None):
        assert authenticate(username="user1@example.com", password=PASSWORD) is None
        heir = User.objects.create_user("Heir", "user1@example.com", "heirs-password")
        assert authenticate(username="user1@example.com", password="heirs-password") == heir
    assert authenticate(username="new@example.com", password=PASSWORD) == mike


def test_an_address_cannot_take_over_a_name(mike: User) -> None:
    """An identifier with an @ is looked up only as an address, and any other only as a name."""
    odd = User(username="victim@example.com", email="Mike", user_id="9")
    odd.set_password("odd-password")
    odd.save()  # without validation
    assert authenticate(username="victim@example.com", password="odd-password") is None
    assert authenticate(username="Mike", password="odd-password") is None
    assert authenticate(username="Mike", password=PASSWORD) == mike


@pytest.mark.parametrize("identifier", ["", " ", "@", "#", "x" * 5000, "y" * 5000 + "@example.com", "lone\ud800", "\0"])
def test_odd_identifiers_are_nobodys(mike: User, identifier: str) -> None:
    """Any input leads to a rejected login instead of an error."""
    assert authenticate(username=identifier, password="x") is None


@pytest.mark.parametrize("credentials", [{}, {"username": "Mike"}, {"password": "x"}, {"token": "x"}])
def test_other_credentials_are_left_to_other_backends(mike: User, sent: Sent, credentials: dict[str, str]) -> None:
    """Without an identifier or a password, no request is sent."""
    assert authenticate(**credentials) is None
    assert sent == []


def test_an_engine_that_does_not_answer_is_no_refused_login(mike: User, client: Client) -> None:
    """A throttled login raises an error and a throttled page returns a 503; the user stays logged in."""
    log_in(client, "Mike")
    with testing.refuse("ProvisionedThroughputExceededException"):
        with pytest.raises(exceptions.Throttled):
            authenticate(username="Mike", password=PASSWORD)
        assert client.get("/me/").status_code == 503
    assert client.get("/me/").content == b"Mike"


def test_an_inactive_user_is_logged_out(mike: User, client: Client) -> None:
    """A deactivated user's sessions end with the next page."""
    log_in(client, "Mike")
    mike.is_active = False
    mike.save()
    assert client.get("/me/").content == b"nobody"
    mike.delete()
    assert client.get("/me/").content == b"nobody"


def test_the_backend_is_asynchronous_too(mike: User) -> None:
    """aauthenticate() and aget_user() have the same results as the synchronous methods."""

    async def use() -> None:
        assert await aauthenticate(username="mike", password=PASSWORD) == mike
        assert await aauthenticate(username="mike", password="wrong") is None
        assert await EmailOrUsernameBackend().aget_user("1") == mike
        assert await EmailOrUsernameBackend().aget_user("2") is None

    asyncio.run(use())


def test_mail_goes_to_the_users_address(mike: User, mailoutbox: Any) -> None:
    """email_user() is Django's own."""
    mike.email_user("Subject", "Text")
    assert mailoutbox[0].to == ["user1@example.com"]


# allowed and reported settings


@pytest.mark.parametrize(
    ("allowed", "identifier", "gets_in"),
    [
        (["email"], "user1@example.com", True),
        (["email"], "Mike", False),
        (["username"], "Mike", True),
        (["username"], "user1@example.com", False),
    ],
)
def test_identifiers_can_be_limited(
    mike: User, sent: Sent, settings: Any, allowed: list[str], identifier: str, gets_in: bool
) -> None:
    """An identifier outside LOGIN_WITH does not find a user, but the password is still hashed."""
    settings.ACCOUNTS = {"LOGIN_WITH": allowed}
    encode = MD5PasswordHasher.encode
    with mock.patch.object(MD5PasswordHasher, "encode", autospec=True, side_effect=encode) as hashed:
        assert (authenticate(username=identifier, password=PASSWORD) is not None) is gets_in
    assert hashed.call_count == 1
