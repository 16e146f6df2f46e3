"""E010: what a field of an SQL model that refers to a model in DynamoDB cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error
from django.db import router

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine
from dynamo_single.orm.schema.fields.columns import column_of
from dynamo_single.orm.schema.kinds import ModelField

_INSTEAD = "Keep the other object's pk in a field of its own, or keep this model in DynamoDB too."


def check_references_from_sql(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """Every reference of every SQL model of the given apps to one of ours, where there is an SQL database for it."""
    messages: list[CheckMessage] = []
    for model in apps.get_models():
        options: Any = model._meta
        if app_configs is not None and options.app_config not in app_configs:
            continue
        if is_stored_in_dynamodb(model) or uses_engine(router.db_for_write(model)):
            continue
        for field in (*options.local_fields, *options.local_many_to_many):
            target = field.related_model
            if isinstance(target, type) and is_stored_in_dynamodb(target):
                messages += _sql_problems(field, target)
    return messages


def _sql_problems(field: Any, target: Any) -> Iterator[Error]:
    where = f"{field.name} refers to {target._meta.label}, which is stored in DynamoDB"
    if field.many_to_many:
        hint = "Make the membership a model of its own, with a ForeignKey to each side, and ask that model."
        yield _error(field, f"{where}: its objects would be found by a join, which no database can do.", hint)
        return
    if field.remote_field.field_name != target._meta.pk.name:
        text = f"{where}, by {field.remote_field.field_name}: only by its pk it can be read."
        yield _error(field, text, "Leave to_field out.")
    elif column_of(target._meta.pk) is None:
        kind = type(target._meta.pk.attribute).__name__
        yield _error(field, f"{where}: no column of SQL can hold its pk, which is a {kind}.", _INSTEAD)
    # Django 6.1: on_delete=DB_CASCADE and the like.
    if hasattr(field.remote_field.on_delete, "on_delete_sql"):
        text = f"{where}: the database does not know when an object is deleted there."
        yield _error(field, text, "Take an on_delete that Django carries out, such as models.CASCADE.")


def _error(field: ModelField, message: str, hint: str) -> Error:
    return Error(message, hint=hint, obj=field.model, id="dynamo_single.E010")
