"""Log in by a POST of the login page, in the child process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness.pages import begin

PASSWORD = "a walk in the park"  # noqa: S105 - of a user in a table in memory


def prepare() -> Callable[[], Any]:
    """Create the user."""
    begin()
    # Import after ``begin()``, because the child's settings decide which user model exists.
    from django.contrib.auth import get_user_model
    from django.test import Client

    get_user_model().objects.create_user("walker", "walker@example.com", PASSWORD)

    def login() -> None:
        client = Client(SERVER_NAME="localhost")
        answer = client.post("/accounts/login/", {"username": "walker", "password": PASSWORD})
        if answer.status_code != 302:
            raise RuntimeError(f"The login page returned {answer.status_code}.")

    return login
