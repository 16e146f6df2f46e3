"""A change of e-mail address over HTTP: the link to the new address, and the events that invalidate it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.test import Client

from accounts.models import Login, User
from dynamo_single.table import SentRequest, Table
from tests.contract.accounts.account_pages import PASSWORD, is_in, link, void

Sent = list[SentRequest]

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def _table(table: Table) -> None:
    """An empty table."""


#: The mail counters of the client and of the address.
MAIL = ["UpdateItem", "UpdateItem"]


def operations(sent: Sent) -> list[str]:
    """Return the operations sent."""
    return [request.operation for request in sent]


@pytest.fixture
def mike(client: Client) -> User:
    """Return a logged-in user with a confirmed address."""
    user = User.objects.create_user("Mike", "user1@example.com", PASSWORD, user_id="1")
    user.confirm_email()
    user.save()
    client.force_login(user)
    return user


def change(client: Client, email: str = "new@example.com", password: str = PASSWORD) -> Any:
    """Request a change of address."""
    return client.post("/accounts/email_change/", {"email": email, "password": password})


def test_a_new_address_is_confirmed_first(mike: User, client: Client, mailoutbox: Any, sent: Sent) -> None:
    """The old address is kept until the user follows the link; one transaction then replaces it."""
    sent.clear()
    assert change(client).url == "/accounts/email_change/done/"
    session, lockout, claim = ["GetItem", "GetItem"], ["BatchGetItem", "UpdateItem", "DeleteItem"], ["GetItem"]
    assert operations(sent) == [*session, *lockout, *MAIL, *claim]
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
    assert "It already has an account" in mailoutbox[0].body


def test_an_address_that_somebody_took_meanwhile(mike: User, client: Client, mailoutbox: Any) -> None:
    """The link has no effect, and both users keep their addresses."""
    change(client)
    User.objects.create_user("Faster", "new@example.com", PASSWORD)
    assert void(client, link(mailoutbox[0]))
    assert User.objects.get_by_identifier("new@example.com").username == "Faster"
    assert User.objects.get_by_identifier("user1@example.com") == mike


@pytest.mark.parametrize("password", ["wrong", ""])
def test_an_address_is_changed_with_the_password_only(
    mike: User, client: Client, mailoutbox: Any, password: str
) -> None:
    """An open session is not enough."""
    assert change(client, password=password).status_code == 200
    assert mailoutbox == []


def test_a_new_password_makes_a_change_void(mike: User, client: Client, mailoutbox: Any) -> None:
    """A user who recovers the account is safe from links that another person has requested."""
    change(client)
    mike.refresh_from_db()
    mike.set_password("Another-Good-9")
    mike.save()
    assert void(Client(), link(mailoutbox[0]))


def test_of_two_changes_one_takes_place(mike: User, client: Client, mailoutbox: Any) -> None:
    """After one link is used, the other has no effect."""
    change(client, "first@example.com")
    change(client, "second@example.com")
    assert client.post(link(mailoutbox[1])).status_code == 302
    assert void(client, link(mailoutbox[0]))
    assert User.objects.get(pk="1").email == "second@example.com"


def test_a_link_is_void_after_the_address_went_there_and_back(mike: User, client: Client, mailoutbox: Any) -> None:
    """A reader of a former address's mail cannot use its old link to take over the account."""
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
    """The page shows the last spelling, and both spellings open the account. The user is not notified."""
    change(client, "User1@Example.com")
    client.post(link(mailoutbox[0]))
    assert User.objects.get(pk="1").email == "User1@Example.com"
    assert User.objects.get(pk="1").has_confirmed_email
    assert len(mailoutbox) == 1


def test_a_link_that_is_followed_several_times_at_once(mike: User, client: Client, mailoutbox: Any) -> None:
    """A double click does not cause an error: both get the success page, and the old address gets one mail."""
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
    """A user without an address can add one."""
    client.force_login(User.objects.create_user("Mike", None, PASSWORD))
    change(client)
    client.post(link(mailoutbox[0]))
    assert is_in(Client(), "new@example.com")
    assert len(mailoutbox) == 1


def test_confirming_is_not_undone_by_a_change_of_case(mike: User) -> None:
    """A change of case keeps the confirmation, and code can set another address without a confirmation."""
    mike.email = "USER1@example.com"
    mike.save()
    assert Login.objects.find("EMAIL", "user1@example.com").confirmed is True
    mike.email = "other@example.com"
    mike.save()
    assert Login.objects.find("EMAIL", "other@example.com").confirmed is None
