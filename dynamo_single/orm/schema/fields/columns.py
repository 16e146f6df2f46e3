"""What SQL models that refer to ours have: a column that holds the ``pk``, and relations that Django knows of.

This module must not know what becomes of rows.
"""

from __future__ import annotations

from typing import Any, Final

from django.db import connections, models, router

from dynamo_single.backend.router import uses_engine
from dynamo_single.orm.schema.kinds import ModelField

#: What follows a model's name in the place of an SQL table's: a database names it when SQL asks for the table.
IN_DYNAMODB: Final = " (in DynamoDB)"
#: How many characters of a ``pk`` a column holds: as many as every database of Django's can have in an index.
LONGEST_PK: Final = 255
#: Django's own log refers to the user, and holds nothing where users are in DynamoDB: the log is there too (E017).
LOG: Final = "admin.LogEntry"
#: The engine of Django's that stands for no database at all.
NO_DATABASE: Final = "django.db.backends.dummy"
#: Whose ``pk`` is text, in fields of Django's.
_TEXTS: Final = (models.CharField, models.TextField)


def is_in_dynamodb(model: object) -> bool:
    """Whether a model, or what stands for it in a migration's state, is stored in DynamoDB."""
    return isinstance(model, type) and issubclass(model, models.Model) and model._meta.db_table.endswith(IN_DYNAMODB)


def has_sql() -> bool:
    """Whether any database of the project holds rows."""
    return any(map(_holds_rows, connections.settings))


def _holds_rows(alias: str) -> bool:
    return not uses_engine(alias) and connections.settings[alias]["ENGINE"] != NO_DATABASE


def relations_from_sql(model: Any) -> list[Any]:
    """The relations to a model of ours of SQL models that have rows."""
    return [
        related
        for related in model._meta.get_fields(include_hidden=True)
        if related.auto_created
        and not related.concrete
        and (related.one_to_one or related.one_to_many)
        and not is_in_dynamodb(related.related_model)
        and related.related_model._meta.label != LOG
        and _holds_rows(router.db_for_write(related.related_model))
    ]


def column_of(field: Any, **options: Any) -> ModelField | None:
    """Django's field for the column, or ``None`` where there is none that gives the value back as it is.

    Whole numbers get a column of 64 bits, texts and several variables one of 255 characters: a database refuses what is
    larger.
    """
    if field.is_relation:
        return column_of(field.target_field, **options)
    if isinstance(field, models.UUIDField):
        return models.UUIDField(**options)
    if isinstance(field, models.IntegerField):
        return models.BigIntegerField(**options)
    if isinstance(field, _TEXTS):
        return models.CharField(max_length=LONGEST_PK, **options)
    return None
