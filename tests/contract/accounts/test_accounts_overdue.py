"""An address that its holder did not confirm in time passes on together with the next one's write, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import Context
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client, RequestFactory

from accounts.models import User
from dynamo_single.auth import UserExists
from dynamo_single.contrib.accounts import addresses
from dynamo_single.contrib.accounts.proofs import tokens
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import DynamoSingleError, UniqueViolation
from dynamo_single.table import Table, get_table
from dynamo_single.test_tables import contents
from dynamo_single.testing import assert_requests, fault, intercept, moved_time, unreachable
from tests.contract.accounts.account_pages import PASSWORD, is_in, sign_up
from tests.contract.racing import before_write

pytestmark = pytest.mark.urls("project.urls")

MIKE = "user1@example.com"
WRITE, READ = "TransactWriteItems", "GetItem"


#: The table in which Mike and Jane are, made by the first test.
_made: list[contents.Contents] = []


@pytest.fixture(autouse=True)
def _overdue(settings: Any, table: Table) -> Iterator[None]:
    """Mike signed up with an address, logged in, and has not confirmed it in time; Jane is just there."""
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": True}
    if _made:
        contents.restore(table, _made[0])
    else:
        sign_up(Client())
        assert is_in(Client(), MIKE)
        User.objects.create_user("Jane", "jane@example.com", PASSWORD)
        _made.append(contents.read(table))
    with moved_time(timedelta(days=8)):
        yield


def signs_up(name: str) -> None:
    """Sign up with a form that was valid before."""
    user = User(username=name, email=MIKE)
    user.set_password(PASSWORD)
    addresses.sign_up(RequestFactory().post("/"), user)


def is_created(name: str) -> None:
    """A user whom code makes."""
    User.objects.create_user(name, MIKE, PASSWORD)


def is_created_by_a_coroutine(name: str) -> None:
    """Sign up asynchronously."""
    async_to_sync(User.objects.acreate_user)(name, MIKE, PASSWORD)


def is_created_as_superuser(name: str) -> None:
    """Create a superuser, like ``createsuperuser``."""
    User.objects.create_superuser(name, MIKE, PASSWORD)


NEW = [signs_up, is_created, is_created_by_a_coroutine, is_created_as_superuser]


def adds() -> None:
    """Jane gets a further address."""
    User.objects.get_by_natural_key("Jane").logins.add("email", MIKE)


def changes() -> None:
    """Let Jane follow the link that was sent to a new address."""
    jane = User.objects.get_by_natural_key("Jane")
    assert addresses.confirm(RequestFactory().post("/"), tokens.make(jane, MIKE)) is not None


def holders() -> list[str]:
    """Whose the address is, by the users' own items."""
    return sorted(each.username for each in User.objects.all() if each.has_identifier("EMAIL", MIKE))


@pytest.mark.parametrize("comes", NEW)
def test_it_passes_to_a_new_user_in_one_transaction(comes: Callable[[str], None]) -> None:
    """The attempt fails, the holder is read, and one transaction transfers the address and creates the user."""
    with assert_requests([WRITE, READ, READ, WRITE]):
        comes("Owner")
    assert holders() == ["Owner"]
    assert list(verify()) == []


@pytest.mark.parametrize("comes", NEW)
def test_who_fails_by_the_name_takes_the_address_from_nobody(comes: Callable[[str], None]) -> None:
    """The name is taken, so the whole transaction that would take the address is cancelled."""
    with assert_requests([WRITE, READ, READ, WRITE]), pytest.raises(UniqueViolation, match=r"(?i)username"):
        comes("Jane")
    assert holders() == ["Mike"]


@pytest.mark.parametrize("comes", NEW)
def test_a_name_that_is_taken_at_the_last_moment_leaves_the_address_where_it_is(comes: Callable[[str], None]) -> None:
    """Another user takes the name between the read of the holder and the write that releases the address."""
    faster = before_write(2, lambda: User.objects.create_user("Owner", "faster@example.com"))
    with faster, pytest.raises(UniqueViolation, match=r"(?i)username"):
        comes("Owner")
    assert holders() == ["Mike"]
    assert User.objects.get_by_natural_key("Owner").email == "faster@example.com"
    assert list(verify()) == []


def test_a_refused_user_can_be_stored_with_another_name() -> None:
    """The object of a sign-up that failed is still new."""
    user = User(username="Owner", email=MIKE)
    request = RequestFactory().post("/")
    faster = before_write(2, lambda: User.objects.create_user("Owner", "faster@example.com"))
    with faster, pytest.raises(UniqueViolation):
        addresses.sign_up(request, user)
    user.username = "Other"
    addresses.sign_up(request, user)
    assert holders() == ["Other"]


def test_of_two_who_come_at_once_one_has_the_address() -> None:
    """The other one fails, and is not stored."""
    faster = before_write(2, lambda: User.objects.create_user("Faster", MIKE))
    with faster, pytest.raises(UserExists, match="address"):
        User.objects.create_user("Owner", MIKE)
    assert holders() == ["Faster"]
    assert not User.objects.filter(username="Owner").exists()
    assert list(verify()) == []


def test_an_object_whose_addition_failed_has_its_addresses_as_before() -> None:
    """An object does not keep changes of a failed transaction."""
    jane = User.objects.get_by_natural_key("Jane")
    with fault("server error", operation=WRITE), pytest.raises(DynamoSingleError):
        jane.logins.add("email", MIKE)
    assert (jane.email, jane.more_emails) == ("jane@example.com", None)


class Silence:
    """Starting with one request, no response arrives; that request may still be executed."""

    def __init__(self, number: int, *, done: bool) -> None:
        self.left = number
        self.done = done

    def __call__(self, operation: str, params: Any) -> None:
        self.left -= 1
        if self.left == 0 and self.done:
            Context().run(get_table().call, operation, params)
        if self.left <= 0:
            raise unreachable(get_table().settings)


WAYS: dict[str, Callable[[], None]] = {
    **{each.__name__: partial(each, "Owner") for each in NEW},
    "adds": adds,
    "changes": changes,
}


@pytest.mark.parametrize("comes", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("done", [True, False], ids=["lost answer", "lost request"])
def test_nothing_is_half_written_whichever_request_fails(comes: Callable[[], None], number: int, done: bool) -> None:
    """The address still belongs to Mike and no user was stored, or it was transferred; all items agree."""
    silence = Silence(number, done=done)
    with intercept(silence), suppress(DynamoSingleError):
        comes()
    assert list(verify()) == []
    names = sorted(each.username for each in User.objects.all())
    if holders() == ["Mike"]:
        assert silence.left <= 0
        assert names == ["Jane", "Mike"]
    else:
        assert holders() == [name for name in names if name != "Mike"][-1:]
