"""Read the matches of Django's query, and compute in memory what DynamoDB does not: SQL's steps in SQL's order.

The planner reads by the conditions that keys and filters support, as in any query. The rest of ``WHERE``, the groups,
``HAVING``, window functions, the order, ``DISTINCT`` and the slice are computed from these matches. Annotations of
single objects, in the order of a key, are computed item by item as pages arrive. Everything else holds all matches in
memory, up to the limit of ``allow_in_memory()``; more matches raise ``TooManyMatches``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from django.db.models import F
from django.db.models.expressions import OrderBy
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.expressions import computing, ordering, subqueries, united
from dynamo_single.orm.expressions.computing import Interpretation
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.functions.casting import in_type
from dynamo_single.orm.expressions.scope import Expression, Scope, Statement
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.plan.plan import InMemory, Plan
from dynamo_single.orm.reading.limits import Steps
from dynamo_single.orm.relations import joining, steps
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.objects import Results
from dynamo_single.orm.results.state import ALL_MATCHES, DEFAULT_LIMIT, QueryState
from dynamo_single.table.flow import Pages


def _is_plain(name: Any, query: Any) -> bool:
    """Return whether an order is by an attribute of the objects, or of those that they refer to."""
    plain = name.expression if isinstance(name, OrderBy) else name
    if isinstance(plain, F):
        plain = plain.name  # type: ignore[attr-defined]  # the stubs lack it
    if not isinstance(plain, str) or plain == "?" or plain.lstrip("-+") in query.annotations:
        return False
    return not ordering.are_joined(query.model, (name if isinstance(name, OrderBy) else plain,))


def is_plain_order(names: Iterable[Any], query: Any) -> bool:
    """Return whether an order is by attributes alone, which a key may have."""
    return all(_is_plain(name, query) for name in names)


def _streams(state: QueryState, found: Interpretation) -> bool:
    """Return whether each object is computed by itself, in the order in which it is read."""
    return _is_plain_read(state, found) and not found.has_subqueries


def _is_plain_read(state: QueryState, found: Interpretation) -> bool:
    """Return whether the results are the objects that keys and filters find, in the order of attributes."""
    return not (found.chooses or found.windows or joining.joins_of(found.query)) and is_plain_order(
        state.ordering, found.query
    )


def plan(state: QueryState) -> Plan:
    """Return the plan of the matches; raises ``NotSupported`` if nothing bounds how many are held."""
    found: Interpretation = state.interpretation
    if _is_plain_read(state, found):
        return objects.plan(_source(state))
    plan = objects.plan_of_matches(_source(state).unordered())
    what = f"results {found}" if str(found) else "this order"
    limit = objects.limit_of(state, plan, what, sliced=False)
    return replace(plan, in_memory=InMemory(limit, work=str(found) or "ordered by an expression"))


def _source(state: QueryState) -> QueryState:
    return replace(state.source(), interpretation=None)


async def scopes(state: QueryState) -> list[Scope]:
    """Return the scopes of all results, in order and in the slice: objects or groups, with their annotations."""
    found: Interpretation = state.interpretation
    statement = Statement(found.query.get_initial_alias())
    if _is_read_in_order(state, found):
        state, budget = _with_budget(state)
        rows = [_row(state, statement, item) async for page in _in_order(state) for item in page]
        budget.held += len(rows)
        await _read_subqueries(state, rows, (), budget)
        for each in rows:
            computing.annotate(found.query, each)
        return rows
    # An order by a related object joins it.
    orders = [ordering.as_order(found.query, name) for name in _ordering(state, found)]
    state, budget = _with_budget(state)
    rows = [_row(state, statement, item) async for page in objects.matches(state, plan(state)) for item in page]
    budget.held += len(rows)
    if joining.joins_of(found.query):
        rows = await _joined(state, found, rows, budget)
    await _read_subqueries(state, rows, orders, budget)
    return computing.chosen(found, rows, orders, state.window, is_reversed=state.reversed)


async def _read_subqueries(
    state: QueryState, rows: Sequence[Scope], orders: Sequence[Expression], budget: Steps
) -> None:
    """Read the subqueries of all rows together."""
    found: Interpretation = state.interpretation
    await subqueries.read(state, [(found.query, rows)], [*found.expressions, *orders], budget)


def _with_budget(state: QueryState) -> tuple[QueryState, Steps]:
    """Return the state with a common limit for its matches and all further steps, and the limit.

    The steps before these, which found keys, count as well.
    """
    given = state.asked.steps
    budget = Steps((state.asked.in_memory or DEFAULT_LIMIT) + (0 if given is None else given.held), given)
    return replace(state, asked=replace(state.asked, steps=budget)), budget


def _is_read_in_order(state: QueryState, found: Interpretation) -> bool:
    """Return whether the objects are those of the slice, so that only their subqueries are to be computed."""
    return _is_plain_read(state, found) and found.has_subqueries


async def _in_order(state: QueryState) -> Pages[Item]:
    """Yield the items of the slice, up to the limit; raises ``NotSupported`` if nothing bounds their number."""
    source = _source(state)
    plan = objects.plan(source)
    limit = objects.limit_of(state, plan, f"results {state.interpretation}", sliced=True)
    async with aclosing(objects.limited_matches(state, objects.items(source, plan), limit or DEFAULT_LIMIT)) as pages:
        async for page in pages:
            yield page


async def held(state: QueryState, what: str) -> list[Scope]:
    """Return the scopes of all results; raises ``NotSupported`` if nothing bounds how many there are."""
    found: Interpretation = state.interpretation
    if not _streams(state, found):
        return await scopes(state)
    rows = await _unordered(state, what, sliced=False)
    for each in rows:
        computing.annotate(found.query, each)
    return rows


async def _unordered(state: QueryState, what: str, *, sliced: bool) -> list[Scope]:
    """Return the scopes of all objects; raises ``NotSupported`` if nothing bounds how many there are."""
    source = _source(state).unordered()
    plan = objects.plan_of_matches(source)
    limit = objects.limit_of(state, plan, what, sliced=sliced)
    statement = Statement(state.interpretation.query.get_initial_alias())
    return [_row(state, statement, item) async for page in objects.matches(source, plan, limit) for item in page]


def _row(state: QueryState, statement: Statement, item: Item) -> Scope:
    decode.check_type(state.model, item)
    return Scope(statement, {statement.base: item})


async def _joined(state: QueryState, found: Interpretation, rows: Sequence[Scope], budget: Steps) -> list[Scope]:
    """Return a scope for each row with its related objects, as SQL joins them."""
    given, statement = state.asked.steps, rows[0].statement if rows else Statement(found.query.get_initial_alias())
    if given is not None and given.has_several:
        raise NotSupported(
            f"{state.label}: results {found} cannot follow a filter() over a relation to several objects. Filter "
            "in the aggregate: Count(..., filter=Q(...))."
        )
    items = [item for each in rows if (item := each.row[statement.base]) is not None]
    source = partial(steps.source, state.asked, budget)
    return [Scope(statement, row) for row in await joining.joined(found.query, items, source, budget)]


def _ordering(state: QueryState, found: Interpretation) -> Sequence[Any]:
    """Return the requested order; as in Django, groups do not have the model's default order."""
    return state.order_by if found.is_grouped else state.ordering


