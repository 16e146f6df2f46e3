"""Evaluate ``union()``, ``intersection()`` and ``difference()`` by comparing rows, as SQL does.

The app reads the querysets sequentially, each by its own keys, and keeps all results in memory. The limit of
``allow_in_memory()`` on the first queryset applies to all of them together; exceeding it raises ``TooManyMatches``.
This module does not depend on the classes of querysets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Any

from django.db.models import F, Value
from django.db.models.expressions import OrderBy, Ref
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.comparing import hashable
from dynamo_single.orm.expressions import ordering
from dynamo_single.orm.expressions.scope import Expression, Scope, Statement
from dynamo_single.orm.reading.limits import Steps
from dynamo_single.orm.results.columns import Shape, as_dict, as_value
from dynamo_single.orm.results.state import DEFAULT_LIMIT, QueryState


class Part(Struct, frozen=True):
    """One queryset of a set operation. ``shape`` is the type of its rows, or ``None`` for objects."""

    queryset: Any
    shape: Shape | None

    def row(self, result: Any) -> tuple[Any, ...]:
        """Return the columns of one result."""
        if self.shape is as_value:
            return (result,)
        return tuple(result.values()) if self.shape is as_dict else tuple(result)


class United(Struct, frozen=True):
    """A set operation, which compares the results of several querysets.

    ``columns`` contains the names of the compared columns, and ``names`` the names of the result's columns. Both are
    empty for objects. ``annotations`` contains the names of annotations of objects.
    """

    operation: str
    keeps_duplicates: bool
    parts: tuple[Part, ...]
    columns: tuple[str, ...] = ()
    shape: Shape | None = None
    names: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()

    @property
    def chooses(self) -> bool:
        """Whether the results differ from the objects that the keys and filters find."""
        return True

    def __str__(self) -> str:
        """Return a description of the operation."""
        return f"of {self.operation}()"


async def results(state: QueryState) -> list[Any]:
    """Return the sorted and sliced results."""
    united: United = state.interpretation
    found = _combined(united, await _read(state, united))
    if state.ordering:
        found = _sorted(united, state, found)
    elif state.reversed:
        found.reverse()
    found = found[state.window.start : state.window.stop]
    if united.shape is None:
        return found
    places = [united.columns.index(name) for name in united.names]
    return [united.shape(united.names, tuple(row[place] for place in places)) for row in found]


async def _read(state: QueryState, united: United) -> list[list[Any]]:
    """Return the results of each queryset, or raise ``TooManyMatches`` if their total exceeds the limit."""
    asked = state.asked
    is_bounded = state.window.stop is not None or all(part.queryset.query.is_sliced for part in united.parts)
    if asked.in_memory is None and not is_bounded:
        raise NotSupported(
            f"{state.label}: {united.operation}() of these querysets holds all results in memory, because it compares "
            f"rows. Call .allow_in_memory(limit={DEFAULT_LIMIT}), or slice the result."
        )
    budget = Steps(asked.in_memory or DEFAULT_LIMIT)
    results = []
    for part in united.parts:
        source = part.queryset
        if not source.query.is_sliced:
            source = source.order_by()[: budget.left + 1]
        limits = replace(source._asked, in_memory=budget.left or 1, in_memory_bytes=asked.in_memory_bytes, steps=budget)
        found = await source._asking(limits)._read()
        budget.take(source, len(found))
        results.append(found if part.shape is None else list(map(part.row, found)))
    return results


def _combined(united: United, results: Sequence[list[Any]]) -> list[Any]:
    """Return the results of the operation, in the order of reading."""
    first, *others = results
    if united.keeps_duplicates:
        return [each for found in results for each in found]
    unique: dict[Hashable, Any] = {}
    for each in [each for found in results for each in found] if united.operation == "union" else first:
        unique.setdefault(_identity(united, each), each)
    if united.operation == "union":
        return list(unique.values())
    there = [{_identity(united, each) for each in found} for found in others]
    if united.operation == "intersection":
        return [each for key, each in unique.items() if all(key in found for found in there)]
    return [each for key, each in unique.items() if not any(key in found for found in there)]


def _identity(united: United, result: Any) -> Hashable:
    """Return the values that SQL would compare; the ``pk`` stands for all stored attributes."""
    if united.shape is not None:
        return hashable(result)
    return hashable([result.pk, *(getattr(result, name, None) for name in united.annotations)])


def _columns_of(united: United, model: Any) -> dict[str, str]:
    """Return the columns that ``order_by()`` accepts, by name."""
    names = {field.name: field.attname for field in model._meta.concrete_fields} | {"pk": model._meta.pk.attname}
    known = united.columns or (*names.values(), *united.annotations)
    return {name: column for name, column in names.items() if column in known} | {name: name for name in known}


def _as_order(columns: Mapping[str, str], name: Any) -> Expression:
    """Convert an argument of ``order_by()`` into an order by the columns of the results."""
    if isinstance(name, str):
        return OrderBy(_column(columns, name.lstrip("-+")), descending=name.startswith("-"))
    expression = _by_columns(columns, name)
    return expression if isinstance(expression, OrderBy) else OrderBy(expression)


def _by_columns(columns: Mapping[str, str], expression: Any) -> Any:
    if isinstance(expression, F):
        return _column(columns, expression.name)  # type: ignore[attr-defined]  # the stubs lack it
    found = copy(expression)
    sources = expression.get_source_expressions()
    found.set_source_expressions([None if each is None else _by_columns(columns, each) for each in sources])
    return found


def _column(columns: Mapping[str, str], name: str) -> Ref:
    if name not in columns:
        raise UnknownField(f"Cannot order by {name!r} here. The columns of all querysets are {', '.join(columns)}.")
    return Ref(columns[name], Value(None))


def _sorted(united: United, state: QueryState, found: Sequence[Any]) -> list[Any]:
    columns = _columns_of(united, state.model)
    orders = [_as_order(columns, name) for name in state.ordering]
    statement, scopes, results = Statement(""), [], {}
    for each in found:
        scope = Scope(statement, {})
        if united.shape is None:
            scope.known = {name: getattr(each, name, None) for name in columns.values()}
        else:
            scope.known = dict(zip(united.columns, each, strict=True))
        scopes.append(scope)
        results[id(scope)] = each
    return [results[id(scope)] for scope in ordering.sort_scopes(scopes, orders, is_reversed=state.reversed)]
