"""The rows of ``values("customer__name")``: values of referenced objects, which are read by their keys.

Each page of rows is followed by a BatchGetItem for each hundred objects of each reference, as for ``select_related()``.
After ``allow_in_memory()`` the objects are read once for all pages, up to its limits. Distinct rows are held, up to the
same number.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.comparing import hashable
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.results import objects, referenced
from dynamo_single.orm.results.columns import Columns, as_tuple
from dynamo_single.orm.results.objects import Results
from dynamo_single.orm.results.state import ALL_MATCHES, QueryState
from dynamo_single.orm.schema.types import DynamoModel


async def rows(state: QueryState) -> Results:
    """Yield the rows, in order and in the slice."""
    columns = state.asked.columns
    if columns is None or state.is_empty:
        return
    shape, names = columns.shape, columns.names
    is_distinct = state.computation is not None
    async with aclosing(_distinct(state, columns) if is_distinct else _pages(state, columns)) as pages:
        async for page in pages:
            yield [shape(names, row) for row in page]


async def _pages(state: QueryState, columns: Columns) -> AsyncGenerator[Iterable[tuple[Any, ...]], None]:
    own = replace(columns, paths={}, shape=as_tuple)
    state, steps = objects.with_steps(state, state.asked.in_memory)
    known = referenced.Known(steps, state.asked.in_memory_bytes)
    async with aclosing(objects.open_pages(replace(state, asked=replace(state.asked, columns=own)))) as pages:
        async for page in pages:
            if steps is None:
                known = referenced.Known()  # without a limit, the objects of a page are released with it
            yield await _followed(state.model, columns, list(page), known)


async def rows_of(state: QueryState, items: Iterable[Item]) -> list[Any]:
    """Return the rows of items that were read by themselves, as those of a page are."""
    columns: Any = state.asked.columns
    read = replace(columns, paths={}, shape=as_tuple).reader(state.model)
    found = await _followed(state.model, columns, [read(item) for item in items], referenced.Known())
    return [columns.shape(columns.names, row) for row in found]


async def _followed(
    model: type[DynamoModel], columns: Columns, found: Sequence[tuple[Any, ...]], known: referenced.Known
) -> list[tuple[Any, ...]]:
    """Return rows with the values at the ends of paths instead of the references."""
    fields: Any = {field.attname: field for field in model._meta.concrete_fields}
    values = {
        number: await referenced.values_of(
            fields[columns.attributes[number]].related_model, path, (row[number] for row in found), known
        )
        for number, path in columns.paths.items()
    }
    return [
        tuple(values[number].get(value) if number in values else value for number, value in enumerate(row))
        for row in found
    ]


async def _distinct(state: QueryState, columns: Columns) -> AsyncGenerator[Iterable[tuple[Any, ...]], None]:
    """Yield each row once, in the order of their first objects; raises ``TooManyMatches`` above the limit."""
    _check_order(state, columns)
    whole = replace(state, asked=replace(state.asked, distinct=False), window=ALL_MATCHES)
    plan = objects.plan(replace(whole, asked=replace(whole.asked, columns=None)))
    limit = objects.limit_of(state, plan, f"distinct {', '.join(columns.names)}", sliced=False)
    found: dict[Any, tuple[Any, ...]] = {}
    seen = 0
    async with aclosing(_pages(replace(whole, window=_first(limit)), columns)) as pages:
        async for page in pages:
            for row in page:
                seen += 1
                found.setdefault(hashable(row), row)
    objects.check_number(state, seen, limit)
    yield list(found.values())[state.window.start : state.window.stop]


def _first(limit: int | None) -> Any:
    """Return the slice that shows whether there are more matches than the limit."""
    return ALL_MATCHES if limit is None else replace(ALL_MATCHES, stop=limit + 1)


def _check_order(state: QueryState, columns: Columns) -> None:
    for name in state.order_by:
        if not isinstance(name, str) or name.lstrip("-+") not in columns.names:
            raise NotSupported(
                f"{state.label}: order_by({name!s}) would divide the distinct rows of {', '.join(columns.names)}. "
                "Order by one of these, or remove the order: .order_by()."
            )
