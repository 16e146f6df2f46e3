"""Connect Django's evaluation of a queryset to our reads: filtering, fetching, and iterating over the results.

``state`` describes the query, and ``results`` reads it page by page. ``queryset`` has the public methods.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.query import BaseIterable, ModelIterable
from msgspec.structs import replace

from dynamo_single.conf import default_fetch_mode
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.items import async_safety
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.query import iterate as query_iterate
from dynamo_single.orm.query import subqueries
from dynamo_single.orm.query.state import StatefulQuerySet, related_reads_of, state_of
from dynamo_single.orm.schema.fields.fetching import BY_NAME
from dynamo_single.orm.schema.types import DynamoModel, M, are_plain
from dynamo_single.orm.where.arguments import (
    check_condition_count,
    check_conditions,
    check_lists,
    check_nesting,
    django_errors_translated,
    may_read_others,
    with_sorted_members,
)
from dynamo_single.table.flow import call_sync, collect, is_run, iterate_pages, run

if TYPE_CHECKING:
    from dynamo_single.orm.expressions import interpreter
    from dynamo_single.orm.query import interpreted
    from dynamo_single.orm.relations import filters, joined_rows, steps
    from dynamo_single.orm.results import async_rerun, computation, objects, one_query, prefetch, rows
    from dynamo_single.orm.results.objects import Results
    from dynamo_single.orm.results.state import QueryState
else:
    filters = LazyModule("dynamo_single.orm.relations.filters")
    joined_rows = LazyModule("dynamo_single.orm.relations.joined_rows")
    steps = LazyModule("dynamo_single.orm.relations.steps")
    async_rerun = LazyModule("dynamo_single.orm.results.async_rerun")
    computation = LazyModule("dynamo_single.orm.results.computation")
    interpreted = LazyModule("dynamo_single.orm.query.interpreted")
    interpreter = LazyModule("dynamo_single.orm.expressions.interpreter")
    objects = LazyModule("dynamo_single.orm.results.objects")
    prefetch = LazyModule("dynamo_single.orm.results.prefetch")
    rows = LazyModule("dynamo_single.orm.results.rows")
    one_query = LazyModule("dynamo_single.orm.results.one_query")


#: Methods between a query and its objects, which a queryset's class must not override.
BETWEEN = (
    *("query", "filter", "order_by", "_filter_or_exclude", "_filter_or_exclude_inplace", "_chain", "_clone"),
    *("iterator", "_iterator", "_fetch_all", "__iter__", "__len__", "__getitem__"),
)
#: The methods that a coroutine passes by.
_PASSED_BY = (*BETWEEN, "get", "count", "exists", "first", "last", "reverse", "in_bulk", "page")

#: How the names of conditions end that take a list.
_TAKE_LISTS = ("__in", "__range")

#: Querysets that were pickled under this module's former name refer to their iterables by it.
sys.modules.setdefault("dynamo_single.orm.query.planned", sys.modules[__name__])


class ObjectIterable(ModelIterable):  # type: ignore[type-arg]  # not generic at run time
    """Objects with their annotations."""

    queryset: StatefulQuerySet[Any]

    def __iter__(self) -> Iterator[object]:
        return _lazily(self.queryset)


class RowIterable(BaseIterable):  # type: ignore[type-arg]  # not generic at run time
    """Rows: the attributes of each object, or what was computed."""

    queryset: StatefulQuerySet[Any]

    def __iter__(self) -> Iterator[object]:
        return _lazily(self.queryset)


def _lazily(queryset: StatefulQuerySet[DynamoModel]) -> Iterator[DynamoModel]:
    """Return the results of a queryset, starting with the first result; it may be called in an event loop."""
    return chain.from_iterable(map(_results, (queryset,)))


def _results(queryset: StatefulQuerySet[DynamoModel]) -> Iterator[DynamoModel]:
    return iterate_pages(open_pages(state_of(queryset), queryset._iterable_class))


def open_pages(state: QueryState, shape: type[Any]) -> Results:
    """Return the pages of a queryset's objects or rows, before the first read."""
    if state.interpretation is not None:
        return interpreter.open_pages(state)
    if shape is ObjectIterable:
        computed = state.asked.computation
        return objects.open_pages(state) if computed is None else rows.annotated_objects(state, computed)
    if state.asked.columns is not None and state.asked.columns.paths:
        return joined_rows.rows(state)
    return objects.open_pages(state) if state.computation is None else rows.rows(state)


#: The parameters of ``Q``, which must not come from an address.
_OF_Q = frozenset({"_connector", "_negated"})


def _refused(*args: object, **kwargs: object) -> models.Q:
    """Raise Django's ``TypeError`` for arguments of ``filter()`` that are parameters of ``Q``."""
    raise TypeError(f"The following kwargs are invalid: {', '.join(map(repr, sorted(_OF_Q & {*kwargs})))}")


