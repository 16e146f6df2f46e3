"""A database router that keeps SQL models away from the engine's aliases.

``allow_migrate`` is Django's documented way to say that a model has no table in a database. ``migrate``, ``check``,
``createcachetable``, ``makemigrations`` and the handlers that fill in content types, permissions and the default site
all ask it. Other aliases, and models that are stored in DynamoDB, are none of its business.
"""

from __future__ import annotations

from django.apps import apps
from django.db import connections, router

from dynamo_single.backend.errors import ENGINE, is_stored_in_dynamodb


class NoSQLRouter:
    """Answers for aliases whose ``ENGINE`` is ``dynamo_single.backend``, and leaves the rest to other routers."""

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool | None:
        """Return False for an SQL model on one of the engine's aliases, otherwise no opinion.

        Without a model somebody asks about an operation of the app's own, such as ``RunPython``: it runs if the app
        has models in DynamoDB, since it may be about them.
        """
        if not uses_engine(db):
            return None
        model = hints.get("model")
        if model is None and "model_name" not in hints and _has_models_of_ours(app_label):
            return None
        # loaddata and dumpdata pass over a model that may not migrate, without a word.
        if isinstance(model, type) and is_stored_in_dynamodb(model):
            return None
        return False


def _has_models_of_ours(app_label: str) -> bool:
    return any(is_stored_in_dynamodb(model) for model in apps.all_models[app_label].values())


def uses_engine(alias: str) -> bool:
    """Whether an alias of ``DATABASES`` has this engine."""
    return bool(connections.settings[alias]["ENGINE"] == ENGINE)


def install_router() -> None:
    """Put the router before the project's own, once, if an alias of ``DATABASES`` has this engine.

    The list of routers is private to Django (``ConnectionRouter.routers``); the setting behind it belongs to the
    project, and is left as it is.
    """
    if not any(map(uses_engine, connections.settings)):
        return
    if not any(isinstance(installed, NoSQLRouter) for installed in router.routers):
        router.routers.insert(0, NoSQLRouter())
