"""Content types of projects without an SQL database.

The change form calls ``ContentType.objects.get_for_model`` for a number that its templates do not use. Without SQL
there is no such number, so that an unsaved content type is used.
"""

from __future__ import annotations

from typing import Any

from dynamo_single.backend.router import uses_engine
from dynamo_single.orm.schema.types import DynamoModel


def unsaved_content_type(model: type[DynamoModel]) -> Any:
    """Return an unsaved content type with the model's names; its ``pk`` is ``None``."""
    from django.contrib.contenttypes.models import ContentType

    return ContentType(app_label=model._meta.app_label, model=model._meta.model_name)


def provide_content_type(model: type[DynamoModel]) -> None:
    """Let Django find a content type for the model without SQL. Does nothing if content types are in SQL.

    The manager's cache is private to Django and can be cleared at any time, so that this is called before each use of a
    content type.
    """
    from django.contrib.contenttypes.models import ContentType

    manager: Any = ContentType.objects
    if not uses_engine(manager.db):
        return
    try:
        manager._get_from_cache(model._meta)
    except KeyError:
        manager._add_to_cache(manager.db, unsaved_content_type(model))
