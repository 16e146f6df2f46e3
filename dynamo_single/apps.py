"""The Django app and its start-up."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import checks
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility
from django.core.signals import got_request_exception
from django.db import connections
from django.db.models.signals import post_migrate
from django.http import HttpRequest
from django.utils.module_loading import import_string

from dynamo_single.backend.compiler import Writes
from dynamo_single.backend.router import install_router, uses_engine
from dynamo_single.conf import aliases, cost_settings, default_fetch_mode, own_alias, table_settings, web_timeout
from dynamo_single.conf import sql_transactions as sql_transactions_setting
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.lazy_modules import LazyModule

if TYPE_CHECKING:
    from dynamo_single import permissions
    from dynamo_single.backend import sql_transactions
else:
    permissions = LazyModule("dynamo_single.permissions")
    sql_transactions = LazyModule("dynamo_single.backend.sql_transactions")

_CACHE: Final = "dynamo_single.cache.DynamoCache"
#: The members whose absence makes Django's own check of ``AUTH_USER_MODEL`` fail with a traceback.
_ASKED_BY_DJANGO: Final = ("REQUIRED_FIELDS", "USERNAME_FIELD", "is_anonymous", "is_authenticated")

#: The checks by their modules. They are imported when they are run, which a web server's process never does.
_CHECKS: Final = {
    "admin.check_inlines": checks.Tags.admin,
    "admin.check_admin_logs": checks.Tags.admin,
    "admin.check_admin_sites": checks.Tags.admin,
    "admin.check_backends": checks.Tags.security,
    "admin.check_lists": checks.Tags.admin,
    "admin.check_login_required": checks.Tags.admin,
    "migrations.check_applied": checks.Tags.database,
    "migrations.check_commands": checks.Tags.commands,
    "migrations.check_tables": checks.Tags.database,
    "models.check_models": checks.Tags.models,
    "references.check_references_from_sql": checks.Tags.models,
    "references.check_sql_models": checks.Tags.models,
    "secrets.check_admins": checks.Tags.admin,
    "secrets.check_copies": checks.Tags.models,
    "settings.check_database": checks.Tags.models,
    "settings.check_middleware": checks.Tags.models,
    "settings.check_names": checks.Tags.security,
    "settings.check_session_engine": checks.Tags.security,
    "settings.check_timeouts": checks.Tags.models,
    "settings.check_computed_identifiers": checks.Tags.models,
    "settings.check_user_model": checks.Tags.models,
}


class DynamoSingleConfig(AppConfig):
    """Lets Django find the app's models, checks and commands."""

    name = "dynamo_single"
    verbose_name = "DynamoDB"

    def ready(self) -> None:
        """Validate the settings, register the checks, and keep SQL models away from ``dynamo_single.backend``.

        Wrong settings raise ``ConfigurationError``. At the command line it is printed as one line, or with its
        traceback if ``--traceback`` is given. If an SQL database stores permissions, ``migrate`` adds those of our
        models that Django does not know. Migrations see our models as unmanaged models.
        """
        # Models cannot be imported before the apps are ready.
        from dynamo_single.orm.effects import django_on_commit
        from dynamo_single.orm.model import migration_state, sql_references
        from dynamo_single.orm.schema import registry

        try:
            _check_settings({model._options.alias for model in registry.all_models()})
        except ConfigurationError as error:
            if not _is_command() or "--traceback" in sys.argv:
                raise
            sys.stderr.write(f"ConfigurationError: {error}\n")
            sys.exit(1)
        for name, tag in _CHECKS.items():
            checks.register(_check(name), tag)
        checks.register(_check("migrations.check_apps"), checks.Tags.models, deploy=True)
        if sys.argv[1:2] == ["runserver"] and _is_command():
            # It reports unapplied migrations itself and does not run the database checks.
            checks.register(_check("migrations.check_on_runserver"), checks.Tags.models)
        install_router()
        migration_state.install()
        sql_references.install()
        django_on_commit.install()
        if not all(map(uses_engine, connections.settings)):
            sql_transactions.install()
        post_migrate.connect(_create_permissions, dispatch_uid="dynamo_single.permissions.create_rows")
        # Connected here rather than in the middleware: a test client that connects earlier would report the error.
        got_request_exception.connect(pass_on, dispatch_uid="dynamo_single.pass_on")


def _create_permissions(**kwargs: Any) -> None:
    permissions.create_rows(**kwargs)


def pass_on(request: HttpRequest | None = None, **kwargs: object) -> None:
    """Raise an error of a middleware again for ``UnavailableMiddleware``.

    Django turns an error of a middleware into a page with status 500, so that earlier middleware never sees it. It
    sends this signal first, and an error that a receiver raises reaches the earlier middleware.
    """
    error = sys.exc_info()[1]
    if error is not None and isinstance(error, getattr(request, "dynamo_single_passes", ())):
        raise error


def _check(name: str) -> Callable[..., Iterable[checks.CheckMessage]]:
    """Return a check that is imported when it is run."""

    def run(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> Iterable[checks.CheckMessage]:
        found: Iterable[checks.CheckMessage] = import_string(f"dynamo_single.checks.{name}")(app_configs, **kwargs)
        return found

    run.__name__ = name
    return run


def _check_settings(asked: Iterable[str]) -> None:
    """Read the settings, and the aliases that models name; raise ``ConfigurationError`` for errors."""
    for alias in (*aliases(), *sorted(asked)):
        table_settings(alias)
    if settings.SESSION_ENGINE.startswith("dynamo_single.") or apps.is_installed("dynamo_single.admin"):
        own_alias()  # their models are stored there
    cost_settings()
    default_fetch_mode()
    sql_transactions_setting()
    web_timeout()
    for alias in filter(uses_engine, connections.settings):
        Writes(alias, connections.settings[alias]).check_options()
    for alias, cache in settings.CACHES.items():
        if cache.get("BACKEND") == _CACHE.rpartition(".")[0]:
            raise ConfigurationError(f"CACHES[{alias!r}]['BACKEND'] names a module: write {_CACHE!r}.")
        if cache.get("BACKEND") == _CACHE:
            caches.create_connection(alias)
    if apps.is_installed("django.contrib.auth"):
        _check_user_model()


def _check_user_model() -> None:
    """Raise ``ConfigurationError`` for a user model that Django's own check would fail with."""
    try:
        model: Any = get_user_model()
    except ImproperlyConfigured:
        return  # Django reports it when the model is needed
    missing = [each for each in _ASKED_BY_DJANGO if not hasattr(model, each)]
    if missing:
        raise ConfigurationError(
            f"AUTH_USER_MODEL is {settings.AUTH_USER_MODEL!r}, which lacks what a user needs: {', '.join(missing)}. "
            "Derive it from dynamo_single.auth.AbstractUser or AbstractBaseUser."
        )


def _is_command() -> bool:
    """Return whether a management command starts the app, so that only the user of the command reads the error."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is ManagementUtility.execute.__code__:
            return True
        frame = frame.f_back
    return False
