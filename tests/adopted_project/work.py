"""A process that writes users with unique addresses until it is killed; names each request before it is sent."""

from __future__ import annotations

import os
import sys
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402

from dynamo_single import transactions  # noqa: E402
from dynamo_single.conf import aliases  # noqa: E402
from dynamo_single.contrib.doctor import verify  # noqa: E402
from dynamo_single.exceptions import IntegrityError  # noqa: E402
from dynamo_single.table import get_table, schema  # noqa: E402
from dynamo_single.testing import intercept  # noqa: E402


def write(name: str) -> None:
    """Create, change and delete users, and pass addresses on."""
    users: Any = get_user_model()._default_manager

    def tell(operation: str, params: Any) -> None:
        print(operation, flush=True)

    with intercept(tell):
        for number in range(1000):
            pair = [users.create_user(f"{name}{number}{each}", f"{name}{number}{each}@example.com") for each in "ab"]
            pair[0].email = f"new-{pair[0].email}"
            pair[0].save()
            with transactions.atomic():
                pair[0].email, pair[1].email = f"{name}{number}c@example.com", pair[0].email
                for user in pair:
                    user.save()
            pair[number % 2].delete()


def race(count: str) -> None:
    """Take the same addresses as other processes, and print how many were free."""
    users: Any = get_user_model()._default_manager
    print("ready", flush=True)
    sys.stdin.readline()
    won = 0
    for number in range(int(count)):
        try:
            users.create_user(f"n{os.getpid()}-{number}", f"race{number}@example.com")
        except IntegrityError:
            continue
        won += 1
    print(won, flush=True)


def setup() -> None:
    """Create both tables again, without items."""
    for alias in aliases():
        schema.recreate(get_table(alias))


def check() -> None:
    """Print what is inconsistent in both tables, and the number of users."""
    for alias in aliases():
        for finding in verify(alias):
            print(finding)
    users: Any = get_user_model()._default_manager
    print(sum(1 for _ in users.all()[:5000]), flush=True)


if __name__ == "__main__":
    {"write": write, "race": race, "setup": setup, "check": check}[sys.argv[1]](*sys.argv[2:])
