"""Login methods with a separate secret: their permissions, their cost, and the removal of the secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import MD5PasswordHasher, PBKDF2PasswordHasher
from django.test import Client

from accounts.models import User
from dynamo_single.contrib.accounts.ways import LastWay
from dynamo_single.exceptions import ConfigurationError, InvalidValue, TableUnavailable
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, fault, intercept
from tests.contract.accounts.account_pages import is_in
from tests.contract.tables import assert_consistent, everything

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("project.urls")]

PASSWORD, SECRET = "a-good-password", "471100"
PHONE, EMAIL = "+15550100", "mike@example.com"
ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone"], "SECRETS": {"phone": 6, "username": 8}}


@pytest.fixture(autouse=True)
def _secrets(settings: Any) -> None:
    """Numbers and names can have secrets."""
    settings.ACCOUNTS = ACCOUNTS


@pytest.fixture
def mike(table: Table) -> User:
    """Return a user whose number has a secret."""
    mike = User.objects.create_user("Mike", EMAIL, PASSWORD, user_id="1")
    mike.logins.add("phone", PHONE)
    mike.logins.set_secret("phone", SECRET)
    return mike


def opens(typed: str) -> str:
    """Return which of the password and the secret open an identifier."""
    tried = {"password": PASSWORD, "secret": SECRET}
    return " ".join(name for name, text in tried.items() if authenticate(username=typed, password=text) is not None)


def stored(table: Table, sort: str) -> dict[str, Any]:
    """An item of the user."""
    return everything(table)["USER#1", sort]


@contextmanager
def costs(requests: list[str], hashes: int) -> Iterator[None]:
    """Assert the requests of a block, and how many passwords it hashes."""
    encode = MD5PasswordHasher.encode
    hashing = mock.patch.object(MD5PasswordHasher, "encode", autospec=True, side_effect=encode)
    with hashing as hashed, assert_requests(requests):
        yield
    assert hashed.call_count == hashes


def test_the_secret_opens_its_own_way_alone(mike: User) -> None:
    assert (opens(PHONE), opens("Mike"), opens(EMAIL)) == ("secret", "password", "password")


def test_its_hash_lies_with_the_login_and_with_the_user(mike: User, table: Table) -> None:
    assert stored(table, f"PHONE#{PHONE}")["password"] == stored(table, "#METADATA")["phoneSecret"]
    assert stored(table, f"PHONE#{PHONE}")["password"]["S"].startswith("peppered$")
    assert "password" not in stored(table, "USERNAME#Mike")
    assert SECRET not in str(everything(table))
    assert_consistent()


def test_setting_changing_and_taking_it_away_is_one_transaction_each(mike: User, table: Table) -> None:
    with costs(["TransactWriteItems"], 1):
        mike.logins.set_secret("phone", "000000")
    assert opens(PHONE) == ""
    with costs(["TransactWriteItems"], 0):
        mike.logins.set_secret("phone", None)
    assert opens(PHONE) == "password"
    assert "password" not in stored(table, f"PHONE#{PHONE}")
    assert_consistent()


@pytest.mark.parametrize(
    "typed", [PHONE, "Mike", EMAIL, "+15550199", "Nobody", "nobody@example.com", "Eve", "eve@x.org"]
)
@pytest.mark.parametrize("password", [PASSWORD, SECRET, "wrong"])
def test_every_attempt_is_two_reads_and_one_hash(mike: User, typed: str, password: str) -> None:
    """This includes methods with and without a secret, unknown names, and users without a password."""
    User.objects.create_user("Eve", "eve@x.org", None)
    with costs(["Query", "GetItem"], 1):
        authenticate(username=typed, password=password)


def test_it_goes_with_its_login_and_does_not_come_back(mike: User, table: Table) -> None:
    with costs(["TransactWriteItems"], 0):
        mike.logins.remove("phone")
    assert "phoneSecret" not in stored(table, "#METADATA")
    mike.logins.add("phone", PHONE)
    assert opens(PHONE) == "password"


def test_it_stays_when_the_name_or_the_number_changes(mike: User) -> None:
    mike.logins.set_secret("username", "47110000")
    mike.username, mike.phone = "Michael", "+15550101"
    mike.save()
    assert opens("+15550101") == "secret"
    assert authenticate(username="Michael", password="47110000") == mike
    assert_consistent()


def test_it_goes_with_the_user(mike: User, table: Table) -> None:
    mike.delete()
    assert everything(table) == {}


def test_a_new_password_of_the_account_takes_it_away(mike: User) -> None:
    """A person who knew the old password may have set the secret."""
    mike.set_password("another-good-one")
    mike.save()
    assert authenticate(username=PHONE, password=SECRET) is None
    assert authenticate(username=PHONE, password="another-good-one") == mike
    assert_consistent()


def test_hashes_that_are_renewed_leave_it(mike: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account's by a login by name, its own by a login by number."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1_000)  # Django's million takes half a second
    with assert_requests(["Query", "GetItem", "UpdateItem"]):
        assert opens_with("Mike", PASSWORD)
    with assert_requests(["Query", "GetItem", "TransactWriteItems"]):
        assert opens_with(PHONE, SECRET)
    mike.refresh_from_db()
    assert mike.password.startswith("pbkdf2_sha256$")
    assert "$pbkdf2_sha256$" in mike.phone_secret
    assert (opens(PHONE), opens("Mike")) == ("secret", "password")
    assert_consistent()


def test_a_hash_that_cannot_be_renewed_leaves_it(mike: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object has it as before, so that no later save of it takes it away."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1_000)  # Django's million takes half a second
    with fault("denied", operation="UpdateItem"), pytest.raises(TableUnavailable):
        mike.check_password(PASSWORD)
    mike.save()
    assert opens(PHONE) == "secret"


def opens_with(typed: str, password: str) -> bool:
    """Return whether a password opens an identifier."""
    return authenticate(username=typed, password=password) is not None


def test_without_the_setting_the_password_opens(mike: User, settings: Any) -> None:
    settings.ACCOUNTS = {**ACCOUNTS, "SECRETS": {}}
    assert opens(PHONE) == "password"


def test_a_way_with_a_secret_is_left_where_there_is_no_password(mike: User, settings: Any) -> None:
    """The last method is kept with the secret that it needs."""
    mike.set_unusable_password()
    mike.save()
    mike.logins.set_secret("phone", SECRET)
    mike.logins.remove("email")
    with pytest.raises(LastWay):
        mike.logins.remove("phone")
    with pytest.raises(LastWay):
        mike.logins.set_secret("phone", None)
    assert opens(PHONE) == "secret"


def test_a_secret_is_not_set_for_a_number_that_another_writer_removes(mike: User) -> None:
    other = User.objects.get(pk="1")

    def remove_first(operation: str, params: Any) -> None:
        if operation == "TransactWriteItems":
            with intercept(lambda *_: None):
                other.logins.remove("phone")

    with intercept(remove_first), pytest.raises(InvalidValue, match="the user has no phone"):
        mike.logins.set_secret("phone", "000000")
    assert opens(PHONE) == ""
    assert_consistent()


@pytest.mark.parametrize(
    ("kind", "secret", "message"),
    [
        ("phone", "12345", "The secret of 'phone' must have 6 to 128 characters."),
        ("phone", "1" * 129, "The secret of 'phone' must have 6 to 128 characters."),
        ("phone", 471100, "The secret of 'phone' must be a str, not int."),
        ("phone", b"471100", "The secret of 'phone' must be a str, not bytes."),
        ("email", "123456", "'email' cannot have a separate secret"),
        ("google", "123456", "'google' cannot have a separate secret"),
    ],
)
def test_what_cannot_be_a_secret_is_refused(mike: User, kind: str, secret: Any, message: str) -> None:
    with assert_requests([]), pytest.raises(InvalidValue, match=re.escape(message)):
        mike.logins.set_secret(kind, secret)


@pytest.mark.parametrize(
    ("secrets", "message"),
    [
        ({"google": 6}, "must be a dict of some of 'phone', 'username', 'email'"),
        ({"phone": 4}, "6 to 128"),
        ({"phone": True}, "6 to 128"),
        (["phone"], "must be a dict"),
        ({"username": 6}, "contains 'username', but ACCOUNTS\\['LOGIN_WITH'\\] does not allow"),
    ],
)
def test_a_wrong_setting_is_named(secrets: Any, message: str, settings: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "phone"], "SECRETS": secrets}
    with pytest.raises(ConfigurationError, match=message):
        authenticate(username="x", password="y")


@pytest.fixture
def pages(mike: User, client: Client) -> Client:
    """The account pages as Mike sees them."""
    client.force_login(mike)
    return client


def form(secret: str, password: str = PASSWORD, again: str | None = None) -> dict[str, str]:
    """Return the data of the page's form."""
    return {"secret": secret, "again": secret if again is None else again, "password": password}


