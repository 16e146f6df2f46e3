"""What a queryset of ours is underneath: Django's description of a query, its plan, and the objects that it gives.

Django's own ``sql.Query`` holds what was asked and is never compiled to SQL: ``where`` reads it, ``planner`` chooses
the requests, ``reading`` sends them, page by page, when the queryset is evaluated. ``queryset`` has the public methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models.query import ModelIterable

from dynamo_single import clock
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import Order
from dynamo_single.orm.items import hydration, partial
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.plan import Plan, Query, Visibility
from dynamo_single.orm.plan.projection import attributes_of, project
from dynamo_single.orm.query import streaming
from dynamo_single.orm.reading import plans
from dynamo_single.orm.results import computation, sorting
from dynamo_single.orm.results import related as collections
from dynamo_single.orm.results.columns import Columns
from dynamo_single.orm.schema import registry
from dynamo_single.orm.where import tree
from dynamo_single.orm.where.arguments import asking, check_lists, gives_up_order, in_one_order
from dynamo_single.orm.write.job import Progress
from dynamo_single.table.table import Table, get_table

M = TypeVar("M", bound=models.Model, covariant=True)

#: What a queryset knows besides Django's query; copied to every queryset made from it.
FLAGS = {
    "_visibility": "live",
    "_using_index": None,
    "_without": (),
    "_consistent": False,
    "_allow_scan": False,
    "_columns": None,
    "_in_memory": None,
    "_computation": None,
    "_distinct": False,
    "_members_of": None,
    "_progress": None,
}


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
    _without: tuple[str, ...]
    _columns: Columns | None
    _in_memory: int | None
    #: What is made of the matches after reading; ``computation`` reads it.
    _computation: Any
    _distinct: bool
    #: The group whose members are asked for: ``membership`` reads it.
    _members_of: Any
    _progress: Progress | None
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
            if getattr(self, name) != getattr(other, name) or self._computation is not None:
                raise NotSupported(
                    "Querysets of different kinds (live and deleted, values and objects) cannot be combined."
                )

    def _filter_or_exclude_inplace(self, negate: bool, args: Any, kwargs: Any) -> None:
        check_lists((*args, *kwargs.items()))
        computation.check_conditions(self, (*args, *kwargs.items()))
        args = tuple(map(in_one_order, args))
        kwargs = dict(map(in_one_order, kwargs.items()))
        with asking(self.model):
            super()._filter_or_exclude_inplace(negate, args, kwargs)  # type: ignore[misc]  # Django's, private

    @property
    def _table(self) -> Table:
        model: Any = self.model
        return get_table(model._options.alias)

    def _query_value(self, *, ordered: bool = True) -> Query:
        query: Any = self.query
        computed = computation.of(self)
        if computed is not None:
            raise NotSupported(f"This is not supported for what is {computed} in memory, after reading.")
        if query.annotations or query.combinator or query.extra or query.distinct_fields:
            raise NotSupported("Annotations, set operations and extra() cannot be answered by DynamoDB.")
        return Query(
            layout=registry.layout_of(self.model),
            where=tree.read_where(self.model, query.where),
            ordering=self._ordering() if ordered else (),
            visibility=self._visibility,
            using_index=self._using_index,
            consistent=self._consistent,
            allow_scan=self._allow_scan,
            without=self._without,
        )

    def _ordered_by(self) -> tuple[Any, ...]:
        query: Any = self.query
        names: Any = query.order_by or (self.model._meta.ordering if query.default_ordering else ())
        return () if gives_up_order() and tuple(names) == (self.model._meta.pk.name,) else tuple(names)

    def _ordering(self) -> tuple[Order, ...]:
        query: Any = self.query
        names = [sorting.without_missing(self.model, name) for name in self._ordered_by()]
        orders = tree.read_ordering(self.model, names)
        if query.standard_ordering:
            return orders
        return tuple(Order(order.attribute, not order.descending) for order in orders)

    def _plan(self, *, ordered: bool = True) -> Plan:
        query: Any = self.query
        plan = self._projected(planner.plan(self._query_value(ordered=ordered), now=clock.now()))
        # Without an order of its own, reverse() turns the order of the key that was chosen.
        if query.standard_ordering or plan.query.ordering:
            return plan
        if plan.kind == "scan":
            raise NotSupported("reverse() and last() are not supported after allow_scan(): a scan has no order.")
        return plan.backwards()

    def _projected(self, plan: Plan) -> Plan:
        """The plan, with the attributes that it is to read if these are not all."""
        model: Any = self.model
        if self._columns is not None:
            return project(plan, self._columns.attributes)
        wanted = partial.wanted(model, self.query, self._prefetch_related_lookups)
        if wanted is None:
            return plan
        # A reference that is filtered by is what a manager of the other side tells its objects by.
        followed = {*attributes_of(plan.query.where), *(field.attname for field in self._known_related_objects)}
        return project(plan, {*wanted, *partial.references(model, followed)})

    def _is_plain(self) -> bool:
        """Whether this asks for all live objects, whole, as a default manager that nobody changed does."""
        query: Any = self.query
        special = (query.where.children, query.is_sliced, query.select_related, self._prefetch_related_lookups)
        whole = not query.deferred_loading[0]
        return whole and not any(special) and all(getattr(self, name) == value for name, value in FLAGS.items())

    def _page_limit(self, plan: Plan) -> int | None:
        if plan.in_memory is not None:
            return sorting.page_limit(plan, plan.in_memory.limit)
        high = self.query.high_mark
        return high if high is not None and plans.limit_is_exact(plan) else None

    def _objects(self) -> Iterator[Any]:
        query: Any = self.query
        if query.is_empty() or (query.high_mark is not None and query.high_mark <= query.low_mark):
            return
        plan = sorting.plan(self)
        members = self._collection_members(plan)
        if members is not None:
            yield from collections.read(self._table, self.model, plan, members)
            return
        yield from map(self._reader(), sorting.items(self, plan))

    def _reader(self) -> Callable[[hydration.Item], Any]:
        """What makes an object, or a row of ``values()``, of an item that was read."""
        return self._object if self._columns is None else self._columns.reader(self.model)

    def _object(self, item: hydration.Item) -> Any:
        obj = hydration.instance(self.model, item)
        for field, known in self._known_related_objects.items():
            related = known.get(getattr(obj, field.attname))
            if related is not None and not field.is_cached(obj):
                setattr(obj, field.name, related)
        return obj

    def _fetch_all(self) -> None:
        if self._result_cache is None:
            self._result_cache = list(self._iterable_class(self))
            if self._columns is None:
                collections.fetch_related(self, self._result_cache)
        super()._fetch_all()

    def _reads_related(self) -> bool:
        """Whether related objects are to be read along with what this gives."""
        return bool(self._prefetch_related_lookups or collections.related_names(self))

    def _read_related(self, objects: Sequence[Any]) -> None:
        """Read what ``select_related`` and ``prefetch_related`` named, for some of the objects that this gives."""
        collections.fetch_related(self, objects)
        models.prefetch_related_objects(objects, *self._prefetch_related_lookups)

    def _iterator(self, use_chunked_fetch: bool, chunk_size: int | None) -> Iterator[Any]:
        return streaming.iterate(self, chunk_size)

    def _collection_members(self, plan: Plan) -> Mapping[str, Any] | None:
        """The children to read with the object in one Query, where that is what was asked for."""
        if not self._prefetch_related_lookups or self._columns is not None or self.query.low_mark:
            return None
        if self._computation is not None:
            return None
        return collections.members(self.model, plan, self._prefetch_related_lookups)

    def _source(self) -> Self:
        """The objects that match, each by itself and whole, whatever they are shown as."""
        source: Self = computation.source_of(self)
        return source

    def _to_write(self) -> Iterator[Any]:
        """Every object that matches, by itself and whole, page by page."""
        return self._source()._objects()
