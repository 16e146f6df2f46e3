"""What a queryset asks, as one frozen value that is given to the functions that answer it.

``query.state`` makes it again for each evaluation, since Django changes its own description of a query in place. The
value stands here, since rows, pages and related objects are made of it and ``results`` must not import ``query``. This
module must not know querysets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.db.models import Model, Prefetch, Q
from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Order
from dynamo_single.orm.items.unique_rules import lookups_of
from dynamo_single.orm.plan.plan import Query, Visibility
from dynamo_single.orm.results.cached_lists import CachedLists
from dynamo_single.orm.results.columns import Columns
from dynamo_single.orm.results.computation import Computation, distinct_rows
from dynamo_single.orm.results.sorting import OrderName, without_missing
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.compare import NOTHING
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import settled
from dynamo_single.orm.schema.fields.fetching import FetchMode
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where import tree
from dynamo_single.table.table import Table, get_table

#: Names of fields, and whether these are left out (``defer()``) or all that is wanted (``only()``), as Django has it.
Loading = tuple[Set[str], bool]

WHOLE: Loading = (frozenset(), True)

_supposed: ContextVar[bool] = ContextVar("supposed", default=False)


@contextmanager
def supposed_filled() -> Iterator[None]:
    """Plan by the declarations alone: every key counts as filled, a sharded one as one shard, and no table is asked."""
    token = _supposed.set(True)
    try:
        yield
    finally:
        _supposed.reset(token)


class Asked(Struct, frozen=True):
    """What was asked by methods that Django does not have, or has for SQL only; ``QuerySet`` documents each."""

    visibility: Visibility = "live"
    using_index: str | None = None
    without: tuple[str, ...] = ()
    consistent: bool = False
    allow_scan: bool = False
    allow_reads: int | None = None
    in_memory: int | None = None
    columns: Columns | None = None
    computation: Computation | None = None
    distinct: bool = False
    #: Conditions that have querysets after ``__in``, and whether each is negated: these are read first.
    inside: tuple[tuple[bool, Q], ...] = ()
    #: What is read once, to answer in memory what no key answers exactly.
    held: CachedLists | None = None
    #: An order by ``pk`` alone is given up for the one of the key that is read.
    in_key_order: bool = False
    #: Whatever names a secret from now on is refused.
    no_secrets: bool = False

    @property
    def may_hold(self) -> int | None:
        """How many items an evaluation may hold by itself, to compare in Python what is too long for DynamoDB."""
        return self.in_memory if self.held is None else None

    def computation_for(self, model: type[DynamoModel]) -> Computation | None:
        """What is computed after reading, if anything is; rows that may only come once are."""
        if self.computation is not None or not self.distinct:
            return self.computation
        return distinct_rows(model, self.columns)


_LAST: Final = sys.maxsize - 1


class Window(Struct, frozen=True):
    """The slice of a queryset: which results are given, by their numbers."""

    start: int = 0
    stop: int | None = None

    @classmethod
    def between(cls, start: int, stop: int | None) -> Window:
        """The slice as far as Python counts results: no list is longer, and ``islice()`` takes no larger number."""
        return cls(min(start, _LAST), stop if stop is None else min(stop, _LAST))

    @property
    def is_sliced(self) -> bool:
        """Whether it is less than everything."""
        return bool(self.start) or self.stop is not None

    @property
    def first(self) -> Window:
        """The first result of the slice alone."""
        stop = self.start + 1
        return Window(self.start, stop if self.stop is None else min(stop, self.stop))

    def after(self, passed: int) -> slice:
        """What is wanted of a page that comes after so many results, fewer than the slice ends at."""
        return slice(max(self.start - passed, 0), None if self.stop is None else self.stop - passed)


ALL_MATCHES = Window()


class Along(Struct, frozen=True):
    """What is read along with the objects: references by ``select_related()``, anything by ``prefetch_related()``.

    ``named`` are the paths that ``select_related()`` was given, and ``implied`` those that it means without any.
    ``mode`` says for whom is read what was not, once it is touched, if the objects have to be told.
    """

    named: tuple[str, ...] = ()
    implied: tuple[str, ...] = ()
    prefetched: tuple[str | Prefetch[Any], ...] = ()
    mode: FetchMode | None = None

    def __bool__(self) -> bool:
        return self.reads or self.mode is not None

    @property
    def reads(self) -> bool:
        """Whether anything is read."""
        return bool(self.named or self.implied or self.prefetched)

    @property
    def references(self) -> tuple[str, ...]:
        """The paths of all references."""
        return self.named or self.implied


NOTHING_ALONG = Along()


class QueryState(Struct, frozen=True):
    """All that one evaluation of a queryset has to know.

    ``order_by`` is what was asked for, and ``ordering`` that or the order of the model; both are as Django has them,
    since only what needs the order may be refused one that cannot be served. ``known`` are objects that references lead
    to, by reference and primary key.
    """

    model: type[DynamoModel]
    asked: Asked = field(default_factory=Asked)
    where: Condition = EVERYTHING
    order_by: tuple[OrderName, ...] = ()
    ordering: tuple[OrderName, ...] = ()
    reversed: bool = False
    window: Window = ALL_MATCHES
    is_empty: bool = False
    loading: Loading = WHOLE
    along: Along = NOTHING_ALONG
    #: Whether the result is read in pages, each from where the one before ended.
    in_pages: bool = False
    known: Mapping[Any, Mapping[Any, Model]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The model, as messages name it."""
        return self.model._meta.label

    @property
    def layout(self) -> ModelLayout:
        """The model's keys and attributes."""
        return registry.layout_of(self.model)

    @property
    def table(self) -> Table:
        """The table that the model lies in."""
        return get_table(self.layout.alias)

    @property
    def computation(self) -> Computation | None:
        """What is computed after reading, if anything is; rows that may only come once are."""
        return self.asked.computation_for(self.model)

    def source(self) -> QueryState:
        """The objects that a computation starts from, each by itself and whole, or those that rows are made of."""
        computation = self.computation
        asked = replace(self.asked, columns=None, computation=None, distinct=False)
        found = replace(self, asked=asked, loading=WHOLE, along=replace(self.along, prefetched=()))
        if computation is None or not computation.makes_rows:
            return found
        return replace(found.unordered(), reversed=False, window=ALL_MATCHES)

    def unordered(self) -> QueryState:
        """The same in any order."""
        return replace(self, order_by=(), ordering=())

    def query(self, *, ordered: bool = True) -> Query:
        """What the planner is asked; ``NotSupported`` for what is computed, since its source has to be read first."""
        computation, asked = self.computation, self.asked
        if computation is not None:
            raise NotSupported(
                f"This is not supported for what is {computation} in memory, after reading. Call it on the "
                "queryset of the objects."
            )
        asks, lookups, missing = not _supposed.get(), lookups_of(self.model), NOTHING
        if asks and settled(self.model, self.table) is None:
            missing = knowledge.missing(self.layout)
        layout = self.layout  # with the names that were heard of by then
        return Query(
            layout=layout,
            where=self.where,
            ordering=self._orders() if ordered and self.ordering else (),
            visibility=asked.visibility,
            using_index=asked.using_index,
            consistent=asked.consistent,
            allow_scan=asked.allow_scan,
            without=asked.without,
            allow_reads=asked.allow_reads,
            in_pages=self.in_pages,
            missing_keys=missing.keys,
            missing_attributes=missing.attributes,
            lookups=lookups,
            missing_rules=knowledge.missing_rules(layout, lookups) if lookups and asks else frozenset(),
            schedule=missing.schedule,
        )

    def _orders(self) -> tuple[Order, ...]:
        orders = tree.read_ordering(self.model, [without_missing(self.model, name) for name in self.ordering])
        if not self.reversed:
            return orders
        return tuple(order.reversed() for order in orders)
