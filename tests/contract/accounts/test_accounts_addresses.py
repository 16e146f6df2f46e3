"""A user can have several e-mail addresses, each unique and valid for logins, one of them primary."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.db.models import Q
from django.test import Client

from accounts.models import User
from dynamo_single.contrib.accounts import ways
from dynamo_single.exceptions import InvalidValue, UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.accounts.account_pages import PASSWORD, is_in, link, sign_up
from tests.contract.accounts.races import winners_of
from tests.contract.tables import everything

FIRST, SECOND = "john@example.com", "John.Second@example.com"
pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture
def john(table: Table) -> User:
    """Return a user with a confirmed address."""
    user = User.objects.create_user("John", FIRST, PASSWORD, user_id="1")
    user.confirm_email()
    user.save()
    return user


def add(user: User, address: str = SECOND) -> None:
    """Let a user log in with an address."""
    ways.add_to(user, "email", address)


def logins(user: User) -> ways.Ways:
    """The manager, as it is to a type checker."""
    found: Any = user.logins
    return found


def test_a_further_address_logs_in(john: User) -> None:
    """The case does not matter; one transaction adds the address, and a login takes the usual requests."""
    with assert_requests(["TransactWriteItems"]):
        add(john)
    for typed in (FIRST, SECOND, SECOND.upper()):
        with assert_requests(["Query", "GetItem"]):
            assert authenticate(username=typed, password=PASSWORD) == john
    assert authenticate(email=SECOND, password=PASSWORD) == john
    assert [(each.kind, each.identifier, each.confirmed) for each in john.logins.all()] == [
        ("EMAIL", SECOND, True),
        ("EMAIL", FIRST, True),
        ("USERNAME", "John", None),
    ]


@pytest.mark.parametrize("asked", [Q(email__in=[SECOND, FIRST, "jane@example.com"]), Q(email=SECOND) | Q(email=FIRST)])
def test_who_has_several_of_the_addresses_is_found_once(john: User, asked: Q) -> None:
    """Lists, counts, pages and slices contain the user once, at the position of the primary address."""
    add(john)
    User.objects.create_user("Jane", "jane@example.com", PASSWORD, user_id="2")
    found = User.objects.filter(asked)
    wanted = ["1", "2"] if "jane" in str(asked) else ["1"]
    assert [user.pk for user in found] == wanted
    assert found.count() == len(wanted)
    assert [user.pk for user in found[1:]] == wanted[1:]
    paged, cursor = [], None
    while True:
        page = found.page(1, cursor)
        paged += [user.pk for user in page]
        if (cursor := page.next_cursor) is None:
            break
    assert paged == wanted
    assert found.update(first_name="x") == len(wanted)


def test_it_is_claimed_as_a_first_address_is(john: User, table: Table) -> None:
    """By one kind of claims, so that no one else can have it as either."""
    add(john)
    claims = [key[0] for key in everything(table) if key[0].startswith("UNIQUE#User#email#")]
    assert sorted(claims) == ["UNIQUE#User#email#john.second@example.com", "UNIQUE#User#email#john@example.com"]
    call_command("dynamo_verify", verbosity=0)


def test_nobody_else_can_have_it(john: User) -> None:
    """This includes additional addresses, primary addresses and sign-ups."""
    add(john)
    mike = User.objects.create_user("Mike", "mike@example.com", PASSWORD)
    with pytest.raises(UniqueViolation, match=r"Another accounts\.User has email 'john.second@example.com'"):
        add(mike, SECOND.lower())
    with pytest.raises(UniqueViolation):
        add(mike, FIRST)
    with pytest.raises(UniqueViolation):
        User.objects.create_user("Eve", SECOND, PASSWORD)
    mike.email = SECOND
    with pytest.raises(UniqueViolation):
        mike.save()
    add(john, "mine@example.com")
    assert not mike.more_emails


def test_users_who_want_one_address_at_once(table: Table) -> None:
    """The first user adds the address as primary, the second as additional: only one gets it."""

    def take(user: User) -> None:
        if user.username in "ab":
            add(user)
        else:
            user.email = SECOND
            user.save()

    winners = winners_of(take)
    assert len(winners) == 1
    assert authenticate(username=SECOND, password=PASSWORD) == winners[0]


def test_a_removed_address_is_free(john: User) -> None:
    add(john)
    with assert_requests(["TransactWriteItems"]):
        logins(john).remove("email", SECOND.lower())
    assert john.more_emails is None
    assert authenticate(username=SECOND, password=PASSWORD) is None
    add(User.objects.create_user("Mike", "mike@example.com", PASSWORD))


def test_a_further_address_becomes_the_first_one(john: User, table: Table) -> None:
    """Only the user's item is written and the claims stay, so no other user can take either address."""
    add(john)
    claims = {key: item for key, item in everything(table).items() if key[1] == "#CLAIM"}
    with assert_requests(["UpdateItem"]):
        logins(john).make_primary(SECOND)
    assert (john.email, john.more_emails, john.has_confirmed_email) == (SECOND, {FIRST}, True)
    assert claims == {key: item for key, item in everything(table).items() if key[1] == "#CLAIM"}
    assert all(authenticate(username=typed, password=PASSWORD) == john for typed in (FIRST, SECOND))
    with pytest.raises(InvalidValue, match="not an additional address"):
        logins(john).make_primary("other@example.com")