async def open_pages(state: QueryState) -> Results:
    """Yield the objects or rows, in order and in the slice."""
    if state.is_empty:
        return
    if isinstance(state.interpretation, united.United):
        yield await united.results(state)
        return
    async with aclosing(_pages(state, state.interpretation)) as pages:
        async for page in pages:
            yield _results(state, page)


def _results(state: QueryState, scopes: Iterable[Scope]) -> Iterable[object]:
    """Return the objects or rows of scopes."""
    found: Interpretation = state.interpretation
    if found.shape is None:
        return (_object(state, found, each) for each in scopes)
    names = computing.output_names(found.query)
    return (found.shape(names, computing.values_of(found, each)) for each in scopes)


def check_by_itself(state: QueryState, what: str) -> None:
    """Raise ``NotSupported`` if a result depends on other matches than its own object."""
    found: Interpretation | united.United = state.interpretation
    if isinstance(found, united.United) or not _is_plain_read(state, found):
        raise NotSupported(
            f"{state.label}: {what} does not support results {str(found) or 'in this order'}, which are computed in "
            "memory: the app reads every match before it knows the first result. Slice the results: queryset[:100]."
        )


async def results_of(state: QueryState, items: Iterable[Item]) -> list[object]:
    """Return the results of items that were read by themselves. Sends the requests of the subqueries."""
    found: Interpretation = state.interpretation
    statement = Statement(found.query.get_initial_alias())
    state, budget = _with_budget(state)
    rows = [_row(state, statement, item) for item in items]
    budget.held += len(rows)
    await _read_subqueries(state, rows, (), budget)
    for each in rows:
        computing.annotate(found.query, each)
    return list(_results(state, rows))


async def _pages(state: QueryState, found: Interpretation) -> AsyncGenerator[Iterable[Scope], None]:
    if not _streams(state, found):
        yield await scopes(state)
        return
    source, statement = _source(state), Statement(found.query.get_initial_alias())
    found_items = objects.items(source, plan(state))
    if state.asked.steps is not None:
        # The other querysets of a set operation share the limit of bytes.
        found_items = objects.limited_matches(state, found_items, None)
    async with aclosing(found_items) as pages:
        async for page in pages:
            yield (_computed(state, found, statement, item) for item in page)


def _computed(state: QueryState, found: Interpretation, statement: Statement, item: Item) -> Scope:
    scope = _row(state, statement, item)
    computing.annotate(found.query, scope)
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
    if isinstance(state.interpretation, united.United):
        return len(await united.results(state))
    if state.window == ALL_MATCHES:
        # As in Django, an order joins nothing here.
        state = state.unordered()
    found: Interpretation = state.interpretation
    if _is_plain_read(state, found):
        return await objects.count(_source(state))
    return len(await scopes(state))


async def aggregate(state: QueryState, expressions: dict[str, Expression]) -> dict[str, Any]:
    """Return the results of resolved aggregates over all results of a query."""
    found: Interpretation = state.interpretation
    if state.window == ALL_MATCHES:
        # As in Django, an order divides no rows here.
        state = state.unordered()
    if state.is_empty:
        rows: list[Scope] = []
    elif _streams(state, found) and state.window == ALL_MATCHES:
        rows = await _unordered(state, f"aggregate({', '.join(expressions)})", sliced=True)
    elif _streams(state, found):
        rows = [each async for page in _pages(state, found) for each in page]
    else:
        rows = await scopes(state)
    state, budget = _with_budget(state)
    budget.held += len(rows)
    await subqueries.read(state, [(found.query, rows)], expressions.values(), budget)
    whole = Scope(rows[0].statement if rows else Statement(found.query.get_initial_alias()), {}, rows)
    results: dict[str, Any] = {}
    for alias, expression in expressions.items():
        value = in_type(expression._output_field_or_none, evaluate(expression, whole))
        results[alias] = whole.known[alias] = value
    return results
