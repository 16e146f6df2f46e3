"""Telephone numbers as a login method: added, confirmed, removed and unique."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.test import Client, RequestFactory

from accounts.models import Login, User
from dynamo_single import clock
from dynamo_single.contrib.accounts import checks, ways
from dynamo_single.exceptions import InvalidValue, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, moved_time
from tests.contract.accounts.account_pages import PASSWORD, is_in
from tests.contract.accounts.races import at_once, winners_of
from tests.contract.tables import everything

NUMBER = "+15550100"
pytestmark = pytest.mark.urls("project.urls")
#: The sent text messages, as pairs of a number and a message.
TEXTS: list[tuple[str, str]] = []


def send(number: str, text: str) -> None:
    """A project's own function."""
    TEXTS.append((number, text))


@pytest.fixture(autouse=True)
def _phones(settings: Any) -> None:
    TEXTS.clear()
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone"], "PHONE_SENDER": f"{__name__}.send"}


@pytest.fixture
def john(table: Table) -> User:
    """Return a user with a name, an address and a password."""
    return User.objects.create_user("John", "john@example.com", PASSWORD, user_id="1")


def add(user: User, number: str = NUMBER) -> None:
    """Let a user log in with a number."""
    logins: Any = user.logins
    logins.add("phone", number)


def remove(user: User, kind: str) -> None:
    """Take a way to log in from a user."""
    logins: Any = user.logins
    logins.remove(kind)


def log_in(identifier: str = "", **given: str) -> User | None:
    """Return the result of ``authenticate()`` for a new visitor."""
    request = RequestFactory().post("/", REMOTE_ADDR="203.0.113.7")
    found: Any = authenticate(request, password=PASSWORD, **(given or {"username": identifier}))
    return found


def test_a_number_that_is_added_logs_in(john: User) -> None:
    """A transaction adds the number; a login accepts it by type, or in the single field, in any usual format."""
    with assert_requests(["TransactWriteItems"]):
        add(john, "+1 555 0100")
    assert john.phone == NUMBER
    assert log_in(phone=NUMBER) == log_in(NUMBER) == log_in("+1 (555) 01-00") == john
    assert [(each.kind, each.identifier) for each in john.logins.all()] == [
        ("EMAIL", "john@example.com"),
        ("PHONE", NUMBER),
        ("USERNAME", "John"),
    ]


def test_what_is_stored(john: User, table: Table) -> None:
    """A login in the user's partition, which the index finds, and a claim."""
    add(john)
    items = everything(table)
    login = items["USER#1", f"PHONE#{NUMBER}"]
    assert {name: next(iter(login[name].values())) for name in ("gs1pk", "gs1sk", "kind", "identifier", "userId")} == {
        "gs1pk": f"PHONE#{NUMBER}",
        "gs1sk": "USER#1",
        "kind": "PHONE",
        "identifier": NUMBER,
        "userId": "1",
    }
    assert (f"UNIQUE#User#phone#{NUMBER}", "#CLAIM") in items


@pytest.mark.parametrize("typed", ["john@example.com", "John", NUMBER, "nobody@example.com", "nobody", "+15550199"])
def test_whatever_is_typed_the_same_is_sent(john: User, typed: str) -> None:
    """The requests do not reveal which kinds of names exist."""
    add(john)
    with assert_requests(["Query", "GetItem"]):
        authenticate(username=typed, password="wrong")


def test_every_spelling_of_a_number_is_one_to_the_lockout(john: User) -> None:
    """Writing it otherwise gives no further attempts."""
    add(john)
    for typed in ("+15550100", "+1 5550100", "+1-555-0100", "+1 555 01 00", "+1.5550100"):
        request = RequestFactory().post("/", REMOTE_ADDR="203.0.113.7")
        assert authenticate(request, username=typed, password="wrong") is None
    assert log_in("+1 555-0100") is None