def test_the_first_address_is_the_one_that_is_held(john: User) -> None:
    """ß and ss are equal for logins, but can be two mailboxes: an unconfirmed address is not stored."""
    add(john, "john@strasse.example")
    logins(john).make_primary("john@straße.example")
    john.refresh_from_db()
    assert (john.email, john.confirmed_email, john.more_emails) == (*["john@strasse.example"] * 2, {FIRST})


def test_an_unconfirmed_first_address_does_not_stay(john: User) -> None:
    """The address was never confirmed as the user's."""
    john.email = "typo@example.com"
    john.save()
    add(john)
    logins(john).make_primary(SECOND)
    assert john.more_emails is None
    assert authenticate(username="typo@example.com", password=PASSWORD) is None


def test_the_first_of_several_is_not_removed(john: User) -> None:
    add(john)
    with pytest.raises(InvalidValue, match="make_primary"):
        logins(john).remove("email")


def test_the_first_is_not_removed_while_another_writer_adds_a_second(john: User) -> None:
    """A condition detects the second address that the object lacks, and the object is read again."""
    stale = User.objects.get(pk="1")
    stale.phone = "+15550100"
    stale.save()
    add(john)
    with (
        assert_requests(["TransactWriteItems", "GetItem"]),
        pytest.raises(InvalidValue, match="make_primary"),
    ):
        logins(stale).remove("email")
    john.refresh_from_db()
    assert (john.email, john.more_emails) == (FIRST, {SECOND})


def test_an_address_is_the_first_one_if_another_writer_removed_the_first_one(john: User) -> None:
    """The address becomes primary rather than an additional address of a user without a primary one."""
    stale = User.objects.get(pk="1")
    logins(john).remove("email")
    add(stale)
    john.refresh_from_db()
    assert (john.email, john.more_emails) == (SECOND, None)


