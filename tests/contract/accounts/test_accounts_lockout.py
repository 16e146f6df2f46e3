"""Clients that guess passwords have to wait longer each time, without delaying other users."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import aauthenticate, authenticate
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from django.utils import timezone

from accounts.models import LoginFailures, User
from dynamo_single import exceptions, testing
from dynamo_single.contrib.accounts.backends import EmailOrUsernameBackend
from dynamo_single.contrib.accounts.limits import lockout
from dynamo_single.table import Request, SentRequest, Table

Sent = list[SentRequest]
PASSWORD = "a-good-password"
OWNER = "198.51.100.7"
STRANGER = "203.0.113.66"

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def mike(table: Table) -> User:
    """Return a user with a password that others guess."""
    return User.objects.create_user("Mike", "user1@example.com", PASSWORD, user_id="1")


@pytest.fixture(autouse=True)
def _in_the_middle_of_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sure that the counters' hour and day do not end during a test."""
    monkeypatch.setattr(lockout, "_EPOCH", timezone.now() - timedelta(days=1000, hours=12, minutes=30))


@pytest.fixture
def accounts(settings: Any) -> Any:
    """Change keys of the setting ``ACCOUNTS``."""

    def change(**keys: Any) -> None:
        settings.ACCOUNTS = {**getattr(settings, "ACCOUNTS", {}), **keys}

    return change


def request(address: str = STRANGER, **headers: str) -> Any:
    """A request from an address."""
    return RequestFactory().post("/", REMOTE_ADDR=address, headers=headers)


def attempt(identifier: str, password: str, address: str = STRANGER) -> str:
    """Try to log in: ``in``, ``wrong`` or ``early``."""
    asked = request(address)
    if authenticate(asked, username=identifier, password=password) is not None:
        return "in"
    return "wrong" if lockout.told(asked) is None else "early"


def fail(times: int, identifier: str = "Mike", address: str = STRANGER) -> None:
    """Log in with a wrong password, without ever waiting."""
    for _ in range(times):
        assert attempt(identifier, "wrong", address) == "wrong"


def counters() -> list[LoginFailures]:
    """Every counter, the largest first."""
    return sorted(LoginFailures.objects.allow_scan(), key=lambda counter: -counter.failures)


def later(seconds: float) -> None:
    """Let time pass, for the counters."""
    for counter in counters():
        counter.last_failure -= timedelta(seconds=seconds)
        counter.save()


def shown(sent: Sent) -> list[str]:
    """Each request's operation and the kind of its item."""
    found = []
    for each in sent:
        key = each.params.get("Key") or each.params.get("Item") or {"pk": {"S": ""}}
        found.append(f"{each.operation} {key['pk']['S'].split('#')[0]}".strip())
    return found


@contextmanager
def hashes(count: int) -> Iterator[None]:
    """Assert the number of password hashes."""
    encode = MD5PasswordHasher.encode
    with mock.patch.object(MD5PasswordHasher, "encode", autospec=True, side_effect=encode) as hashed:
        yield
    assert hashed.call_count == count


COUNT = "UpdateItem LOGINFAILURES"


def test_the_first_failures_cost_nothing(mike: User) -> None:
    """Five wrong passwords do not cause a delay; after the fifth, even the right one is too early."""
    fail(4)
    assert attempt("Mike", PASSWORD) == "in"
    fail(5)
    assert attempt("Mike", PASSWORD) == "early"


@pytest.mark.parametrize("identifier", ["Mike", "nobody", "user1@example.com", "nobody@example.com"])
@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_too_early_is_the_same_for_everybody(identifier: str, password: str, sent: Sent) -> None:
    """Any early attempt takes one read and one password hash, without a write."""
    fail(5, identifier)
    sent.clear()
    with hashes(1):
        assert attempt(identifier, password) == "early"
    assert shown(sent) == ["BatchGetItem"]
    (keys,) = [each["Keys"] for each in sent[0].params["RequestItems"].values()]
    assert len(keys) == 3
    assert [each["ConsistentRead"] for each in sent[0].params["RequestItems"].values()] == [True]


