"""Signing up, confirming an address and changing it, through HTTP."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from django.test import Client, RequestFactory

from accounts import addresses
from accounts.models import Login, User
from dynamo_single import exceptions, transactions
from dynamo_single.keys import canonical
from dynamo_single.query import Request
from dynamo_single.table import SentRequest, Table

Sent = list[SentRequest]
PASSWORD = "Quite-Good-9"

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def _table(table: Table) -> None:
    """An empty table."""


def sign_up(client: Client, username: str = "Mike", email: str = "user1@example.com", **changes: str) -> Any:
    """Send the form."""
    form = {"username": username, "email": email, "password1": PASSWORD, "password2": PASSWORD, **changes}
    return client.post("/accounts/sign_up/", form)


def log_in(client: Client, username: str, password: str = PASSWORD) -> Any:
    """Send the login form."""
    return client.post("/accounts/login/", {"username": username, "password": password})


def is_in(client: Client, username: str, password: str = PASSWORD) -> bool:
    """Whether the login page lets somebody in."""
    return bool(log_in(client, username, password).status_code == 302)


def link(mail: Any) -> str:
    """The confirmation link in a mail."""
    found = re.search(r"http://testserver(/accounts/confirm/\S+)", mail.body)
    assert found
    return found[1]


def operations(sent: Sent) -> list[str]:
    """What was sent."""
    return [request.operation for request in sent]


def stored(table: Table) -> list[tuple[str, str]]:
    """The keys of everything in the table, but for sessions and counters."""
    items = table.send(Request("Scan"))["Items"]
    keys = [(item["pk"]["S"], item["sk"]["S"]) for item in items]
    return sorted(key for key in keys if not key[0].startswith(("SESSION#", "LOGINFAILURES#")))


def test_signing_up(client: Client, mailoutbox: Any, sent: Sent) -> None:
    """A user with an address that is not confirmed, who can log in after following the link in the mail."""
    assert sign_up(client).url == "/accounts/sign_up/done/"
    assert operations(sent) == ["GetItem", "TransactWriteItems"]
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
    """That an address waits for its confirmation is said to nobody else."""
    sign_up(client)
    assert "confirm your" not in log_in(client, "Mike", "wrong").content.decode()


def test_unconfirmed_users_may_be_let_in(client: Client, settings: Any) -> None:
    """A setting lets somebody in who has not confirmed the address yet."""
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
    """The page is the same; the holder gets a mail, and nothing is written."""
    User.objects.create_user("Holder", "user1@example.com", "holders-password")
    before = stored(table)
    new = sign_up(Client(), "Other", "other@example.com")
    del mailoutbox[:]
    sent.clear()
    answer = sign_up(client, "Mike", email)
    assert (answer.status_code, answer.url) == (new.status_code, new.url)
    assert operations(sent)[:2] == ["GetItem", "TransactWriteItems"]
    assert [mail.to for mail in mailoutbox] == [["user1@example.com"]]
    assert "It has one already" in mailoutbox[0].body
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
    """Each mistake is told at its field; nothing is written and no mail is sent."""
    User.objects.create_user("Holder")
    before = stored(table)
    page = sign_up(client, **changes)
    assert page.status_code == 200
    assert said in page.content.decode()
    assert stored(table) == before
    assert mailoutbox == []


def test_a_name_that_is_taken_at_this_moment(client: Client, mailoutbox: Any) -> None:
    """The transaction decides, and the form says so."""
    User.objects.create_user("Mike")
    user = User(username="Mike", email="user1@example.com", password="x")
    with pytest.raises(exceptions.UniqueViolation):
        addresses.sign_up(RequestFactory().post("/"), user)
    assert mailoutbox == []


def test_names_are_made_where_they_are_not_used(client: Client, settings: Any, mailoutbox: Any) -> None:
    """Where people log in by e-mail address only, nobody is asked for a user name."""
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
    """Nobody gets a link to an account that is not in the table; a block that fails sends nothing."""
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
    """The block's end raises it, and no mail is sent."""
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


def void(client: Client, path: str) -> bool:
    """Whether a link does nothing."""
    return "This link does not work" in client.post(path, follow=True).content.decode()


