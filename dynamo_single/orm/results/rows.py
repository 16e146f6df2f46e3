"""The results of a ``Computation``: rows, or objects with what each was annotated with.

They are made of as many matches as ``in_memory`` lets through. This module must not know how they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from django.db.models.query import BaseIterable, ModelIterable

from dynamo_single.orm.items import hydration
from dynamo_single.orm.plan.plan import InMemory, Plan
from dynamo_single.orm.results import periods, sorting
from dynamo_single.orm.results.aggregates import Tallies
from dynamo_single.orm.results.columns import Columns
from dynamo_single.orm.results.computation import Computation, Dates, of, plan_objects, plan_rows
from dynamo_single.orm.results.measures import comparable
from dynamo_single.orm.schema import registry

Item = dict[str, dict[str, Any]]


class RowIterable(BaseIterable):  # type: ignore[type-arg]  # not generic at run time
    """Rows that were computed."""

    def __iter__(self) -> Iterator[Any]:
        queryset: Any = self.queryset
        # Nothing is read before the first row is asked for: an event loop may stand where this is called.
        yield from rows(queryset) if of(queryset) is not None else queryset._objects()


class AnnotatedIterable(ModelIterable):  # type: ignore[type-arg]  # not generic at run time
    """Objects with what was computed for each."""

    def __iter__(self) -> Iterator[Any]:
        return annotated(self.queryset)


def rows(queryset: Any) -> Iterator[Any]:
    """The rows of a queryset, in order, from the beginning to the end of its slice."""
    computation = of(queryset)
    query = queryset.query
    if computation is None or query.is_empty() or (query.high_mark is not None and query.high_mark <= query.low_mark):
        return iter(())
    if computation.dates is not None:
        return islice(_periods(queryset, computation.dates), query.low_mark, query.high_mark)
    shape, output = computation.shape, computation.output
    if computation.groups is not None:
        found: Iterator[dict[str, Any]] = iter(_groups(queryset, computation, computation.groups))
        found = islice(found, query.low_mark, query.high_mark)
    else:
        found = _rows_of_objects(queryset, computation)
    columns = computation.groups or queryset._columns
    attributes = dict(zip(columns.names, columns.attributes, strict=True))
    named = [name if name in computation.aliases else attributes[name] for name in output]
    return (shape(output, tuple(row[name] for name in named)) for row in found) if shape else iter(())


def _groups(queryset: Any, computation: Computation, columns: Columns) -> list[dict[str, Any]]:
    """Each group by attribute and alias; they come as their first objects do, unless an order was asked for."""
    model = queryset.model
    plan = plan_rows(queryset, computation)
    read = replace(columns, shape=lambda names, row: row).reader(model)
    own = [registry.attributes_of(model).get(name) for name in columns.attributes]
    groups: dict[Any, tuple[tuple[Any, ...], Tallies]] = {}
    for item in _matches(queryset, plan):
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


def _matches(queryset: Any, plan: Plan) -> Iterator[Item]:
    limit = plan.in_memory.limit if plan.in_memory else None
    for item in sorting.matches(queryset, plan, limit):
        hydration.check_type(queryset.model, item)
        yield item


def _periods(queryset: Any, dates: Dates) -> Iterator[Any]:
    plan = plan_rows(queryset, Computation(dates=dates))
    read = hydration.value_reader(queryset.model, dates.attribute)
    values = (read(item) for item in _matches(queryset, plan))
    if dates.zone is None:
        found = {periods.day(value, dates.kind) for value in values if value is not None}
    else:
        found = {periods.moment(value, dates.kind, dates.zone) for value in values if value is not None}
    backwards = plan.in_memory is not None and plan.in_memory.backwards
    return iter(sorted(found, reverse=dates.descending != backwards))


def _entries(queryset: Any, computation: Computation) -> Iterator[tuple[Item, dict[str, Any]]]:
    """Each item of annotated objects with its measures, in order and in the queryset's slice."""
    plan = plan_objects(queryset, computation)
    if plan.in_memory is not None and plan.in_memory.work:
        # All of them are read before the first is measured: one match too many must not cost a count of each.
        found = [(item, _measured(queryset, computation, item)) for item in list(_matches(queryset, plan))]
        sorting.put_in_order(found, plan.in_memory, _value(queryset, plan.in_memory, computation))
        yield from islice(found, queryset.query.low_mark, queryset.query.high_mark)
        return
    items = sorting.items(queryset, plan)
    if any(measure.children for measure in computation.measures):
        items = iter(list(sorting.checked(queryset, items, queryset._in_memory)))
    for item in items:
        yield item, _measured(queryset, computation, item)


def _value(queryset: Any, how: InMemory, computation: Computation) -> Callable[[Any, str], Any]:
    names = (sort.attribute for sort in how.ordering)
    readers = {name: hydration.value_reader(queryset.model, name) for name in names if name not in computation.aliases}

    def value(entry: tuple[Item, dict[str, Any]], name: str) -> Any:
        item, measured = entry
        return measured[name] if name in measured else readers[name](item)

    return value


def _measured(queryset: Any, computation: Computation, item: Item) -> dict[str, Any]:
    """What one object is annotated with: one COUNT Query for each count of children."""
    hydration.check_type(queryset.model, item)
    own = [measure for measure in computation.measures if not measure.children]
    tallies = Tallies(queryset.model, own)
    tallies.add(item)
    found = {measure.alias: result for measure, result in zip(own, tallies.results(), strict=True)}
    for measure in computation.measures:
        if measure.children:
            found[measure.alias] = getattr(queryset._object(item), measure.children).count()
    return found


def _rows_of_objects(queryset: Any, computation: Computation) -> Iterator[dict[str, Any]]:
    columns = queryset._columns
    read = replace(columns, shape=lambda names, row: row).reader(queryset.model)
    for item, measured in _entries(queryset, computation):
        yield {**dict(zip(columns.attributes, read(item), strict=True)), **measured}


def annotated(queryset: Any) -> Iterator[Any]:
    """The objects of a queryset with their measures as attributes."""
    computation = of(queryset)
    query = queryset.query
    if computation is None or query.is_empty() or (query.high_mark is not None and query.high_mark <= query.low_mark):
        return
    for item, measured in _entries(queryset, computation):
        obj = queryset._object(item)
        for alias, value in measured.items():
            setattr(obj, alias, value)
        yield obj