def test_a_failure_is_three_additions(sent: Sent) -> None:
    """DynamoDB itself counts the identifier at the address, the identifier, and the address."""
    for _ in range(2):
        sent.clear()
        fail(1)
        assert shown(sent) == ["BatchGetItem", COUNT, "Query", "GetItem USER", COUNT, COUNT]
        assert all("ADD" in each.params["UpdateExpression"] for each in (sent[1], *sent[4:]))
    assert [counter.failures for counter in counters()] == [2, 2, 2]


def test_a_login_forgets_the_failures_at_the_address(sent: Sent) -> None:
    """A login counts itself and then deletes this counter with the failures, and does not write anything else."""
    fail(2)
    for failures in ([2, 2], [2, 2]):
        sent.clear()
        assert attempt("Mike", PASSWORD) == "in"
        assert shown(sent) == ["BatchGetItem", COUNT, "Query", "GetItem USER", "DeleteItem LOGINFAILURES"]
        assert [counter.failures for counter in counters()] == failures


def test_after_the_delay_one_attempt_is_counted_before_it_is_made(sent: Sent) -> None:
    """During delays, an attempt is recorded before it is made, so that parallel ones count as one."""
    fail(5)
    later(5)
    sent.clear()
    assert attempt("Mike", "wrong") == "wrong"
    assert shown(sent) == ["BatchGetItem", COUNT, "Query", "GetItem USER", COUNT, COUNT]
    assert [counter.failures for counter in counters()] == [6, 6, 6]
    assert attempt("Mike", PASSWORD) == "early"
    later(10)
    sent.clear()
    assert attempt("Mike", PASSWORD) == "in"
    assert shown(sent) == ["BatchGetItem", COUNT, "Query", "GetItem USER", "DeleteItem LOGINFAILURES"]
    assert attempt("Mike", PASSWORD) == "in"


@pytest.mark.parametrize(
    ("failures", "seconds"), [(5, 5), (6, 10), (7, 20), (10, 160), (12, 640), (13, 900), (9999, 900)]
)
def test_delays_double_up_to_a_quarter_of_an_hour(failures: int, seconds: int) -> None:
    """The delay depends on the number of failures, up to the setting's maximum."""
    fail(1)
    for counter in counters():
        counter.failures = failures
        counter.save()
    LoginFailures.objects.filter(pk=address_counter()).update(failures=1)
    asked = request()
    assert authenticate(asked, username="Mike", password=PASSWORD) is None
    assert lockout.told(asked) == pytest.approx(timedelta(seconds=seconds), abs=timedelta(seconds=3))
    later(seconds)
    assert attempt("Mike", PASSWORD) == "in"


def address_counter(address: str = STRANGER) -> str:
    """The scope of an address's own counter."""
    return lockout.begin(request(address), "somebody else").address.scope


def test_a_stranger_cannot_keep_the_owner_out(accounts: Any) -> None:
    """The owner with the password can log in immediately from an address without failures."""
    accounts(ACCOUNT_FAILURES=10)
    for number in range(20):
        attempt("Mike", "wrong", f"203.0.113.{number}")
        attempt("Mike", "wrong", f"203.0.113.{number}")
    assert attempt("Mike", PASSWORD, "203.0.113.1") == "early"
    assert attempt("Mike", PASSWORD, OWNER) == "in"
    assert attempt("user1@example.com", PASSWORD, OWNER) == "in"


def test_an_account_under_attack_gives_each_address_one_attempt(accounts: Any) -> None:
    """Each of many addresses gets a single attempt, which is enough for the owner, rather than five."""
    accounts(ACCOUNT_FAILURES=4)
    fail(4)
    assert attempt("Mike", "wrong", OWNER) == "wrong"
    assert attempt("Mike", PASSWORD, OWNER) == "early"
    later(5)
    assert attempt("Mike", PASSWORD, OWNER) == "in"


