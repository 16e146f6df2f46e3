"""The state of a queryset as one frozen value, which the functions that read its results take.

``query.state`` creates it for each evaluation, since Django changes its own ``sql.Query`` in place. It is here because
``results`` must not import ``query``. This module does not depend on querysets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Model, Prefetch, Q
from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Order
from dynamo_single.orm.plan.plan import DEFAULT_BYTES, Query, Visibility
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import AS_DECLARED, binding_if_known, binding_of
from dynamo_single.orm.schema.fields.fetching import FetchMode
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.table import Table, get_table

if TYPE_CHECKING:
    from dynamo_single.orm.items import unique_rules
    from dynamo_single.orm.reading.limits import Steps
    from dynamo_single.orm.results import computation as computations
    from dynamo_single.orm.results import sorting
    from dynamo_single.orm.results.cached_lists import CachedLists
    from dynamo_single.orm.results.columns import Columns, Shape
    from dynamo_single.orm.results.computation import Computation
    from dynamo_single.orm.results.sorting import OrderName
    from dynamo_single.orm.where import tree
else:
    computations = LazyModule("dynamo_single.orm.results.computation")
    sorting = LazyModule("dynamo_single.orm.results.sorting")
    tree = LazyModule("dynamo_single.orm.where.tree")
    unique_rules = LazyModule("dynamo_single.orm.items.unique_rules")

#: The default limit of ``allow_in_memory()``.
DEFAULT_LIMIT = 1000
#: Names of fields, and whether these are deferred (``defer()``) or the only ones to load (``only()``), as in Django.
Loading = tuple[Set[str], bool]

WHOLE: Loading = (frozenset(), True)

_assumed: ContextVar[bool] = ContextVar("supposed", default=False)


@contextmanager
def assume_complete_keys() -> Iterator[None]:
    """Plan by the declarations alone: treat every key as complete and unsharded, and do not read a table."""
    token = _assumed.set(True)
    try:
        yield
    finally:
        _assumed.reset(token)


class Asked(Struct, frozen=True):
    """The options of methods that Django does not have, or has for SQL only; ``QuerySet`` documents each.

    Pickled queries hold the values in this order, so new ones go to the end.
    """

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
    #: Conditions with querysets after ``__in``, which are read first, and whether each condition is negated.
    inside: tuple[tuple[bool, Q], ...] = ()
    #: Rows that are read once, for queries that no key supports exactly.
    cached_lists: CachedLists | None = None
    #: Whether the order of the key that is read replaces an order by ``pk`` alone.
    in_key_order: bool = False
    #: Whether to reject further conditions and orders on secret attributes.
    no_secrets: bool = False
    #: What the steps over relations have read, which counts towards ``in_memory``.
    steps: Steps | None = None
    #: Whether Django's query describes the results, which this app computes in memory, and the shape of their rows.
    interpreted: bool = False
    row_shape: Shape | None = None
    in_memory_bytes: int = DEFAULT_BYTES
    #: The set operation that compared objects rather than rows, or nothing.
    by_objects: str = ""

    @property
    def cache_limit(self) -> int | None:
        """The most items to cache if a filter is too long for DynamoDB, so that Python compares the rest of it."""
        return self.in_memory if self.cached_lists is None else None

    def computation_for(self, model: type[DynamoModel]) -> Computation | None:
        """Return the computation after reading, if there is one; distinct rows are computed."""
        if self.computation is not None or not self.distinct:
            return self.computation
        return computations.distinct_rows(model, self.columns)


_LAST: Final = sys.maxsize - 1


class Window(Struct, frozen=True):
    """The slice of a queryset, by the numbers of its results."""

    start: int = 0
    stop: int | None = None

    @classmethod
    def between(cls, start: int, stop: int | None) -> Window:
        """Return the slice up to ``sys.maxsize``: no list is longer, and ``islice()`` accepts no larger number."""
        return cls(min(start, _LAST), stop if stop is None else min(stop, _LAST))

    @property
    def is_sliced(self) -> bool:
        """Whether the slice may exclude results."""
        return bool(self.start) or self.stop is not None

    @property
    def first(self) -> Window:
        """The slice of the first result alone."""
        stop = self.start + 1
        return Window(self.start, stop if self.stop is None else min(stop, self.stop))


ALL_MATCHES = Window()


class RelatedReads(Struct, frozen=True):
    """The related objects that are read with the objects: by ``select_related()`` and ``prefetch_related()``.

    ``select_related`` contains the paths passed to ``select_related()``, and ``implied_references`` those that it
    follows without any. ``mode`` is the fetch mode of the objects, if it is not the default. ``in_memory`` is the limit
    of items and that of bytes which the objects and those of each ``Prefetch`` have together.
    """

    select_related: tuple[str, ...] = ()
    implied_references: tuple[str, ...] = ()
    prefetch_related: tuple[str | Prefetch[Any], ...] = ()
    mode: FetchMode | None = None
    in_memory: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        return self.has_lookups or self.mode is not None

    @property
    def has_lookups(self) -> bool:
        """Whether to read related objects."""
        return bool(self.select_related or self.implied_references or self.prefetch_related)

    @property
    def references(self) -> tuple[str, ...]:
        """The paths of all references."""
        return self.select_related or self.implied_references


NO_RELATED_READS = RelatedReads()


class QueryState(Struct, frozen=True):
    """The state of a queryset for one evaluation.

    ``order_by`` is the requested order, and ``ordering`` that or the model's. Both are Django's values, because an
    unsupported order is an error only if the evaluation needs it. ``known_related`` contains loaded related objects, by
    reference and primary key.
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
    related_reads: RelatedReads = NO_RELATED_READS
    #: Whether the caller reads the result in pages by cursors.
    in_pages: bool = False
    known_related: Mapping[Any, Mapping[Any, Model]] = field(default_factory=dict)
    #: The computation of Django's query in memory: an ``Interpretation``, which this module must not import.
    interpretation: Any = None

    @property
    def label(self) -> str:
        """The model's label, for messages."""
        return self.model._meta.label

    @property
    def layout(self) -> ModelLayout:
        """The layout of the model: its keys and attributes."""
        return registry.layout_of(self.model)

    @property
    def table(self) -> Table:
        """The table that contains the model's items."""
        return get_table(self.layout.alias)

    @property
    def computation(self) -> Computation | None:
        """The computation after reading, if there is one; distinct rows are computed."""
        return self.asked.computation_for(self.model)

    def source(self) -> QueryState:
        """Return the state that reads the complete objects of a computation."""
        computation = self.computation
        asked = replace(self.asked, columns=None, computation=None, distinct=False)
        found = replace(
            self, asked=asked, loading=WHOLE, related_reads=replace(self.related_reads, prefetch_related=())
        )
        if computation is None or not computation.makes_rows:
            return found
        return replace(found.unordered(), reversed=False, window=ALL_MATCHES)

    def unordered(self) -> QueryState:
        """Return the state without an order."""
        return replace(self, order_by=(), ordering=())

    def query(self, *, ordered: bool = True) -> Query:
        """Return the planner's query; raises ``NotSupported`` for a computation, whose source is read first."""
        computation, asked = self.computation, self.asked
        if computation is not None or (self.interpretation is not None and self.interpretation.chooses):
            raise NotSupported(
                f"Cannot do this on results {computation or self.interpretation} in memory. Call it on the queryset of "
                "the objects."
            )
        lookups = unique_rules.lookups_of(self.model)
        if _assumed.get():
            binding = binding_of(self.model)
        else:
            binding = binding_if_known(self.model, self.table) or knowledge.binding_now(self.model)
        missing, layout = AS_DECLARED if _assumed.get() else binding.missing, binding.layout
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
            missing_keys=missing.hidden_keys,
            missing_attributes=missing.unfilled,
            lookups=lookups,
            missing_rules=missing.unclaimed,
            schedule=None if _assumed.get() else binding.schedule,
        )

    def _orders(self) -> tuple[Order, ...]:
        orders = tree.read_ordering(self.model, [sorting.without_missing(self.model, name) for name in self.ordering])
        if not self.reversed:
            return orders
        return tuple(order.reversed() for order in orders)
