"""Decide whether an expression can be computed in memory, before anything is read.

Expressions of SQL, columns of other models, and nesting deeper than ``MAX_DEPTH`` are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Aggregate, F, Func, Lookup, Q, Subquery, When, Window
from django.db.models.expressions import Col, ColPairs, ExpressionList, OrderBy, Ref, WindowFrame
from django.db.models.fields import json
from django.db.models.sql import Query
from django.db.models.sql.where import WhereNode

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON
from dynamo_single.orm.expressions import nested
from dynamo_single.orm.expressions.evaluation import check_named, evaluate, refusal_of
from dynamo_single.orm.expressions.functions.registered import conditions
from dynamo_single.orm.expressions.scope import Expression
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.lookups import compared_field, is_own

#: How deep expressions may be nested: Django and ``evaluate()`` walk through them by recursion.
MAX_DEPTH = 50
#: Expressions without a value of their own, only with sources.
_STRUCTURE = (When, ExpressionList, OrderBy, WindowFrame)


def check_depth(expressions: Iterable[Any]) -> None:
    """Raise ``NotSupported`` for expressions and conditions that are nested too deep, before Django resolves them."""
    level = list(expressions)
    for _ in range(MAX_DEPTH + 1):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return
    raise NotSupported(
        f"Expressions are nested more than {MAX_DEPTH} levels deep. Join similar conditions, as in Q(name__in=[...]), "
        "and add up long sums in Python."
    )


def _parts(each: Any) -> list[Any]:
    if isinstance(each, Q | WhereNode):
        return [child for child in each.children if not isinstance(child, tuple)]
    if isinstance(each, F | str | tuple):
        return []
    found: list[Any] = getattr(each, "get_source_expressions", list)()
    return [part for part in found if part is not None]


def check(model: type[DynamoModel], expressions: Iterable[Expression | None], *, may_join: bool = False) -> None:
    """Raise ``NotSupported`` for resolved expressions that cannot be computed; names the first of them."""
    waiting = [each for each in expressions if each is not None]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Window):
            waiting += [part for source in _parts(each) for part in (*_parts(source), *_column(source))]
            continue
        if isinstance(each, Subquery | Query):
            nested.check(each)
            query = nested.query_of(each)
            check(query.model, [*query.annotations.values(), *query.select, query.where], may_join=True)
            continue
        if isinstance(each, Col):
            if not may_join and not is_own(model, each):
                compared_field(model, each)
            continue
        if isinstance(each, ColPairs):
            # Django's prefetch of a foreign key compares it with keys, by which the planner reads.
            continue
        _check_class(each)
        if isinstance(each, Aggregate) and _is_of_window(each):
            raise NotSupported(
                f"{model._meta.label}: {type(each).__name__}() cannot have a window function as its value, as in SQL. "
                f"Annotate with the window function, and call aggregate() with its name, or {COMPUTE_IN_PYTHON}."
            )
        waiting += _parts(each)


def _is_of_window(expression: Any) -> bool:
    """Return whether an expression contains a window function, other than in annotations that rows have already."""
    if isinstance(expression, Ref | Window):
        return isinstance(expression, Window)
    return any(map(_is_of_window, _parts(expression)))


def reads_others(query: Any, expression: Expression) -> bool:
    """Return whether a resolved expression contains columns of related objects, other than in annotations."""
    if isinstance(expression, Col):
        return bool(expression.alias != query.get_initial_alias())
    if isinstance(expression, Ref | Subquery | Query):
        return False
    return any(reads_others(query, part) for part in _parts(expression))


def _column(source: Any) -> list[Any]:
    return [source] if isinstance(source, Col) else []


def _check_class(each: Any) -> None:
    compute = evaluate.dispatch(type(each))
    if isinstance(each, Lookup) and not isinstance(each, json.HasKeyLookup):
        conditions.check_lookup(str(each.lookup_name))
    elif compute is evaluate.dispatch(object) and not isinstance(each, _STRUCTURE):
        raise refusal_of(each)
    elif compute is evaluate.dispatch(Func):
        check_named(each)