def test_the_page_changes_it_and_ends_the_other_sessions(pages: Client, mike: User) -> None:
    other = Client()
    other.force_login(mike)
    assert "change its secret" in pages.get("/accounts/").content.decode()
    assert pages.post("/accounts/secret/phone/", form("000000")).url == "/accounts/"
    assert opens_with(PHONE, "000000")
    assert pages.get("/accounts/").status_code == 200
    assert other.get("/accounts/").status_code == 302


def test_the_page_takes_it_away(pages: Client) -> None:
    pages.post("/accounts/secret/phone/", form(""))
    assert opens(PHONE) == "password"
    assert "set a separate secret" in pages.get("/accounts/").content.decode()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (form("000000", password="wrong"), "Your password is incorrect."),
        (form("000000", password=SECRET), "Your password is incorrect."),
        (form("000000", again="000001"), "The two secrets do not match."),
        (form("00000"), "at least 6 characters"),
    ],
)
def test_the_page_refuses(pages: Client, typed: dict[str, str], message: str) -> None:
    assert message in pages.post("/accounts/secret/phone/", typed).content.decode()
    assert opens(PHONE) == "secret"


def test_there_is_no_page_for_what_has_no_secret(pages: Client, settings: Any) -> None:
    assert pages.get("/accounts/secret/email/").status_code == 404
    settings.ACCOUNTS = {**ACCOUNTS, "SECRETS": {}}
    assert pages.get("/accounts/secret/phone/").status_code == 404
    assert Client().get("/accounts/secret/phone/").url == "/accounts/login/?next=/accounts/secret/phone/"


def test_a_login_page_takes_either(mike: User) -> None:
    assert is_in(Client(), PHONE, SECRET)
    assert is_in(Client(), EMAIL, PASSWORD)
    assert not is_in(Client(), PHONE, PASSWORD)


def test_the_admin_takes_it_away_with_the_number(mike: User, admin_pages: Client) -> None:
    page = admin_pages.get("/admin/accounts/user/1/change/")
    values = {name: value for name, value in page.context["adminform"].form.initial.items() if value is not None}
    posted = {"username": values["username"], "email": values["email"], "is_active": "on", "phone": ""}
    posted |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    assert admin_pages.post("/admin/accounts/user/1/change/", posted).status_code == 302
    mike.refresh_from_db()
    assert (mike.phone, mike.phone_secret) == (None, None)
    assert_consistent()


@pytest.fixture
def admin_pages(table: Table) -> Client:
    """The admin's pages as a superuser sees them."""
    client = Client()
    client.force_login(User.objects.create_superuser("admin", "admin@example.com", PASSWORD))
    return client
