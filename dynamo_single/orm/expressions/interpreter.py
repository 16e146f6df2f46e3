"""Read the matches of Django's query, and compute in memory what DynamoDB does not: SQL's steps in SQL's order.

The planner reads by the conditions that keys and filters support, as in any query. The rest of ``WHERE``, the groups,
``HAVING``, window functions, the order, ``DISTINCT`` and the slice are computed from these matches. Annotations of
single objects, in the order of a key, are computed item by item as pages arrive. Everything else holds all matches in
memory, up to the limit of ``allow_in_memory()``; more matches raise ``TooManyMatches``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from django.db.models import F
from django.db.models.expressions import OrderBy
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.expressions import ordering
from dynamo_single.orm.expressions.comparing import hashable
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.functions.casting import in_type
from dynamo_single.orm.expressions.functions.registered import windows
from dynamo_single.orm.expressions.scope import Expression, Scope, Statement
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.plan.plan import InMemory, Plan
from dynamo_single.orm.relations import joining, steps
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.columns import Shape
from dynamo_single.orm.results.objects import Results
from dynamo_single.orm.results.state import ALL_MATCHES, DEFAULT_LIMIT, QueryState
from dynamo_single.table.flow import Pages


class Interpretation(Struct, frozen=True):
    """Django's query with the parts of its conditions that are computed in memory; ``shape`` makes rows."""

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
        """Whether the results are other than the objects that the conditions of keys and filters find."""
        alone = self.where is None and self.having is None and self.qualify is None
        return self.is_grouped or not alone or bool(self.query.distinct and self.shape)

    @property
    def windows(self) -> list[Expression]:
        """The window functions of the annotations, conditions and orders."""
        return windows.windows_in([*self.query.annotations.values(), self.qualify, *self.query.order_by])

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


def _is_plain(name: Any, query: Any) -> bool:
    """Return whether an order is by the name of an attribute."""
    if isinstance(name, OrderBy):
        name = name.expression
    if isinstance(name, F):
        name = name.name  # type: ignore[attr-defined]  # the stubs lack it
    return isinstance(name, str) and name != "?" and name.lstrip("-+") not in query.annotations


def is_plain_order(names: Iterable[Any], query: Any) -> bool:
    """Return whether an order is by attributes alone, which a key may have."""
    return all(_is_plain(name, query) for name in names)


def _streams(state: QueryState, found: Interpretation) -> bool:
    """Return whether each object is computed by itself, in the order in which it is read."""
    return not (found.chooses or found.windows or joining.joins_of(found.query)) and is_plain_order(
        state.ordering, found.query
    )


def plan(state: QueryState) -> Plan:
    """Return the plan of the matches; raises ``NotSupported`` if nothing bounds how many are held."""
    found: Interpretation = state.interpretation
    if _streams(state, found):
        return objects.plan(_source(state))
    plan = objects.plan_of_matches(_source(state).unordered())
    what = f"results {found}" if str(found) else "this order"
    limit = objects.limit_of(state, plan, what, sliced=False)
    return replace(plan, in_memory=InMemory(limit, work=str(found) or "ordered by an expression"))


def _source(state: QueryState) -> QueryState:
    return replace(state.source(), interpretation=None)


async def _matches(state: QueryState, plan: Plan) -> Pages[Item]:
    limit = plan.in_memory.limit if plan.in_memory else None
    async with aclosing(objects.matches(state, plan, limit)) as pages:
        async for page in pages:
            yield page


async def scopes(state: QueryState) -> list[Scope]:
    """Return the scopes of all results, in order and in the slice: objects or groups, with their annotations."""
    found: Interpretation = state.interpretation
    statement = Statement(found.query.get_initial_alias())
    # An order by a related object joins it.
    orders = [ordering.as_order(found.query, name) for name in _ordering(state, found)]
    rows = [_row(state, statement, item) async for page in _matches(state, plan(state)) for item in page]
    if joining.joins_of(found.query):
        rows = await _joined(state, found, rows)
    if found.where is not None:
        rows = [each for each in rows if evaluate(found.where, each)]
    rows = _grouped(found, rows, orders)
    if found.having is not None:
        rows = [each for each in rows if evaluate(found.having, each)]
    for window in windows.windows_in([*found.query.annotations.values(), found.qualify, *orders]):
        windows.compute(window, rows)
    if found.qualify is not None:
        rows = [each for each in rows if evaluate(found.qualify, each)]
    for each in rows:
        annotate(found.query, each)
    rows = ordering.sort_scopes(rows, orders, is_reversed=state.reversed and bool(orders))
    if state.reversed and not orders:
        rows.reverse()
    if found.query.distinct and found.shape is not None:
        rows = _distinct(found, rows)
    return rows[state.window.start : state.window.stop]


async def held(state: QueryState, what: str) -> list[Scope]:
    """Return the scopes of all results; raises ``NotSupported`` if nothing bounds how many there are."""
    found: Interpretation = state.interpretation
    if not _streams(state, found):
        return await scopes(state)
    source = _source(state).unordered()
    matches = objects.plan_of_matches(source)
    limit = objects.limit_of(state, matches, what, sliced=False)
    statement = Statement(found.query.get_initial_alias())
    rows = [_row(state, statement, item) async for page in objects.matches(source, matches, limit) for item in page]
    for each in rows:
        annotate(found.query, each)
    return rows


