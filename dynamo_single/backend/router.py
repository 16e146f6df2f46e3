"""A database router that keeps SQL models away from the engine's aliases.

``allow_migrate`` is Django's documented way to declare that a model has no table in a database. ``migrate``, ``check``,
``createcachetable``, ``makemigrations`` and the handlers that fill in content types, permissions and the default site
all call it. The router has no opinion about other aliases, and about models that are stored in DynamoDB.
"""

from __future__ import annotations

from django.apps import apps
from django.db import connections, router

from dynamo_single.backend.errors import ENGINE, is_stored_in_dynamodb


class NoSQLRouter:
    """Decides for aliases whose ``ENGINE`` is ``dynamo_single.backend``, and leaves all others to other routers."""

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool | None:
        """Return False for an SQL model on one of the engine's aliases, otherwise no opinion.

        Without a model, the operation is one such as ``RunPython``. It runs if the app has models in DynamoDB, because
        it may refer to them.
        """
        if not uses_engine(db):
            return None
        model = hints.get("model")
        if model is None and "model_name" not in hints and _has_models_of_ours(app_label):
            return None
        # loaddata and dumpdata silently skip a model that may not migrate.
        if isinstance(model, type) and is_stored_in_dynamodb(model):
            return None
        return False


def _has_models_of_ours(app_label: str) -> bool:
    return any(is_stored_in_dynamodb(model) for model in apps.all_models[app_label].values())


def uses_engine(alias: str) -> bool:
    """Return whether an alias of ``DATABASES`` has this engine."""
    return bool(connections.settings[alias]["ENGINE"] == ENGINE)


def install_router() -> None:
    """Install the router before the project's own routers, once, if an alias of ``DATABASES`` has this engine.

    The list of routers is private to Django (``ConnectionRouter.routers``). The project's setting does not change.
    """
    if not any(map(uses_engine, connections.settings)):
        return
    if not any(isinstance(installed, NoSQLRouter) for installed in router.routers):
        router.routers.insert(0, NoSQLRouter())
