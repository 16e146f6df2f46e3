"""The results of a ``Computation``: the plan for it, and rows, or objects with what each was annotated with.

They are made of as many matches as ``allow_in_memory()`` or a slice lets through. This module must not know how they
are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from django.db.models import Model
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.hydration import Item
from dynamo_single.orm.items.readers import value_reader
from dynamo_single.orm.plan.plan import InMemory, Plan, Sort
from dynamo_single.orm.plan.projection import project, widen
from dynamo_single.orm.results import objects, periods, sorting
from dynamo_single.orm.results.aggregates import Tallies, needed
from dynamo_single.orm.results.columns import Columns, as_tuple
from dynamo_single.orm.results.computation import Computation, Dates
from dynamo_single.orm.results.measures import comparable
from dynamo_single.orm.results.sorting import OrderName
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.schema import registry
from dynamo_single.table.flow import iterate


def plan(state: QueryState) -> Plan:
    """The plan, and what is made of its matches; an error if nothing bounds how many these are."""
    computation = state.computation
    if computation is None:
        return objects.plan(state)
    if computation.makes_rows:
        return _plan_rows(state, computation)
    return _plan_annotated(state, computation)


def _plan_rows(state: QueryState, computation: Computation) -> Plan:
    """The plan of rows that stand for several objects each."""
    found = objects.plan_of_matches(state.source())
    limit = objects.limit_of(state, found, f"rows that are {computation}", sliced=False)
    work = InMemory(limit, _row_sorting(state, computation), state.reversed, work=str(computation))
    wanted = {*needed(computation.measures), *_attributes(computation)}
    return project(replace(found, in_memory=work), wanted)


def _attributes(computation: Computation) -> tuple[str, ...]:
    if computation.dates is not None:
        return (computation.dates.attribute,)
    return computation.groups.attributes if computation.groups else ()


def _row_sorting(state: QueryState, computation: Computation) -> tuple[Sort, ...]:
    """The order of groups, by what they have: the default order of the model is one of objects."""
    if computation.dates is not None:
        if state.order_by:
            raise NotSupported("order_by() after dates() and datetimes() is not supported: they take order='DESC'.")
        return (Sort(computation.dates.attribute, computation.dates.descending),)
    columns = set(computation.groups.attributes) if computation.groups else set()
    found: list[Sort] = []
    for alias, sorts in _read_sorting(state, state.order_by, computation):
        for sort in sorts:
            if alias is None and sort.attribute not in columns:
                known = ", ".join((*(computation.groups.names if computation.groups else ()), *computation.aliases))
                raise NotSupported(
                    f"{state.label}: order_by({sort.attribute!r}) would divide the rows that are {computation}: "
                    f"order by {known}."
                )
            if alias is None:
                sorting.check_orderable(state.model, sort.attribute, "order_by()")
        found += sorts
    return tuple(found)


def _read_sorting(
    state: QueryState, names: Iterable[OrderName], computation: Computation
) -> Iterator[tuple[str | None, tuple[Sort, ...]]]:
    """Each name of an order with its sorting; with the alias, if it is one."""
    for name in names:
        order: Any = name if hasattr(name, "expression") else None
        text = str(name).lstrip("-+") if order is None else getattr(order.expression, "name", None)
        if text not in computation.aliases:
            yield None, sorting.read_sorting(state.model, (name,))
            continue
        descending = str(name).startswith("-") if order is None else bool(order.descending)
        said = bool(order.nulls_first) if order is not None and (order.nulls_first or order.nulls_last) else None
        yield text, (Sort(str(text), descending, said),)


def _plan_annotated(state: QueryState, computation: Computation) -> Plan:
    """The plan of annotated objects, in the order of a key, or sorted in memory by what they have and were given."""
    order = list(_read_sorting(state, state.ordering, computation))
    if any(alias is not None for alias, _ in order):
        found = _plan_sorted(state, computation, order)
    else:
        found = objects.plan(state.source())
    if any(measure.children for measure in computation.measures):
        objects.limit_of(state, found, f"objects {computation}, by one Query for each object", sliced=True)
    columns = state.asked.columns
    if columns is not None:
        return project(found, {*columns.attributes, *needed(computation.measures)})
    return widen(objects.projected(state, found), needed(computation.measures))


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


def rows(state: QueryState) -> Iterator[Any]:
    """The rows, in order, from the beginning to the end of the slice."""
    computation, window = state.computation, state.window
    if computation is None or state.is_empty:
        return iter(())
    if computation.dates is not None:
        return islice(_periods(state, computation.dates), window.start, window.stop)
    shape, output = computation.shape, computation.output
    if computation.groups is not None:
        found: Iterator[dict[str, Any]] = iter(_groups(state, computation, computation.groups))
        found = islice(found, window.start, window.stop)
    else:
        found = _rows_of_objects(state, computation)
    columns = computation.groups or state.asked.columns
    attributes = dict(zip(columns.names, columns.attributes, strict=True)) if columns is not None else {}
    named = [name if name in computation.aliases else attributes[name] for name in output]
    return (shape(output, tuple(row[name] for name in named)) for row in found) if shape else iter(())


def _groups(state: QueryState, computation: Computation, columns: Columns) -> list[dict[str, Any]]:
    """Each group by attribute and alias; they come as their first objects do, unless an order was asked for."""
    model = state.model
    plan = _plan_rows(state, computation)
    read = replace(columns, shape=as_tuple).reader(model)
    own = [registry.attributes_of(model).get(name) for name in columns.attributes]
    groups: dict[Any, tuple[tuple[Any, ...], Tallies]] = {}
    for item in _matches(state, plan):
        values = read(item)
        key = tuple(comparable(attribute, value) for attribute, value in zip(own, values, strict=True))
        if key not in groups:
            groups[key] = values, Tallies(model, computation.measures)
        groups[key][1].add(item)
    found = [
        {**dict(zip(columns.attributes, values, strict=True)), **_named(computation, tallies)}
        for values, tallies in groups.values()
    ]
    if plan.in_memory is not None:
        sorting.put_in_order(found, plan.in_memory, lambda row, name: row[name])
    return found


def _named(computation: Computation, tallies: Tallies) -> dict[str, Any]:
    return dict(zip(computation.aliases, tallies.results(), strict=True))


def _matches(state: QueryState, plan: Plan) -> Iterator[Item]:
    limit = plan.in_memory.limit if plan.in_memory else None
    for item in iterate(objects.matches(state, plan, limit)):
        hydration.check_type(state.model, item)
        yield item


def _periods(state: QueryState, dates: Dates) -> Iterator[Any]:
    plan = _plan_rows(state, Computation(dates=dates))
    read = value_reader(state.model, dates.attribute)
    values = (read(item) for item in _matches(state, plan))
    if dates.zone is None:
        found = {periods.day(value, dates.kind) for value in values if value is not None}
    else:
        found = {periods.moment(value, dates.kind, dates.zone) for value in values if value is not None}
    backwards = plan.in_memory is not None and plan.in_memory.backwards
    return iter(sorted(found, reverse=dates.descending != backwards))


def _entries(state: QueryState, computation: Computation) -> Iterator[tuple[Item, dict[str, Any]]]:
    """Each item of annotated objects with its measures, in order and in the slice."""
    plan = _plan_annotated(state, computation)
    if plan.in_memory is not None and plan.in_memory.work:
        # All of them are read before the first is measured: one match too many must not cost a count of each.
        found = [(item, _measured(state, computation, item)) for item in list(_matches(state, plan))]
        sorting.put_in_order(found, plan.in_memory, _value(state, plan.in_memory, computation))
        yield from islice(found, state.window.start, state.window.stop)
        return
    pages = objects.items(state, plan)
    if any(measure.children for measure in computation.measures):
        # All of them are read before the first is measured, as above.
        found_items: Iterable[Item] = list(iterate(objects.checked(state, pages, state.asked.in_memory)))
    else:
        found_items = iterate(pages)
    for item in found_items:
        yield item, _measured(state, computation, item)


def _value(state: QueryState, how: InMemory, computation: Computation) -> Callable[[Any, str], Any]:
    names = (sort.attribute for sort in how.ordering)
    readers = {name: value_reader(state.model, name) for name in names if name not in computation.aliases}

    def value(entry: tuple[Item, dict[str, Any]], name: str) -> Any:
        item, measured = entry
        return measured[name] if name in measured else readers[name](item)

    return value


def _measured(state: QueryState, computation: Computation, item: Item) -> dict[str, Any]:
    """What one object is annotated with: one COUNT Query for each count of children."""
    hydration.check_type(state.model, item)
    own = [measure for measure in computation.measures if not measure.children]
    tallies = Tallies(state.model, own)
    tallies.add(item)
    found = {measure.alias: result for measure, result in zip(own, tallies.results(), strict=True)}
    for measure in computation.measures:
        if measure.children:
            found[measure.alias] = getattr(objects.instance(state, item), measure.children).count()
    return found


def _rows_of_objects(state: QueryState, computation: Computation) -> Iterator[dict[str, Any]]:
    columns = state.asked.columns or Columns((), (), as_tuple)
    read = replace(columns, shape=as_tuple).reader(state.model)
    for item, measured in _entries(state, computation):
        yield {**dict(zip(columns.attributes, read(item), strict=True)), **measured}


def annotated(state: QueryState, computation: Computation) -> Iterator[Model]:
    """The objects with their measures as attributes."""
    for item, measured in () if state.is_empty else _entries(state, computation):
        obj = objects.instance(state, item)
        for alias, value in measured.items():
            setattr(obj, alias, value)
        yield obj
