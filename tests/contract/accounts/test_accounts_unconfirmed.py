"""An unconfirmed sign-up holds its name and address for a week."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import authenticate
from django.core import serializers
from django.core.management import call_command
from django.test import Client

from accounts.models import Login, User
from dynamo_single import clock
from dynamo_single.auth import UserExists
from dynamo_single.contrib.accounts.forms import UserCreationForm as AdminForm
from dynamo_single.contrib.accounts.ways import LastWay
from dynamo_single.exceptions import ConfigurationError, InvalidValue, UniqueViolation
from dynamo_single.table import Request, Table
from dynamo_single.testing import moved_time
from tests.contract.accounts.account_pages import PASSWORD, is_in, link, log_in, sign_up, void
from tests.contract.accounts.test_accounts_stock_forms import CreationForm as UserCreationForm
from tests.contract.racing import before_write

pytestmark = pytest.mark.urls("project.urls")

MIKE = "user1@example.com"


@pytest.fixture(autouse=True)
def _table(table: Table) -> None:
    """An empty table."""


def set_new_password(mailoutbox: Any) -> None:
    """By the link in a mail."""
    browser = Client()
    browser.post("/accounts/password_reset/", {"email": MIKE})
    address = next(line for line in mailoutbox[-1].body.split() if "/accounts/reset/" in line)
    page = browser.get(address.removeprefix("http://testserver"), follow=True)
    passwords = {"new_password1": "Other-Good-9", "new_password2": "Other-Good-9"}
    browser.post(page.request["PATH_INFO"], passwords)


def test_name_and_address_are_free_again(mailoutbox: Any) -> None:
    """A week later, another person can sign up with them, confirm and log in; the former user is gone."""
    sign_up(Client())
    with moved_time(timedelta(days=6)):
        assert "already exists" in sign_up(Client(), email="other@example.com").content.decode()
    with moved_time(timedelta(days=8)):
        assert not User.objects.filter(username="Mike").exists()
        assert sign_up(Client()).status_code == 302
        assert Client().post(link(mailoutbox[-1])).url == "/accounts/confirm/done/"
        assert is_in(Client(), "Mike")
        assert is_in(Client(), "user1@example.com")
        assert void(Client(), link(mailoutbox[0]))
        assert User.objects.all().count() == 1
        assert Login.objects.find("EMAIL", "user1@example.com") is not None


def test_everything_of_the_account_expires_with_it(table: Table) -> None:
    """The user, the ways to log in and the claims carry one time to live, which DynamoDB deletes them by."""
    sign_up(Client())
    items = [item for item in table.send(Request("Scan"))["Items"] if item["pk"]["S"].startswith(("USER#", "UNIQUE#"))]
    ends = {item.get("expiresAt", {}).get("N") for item in items}
    assert len(items) == 5
    assert len(ends) == 1
    (end,) = ends
    assert 0 < float(end) - clock.timestamp() <= 7 * 24 * 3600 + 1


@pytest.mark.parametrize("way", ["confirm", "reset", "log in"])
def test_who_confirms_or_logs_in_stays(way: str, mailoutbox: Any, settings: Any, table: Table) -> None:
    """Nothing of the account expires."""
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": way == "log in"}
    sign_up(Client())
    if way == "confirm":
        Client().post(link(mailoutbox[0]))
    elif way == "reset":
        set_new_password(mailoutbox)
    else:
        assert is_in(Client(), "Mike")
    with moved_time(timedelta(days=400)):
        assert User.objects.get_by_identifier("Mike").expires is None
    items = table.send(Request("Scan"))["Items"]
    assert not [item for item in items if item["pk"]["S"].startswith(("USER#", "UNIQUE#")) and "expiresAt" in item]


def test_what_is_left_is_in_order(mailoutbox: Any) -> None:
    """The table's check accepts an expired account, and a new account with its name."""
    sign_up(Client())
    with moved_time(timedelta(days=8)):
        sign_up(Client())
        call_command("dynamo_verify")


def test_they_can_be_kept(settings: Any) -> None:
    """None keeps them for ever, as they were."""
    settings.ACCOUNTS = {"UNCONFIRMED_LIFETIME": None}
    sign_up(Client())
    with moved_time(timedelta(days=400)):
        assert User.objects.get_by_natural_key("Mike").expires is None


def test_a_link_does_not_outlive_its_account(settings: Any) -> None:
    """The setting raises an error."""
    settings.ACCOUNTS = {"UNCONFIRMED_LIFETIME": 3600}
    with pytest.raises(ConfigurationError, match="'UNCONFIRMED_LIFETIME'] is 3600 seconds, less than"):
        sign_up(Client())


