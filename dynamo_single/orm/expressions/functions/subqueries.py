"""``Exists()``, ``Subquery()`` and querysets after ``__in``: values of the objects that were read for all rows."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, Subquery
from django.db.models.sql import Query

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.nested import query_of
from dynamo_single.orm.expressions.scope import Expression, Scope


def _inner(expression: Expression, scope: Scope) -> Any:
    known, at = id(query_of(expression)), scope
    while known not in at.statement.subqueries and at.outer is not None:
        at = at.outer
    if known not in at.statement.subqueries:
        raise NotSupported(
            f"Cannot compute a subquery of {query_of(expression).model._meta.label} at this place. Name it by "
            "annotate() or alias() first, and use that name."
        )
    return at.statement.subqueries[known]


@evaluate.register(Exists)
def _exists(expression: Expression, scope: Scope) -> bool:
    return bool(_inner(expression, scope).results(scope))


# Since Django 6.1 a resolved Subquery() is its query.
@evaluate.register(Query)
@evaluate.register(Subquery)
def _subquery(expression: Expression, scope: Scope) -> Any:
    values = _inner(expression, scope).values(scope)
    if len(values) > 1:
        raise InvalidValue(
            f"A subquery of {query_of(expression).model._meta.label} returns {len(values)} rows for one object, and a "
            "value is one row. No row was dropped. Slice the queryset in Subquery(): [:1]."
        )
    return values[0] if values else None


def members(expression: Expression, scope: Scope) -> list[Any]:
    """Return all values of a subquery, for ``__in``."""
    found: list[Any] = _inner(expression, scope).values(scope)
    return found
