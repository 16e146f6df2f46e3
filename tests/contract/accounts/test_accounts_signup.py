"""Signing up, confirming an address and changing it, through HTTP."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from django.test import Client, RequestFactory

from accounts.models import Login, User
from dynamo_single import exceptions, transactions
from dynamo_single.contrib.accounts import addresses
from dynamo_single.orm.schema.keys.template import canonical
from dynamo_single.table import Request, SentRequest, Table
from tests.contract.accounts.account_pages import PASSWORD, is_in, link, log_in, sign_up, void
from tests.deep import examples

Sent = list[SentRequest]

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def _table(table: Table) -> None:
    """An empty table."""


#: The number of concurrent uses of one address.
MANY = examples(60, 200)
#: The mail counters of the client and of the address.
MAIL = ["UpdateItem", "UpdateItem"]


def operations(sent: Sent) -> list[str]:
    """Return the operations sent."""
    return [request.operation for request in sent]


def stored(table: Table) -> list[tuple[str, str]]:
    """Return all stored keys, except sessions and counters."""
    items = table.send(Request("Scan"))["Items"]
    keys = [(item["pk"]["S"], item["sk"]["S"]) for item in items]
    return sorted(key for key in keys if not key[0].startswith(("SESSION#", "LOGINFAILURES#", "MAILSASKED#")))


def test_signing_up(client: Client, mailoutbox: Any, sent: Sent) -> None:
    """The user has an unconfirmed address, and can log in after following the link in the mail."""
    assert sign_up(client).url == "/accounts/sign_up/done/"
    assert operations(sent) == ["GetItem", *MAIL, "TransactWriteItems"]
    assert [mail.to for mail in mailoutbox] == [["user1@example.com"]]
    assert mailoutbox[0].subject == "Confirm your e-mail address for testserver"
    assert Login.objects.find("EMAIL", "user1@example.com").confirmed is False
    for identifier in ("Mike", "user1@example.com"):
        assert "Please confirm your e-mail address first" in log_in(client, identifier).content.decode()
    page = client.get(link(mailoutbox[0]))
    assert "user1@example.com" in page.content.decode()
    assert Login.objects.find("EMAIL", "user1@example.com").confirmed is False
    sent.clear()
    assert client.post(link(mailoutbox[0])).url == "/accounts/confirm/done/"
    assert operations(sent) == ["GetItem", "TransactWriteItems"]
    assert Login.objects.find("EMAIL", "user1@example.com").confirmed is True
    assert is_in(client, "Mike")
    assert is_in(Client(), "USER1@example.com")


def test_who_does_not_know_the_password_is_told_nothing(client: Client) -> None:
    """Only a user with the password sees that the address is unconfirmed."""
    sign_up(client)
    assert "confirm your" not in log_in(client, "Mike", "wrong").content.decode()


def test_unconfirmed_users_may_be_let_in(client: Client, settings: Any) -> None:
    """A setting allows logins before the confirmation."""
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": True}
    sign_up(client)
    assert is_in(client, "user1@example.com")
    page = client.get("/accounts/").content.decode()
    assert "not confirmed" in page
    assert '<a href="/accounts/sign_up/again/">Confirm the e-mail address</a>' in page
    settings.ACCOUNTS = {}
    assert client.get("/accounts/").status_code == 302


def test_users_made_by_others_need_no_confirmation(client: Client) -> None:
    """Only signing up waits for a confirmation; whom a command or the admin made can log in."""
    User.objects.create_user("Mike", "user1@example.com", PASSWORD)
    assert is_in(client, "user1@example.com")


@pytest.mark.parametrize("email", ["user1@example.com", "USER1@Example.com"])
def test_a_taken_address_is_not_told(client: Client, mailoutbox: Any, sent: Sent, email: str, table: Table) -> None:
    """The page is the same and the holder gets an e-mail, but the table stays unchanged."""
    User.objects.create_user("Holder", "user1@example.com", "holders-password")
    before = stored(table)
    new = sign_up(Client(), "Other", "other@example.com")
    del mailoutbox[:]
    sent.clear()
    answer = sign_up(client, "Mike", email)
    assert (answer.status_code, answer.url) == (new.status_code, new.url)
    assert operations(sent)[:4] == ["GetItem", *MAIL, "TransactWriteItems"]
    assert [mail.to for mail in mailoutbox] == [["user1@example.com"]]
    assert "It already has an account" in mailoutbox[0].body
    assert "http://testserver/accounts/password_reset/" in mailoutbox[0].body
    assert [key for key in stored(table) if key in before] == before
    assert not [key for key in stored(table) if "MIKE" in str(key).upper()]
    assert not is_in(client, "Mike")
    assert is_in(client, "Holder", "holders-password")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"username": "holder"}, "already exists"),
        ({"username": "a@b"}, "an @ is for e-mail addresses"),
        ({"username": ""}, "This field is required"),
        ({"email": ""}, "This field is required"),
        ({"email": "no-address"}, "Enter a valid email address"),
        ({"email": "x" * 300 + "@example.com"}, "at most 254 characters"),
        ({"password2": "Other-Good-9"}, "match"),
        ({"password1": "12345", "password2": "12345"}, "too short"),
        ({"password1": "user1@example.com", "password2": "user1@example.com"}, "too similar"),
    ],
)
def test_what_the_form_refuses(client: Client, mailoutbox: Any, table: Table, changes: Any, said: str) -> None:
    """Each error belongs to its field; no write and no mail is sent."""
    User.objects.create_user("Holder")
    before = stored(table)
    page = sign_up(client, **changes)
    assert page.status_code == 200
    assert said in page.content.decode()
    assert stored(table) == before
    assert mailoutbox == []


def test_a_name_that_is_taken_at_this_moment(client: Client, mailoutbox: Any) -> None:
    """The transaction detects it, and the form shows it."""
    User.objects.create_user("Mike")
    user = User(username="Mike", email="user1@example.com", password="x")
    with pytest.raises(exceptions.UniqueViolation):
        addresses.sign_up(RequestFactory().post("/"), user)
    assert mailoutbox == []


def test_names_are_made_where_they_are_not_used(client: Client, settings: Any, mailoutbox: Any) -> None:
    """If users log in only by address, the form has no field for a user name."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email"]}
    assert 'name="username"' not in client.get("/accounts/sign_up/").content.decode()
    sign_up(client)
    client.post(link(mailoutbox[0]))
    assert is_in(client, "user1@example.com")
    (user,) = User.objects.all()
    assert re.fullmatch(r"user-[a-z0-9]{20}", user.username)
    assert not is_in(Client(), user.username)