def test_a_number_of_another_user_is_refused(john: User) -> None:
    add(john)
    mike = User.objects.create_user("Mike", "mike@example.com", PASSWORD)
    with pytest.raises(UniqueViolation, match="phone"):
        add(mike)
    assert mike.phone is None
    assert log_in(NUMBER) == john


@pytest.mark.parametrize("text", ["555", "0100", "+1", "+999999999999999999", "john", "+15550100 ext. 5", ""])
def test_what_is_no_number_is_refused(john: User, text: str) -> None:
    with pytest.raises(InvalidValue, match="is not a telephone number"):
        add(john, text)


def test_a_second_number_takes_the_first_ones_removal(john: User) -> None:
    add(john)
    with pytest.raises(InvalidValue, match="Remove it first"):
        add(john, "+15550101")


def test_numbers_of_ones_own_country(john: User, settings: Any) -> None:
    settings.ACCOUNTS = {**settings.ACCOUNTS, "PHONE_REGION": "DE"}
    add(john, "030 123456")
    assert john.phone == "+4930123456"
    assert log_in("030/123456") == john


def test_a_removed_number_is_free_and_lets_nobody_in(john: User) -> None:
    add(john)
    with assert_requests(["TransactWriteItems"]):
        remove(john, "phone")
    assert log_in(NUMBER) is None
    add(User.objects.create_user("Mike", "mike@example.com", PASSWORD))


def test_a_number_goes_with_its_user(john: User, table: Table) -> None:
    add(john)
    with assert_requests(["TransactWriteItems"]):
        john.delete()
    assert everything(table) == {}


def test_the_last_way_to_log_in_stays(john: User, settings: Any) -> None:
    """Disabled methods do not count. Without a password, none of the methods counts."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "phone"]}
    add(john)
    remove(john, "email")
    with assert_requests([]), pytest.raises(ways.LastWay, match="Cannot remove the last login method"):
        remove(john, "phone")
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone"]}
    john.set_unusable_password()
    john.save()
    with pytest.raises(ways.LastWay):
        remove(john, "phone")


def test_two_ways_removed_at_once_leave_one(john: User, settings: Any) -> None:
    """A condition on the user's item decides, whatever the two knew."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "phone"]}
    add(john)
    users = [User.objects.get(pk="1"), User.objects.get(pk="1")]

    def removed(given: Any) -> bool:
        try:
            remove(*given)
        except ways.LastWay:
            return False
        return True

    assert sorted(at_once(removed, list(zip(users, ("email", "phone"), strict=True)))) == [False, True]
    user = User.objects.consistent().get(pk="1")
    assert bool(user.email) is not bool(user.phone)


def test_a_user_who_knows_too_much_is_held_to_what_is_stored(john: User, settings: Any) -> None:
    """The other method was removed after the object was loaded, so no race is needed."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "phone"]}
    add(john)
    outdated = User.objects.get(pk="1")
    remove(john, "email")
    with pytest.raises(ways.LastWay):
        remove(outdated, "phone")
    assert log_in(NUMBER) == john


def test_two_users_who_want_one_number_at_once(table: Table) -> None:
    """Only one user gets it, and one login leads to this user."""
    winners = winners_of(add)
    assert len(winners) == 1
    assert log_in(NUMBER) == winners[0]
    logins = Login.objects.filter(kind="PHONE", identifier__canonical=NUMBER)
    assert [each.user_id for each in logins] == [winners[0].pk]


def test_nobody_takes_another_ones_number_for_a_name(john: User) -> None:
    """Forms and ``create_user()`` refuse it."""
    with pytest.raises(InvalidValue, match="is a telephone number"):
        User.objects.create_user(NUMBER, "attacker@example.com", PASSWORD)
    with pytest.raises(ValidationError, match="cannot be a telephone number"):
        User(username="+1-555-0100", password="x").full_clean()


def test_an_older_name_that_reads_as_a_number_is_no_way_in(john: User, settings: Any) -> None:
    """A typed number is looked up only as a number; such names are reported."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username"]}
    attacker = User.objects.create_user(NUMBER, "attacker@example.com", PASSWORD)
    assert log_in(NUMBER) == attacker
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone"]}
    assert log_in(NUMBER) is None
    add(john)
    assert log_in(NUMBER) == john
    (message,) = checks.check_names(databases=["default"])
    assert message.id == "accounts.W002"
    assert "1 user names look like telephone numbers: '+15550100'." in message.msg
    assert checks.check_names() == []


