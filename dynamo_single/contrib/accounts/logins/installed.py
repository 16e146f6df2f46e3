"""Find the project's models that are derived from this app's abstract models, and check that none is missing.

This module does not send requests and must not depend on the abstract models.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, TypeVar

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.signals import setting_changed

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError

M = TypeVar("M", bound=models.Model)

#: The relations that a user model declares, since they name the models of its app.
RELATIONS: Final = ('logins = models.Children("Login", manager=Ways)', 'groups = Groups("Membership")')

#: The app with the templates, the static files and the checks.
NAME: Final = "dynamo_single.contrib.accounts"
#: The app with all models, for a project that does not declare its own.
READY: Final = f"{NAME}.ready"


def model_of(base: type[M]) -> type[M]:
    """Return the installed model that is derived from an abstract model of this app.

    Prefers a model in the app of ``AUTH_USER_MODEL``. Raises ``ConfigurationError`` if no app has such a model.
    """
    found: type[M] | None = _derived(settings.AUTH_USER_MODEL.partition(".")[0], base)
    if found is None:
        raise ConfigurationError(
            f"No installed model is derived from {base.__name__} of {NAME}.models. Derive one, or add {READY!r} to "
            "INSTALLED_APPS and set AUTH_USER_MODEL to 'accounts.User'."
        )
    return found


@lru_cache(maxsize=64)
def _derived(label: str, base: type) -> Any:
    found = [model for model in apps.get_models(include_auto_created=True) if issubclass(model, base)]
    return next((model for model in found if model._meta.app_label == label), found[0] if found else None)


def _forget(*, setting: str, **_: object) -> None:
    if setting == "INSTALLED_APPS":
        _derived.cache_clear()


setting_changed.connect(_forget, dispatch_uid="accounts.installed")


def problems(users: type[models.Model], bases: Iterable[type[models.Model]]) -> list[CheckMessage]:
    """Return E001 if the app with the pages is not installed, and E002 if a model or relation is missing."""
    app = apps.get_app_config(users._meta.app_label)
    missing = [
        f"class {base.__name__.removeprefix('Abstract')}({base.__name__})"
        for base in bases
        if not any(issubclass(each, base) for each in app.get_models(include_auto_created=True))
    ]
    missing += [f"{users.__name__}.{each}" for each in RELATIONS if getattr(users, each.split()[0], None) is None]
    found: list[CheckMessage] = []
    if not apps.is_installed(NAME):
        found.append(
            Error(
                f"{users._meta.label} is derived from a model of {NAME}, which is not in INSTALLED_APPS. Its "
                "pages have no templates, and its checks do not run.",
                hint=f"Add {NAME!r} to INSTALLED_APPS.",
                obj=users,
                id="accounts.E001",
            )
        )
    if missing:
        found.append(
            Error(
                f"The app {users._meta.app_label!r} lacks a part of its users: {', '.join(missing)}.",
                hint=f"Declare it as the app {READY!r} does.",
                obj=users,
                id="accounts.E002",
            )
        )
    return found
