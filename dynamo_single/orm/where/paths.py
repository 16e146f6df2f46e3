"""The references at the beginning of a name: ``customer__name``.

This module must not know conditions, keys or plans.
"""

from __future__ import annotations

from typing import Any

from dynamo_single.orm.schema.attributes.references import ContentTypeAttribute
from dynamo_single.orm.schema.types import DynamoModel


def reference_of(model: type[DynamoModel], name: str) -> tuple[Any, str] | None:
    """Return the reference at the beginning of a name and the rest of the name.

    ``None`` if the name is about the model itself: its attributes, or the key of a referenced object. References to
    objects in an SQL database are not followed, except to computed content types.
    """
    first, _, rest = name.partition("__")
    fields: Any = model._meta.concrete_fields
    field = next((each for each in fields if each.is_relation and first in (each.name, each.attname)), None)
    if field is None or not rest or not is_followed(field):
        return None
    target = field.target_field
    return None if rest in ("pk", target.name, target.attname) else (field, rest)


def is_followed(field: Any) -> bool:
    """Return whether the object of a reference can be read: it is an item, or a computed content type."""
    return hasattr(field.related_model, "_stored") or isinstance(field.attribute.target, ContentTypeAttribute)
