"""Helpers for concurrent account operations in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from accounts.models import User
from dynamo_single.exceptions import UniqueViolation
from tests.contract.accounts.account_pages import PASSWORD


def at_once(work: Any, arguments: Sequence[Any]) -> list[Any]:
    """Return the results of calls that start together, each in a thread."""
    barrier = Barrier(len(arguments))

    def one(argument: Any) -> Any:
        barrier.wait()
        return work(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(one, arguments))


def winners_of(take: Callable[[User], object]) -> list[User]:
    """Return the successful ones of four new users who claim the same value together."""
    users = [User.objects.create_user(name, f"{name}@example.com", PASSWORD) for name in ("a", "b", "c", "d")]

    def won(user: User) -> bool:
        try:
            take(user)
        except UniqueViolation:
            return False
        return True

    return [user for user, done in zip(users, at_once(won, users), strict=True) if done]
