"""Plan and execute a ``Computation``: its results are rows, or annotated objects.

They are computed of as many matches as ``allow_in_memory()`` or a slice allows. This module does not depend on
querysets.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from django.db.models import Model
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.comparing import hashable
from dynamo_single.orm.conditions.wording import SORT_IN_PYTHON
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.items.readers import value_reader
from dynamo_single.orm.plan.plan import InMemory, Plan, Sort, project, widen
from dynamo_single.orm.results import measures, objects, sorting
from dynamo_single.orm.results.aggregates import Accumulators, measured_attributes
from dynamo_single.orm.results.columns import Columns, as_tuple, sort_value_reader
from dynamo_single.orm.results.computation import Computation, Dates
from dynamo_single.orm.results.objects import Results
from dynamo_single.orm.results.sorting import OrderName
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.schema.types import all_plain
from dynamo_single.orm.where import tree
from dynamo_single.table.flow import Pages, call_sync

#: An item of an annotated object, with its measures by alias.
_Entry = tuple[Item, dict[str, Any]]


def plan(state: QueryState) -> Plan:
    """Return the plan and its computation; raises ``NotSupported`` if nothing bounds the number of matches."""
    computation = state.computation
    if computation is None:
        return objects.plan(state)
    if computation.makes_rows:
        return _plan_rows(state, computation)
    return _plan_annotated(state, computation)


def chooses(state: QueryState, computation: Computation) -> bool:
    """Return whether the results are groups, or a slice of objects in the order of a measure."""
    in_order = _read_sorting(state, state.ordering if state.window.is_sliced else (), computation)
    return computation.makes_rows or any(alias is not None for alias, _ in in_order)


def _plan_rows(state: QueryState, computation: Computation) -> Plan:
    """Return the plan of rows that represent several objects each."""
    found = objects.plan_of_matches(state.source())
    limit = objects.limit_of(state, found, f"rows that are {computation}", sliced=False)
    work = InMemory(limit, _row_sorting(state, computation), state.reversed, work=str(computation))
    wanted = {*measured_attributes(computation.measures), *_attributes(computation)}
    return project(replace(found, in_memory=work), wanted)


def _attributes(computation: Computation) -> tuple[str, ...]:
    if computation.dates is not None:
        return (computation.dates.attribute,)
    return computation.groups.attributes if computation.groups else ()


def _row_sorting(state: QueryState, computation: Computation) -> tuple[Sort, ...]:
    """Return the order of groups, by their columns and measures; the model's default order is one of objects."""
    if computation.dates is not None:
        if state.order_by:
            raise NotSupported(
                "order_by() after dates() and datetimes() is not supported. Pass order='ASC' or order='DESC' to these."
            )
        return (Sort(computation.dates.attribute, computation.dates.descending),)
    columns = set(computation.groups.attributes) if computation.groups else set()
    found: list[Sort] = []
    for alias, sorts in _read_sorting(state, state.order_by, computation):
        for sort in sorts:
            if alias is None and sort.attribute not in columns:
                known = ", ".join((*(computation.groups.names if computation.groups else ()), *computation.aliases))
                raise NotSupported(
                    f"{state.label}: order_by({sort.attribute!r}) would divide the rows that are {computation}: "
                    f"order by {known}, or {SORT_IN_PYTHON}."
                )
            if alias is None:
                sorting.check_orderable(state.model, sort.attribute, "order_by()")
        found += sorts
    return tuple(found)


def _read_sorting(
    state: QueryState, names: Iterable[OrderName], computation: Computation
) -> Iterator[tuple[str | None, tuple[Sort, ...]]]:
    """Yield the sorting of each name of an order, with the alias if it is one."""
    for name in names:
        parts = tree.parts_of_order(name)
        if parts is None or parts[0] not in computation.aliases:
            yield None, sorting.read_sorting(state.model, (name,))
        else:
            yield parts[0], (Sort(*parts),)


def _plan_annotated(state: QueryState, computation: Computation) -> Plan:
    """Return the plan of annotated objects, in the order of a key, or sorted in memory by attributes and measures."""
    order = list(_read_sorting(state, state.ordering, computation))
    if any(alias is not None for alias, _ in order):
        found = _plan_sorted(state, computation, order)
    else:
        found = objects.plan(state.source())
    if any(measure.children for measure in computation.measures):
        objects.limit_of(state, found, f"objects {computation}, by one Query for each object", sliced=True)
    columns = state.asked.columns
    if columns is not None:
        return project(found, {*columns.attributes, *measured_attributes(computation.measures)})
    return widen(objects.project_plan(state, found), measured_attributes(computation.measures))


def _plan_sorted(
    state: QueryState, computation: Computation, order: Iterable[tuple[str | None, tuple[Sort, ...]]]
) -> Plan:
    found: list[Sort] = []
    for alias, sorts in order:
        for sort in sorts if alias is None else ():
            sorting.check_orderable(state.model, sort.attribute, "order_by()")
        found += sorts
    plan = objects.plan_of_matches(state.source())
    limit = objects.limit_of(state, plan, f"an order of objects {computation}", sliced=False)
    return replace(plan, in_memory=InMemory(limit, tuple(found), state.reversed, work=str(computation)))


async def rows(state: QueryState) -> Results:
    """Yield the rows, in order, in the slice."""
    computation = state.computation
    if computation is None or state.is_empty:
        return
    wanted = slice(state.window.start, state.window.stop)
    if computation.dates is not None:
        yield (await _periods(state, computation.dates))[wanted]
        return
    shape, output = computation.shape, computation.output
    if shape is None:
        return
    columns = computation.groups or state.asked.columns
    attributes = dict(zip(columns.names, columns.attributes, strict=True)) if columns is not None else {}
    named = [name if name in computation.aliases else attributes[name] for name in output]

    def shaped(row: Mapping[str, object]) -> object:
        return shape(output, tuple(row[name] for name in named))

    if computation.groups is not None:
        yield map(shaped, (await _groups(state, computation, computation.groups))[wanted])
        return
    async with aclosing(_rows_of_objects(state, computation)) as pages:
        async for page in pages:
            yield map(shaped, page)


