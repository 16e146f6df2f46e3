"""What is made of the matches after reading: annotated objects, groups, distinct rows, dates.

A ``Computation`` says it, as a value that a queryset carries along; ``rows`` and ``annotated`` carry it out, among as
many matches as ``in_memory`` lets through. This module must not know how aggregates are read or requests are sent.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.db.models.query import BaseIterable, ModelIterable

from dynamo_single import hydration, in_memory, periods, registry
from dynamo_single.aggregates import Tallies, needed
from dynamo_single.columns import Columns, Shape
from dynamo_single.exceptions import NotSupported
from dynamo_single.projection import project, widen
from dynamo_single.query import InMemory, Plan, Sort
from dynamo_single.tallies import Measure, comparable

Item = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Dates:
    """The periods of one attribute's values; days, or moments by the clocks of a time zone."""

    attribute: str
    kind: str
    zone: datetime.tzinfo | None
    descending: bool


@dataclass(frozen=True, slots=True)
class Computation:
    """``measures`` of each group, or of each object without ``groups``; or ``dates``.

    ``output`` are the names that a row has, and ``shape`` is what it is put into; without it there are objects.
    """

    measures: tuple[Measure, ...] = ()
    groups: Columns | None = None
    dates: Dates | None = None
    output: tuple[str, ...] = ()
    shape: Shape | None = None

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(measure.alias for measure in self.measures)

    @property
    def makes_rows(self) -> bool:
        """Whether a result stands for several objects, so that a slice is not one of objects."""
        return self.groups is not None or self.dates is not None

    def __str__(self) -> str:
        """What is done, as ``explain()`` says it."""
        if self.dates is not None:
            return f"cut off to the {self.dates.kind} of {self.dates.attribute}"
        measures = ", ".join(map(str, self.measures))
        if self.groups is None:
            return f"annotated with {measures}"
        names = ", ".join(self.groups.names)
        return f"grouped by {names} with {measures}" if measures else f"distinct {names}"


class RowIterable(BaseIterable):  # type: ignore[type-arg]  # not generic at run time
    """Rows that were computed."""

    def __iter__(self) -> Iterator[Any]:
        queryset: Any = self.queryset
        return iter(rows(queryset) if of(queryset) is not None else queryset._objects())


class AnnotatedIterable(ModelIterable):  # type: ignore[type-arg]  # not generic at run time
    """Objects with what was computed for each."""

    def __iter__(self) -> Iterator[Any]:
        return annotated(self.queryset)


def of(queryset: Any) -> Computation | None:
    """What a queryset computes, if it does."""
    if queryset._computation is not None:
        return queryset._computation  # type: ignore[no-any-return]  # querysets import this module
    columns = queryset._columns
    if not queryset._distinct or columns is None or _tells_objects_apart(queryset.model, columns):
        return None
    return Computation(groups=columns, output=columns.names, shape=columns.shape)


def _tells_objects_apart(model: Any, columns: Columns) -> bool:
    return "pk" in columns.attributes or {*model._identity, model._meta.pk.attname} & {*columns.attributes} >= {
        *model._identity
    }


def source_of(queryset: Any) -> Any:
    """The queryset of the objects that a computation starts from, whole and without what it is ordered by."""
    source = queryset._chain()
    source._columns = source._computation = None
    source._distinct = False
    source._prefetch_related_lookups = ()
    source.query.clear_deferred_loading()
    source.query.annotations = {}
    source.query.set_annotation_mask(None)
    if of(queryset) is not None and of(queryset).makes_rows:
        source.query.clear_ordering(force=True)
        source.query.clear_limits()
        source.query.standard_ordering = True
    return source


def plan(queryset: Any) -> Plan:
    """The plan of a queryset, and what is made of its matches; an error if nothing bounds how many these are."""
    computation = of(queryset)
    if computation is None:
        return in_memory.plan(queryset)
    if computation.makes_rows:
        return _plan_rows(queryset, computation)
    return _plan_objects(queryset, computation)


def _plan_rows(queryset: Any, computation: Computation) -> Plan:
    found = in_memory.unordered(source_of(queryset))
    limit = in_memory.limit_of(queryset, found, str(computation), sliced=False)
    work = InMemory(
        limit, _row_sorting(queryset, computation), not queryset.query.standard_ordering, work=str(computation)
    )
    wanted = {*needed(computation.measures), *_attributes(computation)}
    return project(replace(found, in_memory=work), wanted)


def _attributes(computation: Computation) -> tuple[str, ...]:
    if computation.dates is not None:
        return (computation.dates.attribute,)
    return computation.groups.attributes if computation.groups else ()


def _row_sorting(queryset: Any, computation: Computation) -> tuple[Sort, ...]:
    """The order of groups, by what they have: the default order of the model is one of objects."""
    model = queryset.model
    if computation.dates is not None:
        if queryset.query.order_by:
            raise NotSupported("order_by() after dates() and datetimes() is not supported: they take order='DESC'.")
        return (Sort(computation.dates.attribute, computation.dates.descending),)
    columns = set(computation.groups.attributes) if computation.groups else set()
    found: list[Sort] = []
    for alias, sorts in _read_sorting(queryset, queryset.query.order_by, computation):
        for sort in sorts:
            if alias is None and sort.attribute not in columns:
                known = ", ".join((*(computation.groups.names if computation.groups else ()), *computation.aliases))
                raise NotSupported(
                    f"{model._meta.label}: order_by({sort.attribute!r}) would divide the rows that are {computation}: "
                    f"order by {known}."
                )
            if alias is None:
                in_memory.check_orderable(model, sort.attribute, "order_by()")
        found += sorts
    return tuple(found)


