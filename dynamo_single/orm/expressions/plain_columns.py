"""Columns in the types of Django's own fields, as ``output_field`` has them in an SQL database.

Django compares the classes of fields: ``Concat(Value(" "), "name")`` would be of mixed types if the column had a
subclass of ``CharField``.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.expressions import Col

from dynamo_single.orm.expressions.nested import columns_in
from dynamo_single.orm.expressions.scope import Expression
from dynamo_single.orm.schema.fields.base import DynamoField

#: Options of a field that its values depend on.
_OPTIONS = ("max_length", "max_digits", "decimal_places")


def plain_field(field: Any) -> Any:
    """Return Django's own field for the values of a field; documents and sets keep theirs."""
    if field.is_relation:
        return plain_field(field.target_field)
    if not isinstance(field, DynamoField) or isinstance(field, models.JSONField):
        return field
    kind: Any = next((each for each in type(field).__mro__ if each.__module__.startswith("django.")), models.Field)
    if kind is models.Field:
        return field
    given = {name: getattr(field, name) for name in _OPTIONS if getattr(field, name, None) is not None}
    return kind(**given)


def with_plain_columns(expression: Expression) -> Expression:
    """Return an expression whose columns have the types of Django's own fields."""
    plain = {each: Col(each.alias, each.target, plain_field(each.target)) for each in columns_in(expression)}
    return expression.replace_expressions(plain) if plain else expression