# made by code


def test_code_answers_for_whom_it_makes(table: Table) -> None:
    """The account does not expire, opens immediately, and its item does not require a confirmation."""
    User.objects.create_user("Mike", MIKE, PASSWORD)
    User.objects.create_superuser("Boss", "boss@example.com", PASSWORD)
    assert all(authenticate(username=typed, password=PASSWORD) for typed in ("Mike", MIKE, "Boss", "boss@example.com"))
    with moved_time(timedelta(days=400)):
        assert User.objects.count() == 2
    assert Login.objects.find("EMAIL", MIKE).confirmed is None


def made(way: str) -> None:
    """Return a user created by a project's code who must confirm an address."""
    if way == "create":
        User.objects.create_user("Mike", MIKE, PASSWORD, confirmed=False)
    elif way == "async":
        async_to_sync(User.objects.acreate_user)("Mike", MIKE, PASSWORD, confirmed=False)
    elif way == "save":
        mike = User(username="Mike", email=MIKE)
        mike.set_password(PASSWORD)
        mike.await_confirmation()
        mike.save()
    else:
        made("create")
        out = StringIO()
        call_command("dumpdata", "accounts.User", stdout=out)
        User.objects.get().delete()
        for each in serializers.deserialize("json", out.getvalue()):
            each.save()


@pytest.mark.parametrize("way", ["create", "async", "save", "fixture"])
def test_who_is_made_unconfirmed_is_as_who_signs_up(way: str, table: Table) -> None:
    """No identifier opens the account, and name and address are anybody's after a week."""
    made(way)
    assert Login.objects.find("EMAIL", MIKE).confirmed is False
    assert [authenticate(username=typed, password=PASSWORD) for typed in ("Mike", MIKE)] == [None, None]
    with moved_time(timedelta(days=6)), pytest.raises(UserExists):
        User.objects.create_user("Eve", MIKE)
    with moved_time(timedelta(days=8)):
        User.objects.create_user("Mike", MIKE)


def test_who_is_made_confirmed_is_known(table: Table) -> None:
    """The user is the same as after a confirmation link."""
    mike = User.objects.create_user("Mike", MIKE, confirmed=True)
    assert mike.has_confirmed_email
    assert Login.objects.find("EMAIL", MIKE).confirmed is True


@pytest.mark.parametrize("confirmed", [True, False])
def test_nothing_is_known_of_an_address_that_is_not_there(confirmed: bool, table: Table) -> None:
    with pytest.raises(InvalidValue, match="requires an e-mail address"):
        User.objects.create_user("Mike", None, confirmed=confirmed)
    assert User.objects.count() == 0