def test_whoever_is_logged_in_has_an_account(client: Client) -> None:
    """The sign-up page leads away."""
    client.force_login(User.objects.create_user("Mike"))
    assert client.get("/accounts/sign_up/").url == "/accounts/"


# within a transaction of the caller's


def test_a_mail_waits_for_the_end_of_the_block(mailoutbox: Any) -> None:
    """A link never leads to an unstored account, and a failed block does not send mail."""
    request = RequestFactory().post("/")
    with pytest.raises(ZeroDivisionError), transactions.atomic():
        addresses.sign_up(request, User(username="Mike", email="user1@example.com", password="x"))
        raise ZeroDivisionError
    assert mailoutbox == []
    with transactions.atomic():
        addresses.sign_up(request, User(username="Mike", email="user1@example.com", password="x"))
        assert mailoutbox == []
    assert [mail.to for mail in mailoutbox] == [["user1@example.com"]]


def test_a_block_with_a_taken_address_fails(mailoutbox: Any) -> None:
    """The end of the block raises the error, before any e-mail is sent."""
    User.objects.create_user("Holder", "user1@example.com")
    with pytest.raises(exceptions.UniqueViolation), transactions.atomic():
        addresses.sign_up(RequestFactory().post("/"), User(username="Mike", email="user1@example.com", password="x"))
    assert mailoutbox == []


# links


def test_a_link_can_be_followed_twice(client: Client, mailoutbox: Any) -> None:
    """Following it again does no harm."""
    sign_up(client)
    path = link(mailoutbox[0])
    assert client.post(path).status_code == client.post(path).status_code == 302


