"""Paths over relations in the options of a list: the names that Django uses, and the fields that they lead to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.admin.utils import NotRelationField, get_fields_from_path
from django.core.exceptions import FieldDoesNotExist

from dynamo_single.orm.relations.paths import step_of
from dynamo_single.orm.schema.references import Children
from dynamo_single.orm.schema.types import DynamoModel

_SEPARATOR: Final = "__"


def query_path(model: type[DynamoModel], path: str) -> str:
    """Return a path with Django's query names for ``Children``: ``person__name`` for ``people__name``."""
    first, separator, rest = path.partition(_SEPARATOR)
    children = getattr(model, first, None)
    if isinstance(children, Children):
        first = children.field.related_query_name()
    found = step_of(model, f"{first}{_SEPARATOR}pk" if not rest else f"{first}{separator}{rest}")
    if found is None or not rest:
        return f"{first}{separator}{rest}"
    step, _rest = found
    other = step.field.model._meta.get_field(step.inner).related_model if step.inner else step.model
    return f"{first}{separator}{query_path(other, rest)}"


def query_paths(model: type[DynamoModel], list_filter: Iterable[object]) -> list[object]:
    """Return ``list_filter`` with Django's query names."""
    found: list[object] = []
    for each in list_filter:
        if isinstance(each, str):
            each = query_path(model, each)
        elif isinstance(each, list | tuple) and each and isinstance(each[0], str):
            each = (query_path(model, each[0]), *each[1:])
        found.append(each)
    return found


def field_at(model: type[DynamoModel], path: str) -> Any:
    """Return the field that a path leads to over any relations; ``None`` if there is none."""
    found = step_of(model, path)
    if found is not None:
        return field_at(found[0].model, found[0].name(found[1]))
    first, _, rest = path.partition(_SEPARATOR)
    try:
        field: Any = model._meta.pk if first == "pk" else model._meta.get_field(first)
    except FieldDoesNotExist:
        return None
    # The key of a referenced object is in the reference.
    return field_at(field.related_model, rest) if rest and field.is_relation else None if rest else field


def field_of(model: type[DynamoModel], path: str) -> Any:
    """Return Django's field at a path of query names, as the filters take it; ``None`` if there is none."""
    try:
        return get_fields_from_path(model, path)[-1]
    except (FieldDoesNotExist, NotRelationField):
        return None


def leads_on(model: type[DynamoModel], path: str) -> bool:
    """Return whether a path leads to another model in DynamoDB, so that its objects must be read."""
    return step_of(model, path) is not None


def end_of(model: type[DynamoModel], lookup: str) -> tuple[Any, str]:
    """Return the last model of a lookup over relations, and the lookup there."""
    found = step_of(model, lookup)
    return (model, lookup) if found is None else end_of(found[0].model, found[0].name(found[1]))