def test_the_last_way_to_log_in_stays(john: User, settings: Any) -> None:
    """Addresses count like any other way."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email"]}
    add(john)
    logins(john).make_primary(SECOND)
    logins(john).remove("email", FIRST)
    with pytest.raises(ways.LastWay):
        logins(john).remove("email")
    assert authenticate(username=SECOND, password=PASSWORD) == john


@pytest.mark.parametrize("address", ["", "nobody", "a@", "a b@example.com"])
def test_what_is_no_address_is_refused(john: User, address: str) -> None:
    with pytest.raises(InvalidValue, match="is not an e-mail address"):
        add(john, address)


def test_some_addresses_and_no_more(john: User) -> None:
    for number in range(ways.MAX_ADDRESSES):
        add(john, f"{number}@example.com")
    with pytest.raises(InvalidValue, match="at most 5 additional addresses"):
        add(john, "more@example.com")
    browser = Client()
    browser.force_login(john)
    answer = browser.post("/accounts/email_add/", {"email": "more@example.com", "password": PASSWORD})
    assert "cannot have more than 5 additional addresses" in answer.content.decode()


def test_addresses_go_with_their_user(john: User, table: Table) -> None:
    add(john)
    with assert_requests(["TransactWriteItems"]):
        john.delete()
    assert everything(table) == {}


@pytest.fixture
def browser(john: User) -> Client:
    """John, logged in."""
    client = Client()
    client.force_login(john)
    return client


def test_an_address_is_added_on_the_account_page_by_a_mail(john: User, browser: Client, mailoutbox: Any) -> None:
    """The address is not claimed until the user follows the link."""
    browser.post("/accounts/email_add/", {"email": SECOND, "password": PASSWORD})
    assert [mail.to for mail in mailoutbox] == [[SECOND]]
    assert not is_in(Client(), SECOND)
    assert browser.post(link(mailoutbox[0])).status_code == 302
    john.refresh_from_db()
    assert (john.email, john.more_emails) == (FIRST, {SECOND})
    assert is_in(Client(), SECOND)
    assert SECOND in browser.get("/accounts/").content.decode()
    assert browser.post(link(mailoutbox[0])).status_code == 302


def test_a_removed_address_does_not_come_back_by_its_link(john: User, browser: Client, mailoutbox: Any) -> None:
    """This applies to the link that added it, and to any earlier link."""
    for _ in range(2):
        browser.post("/accounts/email_add/", {"email": SECOND, "password": PASSWORD})
    browser.post("/accounts/email_change/", {"email": SECOND, "password": PASSWORD})
    browser.post(link(mailoutbox[0]))
    browser.post(f"/accounts/remove/email/?subject={SECOND}", {"password": PASSWORD})
    for mail in mailoutbox[:3]:
        assert "This link does not work" in browser.post(link(mail), follow=True).content.decode()
    john.refresh_from_db()
    assert (john.email, john.more_emails) == (FIRST, None)


def test_a_removed_only_address_does_not_come_back_by_its_link(table: Table, settings: Any, mailoutbox: Any) -> None:
    """The link was for the user's only address."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username"]}
    user = User.objects.create_user("Nora", None, PASSWORD)
    browser = Client()
    browser.force_login(user)
    browser.post("/accounts/email_add/", {"email": SECOND, "password": PASSWORD})
    browser.post(link(mailoutbox[0]))
    user.refresh_from_db()
    assert user.email == SECOND
    logins(user).remove("email")
    browser.post(link(mailoutbox[0]))
    user.refresh_from_db()
    assert not user.email


def test_an_address_that_somebody_has_by_now_is_not_added(john: User, browser: Client, mailoutbox: Any) -> None:
    browser.post("/accounts/email_add/", {"email": SECOND, "password": PASSWORD})
    mike = User.objects.create_user("Mike", SECOND, PASSWORD)
    assert "This link does not work" in browser.post(link(mailoutbox[0]), follow=True).content.decode()
    assert authenticate(username=SECOND, password=PASSWORD) == mike


def test_addresses_are_changed_on_the_account_page(john: User, browser: Client) -> None:
    add(john)
    path = f"/accounts/email_primary/?address={SECOND}"
    assert browser.post(path, {"password": "wrong"}).status_code == 200
    assert browser.post("/accounts/email_primary/?address=x@example.com", {"password": PASSWORD}).status_code == 404
    assert browser.post(path, {"password": PASSWORD}).url == "/accounts/"
    john.refresh_from_db()
    assert (john.email, john.more_emails) == (SECOND, {FIRST})
    answer = browser.post("/accounts/remove/email/", {"password": PASSWORD})
    assert "Make another address primary" in answer.content.decode()
    assert browser.post(f"/accounts/remove/email/?subject={FIRST}", {"password": PASSWORD}).url == "/accounts/"
    john.refresh_from_db()
    assert john.more_emails is None


def test_a_sign_up_with_a_further_address_tells_its_holder(john: User, mailoutbox: Any) -> None:
    """The page is the same as for a primary address, and the mail goes to the primary address."""
    add(john)
    assert sign_up(Client(), "Eve", SECOND).url == "/accounts/sign_up/done/"
    assert [(mail.to, mail.subject) for mail in mailoutbox] == [([FIRST], "Your account at testserver")]


def test_a_further_address_that_is_typed_for_the_first_one_takes_its_place(
    john: User, browser: Client, mailoutbox: Any
) -> None:
    """The address is not stored twice."""
    add(john)
    browser.post("/accounts/email_change/", {"email": SECOND, "password": PASSWORD})
    browser.post(link(mailoutbox[0]))
    john.refresh_from_db()
    assert (john.email, john.more_emails) == (SECOND, None)