def test_a_link_expires(client: Client, mailoutbox: Any, settings: Any) -> None:
    """After CONFIRMATION_LIFETIME it does nothing, and its page says so."""
    sign_up(client)
    settings.ACCOUNTS = {"CONFIRMATION_LIFETIME": 0.000001}
    assert "This link does not work" in client.get(link(mailoutbox[0])).content.decode()
    assert void(client, link(mailoutbox[0]))


def test_a_made_up_link_does_nothing(client: Client, mailoutbox: Any, sent: Sent) -> None:
    """One letter more or less, and nothing is read or written."""
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
    """It neither brings a user back nor lets a deactivated one in."""
    sign_up(client)
    user = User.objects.get_by_identifier("Mike")
    if change == "deleted":
        user.delete()
    else:
        user.is_active = False
        user.save()
    assert void(client, link(mailoutbox[0]))


def test_the_link_is_sent_again(client: Client, mailoutbox: Any) -> None:
    """To those who wait for it; for others the page is the same and no mail is sent."""
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


# another address


@pytest.fixture
def mike(client: Client) -> User:
    """Somebody who is logged in and whose address is confirmed."""
    user = User.objects.create_user("Mike", "user1@example.com", PASSWORD, user_id="1")
    user.confirm_email()
    user.save()
    client.force_login(user)
    return user


def change(client: Client, email: str = "new@example.com", password: str = PASSWORD) -> Any:
    """Ask for another address."""
    return client.post("/accounts/email_change/", {"email": email, "password": password})


def test_a_new_address_is_confirmed_first(mike: User, client: Client, mailoutbox: Any, sent: Sent) -> None:
    """The old address stays until the link is followed; then one transaction puts the new one in its place."""
    sent.clear()
    assert change(client).url == "/accounts/email_change/done/"
    assert operations(sent) == ["GetItem", "GetItem", "GetItem"]  # the session, the user, the claim
    assert [mail.to for mail in mailoutbox] == [["new@example.com"]]
    assert is_in(Client(), "user1@example.com")
    assert not is_in(Client(), "new@example.com")
    sent.clear()
    assert Client().post(link(mailoutbox[0])).url == "/accounts/confirm/done/"
    assert operations(sent) == ["GetItem", "TransactWriteItems"]
    assert not is_in(Client(), "user1@example.com")
    assert is_in(Client(), "new@example.com")
    assert Login.objects.find("EMAIL", "new@example.com").confirmed is True
    assert [mail.to for mail in mailoutbox] == [["new@example.com"], ["user1@example.com"]]
    assert "was changed" in mailoutbox[1].subject
    assert client.get("/accounts/").status_code == 200
    assert void(Client(), link(mailoutbox[0])) is False  # the same again


def test_a_taken_address_is_not_told_here_either(mike: User, client: Client, mailoutbox: Any) -> None:
    """The page is the same, and the address's holder gets the mail."""
    User.objects.create_user("Holder", "holder@example.com", PASSWORD)
    assert change(client, "HOLDER@example.com").url == "/accounts/email_change/done/"
    assert [mail.to for mail in mailoutbox] == [["holder@example.com"]]
    assert "It has one already" in mailoutbox[0].body


def test_an_address_that_somebody_took_meanwhile(mike: User, client: Client, mailoutbox: Any) -> None:
    """The link does nothing, and both users keep what they have."""
    change(client)
    User.objects.create_user("Faster", "new@example.com", PASSWORD)
    assert void(client, link(mailoutbox[0]))
    assert User.objects.get_by_identifier("new@example.com").username == "Faster"
    assert User.objects.get_by_identifier("user1@example.com") == mike


@pytest.mark.parametrize("password", ["wrong", ""])
def test_an_address_is_changed_with_the_password_only(
    mike: User, client: Client, mailoutbox: Any, password: str
) -> None:
    """A session that was left open is not enough."""
    assert change(client, password=password).status_code == 200
    assert mailoutbox == []


def test_a_new_password_makes_a_change_void(mike: User, client: Client, mailoutbox: Any) -> None:
    """Whoever got the account back need not fear the links that somebody else asked for."""
    change(client)
    mike.refresh_from_db()
    mike.set_password("Another-Good-9")
    mike.save()
    assert void(Client(), link(mailoutbox[0]))