def test_one_address_cannot_try_all_accounts(accounts: Any) -> None:
    """Failures with many names delay only their address for every name, by up to a minute."""
    accounts(ADDRESS_FAILURES=6)
    for number in range(6):
        fail(1, f"name{number}")
    assert attempt("Mike", PASSWORD) == "early"
    assert attempt("Mike", PASSWORD, OWNER) == "in"
    LoginFailures.objects.filter(pk=address_counter()).update(failures=1000)
    assert attempt("Mike", PASSWORD) == "early"
    later(60)
    assert attempt("Mike", PASSWORD) == "in"


def test_logins_do_not_slow_a_busy_address_down_further(accounts: Any) -> None:
    """A login from a delayed address does not count as a failure."""
    accounts(ADDRESS_FAILURES=2)
    fail(1, "one")
    fail(1, "two")
    for _ in range(3):
        later(5)
        assert attempt("Mike", PASSWORD) == "in"
    assert [counter.failures for counter in counters()][:2] == [2, 1]


def test_of_many_at_once_one_is_looked_at() -> None:
    """After the delay, simultaneous attempts count as one."""
    fail(5)
    later(5)
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(attempt("Mike", "wrong"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["early"] * 11 + ["wrong"]


def test_of_forty_at_once_as_many_are_looked_at_as_are_free() -> None:
    """Attempts are counted before the password is checked, so a burst has no advantage."""
    start = threading.Barrier(40)
    results: list[str] = []

    def guess() -> None:
        start.wait()
        results.append(attempt("Mike", "wrong"))

    with hashes(40):
        threads = [threading.Thread(target=guess) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(results) == ["early"] * 35 + ["wrong"] * 5
    assert [counter.failures for counter in counters()] == [5, 5, 5]


def test_logins_at_the_same_moment_are_all_let_in(accounts: Any) -> None:
    """Each takes its own attempt back; none stays counted."""
    accounts(FREE_FAILURES=8)
    start = threading.Barrier(8)
    results: list[str] = []

    def log_in() -> None:
        start.wait()
        results.append(attempt("Mike", PASSWORD))

    threads = [threading.Thread(target=log_in) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["in"] * 8
    assert counters() == []


def test_no_failure_is_lost(accounts: Any) -> None:
    """Simultaneous failures are all counted."""
    accounts(FREE_FAILURES=1000)
    threads = [threading.Thread(target=attempt, args=("Mike", "wrong")) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [counter.failures for counter in counters()] == [20, 20, 20]


def test_counters_are_forgotten() -> None:
    """A counter exists until the end of its day or hour, and is never prolonged."""
    fail(1)
    before = {counter.scope: counter.expires for counter in counters()}
    fail(3)
    assert {counter.scope: counter.expires for counter in counters()} == before
    pair, account, address = (lockout.begin(request(), "Mike"),) * 3
    for counter, period in (
        (pair.pair, lockout.DAY),
        (account.account, lockout.DAY),
        (address.address, lockout.HOUR),
    ):
        assert timedelta() < counter.expires - counter.last_failure <= period


def test_the_table_holds_no_names_and_no_addresses(table: Table) -> None:
    """The counters do not reveal the input or the address."""
    fail(1, "my-secret-password")
    stored = str([item for item in table.send(Request("Scan"))["Items"] if item["itemType"]["S"] == "LoginFailures"])
    assert "LOGINFAILURES#" in stored
    assert "my-secret-password" not in stored
    assert STRANGER not in stored


def test_an_inactive_user_is_counted_like_a_wrong_password(sent: Sent) -> None:
    """Neither requests nor responses reveal that the password was right."""
    User.objects.create_user("Gone", None, PASSWORD, is_active=False)
    sent.clear()
    fail(1, "Gone")
    wrong = shown(sent)
    sent.clear()
    assert attempt("Gone", PASSWORD) == "wrong"
    assert shown(sent) == wrong


def test_without_a_request_nothing_is_counted(sent: Sent) -> None:
    """There is no address to count by, and a stranger must not be able to use the unlock link, so nothing is stored."""
    for _ in range(7):
        assert authenticate(username="Mike", password="wrong") is None
    assert counters() == []
    assert authenticate(username="Mike", password=PASSWORD) is not None


def test_the_lockout_can_be_switched_off(accounts: Any, sent: Sent) -> None:
    """Without it, a login takes two reads, and a failure is not written."""
    accounts(LOCKOUT=False)
    fail(7)
    sent.clear()
    assert attempt("Mike", PASSWORD) == "in"
    assert shown(sent) == ["Query", "GetItem USER"]


def test_no_other_backend_is_asked() -> None:
    """Too early is too early for every backend."""
    fail(5)
    with pytest.raises(PermissionDenied):
        EmailOrUsernameBackend().authenticate(request(), username="Mike", password=PASSWORD)


def test_a_table_that_does_not_answer_is_an_error() -> None:
    """A lockout that cannot be read raises an error."""
    with testing.refuse("ProvisionedThroughputExceededException"), pytest.raises(exceptions.Throttled):
        attempt("Mike", PASSWORD)


def test_the_lockout_is_asynchronous_too() -> None:
    """aauthenticate() counts and rejects like authenticate()."""

    async def use() -> None:
        for _ in range(5):
            assert await aauthenticate(request(), username="Mike", password="wrong") is None
        asked = request()
        assert await aauthenticate(asked, username="Mike", password=PASSWORD) is None
        assert isinstance(lockout.told(asked), timedelta)
        assert await aauthenticate(request(OWNER), username="Mike", password=PASSWORD) is not None

    asyncio.run(use())


def test_a_connection_without_an_address_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Behind a Unix socket without a header, all clients look the same, and the log contains a warning."""
    fail(1, address="")
    assert "CLIENT_ADDRESS_HEADER" in caplog.text
    caplog.clear()
    fail(1)
    assert "CLIENT_ADDRESS_HEADER" not in caplog.text


# reported settings


@pytest.mark.parametrize("identifier", ["Mike", "nobody"])
def test_the_page_says_how_long_to_wait(client: Client, identifier: str) -> None:
    """The login page's message is the same whether or not there is such an account."""
    fail(5, identifier, "127.0.0.1")
    page = client.post("/accounts/login/", {"username": identifier, "password": PASSWORD})
    assert "Too many failed attempts. Please wait 5 seconds and try again." in page.content.decode()
    for counter in counters():
        counter.failures = 8
        counter.save()
    page = client.post("/accounts/login/", {"username": identifier, "password": PASSWORD})
    assert "Please wait 40 seconds" in page.content.decode()
    for counter in counters():
        counter.failures = 11
        counter.save()
    page = client.post("/accounts/login/", {"username": identifier, "password": PASSWORD})
    assert "Please wait 6 minutes" in page.content.decode()


def test_the_log_holds_no_password(caplog: pytest.LogCaptureFixture, client: Client) -> None:
    """The log contains the reason and the user, and omits the input."""
    caplog.set_level(logging.INFO)
    typed = {"Mike": "typed-password", "typed-password": "Mike", "user1@example.com": "typed-password"}
    for identifier, password in typed.items():
        client.post("/accounts/login/", {"username": identifier, "password": password})
    fail(5)
    attempt("Mike", "typed-password")
    said = [record.getMessage() for record in caplog.records if record.name == "accounts"]
    assert "A login was rejected: a wrong password for user 1." in said
    assert "A login was rejected: the identifier does not belong to a user who can log in." in said
    assert any(STRANGER in message and "too early" in message for message in said)
    assert "typed-password" not in caplog.text
    assert PASSWORD not in caplog.text
