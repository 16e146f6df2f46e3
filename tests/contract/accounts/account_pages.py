"""Helpers for the account pages: sign up, log in, follow links."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

PASSWORD = "Quite-Good-9"


def sign_up(client: Client, username: str = "Mike", email: str = "user1@example.com", **changes: str) -> Any:
    """Send the form."""
    form = {"username": username, "email": email, "password1": PASSWORD, "password2": PASSWORD, **changes}
    return client.post("/accounts/sign_up/", form)


def log_in(client: Client, username: str, password: str = PASSWORD) -> Any:
    """Send the login form."""
    return client.post("/accounts/login/", {"username": username, "password": password})


def is_in(client: Client, username: str, password: str = PASSWORD) -> bool:
    """Return whether the login page accepts a user."""
    return bool(log_in(client, username, password).status_code == 302)


def link(mail: Any) -> str:
    """The confirmation link in a mail."""
    found = re.search(r"http://testserver(/accounts/confirm/\S+)", mail.body)
    assert found
    return found[1]


def void(client: Client, path: str) -> bool:
    """Return whether a link has no effect."""
    return "This link does not work" in client.post(path, follow=True).content.decode()
