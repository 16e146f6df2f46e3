"""External accounts as a login method: linked, found, removed and unique."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from dynamo_single.contrib.accounts import ways
from dynamo_single.contrib.accounts.backends import EmailOrUsernameBackend
from dynamo_single.contrib.accounts.external import checked, log_in
from dynamo_single.exceptions import ConfigurationError, InvalidValue, UniqueViolation
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.contract.accounts import external_urls
from tests.contract.accounts.account_pages import PASSWORD
from tests.contract.accounts.provider import Provider, running
from tests.contract.accounts.races import at_once, winners_of
from tests.contract.tables import everything

SUBJECT = "Ab-42"
pytestmark = pytest.mark.urls("tests.contract.accounts.external_urls")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """The provider of this module's tests."""
    with running() as found:
        yield found


@pytest.fixture(autouse=True)
def _providers(settings: Any, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "google", "work"], "PROVIDERS": {"work": provider.issuer}}
    provider.account = {"sub": SUBJECT, "email": "john@example.com", "email_verified": True}
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    external_urls.register(provider.issuer)


@pytest.fixture
def john(table: Table) -> User:
    """Return a user with a confirmed address."""
    user = User.objects.create_user("John", "john@example.com", PASSWORD, user_id="1")
    user.confirm_email()
    user.save()
    return user


def add(user: User, subject: str = SUBJECT, provider: str = "work") -> None:
    """Link an account."""
    logins: Any = user.logins
    logins.add(provider, subject)


def remove(user: User, subject: str = SUBJECT, provider: str = "work") -> None:
    """Take an account from a user."""
    logins: Any = user.logins
    logins.remove(provider, subject)