def test_of_two_changes_one_takes_place(mike: User, client: Client, mailoutbox: Any) -> None:
    """After the one link was followed, the other does nothing."""
    change(client, "first@example.com")
    change(client, "second@example.com")
    assert client.post(link(mailoutbox[1])).status_code == 302
    assert void(client, link(mailoutbox[0]))
    assert User.objects.get(pk="1").email == "second@example.com"


def test_a_link_is_void_after_the_address_went_there_and_back(mike: User, client: Client, mailoutbox: Any) -> None:
    """Whoever reads the mail of an address that was given up cannot take the account with the link of that time."""
    change(client, "lost@example.com")
    given_up = link(mailoutbox[-1])
    client.post(given_up)
    change(client, "user1@example.com")
    client.post(link(mailoutbox[-1]))
    assert void(Client(), given_up)
    assert User.objects.get(pk="1").email == "user1@example.com"


def test_an_address_that_only_looks_the_same_confirms_no_other(client: Client, mailoutbox: Any) -> None:
    """Two mailboxes that are one name to a login are two: the link to one does not confirm the other."""
    user = User.objects.create_user("Eve", "eve@strasse.example", PASSWORD)
    client.force_login(user)
    change(client, "eve@straße.example")
    assert [mail.to for mail in mailoutbox] == [["eve@straße.example"]]
    client.post(link(mailoutbox[0]))
    user = User.objects.get(pk=user.pk)
    assert (user.email, user.confirmed_email) == ("eve@straße.example", "eve@straße.example")
    user.email = "eve@strasse.example"
    assert not user.has_confirmed_email


def test_an_address_is_changed_to_another_case(mike: User, client: Client, mailoutbox: Any) -> None:
    """It is shown as it was typed last; the account is still opened by both, and nobody is told of a lost address."""
    change(client, "User1@Example.com")
    client.post(link(mailoutbox[0]))
    assert User.objects.get(pk="1").email == "User1@Example.com"
    assert User.objects.get(pk="1").has_confirmed_email
    assert len(mailoutbox) == 1


def test_a_link_that_is_followed_several_times_at_once(mike: User, client: Client, mailoutbox: Any) -> None:
    """A double click is no error: each gets the page of one that was followed, and the old address one mail."""
    change(client)
    answers: list[str] = []
    start = threading.Barrier(5)

    def follow() -> None:
        start.wait()
        answers.append(Client().post(link(mailoutbox[0])).url)

    threads = [threading.Thread(target=follow) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["/accounts/confirm/done/"] * 5
    assert [mail.to for mail in mailoutbox] == [["new@example.com"], ["user1@example.com"]]


def test_somebody_without_an_address_gets_one(client: Client, mailoutbox: Any) -> None:
    """A user whom nobody gave an address can add it."""
    client.force_login(User.objects.create_user("Mike", None, PASSWORD))
    change(client)
    client.post(link(mailoutbox[0]))
    assert is_in(Client(), "new@example.com")
    assert len(mailoutbox) == 1


def test_confirming_is_not_undone_by_a_change_of_case(mike: User) -> None:
    """One's own address in another case is as confirmed as before; another one is not."""
    mike.email = "USER1@example.com"
    mike.save()
    assert Login.objects.find("EMAIL", "user1@example.com").confirmed is True
    mike.email = "other@example.com"
    mike.save()
    assert Login.objects.find("EMAIL", "other@example.com").confirmed is False


# at once


def test_two_hundred_sign_ups_for_one_address(table: Table, mailoutbox: Any) -> None:
    """One user, and of the others neither an item nor a claim; nobody is told, and everybody's mail goes to the one."""
    addresses_typed = ("race@example.com", "Race@Example.com", "RACE@example.com")
    answers: list[int] = []
    start = threading.Barrier(20)

    def worker(first: int) -> None:
        start.wait()
        for number in range(first, 200, 20):
            answer = sign_up(Client(), f"racer{number}", addresses_typed[number % 3])
            answers.append(answer.status_code)

    threads = [threading.Thread(target=worker, args=(first,)) for first in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [302] * 200
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
    assert len(mailoutbox) == 200
    assert {mail.to[0] for mail in mailoutbox} == {user.email}
    assert len([mail for mail in mailoutbox if mail.subject.startswith("Confirm")]) == 1
