"""Sort scopes by expressions: missing values are the least, except with ``nulls_first`` and ``nulls_last``.

This is the order of SQLite, and of ``order_by()`` on attributes. Text is ordered by code points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.exceptions import FieldError
from django.db.models import F
from django.db.models.expressions import Col, OrderBy
from django.db.models.functions import Random
from django.db.models.sql import Query

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.comparing import sort_key
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.plain_columns import with_plain_columns
from dynamo_single.orm.expressions.scope import Expression, Scope
from dynamo_single.orm.results import sorting


def as_order(query: Any, name: Any) -> Expression:
    """Return a name or an expression of ``order_by()`` as Django's resolved ``OrderBy``."""
    if name == "?":
        return OrderBy(Random())
    if isinstance(name, str):
        descending = name.startswith("-")
        name = OrderBy(F(name.lstrip("-+")), descending=descending)
    elif not isinstance(name, OrderBy):
        name = name.asc() if hasattr(name, "asc") else OrderBy(name)
    return with_plain_columns(name.resolve_expression(query, allow_joins=True, reuse=None))


def are_joined(model: Any, names: Iterable[Any]) -> bool:
    """Return whether an order contains names that only joins, or parts of values, give: ``order_by("orders__total")``.

    An order by a relation means that of its model, which must not have an order of its own.
    """
    return any(_is_joined(model, name) for name in names)


def _is_joined(model: Any, name: Any) -> bool:
    try:
        sorting.read_joined_sorting(model, (name,))
    except (NotSupported, UnknownField):
        pass
    else:
        return False
    try:
        expression = as_order(Query(model), name).expression
    except FieldError:
        return False
    field = expression.target if isinstance(expression, Col) else None
    if field is None or not field.is_relation:
        return True
    other: Any = field.related_model._meta  # type: ignore[union-attr]  # of a relation
    return tuple(other.ordering or ()) in ((), ("pk",), (other.pk.name,))


def orders_of(expression: Expression | None) -> list[Expression]:
    """Return the orders of a window."""
    found = [] if expression is None else expression.get_source_expressions()
    return [each if isinstance(each, OrderBy) else OrderBy(each) for each in found]


def sort_scopes(scopes: Iterable[Scope], orders: Sequence[Expression], *, is_reversed: bool = False) -> list[Scope]:
    """Return the scopes in an order; equal ones stay in the order in which they came."""
    found = list(scopes)
    for order in reversed(orders):
        descending = bool(order.descending) != is_reversed
        keys = {id(scope): _key(order, scope, descending=descending, turned=is_reversed) for scope in found}
        found.sort(key=lambda scope, keys=keys: keys[id(scope)], reverse=descending)  # type: ignore[misc]  # bound now
    return found


def _key(order: Expression, scope: Scope, *, descending: bool, turned: bool) -> tuple[Any, ...]:
    value = evaluate(order.expression, scope)
    if value is not None:
        return (1, sort_key(value))
    # Without a word about missing values they are the least.
    first = not bool(order.descending)
    if order.nulls_first or order.nulls_last:
        first = bool(order.nulls_first)
    first = first != turned
    return (0,) if first != descending else (2,)
