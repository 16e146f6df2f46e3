"""Read subqueries: the inner objects of all outer rows together, by keys; each outer row then chooses among them.

The conditions of a subquery without ``OuterRef`` are read as in any query. An equality with ``OuterRef`` becomes an
``in`` with the values of all outer rows. All other parts are computed in memory for each outer row. The objects that
are held count towards the limit of the outer query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.db.models import Subquery
from django.db.models.expressions import Col, Ref, ResolvedOuterRef
from django.db.models.sql import Query
from django.db.models.sql.where import AND, WhereNode
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import NoAccessPattern
from dynamo_single.orm.conditions.comparing import hashable
from dynamo_single.orm.conditions.terms import join
from dynamo_single.orm.expressions import computing, nested, ordering, separating
from dynamo_single.orm.expressions.computing import Interpretation
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.nested import columns_in, is_own, query_of, subqueries_in
from dynamo_single.orm.expressions.scope import Expression, Scope, Statement
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.reading.limits import Steps
from dynamo_single.orm.relations import joining, steps
from dynamo_single.orm.relations.joining import Row
from dynamo_single.orm.results import columns
from dynamo_single.orm.results.state import DEFAULT_LIMIT, Asked, QueryState, Window
from dynamo_single.orm.where import lookups

#: A query and the rows that its subqueries refer to; the nearest query comes first.
Levels = Sequence[tuple[Any, Sequence[Scope]]]


class Inner(Struct, frozen=True, eq=False):
    """The objects that a subquery of any outer row may have.

    ``by`` contains them by the value of the column that is equal to ``outer`` in the outer row. ``constant`` contains
    the results of a subquery that refers to no outer row: they are computed once, and not for each row.
    """

    found: Interpretation
    statement: Statement
    rows: Sequence[Row]
    orders: Sequence[Expression]
    is_reversed: bool
    window: Window
    outer: Expression | None = None
    by: dict[object, list[Row]] = {}
    constant: list[Scope] | None = None

    def results(self, scope: Scope) -> list[Scope]:
        """Return the results for an outer row, in order and in the slice."""
        if self.constant is not None:
            return self.constant
        rows = self.rows if self.outer is None else self.by.get(hashable(evaluate(self.outer, scope)), ())
        return self._chosen(rows, scope)

    def once(self) -> Inner:
        """Return the same with the results for all outer rows."""
        return replace(self, constant=self._chosen(self.rows, None))

    def _chosen(self, rows: Iterable[Row], outer: Scope | None) -> list[Scope]:
        scopes = [Scope(self.statement, row, outer=outer) for row in rows]
        return computing.chosen(self.found, scopes, self.orders, self.window, is_reversed=self.is_reversed)

    def values(self, scope: Scope) -> list[Any]:
        """Return the single value of each result."""
        return [computing.single_value(self.found, each) for each in self.results(scope)]


def reads_of(state: QueryState) -> Iterator[joining.StepRead]:
    """Yield the reads of the subqueries of Django's query. Sends no requests."""
    found: Interpretation = state.interpretation
    orders = [ordering.as_order(found.query, name) for name in state.order_by]
    yield from _reads(state, [*found.expressions, *orders])


def _reads(state: QueryState, expressions: Iterable[Any]) -> Iterator[joining.StepRead]:
    source = partial(steps.source, state.asked, Steps(DEFAULT_LIMIT))
    for subquery in subqueries_in(expressions):
        query = query_of(subquery).chain()
        asked: Asked = getattr(query, "asked", (Asked(),))[0]
        where, having, qualify = query.where.split_having_qualify(must_group_by=query.group_by is not None)
        separated = _separated(query, query.get_initial_alias(), where)
        queryset = _with_options(source(query.model), asked)
        words = f"{type(subquery).__name__} of {query.model._meta.label}"
        if query.is_empty():
            queryset = queryset.none()
        if separated.column is not None:
            queryset = joining.with_example(queryset, separated.column.target)
            words += f" by {separated.column.target.name} in the values of all matches"
        yield joining.StepRead(words, queryset, join(separated.pushed))
        yield from _reads(state, [*separated.rest, having, qualify, *query.annotations.values()])


async def read(state: QueryState, levels: Levels, expressions: Iterable[Any], held: Steps) -> None:
    """Read the subqueries in expressions of the nearest level, and record them in the statement of its rows.

    Sends the requests of one queryset for each subquery. Raises ``TooManyMatches`` if ``held`` allows no more.
    """
    _, rows = levels[0]
    if not rows:
        return
    for subquery in subqueries_in(expressions):
        query = query_of(subquery)
        known = rows[0].statement.subqueries
        if id(query) not in known:
            known[id(query)] = await _read(state, subquery, levels, held)