def test_a_link_expires(client: Client, mailoutbox: Any, settings: Any) -> None:
    """After CONFIRMATION_LIFETIME, the link has no effect, and its page explains this."""
    sign_up(client)
    settings.ACCOUNTS = {"CONFIRMATION_LIFETIME": 0.000001}
    assert "This link does not work" in client.get(link(mailoutbox[0])).content.decode()
    assert void(client, link(mailoutbox[0]))


def test_a_made_up_link_does_nothing(client: Client, mailoutbox: Any, sent: Sent) -> None:
    """With one changed letter, nothing is read or written."""
    sign_up(client)
    sent.clear()
    path = link(mailoutbox[0]).rstrip("/")
    for forged in (path[:-1], path + "x", "/accounts/confirm/x"):
        assert void(client, forged + "/")
    assert sent == []


def test_a_link_is_bound_to_its_address(client: Client, mailoutbox: Any) -> None:
    """Once the user has another address, the link to the old one confirms nothing."""
    sign_up(client)
    user = User.objects.get_by_identifier("Mike")
    user.email = "other@example.com"
    user.save()
    assert void(client, link(mailoutbox[0]))
    assert Login.objects.find("EMAIL", "other@example.com").confirmed is False


@pytest.mark.parametrize("change", ["inactive", "deleted"])
def test_a_link_of_somebody_gone_does_nothing(client: Client, mailoutbox: Any, change: str) -> None:
    """The link does not recreate a user, and does not log in a deactivated one."""
    sign_up(client)
    user = User.objects.get_by_identifier("Mike")
    if change == "deleted":
        user.delete()
    else:
        user.is_active = False
        user.save()
    assert void(client, link(mailoutbox[0]))


def test_the_link_is_sent_again(client: Client, mailoutbox: Any) -> None:
    """Only waiting users get a mail, and the page is the same for others."""
    sign_up(client)
    User.objects.create_user("Gone", "gone@example.com", PASSWORD, is_active=False)
    del mailoutbox[:]
    answers = {
        client.post("/accounts/sign_up/again/", {"email": address}).url
        for address in ("USER1@example.com", "gone@example.com", "nobody@example.com")
    }
    assert answers == {"/accounts/sign_up/done/"}
    assert [mail.to for mail in mailoutbox] == [["user1@example.com"]]
    client.post(link(mailoutbox[0]))
    client.post("/accounts/sign_up/again/", {"email": "user1@example.com"})
    assert len(mailoutbox) == 1


# at once


def test_many_sign_ups_at_once_for_one_address(table: Table, mailoutbox: Any, settings: Any) -> None:
    """A single user is stored and gets all e-mails; the others leave no items or claims."""
    settings.ACCOUNTS = {"MAILS_PER_ADDRESS": None, "MAILS_PER_CLIENT": None}
    addresses_typed = ("race@example.com", "Race@Example.com", "RACE@example.com")
    answers: list[int] = []
    start = threading.Barrier(20)

    def worker(first: int) -> None:
        start.wait()
        for number in range(first, MANY, 20):
            answer = sign_up(Client(), f"racer{number}", addresses_typed[number % 3])
            answers.append(answer.status_code)

    threads = [threading.Thread(target=worker, args=(first,)) for first in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [302] * MANY
    (user,) = User.objects.all()
    assert stored(table) == sorted(
        [
            (f"UNIQUE#User#email#{canonical(user.email)}", "#CLAIM"),
            (f"UNIQUE#User#username#{user.username}", "#CLAIM"),
            (f"USER#{user.pk}", "#METADATA"),
            (f"USER#{user.pk}", f"EMAIL#{user.email}"),
            (f"USER#{user.pk}", f"USERNAME#{user.username}"),
        ]
    )
    assert len(mailoutbox) == MANY
    assert {mail.to[0] for mail in mailoutbox} == {user.email}
    assert len([mail for mail in mailoutbox if mail.subject.startswith("Confirm")]) == 1
