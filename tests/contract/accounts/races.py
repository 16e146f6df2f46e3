"""What tests of accounts do at one moment, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from accounts.models import User
from dynamo_single.exceptions import UniqueViolation
from tests.contract.accounts.account_pages import PASSWORD


def at_once(work: Any, arguments: Sequence[Any]) -> list[Any]:
    """What some calls give that begin at one moment, each in a thread."""
    barrier = Barrier(len(arguments))

    def one(argument: Any) -> Any:
        barrier.wait()
        return work(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(one, arguments))


def winners_of(take: Callable[[User], object]) -> list[User]:
    """Of four new users who take at one moment what can be one user's, those who were not refused."""
    users = [User.objects.create_user(name, f"{name}@example.com", PASSWORD) for name in ("a", "b", "c", "d")]

    def won(user: User) -> bool:
        try:
            take(user)
        except UniqueViolation:
            return False
        return True

    return [user for user, done in zip(users, at_once(won, users), strict=True) if done]
