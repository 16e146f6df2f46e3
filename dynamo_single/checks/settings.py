"""System checks of Django's settings: requirements of a login, of sessions and of this app.

The app reads its own settings when it starts, so that they do not need a check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from inspect import isclass
from typing import Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connections, models, router
from django.utils.module_loading import import_string

from dynamo_single.backend.errors import ENGINE, is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine
from dynamo_single.conf import aliases, table_settings
from dynamo_single.orm.schema.fields.base import NO_DATABASE

#: The members of a user that Django's login, forms and sessions need, in addition to those of Django's own check.
_OF_A_USER: Final = ("check_password", "set_password", "get_session_auth_hash", "get_username", "is_active")
_ENGINE: Final = "dynamo_single.sessions"
_SESSIONS: Final = "django.contrib.sessions.middleware.SessionMiddleware"
_LOGINS: Final = "django.contrib.auth.middleware.AuthenticationMiddleware"
_UNAVAILABLE: Final = "dynamo_single.middleware.UnavailableMiddleware"


def check_database(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W913: no database at all, which Django needs for transactions, migrations and tests."""
    if connections.settings[DEFAULT_DB_ALIAS]["ENGINE"] != NO_DATABASE:
        return []
    return [
        Warning(
            f"DATABASES has no {DEFAULT_DB_ALIAS!r}, so admin forms, migrate and tests fail.",
            hint=f'For a project without SQL, set DATABASES = {{"{DEFAULT_DB_ALIAS}": {{"ENGINE": "{ENGINE}"}}}}.',
            id="dynamo_single.W913",
        )
    ]


def check_user_model(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E019: a user model in DynamoDB that does not support login; W902: an SQL user model without an SQL database."""
    if not apps.is_installed("django.contrib.auth"):
        return []
    model: Any = get_user_model()
    if is_stored_in_dynamodb(model):
        return [*_missing_attributes(model)]
    if not uses_engine(router.db_for_write(model)) or not (_has(_LOGINS) or apps.is_installed("django.contrib.admin")):
        return []
    return [
        Warning(
            f"AUTH_USER_MODEL is {model._meta.label}, a model for an SQL database, but this project has no "
            "such database: every login would fail.",
            hint="Set it to a user model that is stored in DynamoDB, such as accounts.User, before there are users.",
            obj=model,
            id="dynamo_single.W902",
        )
    ]


def _missing_attributes(model: type[models.Model]) -> Iterator[Error]:
    missing = [name for name in _OF_A_USER if not hasattr(model, name)]
    if not hasattr(model._default_manager, "get_by_natural_key"):
        missing.append("objects.get_by_natural_key")
    if missing:
        yield Error(
            f"AUTH_USER_MODEL is {model._meta.label}, which lacks what a login needs: {', '.join(missing)}.",
            hint="Derive it from dynamo_single.auth.AbstractUser or AbstractBaseUser, and its manager from "
            "dynamo_single.auth.BaseUserManager.",
            obj=model,
            id="dynamo_single.E019",
        )


def check_names(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E020: a session engine or login backend that cannot be imported, so that every request would fail."""
    named: list[tuple[str, str, str]] = []
    if _uses_sessions():
        named.append(("SESSION_ENGINE", settings.SESSION_ENGINE, f"{settings.SESSION_ENGINE}.SessionStore"))
    if apps.is_installed("django.contrib.auth"):
        named += [("AUTHENTICATION_BACKENDS", path, path) for path in settings.AUTHENTICATION_BACKENDS]
    return [
        Error(
            f"{setting} names {path!r}, which cannot be imported: {problem}.",
            hint=f"The session engines of this app are {_ENGINE!r} and 'dynamo_single.cached_sessions'."
            if setting == "SESSION_ENGINE"
            else "The login backend of this app is 'dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend'.",
            id="dynamo_single.E020",
        )
        for setting, path, name in named
        if (problem := _import_problem(name))
    ]


def check_session_engine(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W903: sessions in SQL, in a project without an SQL database."""
    from django.contrib.sessions.backends.db import SessionStore

    if not _has(_SESSIONS) or _import_problem(f"{settings.SESSION_ENGINE}.SessionStore"):
        return []
    store = import_module(settings.SESSION_ENGINE).SessionStore
    if not isclass(store) or not issubclass(store, SessionStore):
        return []
    alias = DEFAULT_DB_ALIAS
    if apps.is_installed("django.contrib.sessions"):
        alias = router.db_for_write(store.get_model_class())
    if not uses_engine(alias):
        return []
    return [
        Warning(
            f"SESSION_ENGINE is {settings.SESSION_ENGINE!r}, which keeps sessions in SQL, and DATABASES[{alias!r}] is "
            "dynamo_single.backend: every session, and so every login, would fail.",
            hint=f"Set SESSION_ENGINE = {_ENGINE!r}.",
            id="dynamo_single.W903",
        )
    ]


def check_middleware(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W918: a middleware that may wait for DynamoDB comes before the one that responds without DynamoDB."""
    if _UNAVAILABLE not in settings.MIDDLEWARE:
        return []
    before = settings.MIDDLEWARE[: settings.MIDDLEWARE.index(_UNAVAILABLE)]
    early = [path for path in (_SESSIONS, _LOGINS) if path in before]
    if not early:
        return []
    return [
        Warning(
            f"{_UNAVAILABLE} comes after {early[0]} in MIDDLEWARE: if DynamoDB is unavailable, a failure in "
            f"{early[0]} is returned as a server error (500).",
            hint="Put it first.",
            id="dynamo_single.W918",
        )
    ]


def check_timeouts(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W919: a timeout for a part of a request that is longer than the timeout of the whole request."""
    return [
        Warning(
            f"DYNAMO_SINGLE[{alias!r}][{name.upper()!r}] is {getattr(found, name):g} seconds, but "
            f"TOTAL_TIMEOUT is {found.total_timeout:g}, which limits every request.",
            hint=f"Lower {name.upper()}, or raise TOTAL_TIMEOUT.",
            id="dynamo_single.W919",
        )
        for alias, found in ((alias, table_settings(alias)) for alias in aliases())
        for name in ("connect_timeout", "read_timeout")
        if getattr(found, name) > found.total_timeout
    ]


def check_computed_identifiers(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E048: two content types or two permissions for which a project without SQL computes the same identifier."""
    if not apps.is_installed("django.contrib.contenttypes"):
        return []
    from django.contrib.contenttypes.models import ContentType

    if not uses_engine(router.db_for_read(ContentType)):
        return []
    from dynamo_single.backend import computed_models

    return [
        Error(
            f"{' and '.join(names)} have the same identifier, {computed_models.identifier(names[0])}, which is "
            "computed from these names.",
            hint="Rename one of the models or permissions.",
            id="dynamo_single.E048",
        )
        for names in computed_models.collisions()
    ]


def _uses_sessions() -> bool:
    return _has(_SESSIONS) or settings.is_overridden("SESSION_ENGINE")


def _has(path: str) -> bool:
    """Return whether ``MIDDLEWARE`` contains a middleware or a subclass of it."""
    if path in settings.MIDDLEWARE:
        return True
    wanted = import_string(path)
    found = (_is_importable(each) for each in settings.MIDDLEWARE)
    return any(isclass(each) and issubclass(each, wanted) for each in found)


def _is_importable(path: str) -> object:
    try:
        return import_string(path)
    except ImportError:
        return None  # Django reports it when it loads the middleware


def _import_problem(path: str) -> str:
    """Return why a dotted path cannot be imported, or an empty string."""
    try:
        import_string(path)
    except ImportError as error:
        return str(error)
    return ""
