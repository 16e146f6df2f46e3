"""What is to be made of the matches after reading, annotated objects, groups, distinct rows or dates, and its plan.

A ``Computation`` is a value that a queryset carries along; ``results`` carries it out. This module must not know how
aggregates are read, or send requests.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.plan.plan import InMemory, Plan, Sort
from dynamo_single.orm.plan.projection import project, widen
from dynamo_single.orm.results import sorting as in_memory
from dynamo_single.orm.results.aggregates import needed
from dynamo_single.orm.results.columns import Columns, Shape
from dynamo_single.orm.results.measures import Measure


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


def of(queryset: Any) -> Computation | None:
    """What a queryset computes, if it does."""
    if queryset._computation is not None:
        return queryset._computation  # type: ignore[no-any-return]  # querysets import this module
    columns = queryset._columns
    if not queryset._distinct or columns is None or _tells_objects_apart(queryset.model, columns):
        return None
    return Computation(groups=columns, output=columns.names, shape=columns.shape)


def _tells_objects_apart(model: Any, columns: Columns) -> bool:
    named = {*columns.attributes}
    return not named.isdisjoint(("pk", model._meta.pk.attname)) or named.issuperset(model._identity)


def check_conditions(queryset: Any, conditions: Iterable[Any]) -> None:
    """Refuse conditions on what is computed: SQL's HAVING."""
    computation = queryset._computation
    for condition in conditions if computation is not None else ():
        if isinstance(condition, Q):
            check_conditions(queryset, condition.children)
        elif isinstance(condition, tuple) and str(condition[0]).partition("__")[0] in computation.aliases:
            raise NotSupported(
                f"{queryset.model._meta.label}: filter({condition[0]}=...) is about what is only computed after "
                "reading. Filter the results in Python."
            )


def announce(queryset: Any) -> Iterator[tuple[str, str]]:
    """What will be sent for each object that a queryset gives, for ``explain()``."""
    computation = queryset._computation
    for measure in computation.measures if computation is not None else ():
        if measure.children:
            yield "then", f"{measure}: one Query with Select=COUNT for each object"


def source_of(queryset: Any) -> Any:
    """The queryset of the objects that a computation starts from, whole and without what it is ordered by."""
    source = queryset._chain()
    source._columns = source._computation = None
    source._distinct = False
    source._prefetch_related_lookups = ()
    source.query.clear_deferred_loading()
    source.query.annotations = {}
    source.query.set_annotation_mask(None)
    computation = of(queryset)
    if computation is not None and computation.makes_rows:
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
        return plan_rows(queryset, computation)
    return plan_objects(queryset, computation)


def plan_rows(queryset: Any, computation: Computation) -> Plan:
    """The plan of rows that stand for several objects each."""
    found = in_memory.unordered(source_of(queryset))
    limit = in_memory.limit_of(queryset, found, f"rows that are {computation}", sliced=False)
    backwards = not queryset.query.standard_ordering
    work = InMemory(limit, _row_sorting(queryset, computation), backwards, work=str(computation))
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


def plan_objects(queryset: Any, computation: Computation) -> Plan:
    """The plan of annotated objects, in the order of a key, or sorted in memory by what they have and were given."""
    sorting = list(_read_sorting(queryset, queryset._ordered_by(), computation))
    if any(alias is not None for alias, _ in sorting):
        found = _plan_sorted(queryset, computation, sorting)
    else:
        found = in_memory.plan(source_of(queryset))
    if any(measure.children for measure in computation.measures):
        in_memory.limit_of(queryset, found, f"objects {computation}, by one Query for each object", sliced=True)
    if queryset._columns is not None:
        return project(found, {*queryset._columns.attributes, *needed(computation.measures)})
    return widen(queryset._projected(found), needed(computation.measures))


def _plan_sorted(
    queryset: Any, computation: Computation, sorting: Iterable[tuple[str | None, tuple[Sort, ...]]]
) -> Plan:
    found: list[Sort] = []
    for alias, sorts in sorting:
        for sort in sorts if alias is None else ():
            in_memory.check_orderable(queryset.model, sort.attribute, "order_by()")
        found += sorts
    source = source_of(queryset)
    source.query.clear_ordering(force=True)
    plan = in_memory.unordered(source)
    limit = in_memory.limit_of(queryset, plan, f"an order of objects {computation}", sliced=False)
    backwards = not queryset.query.standard_ordering
    return replace(plan, in_memory=InMemory(limit, tuple(found), backwards, work=str(computation)))
