"""Find subqueries in expressions, and check whether this app can compute them. The module does not send requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import Aggregate, Exists, Model, Subquery
from django.db.models.expressions import Col, Ref
from django.db.models.sql import Query

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON
from dynamo_single.orm.relations import joining


def parts_of(expression: Any) -> Sequence[Any]:
    """Return the parts of an expression or a condition. Subqueries and objects do not have parts."""
    if isinstance(expression, Subquery | Query | Model):
        return ()
    children = getattr(expression, "children", None)
    if children is not None:
        return list(children)
    sources: list[Any] = getattr(expression, "get_source_expressions", list)()
    right = getattr(expression, "rhs", None)
    members = [each for each in right if hasattr(each, "resolve_expression")] if isinstance(right, list | tuple) else []
    return [each for each in (*sources, *members) if each is not None]


def within(expressions: Iterable[Any]) -> Iterator[Any]:
    """Yield the expressions and all their parts, at any depth."""
    waiting = [each for each in expressions if each is not None]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += parts_of(each)


def subqueries_in(expressions: Iterable[Any]) -> list[Any]:
    """Return the subqueries in expressions: ``Subquery``, ``Exists``, and querysets after ``__in``."""
    return [each for each in within(expressions) if isinstance(each, Subquery | Query)]


def query_of(subquery: Any) -> Any:
    """Return Django's query of a subquery."""
    return subquery.query if isinstance(subquery, Subquery) else subquery


def check(subquery: Any) -> None:
    """Raise ``NotSupported`` if a subquery contains SQL, or if its model is not in DynamoDB."""
    query = query_of(subquery)
    label = query.model._meta.label
    if isinstance(subquery, Subquery):
        template = subquery.extra.get("template", subquery.template)
        if type(subquery).as_sql not in (Subquery.as_sql, Exists.as_sql) or template not in _TEMPLATES:
            raise NotSupported(
                f"Cannot compute {type(subquery).__name__} of {label} in memory: its template is SQL. Use Subquery() "
                f"with annotate() and values(), or {COMPUTE_IN_PYTHON}."
            )
    if query.combinator or query.extra or query.distinct_fields:
        raise NotSupported(
            f"Cannot use a queryset of {label} after union(), extra() or distinct() over fields as a subquery. Read it "
            "first: list(queryset)."
        )
    if not hasattr(query.model, "_stored"):
        raise NotSupported(
            f"Cannot use a queryset of {label} as a subquery: it is stored in an SQL database. Read it first: "
            "list(queryset)."
        )
    joining.check(query)
    for each in within([*query.annotations.values(), query.where]):
        columns = columns_in(each) if isinstance(each, Aggregate) else []
        if columns and not any(is_own(query, column) for column in columns):
            raise NotSupported(
                f"OuterRef() cannot name an aggregate in a subquery of {label}. Compare in an annotation of the outer "
                f"queryset, or {COMPUTE_IN_PYTHON}."
            )


_TEMPLATES = (Subquery.template, Exists.template)


def columns_in(expression: Any) -> list[Any]:
    """Return the columns of an expression or a condition, except those inside subqueries."""
    return [each for each in within([expression]) if isinstance(each, Col)]


def columns_beside(expression: Any) -> list[Any]:
    """Return the columns of an expression, except columns of annotations, which rows already contain."""
    if isinstance(expression, Col | Ref):
        return [expression] if isinstance(expression, Col) else []
    return [column for each in parts_of(expression) for column in columns_beside(each)]


def is_own(query: Any, column: Any) -> bool:
    """Return whether a column belongs to ``query`` itself rather than to an outer query."""
    return column.alias is None or column.alias in query.alias_map
