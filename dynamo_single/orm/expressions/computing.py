"""Compute the results of Django's query from rows in memory, in the order of SQL's steps.

The steps are the rest of ``WHERE``, groups, ``HAVING``, window functions, the order, ``DISTINCT`` and the slice. This
module does not send requests: ``interpreter`` reads the rows of a query, and ``subqueries`` the rows of its subqueries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from dynamo_single.orm.conditions.comparing import hashable
from dynamo_single.orm.expressions import nested, ordering
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.functions.casting import in_type
from dynamo_single.orm.expressions.functions.registered import windows
from dynamo_single.orm.expressions.scope import Expression, Scope
from dynamo_single.orm.relations import joining
from dynamo_single.orm.results.columns import Shape
from dynamo_single.orm.results.state import Window


class Interpretation(Struct, frozen=True):
    """Django's query with the conditions to compute in memory; ``shape`` converts results to rows."""

    query: Any
    where: Any = None
    having: Any = None
    qualify: Any = None
    shape: Shape | None = None

    @property
    def is_grouped(self) -> bool:
        """Whether a result represents several objects."""
        return isinstance(self.query.group_by, tuple)

    @property
    def chooses(self) -> bool:
        """Whether the results differ from the objects that keys and filters find."""
        alone = self.where is None and self.having is None and self.qualify is None
        return self.is_grouped or not alone or bool(self.query.distinct and self.shape)

    @property
    def windows(self) -> list[Expression]:
        """The window functions of the annotations, conditions and orders."""
        return windows.windows_in([*self.query.annotations.values(), self.qualify, *self.query.order_by])

    @property
    def expressions(self) -> list[Expression]:
        """The expressions and conditions to compute for each row or group."""
        groups = self.query.group_by if self.is_grouped else ()
        return [*self.query.annotations.values(), self.where, self.having, self.qualify, *groups]

    @property
    def has_subqueries(self) -> bool:
        """Whether an expression needs other objects."""
        return bool(nested.subqueries_in([*self.expressions, *self.query.order_by]))

    def __str__(self) -> str:
        """Return the steps in words, without values, for ``explain()``."""
        return ", ".join(self._steps())

    def _steps(self) -> Iterator[str]:
        query = self.query
        if self.where is not None:
            yield "filtered"
        if self.is_grouped:
            yield "grouped"
        if query.annotation_select:
            named = (f"{alias}={type(each).__name__}" for alias, each in query.annotation_select.items())
            yield f"computed with {', '.join(named)}"
        if self.having is not None or self.qualify is not None:
            yield "filtered by computed values"
        if query.distinct:
            yield "each row once"


def chosen(
    found: Interpretation, rows: list[Scope], orders: Sequence[Expression], window: Window, *, is_reversed: bool
) -> list[Scope]:
    """Return the scopes of the results, in order and within the slice, from the scopes of the rows."""
    if found.where is not None:
        rows = [each for each in rows if evaluate(found.where, each)]
    rows = _grouped(found, rows, orders)
    if found.having is not None:
        rows = [each for each in rows if evaluate(found.having, each)]
    for each in windows.windows_in([*found.query.annotations.values(), found.qualify, *orders]):
        windows.compute(each, rows)
    if found.qualify is not None:
        rows = [each for each in rows if evaluate(found.qualify, each)]
    for scope in rows:
        annotate(found.query, scope)
    rows = ordering.sort_scopes(rows, orders, is_reversed=is_reversed and bool(orders))
    if is_reversed and not orders:
        rows.reverse()
    if found.query.distinct and found.shape is not None:
        rows = _distinct(found, rows, orders)
    return rows[window.start : window.stop]


def _grouped(found: Interpretation, rows: list[Scope], orders: Sequence[Expression]) -> list[Scope]:
    """Return the groups, in the order of their first rows. Without grouping, return the rows."""
    query = found.query
    if query.group_by is True and joining.joins_of(query):
        by_object: dict[int, list[Scope]] = {}
        for each in rows:
            by_object.setdefault(id(each.row[each.statement.base]), []).append(each)
        return list(map(_group, by_object.values()))
    if not found.is_grouped:
        return rows
    keys = [query.resolve_ref(each) if isinstance(each, str) else each for each in query.group_by]
    # As in SQL, what is selected, compared and ordered beside the aggregates also divides the groups.
    named = {getattr(each, "refs", each) for each in query.group_by}
    annotations = [each for alias, each in query.annotation_select.items() if named.isdisjoint((alias, each))]
    beside = [*query.select, *annotations, found.having, *orders]
    keys += [column for each in beside if each is not None for column in each.get_group_by_cols()]
    groups: dict[object, list[Scope]] = {}
    for each in rows:
        groups.setdefault(hashable([evaluate(key, each) for key in keys]), []).append(each)
    return list(map(_group, groups.values()))


def _group(members: Sequence[Scope]) -> Scope:
    first = members[0]
    return Scope(first.statement, first.row, members, first.outer)


def annotate(query: Any, scope: Scope) -> None:
    """Store the values of the selected annotations in a scope."""
    for alias, expression in query.annotation_select.items():
        field = getattr(expression, "_output_field_or_none", None) or getattr(expression, "output_field", None)
        scope.known[alias] = in_type(field, evaluate(expression, scope))


def output_names(query: Any) -> tuple[str, ...]:
    """Return the names of a row's values."""
    if query.selected is not None:
        return tuple(query.selected)
    return (*query.values_select, *query.annotation_select)


def values_of(found: Interpretation, scope: Scope) -> tuple[Any, ...]:
    """Return the values of a row in the order of their names."""
    columns = dict(zip(found.query.values_select, found.query.select, strict=False))
    names = output_names(found.query)
    return tuple(evaluate(columns[name], scope) if name in columns else scope.known[name] for name in names)


def _distinct(found: Interpretation, rows: list[Scope], orders: Sequence[Expression]) -> list[Scope]:
    """Return one scope for each row. As in SQL, the values of the order also divide the rows."""
    unique: dict[object, Scope] = {}
    for each in rows:
        by = [evaluate(order.expression, each) for order in orders]
        unique.setdefault(hashable([*values_of(found, each), *by]), each)
    return list(unique.values())


def single_value(found: Interpretation, scope: Scope) -> Any:
    """Return the only value of a row: its first named column, or the first selected expression."""
    if output_names(found.query):
        return values_of(found, scope)[0]
    return evaluate(found.query.select[0], scope)
