"""The errors with which the engine refuses operations that need an SQL database.

Each function returns the error, and the caller raises it. This module must not depend on connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.core.management.base import CommandError
from pynamodb.models import Model as PynamoDBModel

from dynamo_single.exceptions import ConfigurationError, NotSupported

if TYPE_CHECKING:
    from django.db.models import Model

ENGINE: Final = "dynamo_single.backend"

_LONGEST_SQL: Final = 200

#: The alternatives to Django's own models, by label. Every other SQL model gets a general one.
_WAYS_OUT: Final = {
    "auth.User": "Set AUTH_USER_MODEL to a user model that is stored in DynamoDB",
    "sessions.Session": "Set SESSION_ENGINE = 'dynamo_single.sessions'",
    "sites.Site": "Leave django.contrib.sites out of INSTALLED_APPS: get_current_site() gives the request's host then",
}


class CommandRefused(NotSupported, CommandError):
    """A management command needs an SQL database. Printed as one line, without a traceback."""


def query_refused(model: type[Model], action: str, alias: str) -> NotSupported:
    """Return the error for a query of ``model`` that Django would compile to SQL."""
    label = model._meta.label
    if is_stored_in_dynamodb(model):
        return NotSupported(
            f"Cannot {action} {label} in this way: Django tried to turn it into SQL for DATABASES['{alias}'], but "
            f"{label} is stored in DynamoDB. Use the methods of {model.__name__}.objects, which send DynamoDB requests."
        )
    return NotSupported(
        f"Cannot {action} {label}: it is a model for an SQL database, and this project has no such database "
        f"(DATABASES['{alias}'] is {ENGINE}). {way_out(model)}, or add an SQL database to DATABASES and route "
        f"{label} to it with DATABASE_ROUTERS."
    )


def computed_refused(model: type[Model], action: str) -> NotSupported:
    """Return the error for a query of a model whose objects are computed, such as ``ContentType``."""
    label = model._meta.label
    if action in ("query", "aggregate over"):
        instead = "user.user_permissions or permission.user_set" if label == "auth.Permission" else "them"
        return NotSupported(
            f"Cannot {action} {label} in this way: its objects are computed from the installed models, and are "
            f"filtered by their own fields and those of the content type. Read {instead}, and use Python for the rest."
        )
    return NotSupported(
        f"Cannot {action} {label}: its objects are computed from the installed models. Nothing was written. Declare "
        "a model for a content type, and Meta.permissions or Meta.default_permissions for a permission."
    )


def way_out(model: type[Model]) -> str:
    """Return the alternative to querying an SQL model, as the beginning of a sentence."""
    return _WAYS_OUT.get(model._meta.label, "Keep this data in a model of dynamo_single.models")


def condition_refused(alias: str) -> ConfigurationError:
    """Return the error for an expression without a model, which only an SQL database can evaluate.

    It is not a database error, because ``Q.check()`` treats those as a match.
    """
    return ConfigurationError(
        "Cannot evaluate a condition without a model, such as that in a CheckConstraint: this project has no "
        f"SQL database (DATABASES['{alias}'] is {ENGINE}). Use a validator, or the model's clean()."
    )


def sql_refused(sql: str, alias: str) -> NotSupported:
    """Return the error for SQL text that was passed to a cursor."""
    shown = sql if len(sql) <= _LONGEST_SQL else f"{sql[:_LONGEST_SQL]}…"
    return NotSupported(
        f"Cannot execute {shown!r}: this project has no SQL database (DATABASES['{alias}'] is {ENGINE}). "
        "Read and write through models of dynamo_single.models, or add an SQL database to DATABASES and use its "
        "connection."
    )


def command_refused(what: str, way_out: str, alias: str) -> CommandRefused:
    """Return the error for a management command without a database."""
    return CommandRefused(
        f"Cannot {what}: this project has no SQL database (DATABASES['{alias}'] is {ENGINE}). {way_out}"
    )


def is_stored_in_dynamodb(model: type) -> bool:
    """Return whether the model is a model of ``dynamo_single``: both a PynamoDB model and a Django model."""
    return issubclass(model, PynamoDBModel)