@pytest.mark.parametrize("form_class", [UserCreationForm, AdminForm])
def test_forms_of_the_staff_answer_for_the_address(form_class: Any, table: Table) -> None:
    """A user from the admin's page or Django's form can log in, and does not expire."""
    passwords = {"usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    form = form_class({"username": "Mike", "email": MIKE, **passwords})
    form.save()
    assert authenticate(username=MIKE, password=PASSWORD).expires is None


# let in before they confirm


@pytest.fixture
def squatter(settings: Any) -> Client:
    """Return a user with another person's address who may log in before confirming it."""
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": True}
    browser = Client()
    sign_up(browser)
    assert is_in(browser, MIKE)
    return browser


def test_an_address_that_nobody_confirms_opens_nothing_past_its_time(squatter: Client) -> None:
    """The account keeps its name, and a link that is sent later still confirms the address."""
    with moved_time(timedelta(days=6)):
        assert is_in(Client(), MIKE)
    with moved_time(timedelta(days=8)):
        answer = log_in(Client(), MIKE)
        assert "Please confirm your e-mail address first" in answer.content.decode()
        assert is_in(Client(), "Mike")


def test_an_address_is_confirmed_past_its_time_too(squatter: Client, mailoutbox: Any) -> None:
    """This works until another user claims the address."""
    with moved_time(timedelta(days=8)):
        Client().post("/accounts/sign_up/again/", {"email": MIKE})
        assert Client().post(link(mailoutbox[-1])).url == "/accounts/confirm/done/"
        assert is_in(Client(), MIKE)


def owner_of_the_address() -> str:
    """Whose the address is, as the claim has it."""
    return str(User.objects.get(email=MIKE).username)


def take(way: str, mailoutbox: Any) -> None:
    """Take the address in one of the ways of another user."""
    if way == "sign up":
        sign_up(Client(), "Owner")
        assert Client().post(link(mailoutbox[-1])).url == "/accounts/confirm/done/"
        return
    if way in ("create", "async"):
        create = User.objects.create_user if way == "create" else async_to_sync(User.objects.acreate_user)
        create("Owner", MIKE, PASSWORD)
        return
    owner = User.objects.create_user("Owner", None if way == "add first" else "o@example.com", PASSWORD)
    if way in ("add", "add first"):
        owner.logins.add("email", MIKE)
        return
    browser = Client()
    browser.force_login(owner)
    browser.post("/accounts/email_change/", {"email": MIKE, "password": PASSWORD})
    assert mailoutbox[-1].to == [MIKE]
    assert Client().post(link(mailoutbox[-1])).url == "/accounts/confirm/done/"


@pytest.mark.parametrize("way", ["sign up", "create", "async", "add", "add first", "change"])
def test_an_address_that_nobody_confirms_keeps_nobody_from_it_past_its_time(
    squatter: Client, way: str, mailoutbox: Any
) -> None:
    """A new user gets the address, and the old account keeps only its name."""
    with moved_time(timedelta(days=6)), pytest.raises((UniqueViolation, AssertionError)):
        take(way, mailoutbox)
    User.objects.exclude(username="Mike").allow_in_memory(10).delete()
    with moved_time(timedelta(days=8)):
        take(way, mailoutbox)
        assert User.objects.get_by_identifier(MIKE).username == "Owner"
        assert is_in(Client(), MIKE)
        assert not User.objects.get_by_identifier("Mike").email
        call_command("dynamo_verify")


def test_a_further_address_takes_the_place_of_one_that_is_given_up(squatter: Client) -> None:
    mike = User.objects.get_by_identifier("Mike")
    mike.logins.add("email", "second@example.com")
    with moved_time(timedelta(days=8)):
        User.objects.create_user("Owner", MIKE)
    mike.refresh_from_db()
    assert (mike.email, mike.more_emails, mike.has_confirmed_email) == ("second@example.com", None, True)


def test_an_address_that_is_confirmed_meanwhile_is_not_given_up(squatter: Client) -> None:
    """A user who confirms it between the read and the write keeps it."""

    def confirm() -> None:
        mike = User.objects.get_by_identifier("Mike")
        mike.confirm_email()
        mike.save()

    with moved_time(timedelta(days=8)), before_write(2, confirm), pytest.raises(UserExists):
        User.objects.create_user("Owner", MIKE)
    assert User.objects.get_by_identifier(MIKE).username == "Mike"


def test_without_a_lifetime_an_address_is_held_for_ever(settings: Any) -> None:
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": True, "UNCONFIRMED_LIFETIME": None}
    sign_up(Client())
    with moved_time(timedelta(days=400)):
        assert is_in(Client(), MIKE)
        with pytest.raises(UserExists):
            User.objects.create_user("Owner", MIKE)


def test_who_takes_an_unconfirmed_account_over_by_mail_is_alone_in_it(
    squatter: Client, settings: Any, mailoutbox: Any
) -> None:
    """A squatter cannot use login methods that were added to the account before."""
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": True, "LOGIN_WITH": ["email", "username", "google"]}
    logins = User.objects.get_by_identifier("Mike").logins
    logins.add("google", "1089")
    logins.add("email", "squatter@example.com")
    set_new_password(mailoutbox)
    mike = User.objects.get_by_identifier(MIKE)
    assert (mike.identities, mike.more_emails, mike.has_confirmed_email) == (None, None, True)
    with pytest.raises(User.DoesNotExist):
        User.objects.get_by_identity("google", "1089")
    with pytest.raises(User.DoesNotExist):
        User.objects.get_by_identifier("squatter@example.com")


def test_who_confirmed_the_address_keeps_accounts_elsewhere_with_a_new_password(settings: Any, mailoutbox: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "google"]}
    User.objects.create_user("Mike", MIKE, PASSWORD, confirmed=True).logins.add("google", "1089")
    set_new_password(mailoutbox)
    assert User.objects.get_by_identity("google", "1089").username == "Mike"


def test_an_address_that_waits_is_not_the_way_that_is_left(settings: Any) -> None:
    """Another user may claim it."""
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": True, "LOGIN_WITH": ["email", "phone"]}
    mike = User.objects.create_user("Mike", MIKE, PASSWORD, confirmed=False)
    mike.logins.add("phone", "+15550100")
    with pytest.raises(LastWay):
        mike.logins.remove("phone")
    mike.confirm_email()
    mike.save()
    mike.logins.remove("phone")