def _read_sorting(
    queryset: Any, names: Iterable[Any], computation: Computation
) -> Iterator[tuple[str | None, tuple[Sort, ...]]]:
    """Each name of an order with its sorting; with the alias, if it is one."""
    for name in names:
        expression = getattr(name, "expression", None)
        text = getattr(expression, "name", None) if expression is not None else str(name).lstrip("-+")
        if text not in computation.aliases:
            yield None, in_memory.read_sorting(queryset.model, (name,))
            continue
        descending = bool(name.descending) if expression is not None else str(name).startswith("-")
        said = bool(name.nulls_first) if expression is not None and (name.nulls_first or name.nulls_last) else None
        yield text, (Sort(str(text), descending, said),)


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
    columns = queryset._columns
    attributes = dict(zip(columns.names, columns.attributes, strict=True))
    named = [name if name in computation.aliases else attributes[name] for name in output]
    return (shape(output, tuple(row[name] for name in named)) for row in found) if shape else iter(())


def _groups(queryset: Any, computation: Computation, columns: Columns) -> list[dict[str, Any]]:
    """Each group by attribute and alias; they come as their first objects do, unless an order was asked for."""
    model = queryset.model
    plan = _plan_rows(queryset, computation)
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
        in_memory.put_in_order(found, plan.in_memory, lambda row, name: row[name])
    return found


def _named(computation: Computation, tallies: Tallies) -> dict[str, Any]:
    return dict(zip(computation.aliases, tallies.results(), strict=True))


def _matches(queryset: Any, plan: Plan) -> Iterator[Item]:
    limit = plan.in_memory.limit if plan.in_memory else None
    for item in in_memory.matches(queryset, plan, limit):
        hydration.check_type(queryset.model, item)
        yield item


def _periods(queryset: Any, dates: Dates) -> Iterator[Any]:
    plan = plan_of_dates = _plan_rows(queryset, Computation(dates=dates))
    read = hydration.value_reader(queryset.model, dates.attribute)
    values = (read(item) for item in _matches(queryset, plan))
    if dates.zone is None:
        found = {periods.day(value, dates.kind) for value in values if value is not None}
    else:
        found = {periods.moment(value, dates.kind, dates.zone) for value in values if value is not None}
    backwards = plan_of_dates.in_memory is not None and plan_of_dates.in_memory.backwards
    return iter(sorted(found, reverse=dates.descending != backwards))


def _plan_objects(queryset: Any, computation: Computation) -> Plan:
    """The plan of annotated objects, in the order of a key, or sorted in memory by what they have and were given."""
    source = source_of(queryset)
    ordered = list(_read_sorting(queryset, queryset._ordered_by(), computation))
    by_alias = any(alias is not None for alias, _ in ordered)
    if by_alias:
        source.query.clear_ordering(force=True)
        found = in_memory.unordered(source)
        limit = in_memory.limit_of(queryset, found, f"order_by() of what is {computation}", sliced=False)
        sorting = tuple(sort for _, sorts in ordered for sort in sorts)
        for alias, sorts in ordered:
            for sort in sorts if alias is None else ():
                in_memory.check_orderable(queryset.model, sort.attribute, "order_by()")
        backwards = not queryset.query.standard_ordering
        found = replace(found, in_memory=InMemory(limit, sorting, backwards, work=str(computation)))
    else:
        found = in_memory.plan(source)
    if any(measure.children for measure in computation.measures):
        in_memory.limit_of(queryset, found, f"objects {computation}, one Query for each count:", sliced=True)
    if queryset._columns is not None:
        return project(found, {*queryset._columns.attributes, *needed(computation.measures)})
    return widen(queryset._projected(found), needed(computation.measures))


def _entries(queryset: Any, computation: Computation) -> Iterator[tuple[Item, dict[str, Any]]]:
    """Each item of annotated objects with its measures, in order and in the queryset's slice."""
    plan = _plan_objects(queryset, computation)
    query, by_alias = queryset.query, plan.in_memory is not None and bool(plan.in_memory.work)
    if not by_alias:
        items = in_memory.items(queryset, plan)
        if any(measure.children for measure in computation.measures):
            items = in_memory.checked(queryset, items, queryset._in_memory)
        for item in items:
            yield item, _measured(queryset, computation, item)
        return
    found = [(item, _measured(queryset, computation, item)) for item in _matches(queryset, plan)]
    value = _value(queryset, plan, computation)
    if plan.in_memory is not None:
        in_memory.put_in_order(found, plan.in_memory, value)
    yield from islice(found, query.low_mark, query.high_mark)


def _value(queryset: Any, plan: Plan, computation: Computation) -> Callable[[Any, str], Any]:
    names = (sort.attribute for sort in plan.in_memory.ordering) if plan.in_memory else ()
    readers = {
        name: hydration.value_reader(queryset.model, name) for name in names if name not in computation.aliases
    }

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