async def _read(state: QueryState, subquery: Any, levels: Levels, held: Steps) -> Inner:
    nested.check(subquery)
    given = query_of(subquery).chain()
    asked: Asked = getattr(given, "asked", (Asked(),))[0]
    source = partial(steps.source, state.asked, held)
    if asked.inside:
        given = await _narrowed(source(given.model), asked, given)
    statement = Statement(given.get_initial_alias())
    # An order by a related object joins it.
    orders = [ordering.as_order(given, name) for name in _ordering(given)]
    is_empty = given.is_empty()
    parts = given.where.split_having_qualify(must_group_by=given.group_by is not None)
    where, having, qualify = (None, None, None) if is_empty else parts
    separated = _separated(given, statement.base, where)
    rest = WhereNode(separated.rest, AND) if separated.rest else None
    found = Interpretation(given, rest, having, qualify, columns.as_value)
    items = [] if is_empty else await _items(given, source(given.model), asked, separated, levels, held)
    rows = await joining.joined(given, items, source, held)
    scopes = [Scope(statement, row) for row in rows]
    inside = [found.where, found.having, found.qualify, *given.annotations.values(), *given.select, *orders]
    await read(state, [(given, scopes), *levels], inside, held)
    window = Window.between(given.low_mark, given.high_mark)
    inner = Inner(found, statement, rows, orders, not given.standard_ordering, window)
    if separated.column is None:
        return inner if _names_others(given, inside) else inner.once()
    by: dict[object, list[Row]] = {}
    for scope in scopes:
        by.setdefault(hashable(evaluate(separated.column, scope)), []).append(scope.row)
    by.pop(hashable(None), None)
    return replace(inner, outer=separated.outer, by=by)


def _names_others(query: Any, expressions: Iterable[Any]) -> bool:
    """Return whether expressions may have a value of another query: of an outer row, or of a subquery."""
    return any(
        isinstance(each, Subquery | Query | Ref | ResolvedOuterRef)
        or (isinstance(each, Col) and not is_own(query, each))
        for each in nested.within(expressions)
    )


async def _narrowed(queryset: Any, asked: Asked, query: Any) -> Any:
    """Return a query with the values of the querysets that its conditions read first."""
    own = replace(queryset._asked, inside=asked.inside, interpreted=True, visibility=asked.visibility)
    queryset.query = query
    return (await queryset._asking(own)._narrowed()).query


def _ordering(query: Any) -> Sequence[Any]:
    grouped = isinstance(query.group_by, tuple)
    default = query.model._meta.ordering if query.default_ordering and not grouped else ()
    return tuple(query.order_by) or tuple(default)


class _Separated(Struct):
    """The conditions of a subquery: those to read by, one equality with the outer row, and the rest."""

    pushed: list[Any]
    rest: list[Any]
    column: Any = None
    outer: Any = None


def _separated(query: Any, base: str, where: Any) -> _Separated:
    found = _Separated([], [])
    for node in _conjuncts(where):
        names = {each.alias for each in columns_in(node)}
        if names <= {base} and not subqueries_in([node]):
            read = separating.read(query.model, node.relabeled_clone({base: query.model._meta.db_table}))
            (found.rest if read is None else found.pushed).append(node if read is None else read)
        elif found.column is None and _is_equality(query, base, node):
            found.column, found.outer = node.lhs, node.rhs
        else:
            found.rest.append(node)
    return found


def _conjuncts(node: Any) -> Iterator[Any]:
    if isinstance(node, WhereNode) and node.connector == AND and not node.negated:
        for child in node.children:
            yield from _conjuncts(child)
    elif node is not None:
        yield node


def _is_equality(query: Any, base: str, node: Any) -> bool:
    """Return whether a condition compares an own attribute with a value of the outer row alone."""
    if getattr(node, "lookup_name", "") != "exact" or not isinstance(node.lhs, Col) or node.lhs.alias != base:
        return False
    outer = columns_in(node.rhs) if hasattr(node.rhs, "resolve_expression") else []
    return bool(outer) and not any(is_own(query, each) for each in outer) and not subqueries_in([node.rhs])


async def _items(
    query: Any, queryset: Any, asked: Asked, separated: _Separated, levels: Levels, held: Steps
) -> list[Item]:
    """Return the items that the subqueries of all outer rows may need."""
    queryset = _with_options(queryset, asked)
    values = _outer_values(separated.outer, levels)
    if values is not None and not values:
        return []
    narrow = queryset
    if values is not None:
        field = separated.column.target
        name = "pk" if field.primary_key else field.attname
        narrow = queryset.filter(**{f"{name}__in": values})
    try:
        found = await _matches(narrow, separated.pushed, held.left + 1)
    except NoAccessPattern:
        if values is None:
            raise
        # No key has the attribute: the objects that the other conditions find are read.
        narrow = queryset
        found = await _matches(narrow, separated.pushed, held.left + 1)
    held.take(narrow, len(found))
    return found


def _with_options(queryset: Any, asked: Asked) -> Any:
    """Return the queryset of a subquery's objects with the options of its own, beside those of the outer query."""
    mine = queryset._asked
    return queryset._asking(
        replace(
            mine,
            visibility=asked.visibility,
            using_index=asked.using_index,
            without=asked.without,
            consistent=asked.consistent or mine.consistent,
            allow_scan=asked.allow_scan or mine.allow_scan,
            allow_reads=asked.allow_reads or mine.allow_reads,
        )
    )


def _outer_values(outer: Any, levels: Levels) -> list[Any] | None:
    """Return the values of an outer expression in all rows; ``None`` if it is about rows of several queries."""
    if outer is None:
        return None
    names = {each.alias for each in columns_in(outer)}
    for query, rows in levels:
        if names <= query.alias_map.keys():
            values = {hashable(value): value for each in rows if (value := evaluate(outer, each)) is not None}
            return list(values.values())
    return None


async def _matches(queryset: Any, pushed: Sequence[Any], most: int) -> list[Item]:
    """Return the items that match, in any order and up to ``most``."""
    state = (await queryset._state()).unordered()
    if not state.is_empty:
        where = lookups.with_canonical_equality(state.model, join([state.where, *pushed]))
        state = replace(state, where=where)
    return await joining.matching_items(state, most)