async def _groups(state: QueryState, computation: Computation, columns: Columns) -> list[dict[str, Any]]:
    """Return each group by attribute and alias, in the order of their first objects unless another is requested."""
    model = state.model
    plan = _plan_rows(state, computation)
    read = replace(columns, shape=as_tuple).reader(model)
    groups: dict[Any, tuple[tuple[Any, ...], Accumulators]] = {}
    async with aclosing(_matches(state, plan)) as pages:
        async for page in pages:
            for item in page:
                values = read(item)
                key = hashable(values)
                if key not in groups:
                    groups[key] = values, Accumulators(model, computation.measures)
                groups[key][1].add(item)
    found = [
        {**dict(zip(columns.attributes, values, strict=True)), **_named(computation, tallies)}
        for values, tallies in groups.values()
    ]
    if plan.in_memory is not None:
        sorting.sort_items(found, plan.in_memory, lambda row, name: row[name])
    return found


def _named(computation: Computation, tallies: Accumulators) -> dict[str, Any]:
    return dict(zip(computation.aliases, tallies.results(), strict=True))


async def _matches(state: QueryState, plan: Plan) -> Pages[Item]:
    limit = plan.in_memory.limit if plan.in_memory else None
    async with aclosing(objects.matches(state, plan, limit)) as pages:
        async for page in pages:
            for item in page:
                decode.check_type(state.model, item)
            yield page


async def _periods(state: QueryState, dates: Dates) -> list[Any]:
    plan = _plan_rows(state, Computation(dates=dates))
    read = value_reader(state.model, dates.attribute)
    found: set[Any] = set()
    async with aclosing(_matches(state, plan)) as pages:
        async for page in pages:
            values = [value for item in page if (value := read(item)) is not None]
            if dates.zone is None:
                found |= {measures.period_of_date(value, dates.kind) for value in values}
            else:
                found |= {measures.period_of_datetime(value, dates.kind, dates.zone) for value in values}
    backwards = plan.in_memory is not None and plan.in_memory.is_reversed
    return sorted(found, reverse=dates.descending != backwards)


async def _entries(state: QueryState, computation: Computation) -> AsyncGenerator[Iterable[_Entry], None]:
    """Yield each item of annotated objects with its measures, in order and in the slice."""
    plan = _plan_annotated(state, computation)
    if plan.in_memory is not None and plan.in_memory.work:
        # Read all items before measuring the first: one match too many must not cost a count for each.
        matches = [item async for page in _matches(state, plan) for item in page]
        found = [await _counted(state, computation, item) for item in matches]
        sorting.sort_items(found, plan.in_memory, _value(state, plan.in_memory, computation))
        yield found[state.window.start : state.window.stop]
        return
    pages = objects.items(state, plan)
    if any(measure.children for measure in computation.measures):
        # Read all items before measuring the first, as above.
        for item in [
            item async for page in objects.limited_matches(state, pages, state.asked.in_memory) for item in page
        ]:
            yield (await _counted(state, computation, item),)
        return
    async with aclosing(pages):
        async for page in pages:
            yield map(partial(_measured, state, computation), page)


def _value(state: QueryState, how: InMemory, computation: Computation) -> Callable[[Any, str], Any]:
    names = (sort.attribute for sort in how.ordering)
    readers = {name: sort_value_reader(state.model, name) for name in names if name not in computation.aliases}

    def value(entry: _Entry, name: str) -> object:
        item, measured = entry
        return measured[name] if name in measured else readers[name](item)

    return value


def _measured(state: QueryState, computation: Computation, item: Item) -> _Entry:
    """Return an item with its measures, except counts of children."""
    decode.check_type(state.model, item)
    own = [measure for measure in computation.measures if not measure.children]
    tallies = Accumulators(state.model, own)
    tallies.add(item)
    return item, {measure.alias: result for measure, result in zip(own, tallies.results(), strict=True)}


async def _counted(state: QueryState, computation: Computation, item: Item) -> _Entry:
    """Return an item with its measures: a Query with Select=COUNT for each count of children."""
    _, found = _measured(state, computation, item)
    for measure in computation.measures:
        if measure.children:
            manager = getattr(objects.instance(state, item), measure.children)
            native = all_plain(type(manager), ("get_queryset", "count"))
            found[measure.alias] = await (manager.get_queryset()._count() if native else call_sync(manager.count))
    return item, found


async def _rows_of_objects(
    state: QueryState, computation: Computation
) -> AsyncGenerator[Iterable[Mapping[str, Any]], None]:
    columns = state.asked.columns or Columns((), (), as_tuple)
    read = replace(columns, shape=as_tuple).reader(state.model)

    def row(entry: _Entry) -> Mapping[str, object]:
        return {**dict(zip(columns.attributes, read(entry[0]), strict=True)), **entry[1]}

    async with aclosing(_entries(state, computation)) as pages:
        async for page in pages:
            yield map(row, page)


async def annotated_objects(state: QueryState, computation: Computation) -> Results:
    """Yield the objects with their measures as attributes."""
    if state.is_empty:
        return
    async with aclosing(_entries(state, computation)) as pages:
        async for page in pages:
            yield map(partial(_annotated, state), page)


def _annotated(state: QueryState, entry: _Entry) -> Model:
    item, measured = entry
    obj = objects.instance(state, item)
    for alias, value in measured.items():
        setattr(obj, alias, value)
    return obj