class _Stays(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Not followed."""


def come_back(browser: Client) -> Any:
    """Go to the provider, which knows who one is, and come back."""
    there = browser.get("/work/").url
    try:
        build_opener(_Stays, ProxyHandler({})).open(there)
    except HTTPError as answer:
        back = urlsplit(answer.headers["Location"])
    return browser.get(f"{back.path}?{back.query}")


def who(browser: Client) -> str | None:
    """Return the logged-in user."""
    return browser.session.get("_auth_user_id")


def test_an_account_that_is_linked_logs_in(john: User) -> None:
    """By Authlib, from the first page to the last one, with a signature that it has checked."""
    add(john)
    browser = Client()
    assert come_back(browser).url == "/accounts/"
    assert who(browser) == "1"


def test_who_is_logged_in_links_the_account(john: User, provider: Provider) -> None:
    provider.account = {"sub": SUBJECT}
    browser = Client()
    browser.force_login(john)
    assert come_back(browser).status_code == 302
    john.refresh_from_db()
    assert john.identities == {f"work#{SUBJECT}"}
    assert come_back(Client()).url == "/accounts/"


def test_an_address_that_is_confirmed_on_both_sides_links_the_account(john: User) -> None:
    browser = Client()
    come_back(browser)
    assert who(browser) == "1"
    john.refresh_from_db()
    assert john.identities == {f"work#{SUBJECT}"}


@pytest.mark.parametrize(
    "changed",
    [{"email_verified": False}, {"email_verified": "true"}, {"email_verified": None}, {"email": "mike@example.com"}],
    ids=str,
)
def test_an_address_that_the_provider_has_not_confirmed_links_nothing(
    john: User, provider: Provider, changed: dict[str, Any]
) -> None:
    """An attacker who enters another person's address at the provider cannot log in."""
    provider.account |= changed
    browser = Client()
    assert come_back(browser).status_code == 403
    assert who(browser) is None


def test_an_address_that_is_not_confirmed_here_links_nothing(table: Table) -> None:
    """An attacker who signed up here with another's address does not get the owner's account."""
    User.objects.create_user("Attacker", "john@example.com", PASSWORD)
    assert come_back(Client()).status_code == 403


def test_a_further_address_that_is_confirmed_on_both_sides_links_the_account(table: Table) -> None:
    """An additional address has the same effect as the primary one, which may be unconfirmed."""
    ann = User.objects.create_user("Ann", "ann@example.com", PASSWORD, user_id="2")
    ann.logins.add("email", "john@example.com")
    browser = Client()
    come_back(browser)
    assert who(browser) == "2"
    ann.refresh_from_db()
    assert ann.identities == {f"work#{SUBJECT}"}


def test_who_may_not_log_in_does_not_do_so_elsewhere(john: User) -> None:
    add(john)
    john.is_active = False
    john.save()
    browser = Client()
    assert come_back(browser).status_code == 403
    assert who(browser) is None


class Own(EmailOrUsernameBackend):
    """A project's backend, which lets in those whose name begins with a J."""

    def user_can_authenticate(self, user: User) -> bool:
        """Return whether the name can log in."""
        return super().user_can_authenticate(user) and user.username.startswith("J")


def test_a_projects_backend_knows_who_logged_in_elsewhere(john: User, settings: Any) -> None:
    """On the page after it too, whose session names the backend."""
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Own"]
    add(john)
    browser = Client()
    come_back(browser)
    assert browser.get("/accounts/").status_code == 200


def test_a_projects_backend_says_who_may_log_in_elsewhere(table: Table, settings: Any) -> None:
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Own"]
    add(User.objects.create_user("Mike", "mike@example.com", PASSWORD))
    assert come_back(Client()).status_code == 403


def test_without_such_a_backend_nobody_logs_in_elsewhere(john: User, settings: Any) -> None:
    """The login raises an error instead of creating a session without a user."""
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
    add(john)
    with pytest.raises(ConfigurationError, match="AUTHENTICATION_BACKENDS does not name"):
        come_back(Client())


def test_an_account_of_another_user_is_refused(john: User, table: Table) -> None:
    """The case does not matter, and a logged-in user is rejected too."""
    add(john)
    mike = User.objects.create_user("Mike", "mike@example.com", PASSWORD)
    for subject in (SUBJECT, SUBJECT.lower()):
        with pytest.raises(UniqueViolation, match=r"Another accounts\.User has provider 'work' and subject"):
            add(mike, subject)
    assert not mike.identities
    browser = Client()
    browser.force_login(mike)
    with pytest.raises(UniqueViolation):
        come_back(browser)
    assert {key for key in everything(table) if key[0].startswith("IDENTITY#")} == {
        ("IDENTITY#work#ab-42", "#METADATA")
    }


def test_a_subject_is_compared_to_the_letter(john: User) -> None:
    """The claim ignores case, but a different case is another subject."""
    add(john)
    with pytest.raises(User.DoesNotExist):
        User.objects.get_by_identity("work", SUBJECT.lower())
    with assert_requests(["GetItem", "GetItem"]):
        assert User.objects.get_by_identity("work", SUBJECT) == john


@pytest.mark.parametrize("name", ["github", "foo", "email"])
def test_nobody_is_looked_for_by_what_nobody_logs_in_with(table: Table, name: str) -> None:
    """A name outside the settings raises an error instead of finding no user."""
    with assert_requests([]), pytest.raises(InvalidValue, match=f"Logins with '{name}' are disabled"):
        User.objects.get_by_identity(name, SUBJECT)


def test_what_is_stored(john: User, table: Table) -> None:
    """Next to the user, an item lists the account, and a claim makes it unique."""
    with assert_requests(["TransactWriteItems"]):
        add(john)
    assert {("USER#1", f"WORK#{SUBJECT}"), ("IDENTITY#work#ab-42", "#METADATA")} <= set(everything(table))
    assert [(each.kind, each.identifier) for each in john.logins.all()] == [
        ("EMAIL", "john@example.com"),
        ("USERNAME", "John"),
        ("WORK", SUBJECT),
    ]
    call_command("dynamo_verify", verbosity=0)
    with assert_requests(["TransactWriteItems"]):
        remove(john)
    add(User.objects.create_user("Mike", "mike@example.com", PASSWORD))


def test_an_account_goes_with_its_user(john: User, table: Table) -> None:
    add(john)
    add(john, "1", "google")
    with assert_requests(["TransactWriteItems"]):
        john.delete()
    assert everything(table) == {}


def test_users_who_want_one_account_at_once(table: Table) -> None:
    """Only one user gets the account, which leads to this user."""
    winners = winners_of(add)
    assert len(winners) == 1
    assert User.objects.get_by_identity("work", SUBJECT) == winners[0]


def test_the_last_way_to_log_in_stays(john: User) -> None:
    """Without a password only accounts elsewhere are ways."""
    john.set_unusable_password()
    john.save()
    add(john)
    with pytest.raises(ways.LastWay):
        remove(john)
    add(john, "1", "google")
    remove(john)
    with pytest.raises(ways.LastWay):
        remove(john, "1", "google")


def test_two_accounts_removed_at_once_leave_one(john: User) -> None:
    john.set_unusable_password()
    john.save()
    add(john)
    add(john, "1", "google")
    users = [User.objects.get(pk="1"), User.objects.get(pk="1")]

    def removed(given: Any) -> bool:
        try:
            remove(given[0], *given[1])
        except ways.LastWay:
            return False
        return True

    each = list(zip(users, ((SUBJECT, "work"), ("1", "google")), strict=True))
    assert sorted(at_once(removed, each)) == [False, True]
    assert len(User.objects.consistent().get(pk="1").identities or ()) == 1


def test_a_user_has_some_accounts_and_no_more(john: User) -> None:
    for number in range(ways.MAX_IDENTITIES):
        add(john, str(number))
    with pytest.raises(InvalidValue, match="at most 10 external accounts"):
        add(john, "more")


@pytest.mark.parametrize(
    ("name", "claims", "said"),
    [
        (
            "work",
            {"sub": "1", "iss": "https://evil.example.com"},
            "The issuer of the claims is 'https://evil.example.com'",
        ),
        ("work", {"sub": "1"}, "The issuer of the claims is None"),
        ("google", {"iss": "accounts.google.com"}, "do not contain sub"),
        ("google", {"iss": "accounts.google.com", "sub": ""}, "do not contain sub"),
        ("github", {"sub": "1"}, "Logins with 'github' are disabled"),
        ("email", {"sub": "1"}, "Logins with 'email' are disabled"),
    ],
)
def test_claims_of_others_are_refused(name: str, claims: dict[str, Any], said: str) -> None:
    """Two providers may give one subject to two people."""
    with pytest.raises(InvalidValue, match=said):
        checked(name, claims)


def test_a_provider_that_is_switched_off_lets_nobody_in(john: User, settings: Any, rf: Any) -> None:
    add(john, "1", "google")
    settings.ACCOUNTS = {"LOGIN_WITH": ["email"]}
    with pytest.raises(InvalidValue, match="Logins with 'google' are disabled"):
        log_in(rf.get("/"), "google", {"sub": "1", "iss": "accounts.google.com"})
    with pytest.raises(InvalidValue, match="Logins with 'google' are disabled"):
        add(john, "2", "google")


def test_an_account_that_two_users_have_is_reported(john: User, table: Table) -> None:
    """Both users keep the account."""
    add(john)
    User.objects.create_user("Mike", "mike@example.com", PASSWORD, user_id="2")
    item = everything(table)["USER#2", "#METADATA"]
    table.send(Request("PutItem", {"Item": {**item, "identities": {"SS": [f"work#{SUBJECT}"]}}}))
    out = StringIO()
    with pytest.raises(CommandError, match="2 findings, 1 repaired"):
        call_command("dynamo_verify", repair=True, stdout=out)
    assert "value held twice: USER#2 / #METADATA: IDENTITY#work#ab-42 / #METADATA" in out.getvalue()
    assert User.objects.get_by_identity("work", SUBJECT) == john


def test_accounts_are_listed_and_removed_on_the_account_page(john: User) -> None:
    add(john)
    browser = Client()
    browser.force_login(john)
    assert "?subject=Ab-42" in browser.get("/accounts/").content.decode()
    path = "/accounts/remove/work/?subject="
    assert browser.post(f"{path}other", {"password": PASSWORD}).status_code == 404
    assert browser.post(f"{path}Ab-42", {"password": "wrong"}).status_code == 200
    assert browser.post(f"{path}Ab-42", {"password": PASSWORD}).url == "/accounts/"
    assert "Ab-42" not in browser.get("/accounts/").content.decode()


def test_the_staff_see_all_ways_to_log_in(john: User) -> None:
    add(john)
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss", "boss@example.com", PASSWORD))
    page = boss.get(f"/admin/accounts/user/{john.pk}/change/").content.decode()
    assert "email john@example.com, username John, work Ab-42" in page
