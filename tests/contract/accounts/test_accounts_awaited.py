"""Logins in an event loop: twenty of them overlap their requests, without threads."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import aauthenticate, aget_user, alogin, alogout, authenticate
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest

from accounts.models import Group, User
from dynamo_single.contrib.accounts.backends import EmailOrUsernameBackend
from dynamo_single.sessions import SessionStore
from dynamo_single.testing import capture_requests
from tests.contract.model.awaiting import awaited, gathering

CALLS = 20
PASSWORD = "a-good-password"
pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture(autouse=True)
def users(table: Any) -> list[User]:
    """A user for each call."""
    return [User.objects.create_user(f"user{n}", f"{n}@example.com", PASSWORD, user_id=f"{n}") for n in range(CALLS)]


def request(number: int) -> HttpRequest:
    """A request from an address of its own."""
    made = HttpRequest()
    made.META["REMOTE_ADDR"] = f"10.0.0.{number}"
    made.session = SessionStore()
    return made


def operations(sent: Any) -> Counter[str]:
    """Return the operations sent."""
    return Counter(each.operation for each in sent)


@pytest.mark.parametrize("password", [PASSWORD, "a-wrong-password"])
def test_authentications_overlap(password: str) -> None:
    """This includes failed logins."""
    with capture_requests() as sent:
        expected = [authenticate(request(n), username=f"user{n}", password=password) for n in range(CALLS)]

    async def ask() -> list[Any]:
        with gathering(CALLS):
            asked = (aauthenticate(request(n + 100), username=f"user{n}", password=password) for n in range(CALLS))
            return list(await asyncio.gather(*asked))

    with capture_requests() as sent_too, awaited() as found:
        assert asyncio.run(ask()) == expected
    assert operations(sent_too) == operations(sent)
    assert len(found) == len(sent_too)


def test_a_password_is_hashed_in_a_thread() -> None:
    """The hash does not block the loop."""
    threads: list[bool] = []
    check = User.check_password

    def noted(self: User, password: str) -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            threads.append(True)
        return check(self, password)

    async def ask() -> Any:
        return await aauthenticate(request(1), username="user1", password=PASSWORD)

    with mock.patch.object(User, "check_password", noted):
        assert asyncio.run(ask()) is not None
    assert threads == [True]


def test_logins_overlap() -> None:
    """A login writes the session and when it was; Django's receiver of the signal does the latter in a thread."""
    assert user_logged_in.has_listeners(User)

    async def log_in(number: int) -> Any:
        made = request(number)
        await alogin(
            made,
            await User.objects.aget(pk=f"{number}"),
            "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend",
        )
        await made.session.asave()
        found = await aget_user(made)
        await alogout(made)
        return found

    async def ask() -> list[Any]:
        with gathering(CALLS):
            return list(await asyncio.gather(*map(log_in, range(CALLS))))

    with capture_requests() as sent, awaited() as found:
        assert [user.pk for user in asyncio.run(ask())] == [f"{n}" for n in range(CALLS)]
    written = ("UpdateItem", "PutItem", "TransactWriteItems")
    assert operations(sent) == {"GetItem": 2 * CALLS, **dict.fromkeys(written, CALLS)}
    assert operations(sent) - Counter(found) == {"UpdateItem": CALLS}


def test_permissions_of_groups_are_awaited(users: list[User]) -> None:
    """Each user in a group takes one request."""
    group = Group.objects.create(name="Editors", permission_names={"directory.change_company"})
    for user in users:
        user.groups.add(group)

    async def ask() -> list[bool]:
        backend = EmailOrUsernameBackend()
        with gathering(CALLS):
            asked = (backend.ahas_perm(user, "directory.change_company") for user in users)
            return list(await asyncio.gather(*asked))

    with capture_requests() as sent, awaited() as found:
        assert asyncio.run(ask()) == [True] * CALLS
    assert found == [each.operation for each in sent]


def test_groups_are_changed_in_the_loop(users: list[User]) -> None:
    """From both sides."""
    group = Group.objects.create(name="Editors")

    async def ask() -> list[Any]:
        with gathering(CALLS):
            await asyncio.gather(*(user.groups.aadd(group) for user in users))
        await group.user_set.aremove(users[0])
        return [each.pk async for each in group.user_set.all()]

    with capture_requests() as sent, awaited() as found:
        assert len(asyncio.run(ask())) == CALLS - 1
    assert found == [each.operation for each in sent]


def test_users_are_created_in_the_loop() -> None:
    """And found by their names."""

    async def ask() -> User:
        made = await User.objects.acreate_user("Zoe", "zoe@example.com", PASSWORD)
        return await User.objects.aget_by_natural_key(made.get_username())

    with capture_requests() as sent, awaited() as found:
        assert asyncio.run(ask()).email == "zoe@example.com"
    assert found == [each.operation for each in sent] == ["TransactWriteItems", "GetItem", "GetItem"]


def test_validators_are_told_of_a_new_password(users: list[User]) -> None:
    """Validators are called once after the save, as by ``save()``."""
    told: list[str] = []

    async def ask() -> None:
        users[1].set_password("another-password")
        await users[1].asave()
        await users[1].asave()

    with mock.patch("dynamo_single.auth.users.password_changed", lambda password, user: told.append(password)):
        asyncio.run(ask())
    assert told == ["another-password"]


class Own(EmailOrUsernameBackend):
    """A project's backend with methods of its own."""

    def authenticate(self, *args: Any, **options: Any) -> Any:
        """Call the original method."""
        return super().authenticate(*args, **options)

    def get_user(self, user_id: object) -> Any:
        """Call the original method."""
        return super().get_user(user_id)

    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """Call the original method."""
        return super().get_group_permissions(user_obj, obj)


def test_what_a_project_overrides_is_called_in_a_thread(users: list[User]) -> None:
    """An override may send requests."""

    async def ask() -> Any:
        await Own().aget_group_permissions(users[1])
        await Own().aget_user("1")
        return await Own().aauthenticate(request(1), username="user1", password=PASSWORD)

    with awaited() as found:
        assert asyncio.run(ask()) == users[1]
    assert not found


def test_synchronous_code_in_a_thread_authenticates_as_ever() -> None:
    """This includes threads that an event loop waits for."""

    async def ask() -> Any:
        return await sync_to_async(authenticate)(request(1), username="user1", password=PASSWORD)

    assert asyncio.run(ask()) is not None
