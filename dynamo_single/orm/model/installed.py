"""E021: this app is used and not installed, so that its own checks, commands and router are not there.

The app's start-up cannot say so, since it does not happen; what is used registers this check.
"""

from __future__ import annotations

from django.apps import apps
from django.core import checks

NAME = "dynamo_single"


def ask_for_app() -> None:
    """Let ``check`` say that the app is not installed, if it is not; for a model that is made as apps are loaded."""
    if apps.apps_ready and not apps.is_installed(NAME):
        checks.register(check_installed, checks.Tags.models)


def check_installed(app_configs: object = None, **kwargs: object) -> list[checks.CheckMessage]:
    """E021, unless the app is installed."""
    if apps.is_installed(NAME):
        return []
    return [
        checks.Error(
            f"INSTALLED_APPS lacks {NAME!r}, and models of {NAME}.models are used: nothing checks their keys, and "
            "there is no dynamo_setup.",
            hint=f"Add {NAME!r} to INSTALLED_APPS.",
            id="dynamo_single.E021",
        )
    ]