def _row(state: QueryState, statement: Statement, item: Item) -> Scope:
    decode.check_type(state.model, item)
    return Scope(statement, {statement.base: item})


async def _joined(state: QueryState, found: Interpretation, rows: Sequence[Scope]) -> list[Scope]:
    """Return a scope for each row with its related objects, as SQL joins them."""
    given, statement = state.asked.steps, rows[0].statement if rows else Statement(found.query.get_initial_alias())
    if given is not None and given.has_several:
        raise NotSupported(
            f"{state.label}: results {found} cannot follow a filter() over a relation to several objects. Filter "
            "in the aggregate: Count(..., filter=Q(...))."
        )
    items = [item for each in rows if (item := each.row[statement.base]) is not None]
    held = steps.Steps((state.asked.in_memory or DEFAULT_LIMIT) + (0 if given is None else given.held))
    held.held = len(items) + (0 if given is None else given.held)
    source = partial(steps.source, state.asked, held)
    return [Scope(statement, row) for row in await joining.joined(found.query, items, source, held)]


def _ordering(state: QueryState, found: Interpretation) -> Sequence[Any]:
    """Return the requested order; as in Django, groups do not have the model's default order."""
    return state.order_by if found.is_grouped else state.ordering


def _grouped(found: Interpretation, rows: list[Scope], orders: Sequence[Expression]) -> list[Scope]:
    """Return the groups, in the order of their first rows; without groups each row is one."""
    query = found.query
    if query.group_by is True and joining.joins_of(query):
        by_object: dict[int, list[Scope]] = {}
        for each in rows:
            by_object.setdefault(id(each.row[each.statement.base]), []).append(each)
        return [Scope(members[0].statement, members[0].row, members) for members in by_object.values()]
    if not found.is_grouped:
        return rows
    keys = [query.resolve_ref(each) if isinstance(each, str) else each for each in query.group_by]
    # As in SQL, an order by an attribute divides the groups.
    keys += [column for order in orders for column in order.get_group_by_cols()]
    groups: dict[object, list[Scope]] = {}
    for each in rows:
        groups.setdefault(hashable([evaluate(key, each) for key in keys]), []).append(each)
    return [Scope(members[0].statement, members[0].row, members, members[0].outer) for members in groups.values()]


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


def _values(found: Interpretation, scope: Scope) -> tuple[Any, ...]:
    columns = dict(zip(found.query.values_select, found.query.select, strict=False))
    names = output_names(found.query)
    return tuple(evaluate(columns[name], scope) if name in columns else scope.known[name] for name in names)


def _distinct(found: Interpretation, rows: list[Scope]) -> list[Scope]:
    unique: dict[object, Scope] = {}
    for each in rows:
        unique.setdefault(hashable(_values(found, each)), each)
    return list(unique.values())


async def open_pages(state: QueryState) -> Results:
    """Yield the objects or rows, in order and in the slice."""
    if state.is_empty:
        return
    found: Interpretation = state.interpretation
    names = output_names(found.query) if found.shape is not None else ()
    async with aclosing(_pages(state, found)) as pages:
        async for page in pages:
            if found.shape is None:
                yield (_object(state, found, each) for each in page)
            else:
                yield (found.shape(names, _values(found, each)) for each in page)


async def _pages(state: QueryState, found: Interpretation) -> AsyncGenerator[Iterable[Scope], None]:
    if not _streams(state, found):
        yield await scopes(state)
        return
    source, statement = _source(state), Statement(found.query.get_initial_alias())
    async with aclosing(objects.items(source, plan(state))) as pages:
        async for page in pages:
            yield (_computed(state, found, statement, item) for item in page)


def _computed(state: QueryState, found: Interpretation, statement: Statement, item: Item) -> Scope:
    scope = _row(state, statement, item)
    annotate(found.query, scope)
    return scope


def _object(state: QueryState, found: Interpretation, scope: Scope) -> object:
    item = scope.row[scope.statement.base]
    assert item is not None  # noqa: S101 - the queried model's own
    obj = objects.instance(state, item)
    for alias in found.query.annotation_select:
        setattr(obj, alias, scope.known[alias])
    return obj


async def count(state: QueryState) -> int:
    """Return the number of results."""
    if state.is_empty:
        return 0
    found: Interpretation = state.interpretation
    if _streams(state, found):
        return await objects.count(_source(state))
    return len(await scopes(state))


async def aggregate(state: QueryState, expressions: dict[str, Expression]) -> dict[str, Any]:
    """Return the results of resolved aggregates over all results of a query."""
    found: Interpretation = state.interpretation
    if state.is_empty:
        rows: list[Scope] = []
    elif _streams(state, found) and state.window == ALL_MATCHES:
        source = _source(state).unordered()
        matches = objects.plan_of_matches(source)
        limit = objects.limit_of(state, matches, f"aggregate({', '.join(expressions)})", sliced=True)
        statement = Statement(found.query.get_initial_alias())
        read = objects.matches(source, matches, limit)
        rows = [_row(state, statement, item) async for page in read for item in page]
    elif _streams(state, found):
        rows = [each async for page in _pages(state, found) for each in page]
    else:
        rows = await scopes(state)
    whole = Scope(rows[0].statement if rows else Statement(found.query.get_initial_alias()), {}, rows)
    results: dict[str, Any] = {}
    for alias, expression in expressions.items():
        value = in_type(expression._output_field_or_none, evaluate(expression, whole))
        results[alias] = whole.known[alias] = value
    return results