@pytest.mark.parametrize("name", ["mike+15550100", "Mike5550100", "user_2025550100", "800flowers", ".2025550100"])
def test_a_name_that_has_a_number_in_it_is_a_name(john: User, settings: Any, name: str) -> None:
    """Even if numbers do not need a country code, users can sign up and log in with such a name."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone"], "PHONE_REGION": "US"}
    add(john)
    named = User(username=name)
    named.set_password(PASSWORD)
    named.full_clean()
    named.save()
    assert log_in(name) == named
    with pytest.raises(InvalidValue, match="is not a telephone number"):
        add(named, name)
    assert checks.check_names(databases=["default"]) == []


@pytest.mark.parametrize(
    "name", ["+1 555 0100", "202-555-0100", "(555) 0100", "\uff0b15550100", "\uff12\uff10\uff12 555-0100"]
)
def test_each_older_name_that_reads_as_a_number_is_reported(john: User, settings: Any, name: str) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone"], "PHONE_REGION": "US"}
    User.objects.create(username=name)
    (message,) = checks.check_names(databases=["default"])
    assert f"1 user names look like telephone numbers: '{name}'." in message.msg


@pytest.mark.parametrize(("region", "queries"), [(None, 4), ("US", 24)])
def test_what_reads_as_a_number_is_looked_for_by_its_beginning(
    john: User, settings: Any, region: str | None, queries: int
) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["phone"], "PHONE_REGION": region}
    with assert_requests(["Query"] * queries):
        checks.check_names(databases=["default"])


def test_without_the_setting_a_number_is_a_text(john: User, settings: Any) -> None:
    """A stored number cannot log in."""
    add(john)
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username"]}
    assert log_in(NUMBER) is log_in(phone=NUMBER) is None
    with pytest.raises(InvalidValue):
        add(john, "+15550101")


@pytest.mark.parametrize("given", [{"phone": NUMBER, "username": "John"}, {"phone": None}, {"other": "x"}])
def test_arguments_of_another_backend_are_none_of_this_one(john: User, given: dict[str, Any]) -> None:
    with assert_requests([]):
        assert authenticate(password=PASSWORD, **given) is None


@pytest.fixture
def browser(john: User) -> Client:
    """John, logged in."""
    client = Client()
    client.force_login(john)
    return client


def ask(browser: Client, number: str = NUMBER) -> Any:
    """Request a code."""
    return browser.post("/accounts/phone/", {"phone": number, "password": PASSWORD})


def code() -> str:
    """Return the last code sent."""
    return TEXTS[-1][1].split()[0]


def confirm(browser: Client, typed: str) -> Any:
    """Type a code."""
    return browser.post("/accounts/phone/code/", {"code": typed})


def test_a_number_is_added_on_the_account_page_by_a_code(john: User, browser: Client) -> None:
    """The number is not claimed until the user types the code."""
    assert "Add a telephone number" in browser.get("/accounts/").content.decode()
    assert ask(browser, "+1 555 0100").url == "/accounts/phone/code/"
    ((number, text),) = TEXTS
    assert (number, text.partition(" ")[2]) == (NUMBER, "is your code for testserver.")
    assert log_in(NUMBER) is None
    assert confirm(browser, code()).url == "/accounts/"
    assert NUMBER in browser.get("/accounts/").content.decode()
    assert is_in(Client(), NUMBER)


def test_an_unconfirmed_number_keeps_nobody_from_it(john: User, browser: Client) -> None:
    ask(browser)
    mike = User.objects.create_user("Mike", "mike@example.com", PASSWORD)
    add(mike)
    assert "Another account has this telephone number." in confirm(browser, code()).content.decode()
    assert log_in(NUMBER) == mike


def test_a_code_takes_another_numbers_place(john: User, browser: Client) -> None:
    """In one transaction: old and new are never both valid, or neither."""
    add(john)
    ask(browser, "+15550101")
    assert confirm(browser, code()).status_code == 302
    assert log_in("+15550101") == john
    assert log_in(NUMBER) is None


def test_a_code_holds_for_some_minutes_and_some_attempts(john: User, browser: Client) -> None:
    ask(browser)
    with moved_time(timedelta(minutes=11)):
        assert "incorrect or has expired" in confirm(browser, code()).content.decode()
    for _ in range(5):
        confirm(browser, "000000x")
    assert "incorrect or has expired" in confirm(browser, code()).content.decode()
    ask(browser)
    assert confirm(browser, code()).status_code == 302
    assert confirm(browser, code()).status_code == 200


def test_a_code_has_its_attempts_across_midnight(john: User, browser: Client) -> None:
    """In UTC, where counters of a day end."""
    now = clock.instant()
    last_minute = now.replace(hour=23, minute=59, second=0, microsecond=0)
    with moved_time(last_minute - now):
        ask(browser)
        for _ in range(5):
            confirm(browser, "000000x")
        with moved_time(timedelta(minutes=2)):
            assert "incorrect or has expired" in confirm(browser, code()).content.decode()


def test_a_code_is_of_one_session(john: User, browser: Client) -> None:
    ask(browser)
    other = Client()
    other.force_login(john)
    assert "incorrect or has expired" in confirm(other, code()).content.decode()


def test_codes_take_the_password_and_are_counted(john: User, browser: Client, settings: Any) -> None:
    settings.ACCOUNTS = {**settings.ACCOUNTS, "MAILS_PER_ADDRESS": 1}
    browser.post("/accounts/phone/", {"phone": NUMBER, "password": "wrong"})
    assert TEXTS == []
    ask(browser)
    assert "Too many e-mails were requested" in ask(browser).content.decode()
    assert len(TEXTS) == 1


def test_without_a_sender_there_is_no_such_page(browser: Client, settings: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone"]}
    assert ask(browser).status_code == 404
    assert "telephone" not in browser.get("/accounts/").content.decode()


def test_a_number_is_removed_on_the_account_page(john: User, browser: Client, settings: Any) -> None:
    add(john)
    assert browser.post("/accounts/remove/phone/", {"password": "wrong"}).status_code == 200
    assert browser.post("/accounts/remove/phone/", {"password": PASSWORD}).url == "/accounts/"
    assert log_in(NUMBER) is None
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "phone"]}
    answer = browser.post("/accounts/remove/email/", {"password": PASSWORD})
    assert "your only login method" in answer.content.decode()
    assert browser.post("/accounts/remove/username/", {"password": PASSWORD}).status_code == 404


def test_the_login_page_names_all_kinds(table: Table) -> None:
    assert "E-mail address, telephone number or user name" in Client().get("/accounts/login/").content.decode()


def test_the_staff_see_and_change_the_number(john: User) -> None:
    """The page shows E.164 for any input; an invalid or taken number adds an error to the field."""
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss", "boss@example.com", PASSWORD))
    path = f"/admin/accounts/user/{john.pk}/change/"
    form = {"username": "John", "email": "john@example.com", "is_active": "on"}
    assert boss.post(path, {**form, "phone": "+1 555-0100"}).status_code == 302
    john.refresh_from_db()
    assert john.phone == NUMBER
    assert NUMBER in boss.get(path).content.decode()
    assert "Enter a telephone number" in boss.post(path, {**form, "phone": "abc"}).content.decode()


def test_the_table_fits_together(john: User) -> None:
    add(john)
    call_command("dynamo_verify", verbosity=0)
