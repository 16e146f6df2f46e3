"""What ``manage.py check --deploy`` asks about accounts: mistakes that show only where the project is served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning

from accounts.conf import account_settings


def check_client_address(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """W001: failed logins and mails are counted by the connection's address; nobody said that it is the visitor's."""
    found = account_settings()
    counts = found.lockout or found.mails_per_client is not None
    if not counts or "CLIENT_ADDRESS_HEADER" in getattr(settings, "ACCOUNTS", {}):
        return []
    return [
        Warning(
            "Failed logins and mails are counted by the connection's address. Behind a proxy or a Unix socket "
            "everybody has the same one, and whoever keeps guessing somebody's password keeps this user out.",
            hint="Set ACCOUNTS['CLIENT_ADDRESS_HEADER'] to the header that your proxy sets, or to None if visitors "
            "connect to Django directly.",
            id="accounts.W001",
        )
    ]
