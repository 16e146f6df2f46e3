"""Damaged items stop no login and no page: counters begin again, and a damaged claim or login is nobody's."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.test import Client, RequestFactory

from accounts.models import User
from dynamo_single.contrib.accounts.limits import lockout, mail_limits
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, capture_requests
from tests.contract.damage import damages, items_of, store
from tests.contract.tables import everything

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("project.urls")]

PASSWORD, EMAIL = "a-good-password", "mike@example.com"


@pytest.fixture
def mike(table: Table) -> User:
    """A user."""
    return User.objects.create_user("Mike", EMAIL, PASSWORD, user_id="1")


def attempt(password: str = PASSWORD, typed: str = "Mike") -> User | None:
    """Try to log in, as a page does."""
    found: Any = authenticate(RequestFactory().post("/"), username=typed, password=password)
    return found


def empty(table: Table, item_type: str) -> None:
    """Delete the items of a type."""
    for item in items_of(table, item_type):
        table.send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))


def test_damaged_login_failures_stop_no_login(mike: User, table: Table) -> None:
    attempt("wrong")
    counters = items_of(table, "LoginFailures")
    assert len(counters) == 3
    for counter in counters:
        for what, damaged in damages(counter):
            for password in ("wrong", PASSWORD):
                empty(table, "LoginFailures")
                store(table, damaged)
                assert (what, attempt(password)) == (what, mike if password == PASSWORD else None)


def test_damaged_login_failures_count_again(mike: User, table: Table, settings: Any) -> None:
    """A damaged counter delays an attacker after as many failures as a new one."""
    settings.ACCOUNTS = {"FREE_FAILURES": 2}
    attempt("wrong")
    for counter in items_of(table, "LoginFailures"):
        for what, damaged in damages(counter):
            empty(table, "LoginFailures")
            store(table, damaged)
            for _ in range(3):
                attempt("wrong")
            assert (what, attempt()) == (what, None)


def test_damaged_counter_is_named_in_the_log(mike: User, table: Table, caplog: Any) -> None:
    attempt("wrong")
    counter = items_of(table, "LoginFailures")[0]
    store(table, {**counter, "failures": {"S": "many"}})
    attempt()
    assert f"The counter accounts.LoginFailures '{counter['scope']['S']}' was damaged: it was replaced" in caplog.text


def test_damaged_mail_counters_stop_no_page(mike: User, table: Table) -> None:
    request = RequestFactory().post("/")
    mail_limits.count(request, EMAIL)
    for counter in items_of(table, "MailsAsked"):
        for what, damaged in damages(counter):
            empty(table, "MailsAsked")
            store(table, damaged)
            mail_limits.count(request, EMAIL)
            assert what and len(items_of(table, "MailsAsked")) == 2


def test_damaged_mail_counter_limits_again(mike: User, table: Table, settings: Any) -> None:
    settings.ACCOUNTS = {"MAILS_PER_CLIENT": None, "MAILS_PER_ADDRESS": 2}
    request = RequestFactory().post("/")
    mail_limits.count(request, EMAIL)
    (counter,) = items_of(table, "MailsAsked")
    store(table, {**counter, "mails": {"S": "many"}})
    mail_limits.count(request, EMAIL)
    mail_limits.count(request, EMAIL)
    with pytest.raises(mail_limits.TooManyMails):
        mail_limits.count(request, EMAIL)


@pytest.mark.parametrize("typed", ["Mike", EMAIL, "Nobody", "nobody@example.com"])
def test_damaged_claims_stop_no_login(mike: User, table: Table, typed: str) -> None:
    """A login item is enough without its claim; without it, a damaged claim does not find a user."""
    claims, logins = items_of(table, "UniqueClaim"), items_of(table, "Login")
    for claim in claims:
        for what, damaged in damages(claim):
            # Failures of all states together would slow down the address that they come from.
            empty(table, "LoginFailures")
            for each in (*claims, *logins, damaged):
                store(table, each)
            expected = mike if typed in ("Mike", EMAIL) else None
            assert (what, attempt(typed=typed)) == (what, expected)
            empty(table, "Login")
            assert attempt("wrong", typed) is None
            attempt(typed=typed)


@pytest.mark.parametrize("typed", ["Mike", EMAIL])
def test_claim_of_a_missing_owner_stops_no_login(mike: User, table: Table, typed: str, caplog: Any) -> None:
    everything_else = [item for item in everything(table).values() if item["itemType"]["S"] != "UniqueClaim"]
    for item in everything_else:
        table.send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))
    assert attempt(typed=typed) is None
    assert "dynamo_rebuild repairs them" in caplog.text


def test_claim_of_a_missing_owner_stops_no_page(mike: User, table: Table) -> None:
    """Signing up, a new password and logging in."""
    for item in everything(table).values():
        if item["itemType"]["S"] != "UniqueClaim":
            table.send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))
    client = Client()
    assert client.post("/accounts/login/", {"username": EMAIL, "password": PASSWORD}).status_code == 200
    assert client.post("/accounts/password_reset/", {"email": EMAIL}).status_code == 302


def test_damaged_login_items_stop_no_login(mike: User, table: Table) -> None:
    """The claim decides then."""
    logins = items_of(table, "Login")
    for login in logins:
        typed = login["identifier"]["S"]
        for what, damaged in damages(login, leave=("gs1pk", "gs1sk")):
            for each in (*logins, damaged):
                store(table, each)
            assert (what, typed, attempt(typed=typed)) == (what, typed, mike)


def test_lockout_reads_damaged_counters_by_one_request_more(mike: User, table: Table) -> None:
    """And replaces them, so that the next attempt costs what any does."""
    attempt("wrong")
    counter = min(items_of(table, "LoginFailures"), key=lambda item: item["expiresAt"]["N"])
    store(table, {**counter, "failures": {"S": "many"}})
    request = RequestFactory().post("/")
    with capture_requests() as sent:
        lockout.begin(request, "Mike")
    # The counters are read sequentially in the order of their keys, and the damaged one is written.
    wanted = ["BatchGetItem", "GetItem", "GetItem", "GetItem", "PutItem", "UpdateItem"]
    assert sorted(each.operation for each in sent) == wanted
    with assert_requests(["BatchGetItem", "UpdateItem"]):
        lockout.begin(request, "Mike")


@pytest.mark.parametrize("item_type", ["UniqueClaim", "Login"])
def test_rebuild_repairs_damaged_claims_and_logins(mike: User, table: Table, item_type: str) -> None:
    """The fix that the log names."""
    before = everything(table)
    item = items_of(table, item_type)[0]
    for what, damaged in damages(item, leave=("itemType", "gs1pk", "gs1sk"), types=("S", "N")):
        store(table, damaged)
        call_command("dynamo_rebuild", verbosity=0)
        assert (what, everything(table)) == (what, before)