#: ``open_pages()`` reads these, unlike a project's own iterable.
_ITERABLES = (ObjectIterable, RowIterable)


class PlannedQuerySet(StatefulQuerySet[M]):
    """A lazy description of what to read, which can be planned, copied and evaluated."""

    _iterables = _ITERABLES
    # Private to Django, and not iterable in its stubs.
    _iterable_class: Any
    _prefetch_done: bool

    def __init__(self, model: Any = None, query: Any = None, using: str | None = None, hints: Any = None) -> None:
        super().__init__(model, query, using, hints)
        self._iterable_class = ObjectIterable
        self._fetch_mode = BY_NAME[default_fetch_mode()]

    def _filter_or_exclude_inplace(self, negate: bool, args: Any, kwargs: Any) -> None:
        names = kwargs.keys()
        is_positive = not (negate or args) and self._deferred_filter is None
        if is_positive and (names == {"pk"} or names == {*self.model._identity}) and self._identifies_one(kwargs):
            # Django's property builds it at the first use of ``query``, which a write by a key does not need.
            self._deferred_filter = negate, args, kwargs
            return
        conditions = (*args, *kwargs.items())
        if self._asked.no_secrets:
            check_nesting(args)
            self._refuse_secrets(conditions)
        if args or any(name.endswith(_TAKE_LISTS) for name in kwargs):
            check_nesting(args)
            check_conditions(self.model, args)
            check_lists(self.model, conditions)
            args = tuple(map(with_sorted_members, args))
            kwargs = dict(map(with_sorted_members, kwargs.items()))
        if self._asked.computation is not None and computation.names_computed(self._asked.computation, conditions):
            interpreted.enter(self)
        if may_read_others(self.model, conditions):
            computed: Sequence[Any] = ()
            others: Sequence[Any] = conditions
            if subqueries.has_expression(conditions):
                prepared = interpreted.prepared(conditions)
                computed, others = interpreted.separated(self.model, prepared, negate=negate)
                args, kwargs = (*computed, *others), {}
            condition = models.Q if _OF_Q.isdisjoint(kwargs) else _refused
            leads_on, later = filters.leads_on(self.model, others), condition(*args[len(computed) :], **kwargs)
            kept = filters.of_kept_keys(self.model, later, is_negated=negate) if leads_on else None
            if kept is not None:
                leads_on, later = False, kept
                args, kwargs = (*computed, kept), {}
            if leads_on or subqueries.has_subquery((later,)):
                self._ask_later(negate, later)
                if not computed:
                    return
                args, kwargs = computed, {}
        with django_errors_translated(self.model, *conditions):
            super()._filter_or_exclude_inplace(negate, args, kwargs)  # type: ignore[misc]  # Django's, private
        # Django's property would apply a manager's own condition first, which may be this one.
        check_condition_count(self._query.where.children)

    def _identifies_one(self, kwargs: Mapping[str, object]) -> bool:
        """Return whether a filter is only the complete primary key of one object."""
        raise NotImplementedError

    def _leads_on(self, conditions: Sequence[object]) -> bool:
        """Return whether a condition names an attribute of a related object."""
        return may_read_others(self.model, conditions) and filters.leads_on(self.model, conditions)

    def _add_as_django(self, condition: models.Q) -> None:
        """Add a condition to Django's own query, which follows relations by joins."""
        with django_errors_translated(self.model, condition):
            self.query.add_q(condition)

    def _ask_later(self, negate: bool, condition: models.Q) -> None:
        """Keep a condition until its querysets are read; names that are wrong are reported now."""
        given = condition
        if self._leads_on((condition,)):
            condition = steps.checked(self, condition, is_negated=negate)
        empty = subqueries.with_subqueries_replaced(condition, partial(subqueries.check, self.model))
        self._chain()._filter_or_exclude_inplace(negate, (empty,), {})
        self._asked = replace(self._asked, inside=(*self._asked.inside, (negate, given)))

    def _plan(self) -> Plan:
        """The plan in the order of a key."""
        return objects.plan_by_key(state_of(self))

    def _fetch_all(self) -> None:
        if self._result_cache is None and not async_rerun.take_result(self):
            if self._iterable_class in _ITERABLES:
                state = state_of(self)
                is_limited = self._asked.steps is not None
                pages = self._held_pages(state) if is_limited else open_pages(state, self._iterable_class)
                self._result_cache = run(collect(pages))
            else:
                self._result_cache = list(self._iterable_class(self))
            related_reads = related_reads_of(self)
            if related_reads:
                run(prefetch.fetch_related(self._result_cache, related_reads))
        if self._prefetch_related_lookups and not self._prefetch_done:
            related_reads = related_reads_of(self)
            run(prefetch.prefetch(self._result_cache or (), related_reads.prefetch_related, related_reads.in_memory))
            self._prefetch_done = True
        super()._fetch_all()

    def _held_pages(self, state: QueryState) -> Results:
        """Return the pages of the results; those of a ``Prefetch`` count towards a limit."""
        steps = self._asked.steps
        if steps is None or not steps.holds_results:
            return open_pages(state, self._iterable_class)
        left = replace(state, asked=replace(state.asked, in_memory=max(steps.left, 1)))
        return objects.held_pages(self, open_pages(left, self._iterable_class), steps)

    def _is_native(self) -> bool:
        """Return whether a coroutine may read without bypassing a project's overrides."""
        return (
            are_plain(type(self), _PASSED_BY)
            and async_safety.creates_plain_objects(self.model)
            and self._iterable_class in _ITERABLES
        )

    async def _state(self) -> QueryState:
        """Return the current state of the query.

        In an event loop this follows the read of the items' schema, which planning needs.
        """
        state = state_of(await self._narrowed() if self._asked.inside and not self.query.is_empty() else self)
        if not is_run():
            await objects.read_form(state)
        return state

    async def _know(self) -> None:
        """Read the table's state for this model, so that queries can be planned in an event loop."""
        await objects.read_form(state_of(self))

    async def _read(self) -> list[M]:
        """Return all results with their related objects and cache them: ``list()`` of the queryset, for a coroutine."""
        if self._result_cache is None and self._is_native():
            related_reads, found = (
                related_reads_of(self),
                await collect(self._held_pages(await self._state())),
            )
            self._result_cache = found
            if related_reads:
                await prefetch.fetch_related(found, related_reads)
                await prefetch.prefetch(found, related_reads.prefetch_related, related_reads.in_memory)
                self._prefetch_done = True
        if self._result_cache is None or (self._prefetch_related_lookups and not self._prefetch_done):
            await call_sync(self._fetch_all)
        return self._result_cache or []

    async def _pages(self) -> Results:
        """The results some at a time, of which nothing is kept: ``iterator()`` for a coroutine.

        In an event loop, it reads all of them together if a project's own code must run in a thread.
        """
        if not is_run() and not self._is_native():
            yield await self._read()
            return
        async with aclosing(open_pages(await self._state(), self._iterable_class)) as pages:
            async for page in pages:
                yield page

    async def _count(self) -> int:
        """``count()`` for a coroutine."""
        if not self._is_native():
            return await call_sync(self.count)
        return await self._counted()

    async def _counted(self) -> int:
        if self._result_cache is not None:
            return len(self._result_cache)
        state = await self._state()
        if state.interpretation is not None:
            return await interpreter.count(state)
        computed = state.computation
        if computed is not None and computed.makes_rows:
            async with aclosing(open_pages(state, RowIterable)) as pages:
                return sum([len(list(page)) async for page in pages])
        return await objects.count(state if computed is None else state.source())

    async def _exists(self) -> bool:
        """``exists()`` for a coroutine."""
        return await (self._found_any() if self._is_native() else call_sync(self.exists))

    async def _found_any(self) -> bool:
        if self._result_cache is not None:
            return bool(self._result_cache)
        state = await self._state()
        computed = state.computation
        if state.interpretation is None and (computed is None or not computed.makes_rows):
            return await objects.exists(state.source())
        async with aclosing(open_pages(state, self._iterable_class)) as pages:
            async for page in pages:
                for _ in page:
                    return True
        return False

    def _fetch_with(self, others: Sequence[PlannedQuerySet[DynamoModel]]) -> None:
        """Read the results of this queryset and others now if one Query reads several of them; else nothing is read."""
        run(self._read_with(others))

    async def _read_with(self, others: Sequence[PlannedQuerySet[DynamoModel]], most: int | None = None) -> None:
        """Run ``_fetch_with()`` in a coroutine; not in an event loop if this would bypass a project's overrides.

        Nothing is kept if there are ``most`` results or more.
        """
        querysets: tuple[PlannedQuerySet[Any], ...] = (self, *others)
        if not is_run() and not all(queryset._is_native() for queryset in querysets):
            return
        states = [await queryset._state() for queryset in querysets]
        for queryset, found in zip(querysets, await one_query.read_partitions(states, most), strict=True):
            if found is not None:
                queryset._result_cache = found
                await prefetch.fetch_related(found, related_reads_of(queryset))

    def _iterator(self, use_chunked_fetch: bool, chunk_size: int | None) -> Iterator[DynamoModel]:
        return query_iterate.iterate(self._iterable_class(self), related_reads_of(self), chunk_size)
