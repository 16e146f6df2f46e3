"""What a queryset of ours is underneath: Django's description of a query, its plan, and the objects that it gives.

Django's own ``sql.Query`` holds what was asked and is never compiled to SQL: ``where`` reads it, ``planner`` chooses
the requests, ``reading`` sends them, page by page, when the queryset is evaluated. ``queryset`` has the public methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models.query import ModelIterable
from django.utils import timezone

from dynamo_single import collections, hydration, planner, reading, registry, where
from dynamo_single.asking import asking, check_lists, gives_up_order
from dynamo_single.columns import Columns
from dynamo_single.exceptions import NotSupported
from dynamo_single.query import Order, Plan, Query, Visibility
from dynamo_single.table import Table, get_table

M = TypeVar("M", bound=models.Model, covariant=True)

#: What a queryset knows besides Django's query; copied to every queryset made from it.
FLAGS = {"_visibility": "live", "_using_index": None, "_consistent": False, "_allow_scan": False, "_columns": None}


class ItemIterable(ModelIterable):  # type: ignore[type-arg]  # not generic at run time
    """Objects, read page by page."""

    def __iter__(self) -> Iterator[Any]:
        queryset: Any = self.queryset
        objects: Iterator[Any] = queryset._objects()
        return objects


class PlannedQuerySet(models.QuerySet[M]):
    """A lazy description of what to read, which can be planned, copied and evaluated."""

    _visibility: Visibility
    _using_index: str | None
    _consistent: bool
    _allow_scan: bool
    _columns: Columns | None
    # Private to Django.
    _chain: Callable[[], Self]
    _known_related_objects: dict[Any, dict[Any, Any]]
    _prefetch_related_lookups: tuple[Any, ...]

    def __init__(self, model: Any = None, query: Any = None, using: str | None = None, hints: Any = None) -> None:
        super().__init__(model, query, using, hints)
        self._iterable_class: Any = ItemIterable
        for name, value in FLAGS.items():
            setattr(self, name, value)

    def _with(self, **flags: Any) -> Self:
        clone = self._chain()
        for name, value in flags.items():
            setattr(clone, name, value)
        return clone

    def _clone(self) -> Self:
        clone: Any = super()._clone()  # type: ignore[misc]  # Django's, private
        for name in FLAGS:
            setattr(clone, name, getattr(self, name))
        result: Self = clone
        return result

    def _merge_sanity_check(self, other: Any) -> None:
        for name in FLAGS:
            if getattr(self, name) != getattr(other, name):
                raise NotSupported(
                    "Querysets of different kinds (live and deleted, values and objects) cannot be combined."
                )

    def _filter_or_exclude_inplace(self, negate: bool, args: Any, kwargs: Any) -> None:
        check_lists((*args, *kwargs.items()))
        with asking(self.model):
            super()._filter_or_exclude_inplace(negate, args, kwargs)  # type: ignore[misc]  # Django's, private

    @property
    def _table(self) -> Table:
        model: Any = self.model
        return get_table(model._options.alias)

    def _query_value(self, *, ordered: bool = True) -> Query:
        query: Any = self.query
        if query.annotations or query.combinator or query.extra or query.distinct_fields:
            raise NotSupported("Annotations, set operations and extra() cannot be answered by DynamoDB.")
        return Query(
            layout=registry.layout_of(self.model),
            where=where.read_where(self.model, query.where),
            ordering=self._ordering() if ordered else (),
            visibility=self._visibility,
            using_index=self._using_index,
            consistent=self._consistent,
            allow_scan=self._allow_scan,
        )

    def _ordering(self) -> tuple[Order, ...]:
        query: Any = self.query
        names: Any = query.order_by or (self.model._meta.ordering if query.default_ordering else ())
        if gives_up_order() and tuple(names) == (self.model._meta.pk.name,):
            return ()
        orders = where.read_ordering(self.model, names)
        if query.standard_ordering:
            return orders
        return tuple(Order(order.attribute, not order.descending) for order in orders)

    def _plan(self, *, ordered: bool = True) -> Plan:
        query: Any = self.query
        plan = planner.plan(self._query_value(ordered=ordered), now=timezone.now())
        # Without an order of its own, reverse() turns the order of the key that was chosen.
        if query.standard_ordering or plan.query.ordering:
            return plan
        if plan.kind == "scan":
            raise NotSupported("reverse() and last() are not supported after allow_scan(): a scan has no order.")
        return replace(plan, forward=False, keys=plan.keys[::-1], conditions=plan.conditions[::-1])

    def _is_plain(self) -> bool:
        """Whether this asks for all live objects, as a default manager that nobody changed does."""
        query: Any = self.query
        special = (query.where.children, query.is_sliced, query.select_related, self._prefetch_related_lookups)
        return not any(special) and all(getattr(self, name) == value for name, value in FLAGS.items())

    def _page_limit(self, plan: Plan) -> int | None:
        high = self.query.high_mark
        return high if high is not None and reading.limit_is_exact(plan) else None

    def _objects(self) -> Iterator[Any]:
        query: Any = self.query
        if query.is_empty() or (query.high_mark is not None and query.high_mark <= query.low_mark):
            return
        plan = self._plan()
        members = self._collection_members(plan)
        if members is not None:
            yield from collections.read(self._table, self.model, plan, members)
            return
        items = reading.items(self._table, plan, skip=query.low_mark, stop=query.high_mark)
        for item in items:
            obj = hydration.instance(self.model, item)
            for field, known in self._known_related_objects.items():
                related = known.get(getattr(obj, field.attname))
                if related is not None and not field.is_cached(obj):
                    setattr(obj, field.name, related)
            yield obj

    def _fetch_all(self) -> None:
        if self._result_cache is None:
            self._result_cache = list(self._iterable_class(self))
            if self._columns is None:
                collections.fetch_related(self, self._result_cache)
        super()._fetch_all()

    def _collection_members(self, plan: Plan) -> Mapping[str, Any] | None:
        """The children to read with the object in one Query, where that is what was asked for."""
        if not self._prefetch_related_lookups or self._columns is not None or self.query.low_mark:
            return None
        return collections.members(self.model, plan, self._prefetch_related_lookups)

    def _to_write(self) -> list[Any]:
        """Every object that matches, by itself."""
        clone = self._chain()
        clone._columns = None
        clone._prefetch_related_lookups = ()
        return list(clone._objects())
