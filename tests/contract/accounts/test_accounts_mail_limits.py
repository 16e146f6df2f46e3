"""Strangers cannot fill a mailbox: limits per address and per client."""

from __future__ import annotations

import itertools
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, RequestFactory

from accounts.models import MailsAsked, User
from dynamo_single.contrib.accounts.limits import mail_limits
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.testing import assert_requests, moved_time
from tests.contract.accounts.account_pages import PASSWORD, sign_up

Sent = list[SentRequest]
TOO_MANY = "Too many e-mails were requested. Please wait"
#: Public pages that send a mail to an address.
PAGES: dict[str, dict[str, str]] = {
    "/accounts/password_reset/": {},
    "/accounts/sign_up/again/": {},
    "/accounts/sign_up/": {"password1": PASSWORD, "password2": PASSWORD},
}
#: The user names must be different.
NUMBERS = itertools.count()

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def _holder(table: Table) -> None:
    """Return a user who has not confirmed the address that others type."""
    User.objects.create_user("Holder", "holder@example.com", PASSWORD)


def ask(page: str, email: str = "holder@example.com", **extra: Any) -> Any:
    """Submit a page's form as a new visitor."""
    return Client(**extra).post(page, {"email": email, "username": f"Other{next(NUMBERS)}", **PAGES[page]})


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("email", ["holder@example.com", "nobody@example.com"])
def test_an_address_gets_five_mails_an_hour(page: str, email: str, mailoutbox: Any) -> None:
    """From any visitor and whether or not the address is known, the sixth request is rejected with the reason."""
    answers = [ask(page, email, REMOTE_ADDR=f"203.0.113.{number}") for number in range(8)]
    refused = [TOO_MANY in answer.content.decode() for answer in answers]
    assert refused == [False] * 5 + [True] * 3
    assert len(mailoutbox) <= 5
    with moved_time(timedelta(hours=1)):
        assert TOO_MANY not in ask(page, email).content.decode()


def test_all_pages_count_together(mailoutbox: Any) -> None:
    """Seventy-five requests send five mails, whatever the case of the address is."""
    for number in range(75):
        page = [*PAGES][number % 3]
        ask(page, "Holder@Example.com" if number % 2 else "holder@example.com", REMOTE_ADDR=f"203.0.113.{number}")
    assert len(mailoutbox) <= 5


def test_a_client_has_so_many_mails_sent(settings: Any, mailoutbox: Any) -> None:
    """Past the limit, one client is rejected for every address, and other clients are not."""
    settings.ACCOUNTS = {"MAILS_PER_CLIENT": 2}
    for number in range(4):
        answer = sign_up(Client(), f"Name{number}", f"name{number}@example.com")
        assert answer.status_code == (302 if number < 2 else 200)
    assert len(mailoutbox) == 2
    assert sign_up(Client(REMOTE_ADDR="203.0.113.9"), "Name9", "name9@example.com").status_code == 302


def test_who_is_logged_in_is_bound_too(client: Client, mailoutbox: Any) -> None:
    """A change of address sends a mail to any typed address."""
    client.force_login(User.objects.get_by_natural_key("Holder"))
    for _ in range(7):
        client.post("/accounts/email_change/", {"email": "victim@example.com", "password": PASSWORD})
    assert [mail.to for mail in mailoutbox] == [["victim@example.com"]] * 5


def test_the_bounds_can_be_taken_away(settings: Any, mailoutbox: Any) -> None:
    """None is no bound, and counts nothing."""
    settings.ACCOUNTS = {"MAILS_PER_CLIENT": None, "MAILS_PER_ADDRESS": None}
    for _ in range(7):
        ask("/accounts/password_reset/")
    assert len(mailoutbox) == 7
    assert not list(MailsAsked.objects.allow_scan())


def test_of_many_at_once_as_many_get_through_as_are_allowed() -> None:
    """The addition itself enforces the limit."""
    results: list[str] = []
    start = threading.Barrier(30)

    def count() -> None:
        start.wait()
        try:
            mail_limits.count(RequestFactory().post("/"), "holder@example.com")
        except mail_limits.TooManyMails:
            results.append("refused")
        else:
            results.append("counted")

    threads = [threading.Thread(target=count) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["counted"] * 5 + ["refused"] * 25


def test_a_mail_is_two_additions(table: Table) -> None:
    """They hold no address, and expire with their hour."""
    with assert_requests(["UpdateItem", "UpdateItem"]):
        mail_limits.count(RequestFactory().post("/", REMOTE_ADDR="203.0.113.9"), "holder@example.com")
    stored = [item for item in table.send(Request("Scan"))["Items"] if item["itemType"]["S"] == "MailsAsked"]
    assert len(stored) == 2
    assert "holder" not in str(stored)
    assert "203.0.113.9" not in str(stored)
    assert all("expiresAt" in item for item in stored)
