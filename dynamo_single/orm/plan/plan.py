"""The values that a read passes through: a query and its plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import (
    DELETED_AT,
    EVERYTHING,
    ITEM_TYPE,
    Compare,
    ComparePair,
    Condition,
    Order,
    leaves,
    names_in,
)
from dynamo_single.orm.conditions.wording import ordering_text
from dynamo_single.table import names

if TYPE_CHECKING:
    from dynamo_single.orm.plan.unique_lookups import Lookup
    from dynamo_single.orm.schema.keys.shards import Schedule
    from dynamo_single.orm.schema.keys.template import KeyPart
    from dynamo_single.orm.schema.layout import AccessKey, ModelLayout


Visibility = Literal["live", "deleted", "all"]


PlanKind = Literal["empty", "get", "batch_get", "claim", "query", "scan", "union", "held"]


SortOperator = Literal["", "=", "begins_with", "between", "<", "<=", ">", ">="]


Merge = Literal["concatenate", "sort_key"]


_COMPARISONS = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


class Sort(Order, frozen=True):
    """Sorting by one attribute in memory; without ``missing_first`` a missing value counts as the least of all.

    With a ``part`` of a key, values and missing ones come as that key has them.
    """

    part: KeyPart | None = None


#: The default of ``allow_in_memory(max_bytes=...)``: 32 MB, as DynamoDB counts the sizes of items.
DEFAULT_BYTES = 32 * 1024 * 1024


class InMemory(Struct, frozen=True):
    """The processing of the matches after reading: a sort, or the ``work`` described in words.

    Without a ``limit`` something else bounds how many there are. ``is_reversed`` turns the whole result round.
    ``key_name`` names the key that has the same order.
    """

    limit: int | None
    ordering: tuple[Sort, ...] = ()
    is_reversed: bool = False
    work: str = ""
    key_name: str = ""

    def __str__(self) -> str:
        """Describe the processing, as ``explain()`` prints it."""
        sorts = ordering_text(self.ordering)
        work = " and ".join(filter(None, (self.work, sorts and f"sorted by {sorts}")))
        bound = "" if self.limit is None else f", at most {self.limit} matches"
        like = f", as {self.key_name} has them" if self.key_name else ""
        return f"{work} in memory{bound}{like}{', reversed' if self.is_reversed else ''}"


class Query(Struct, frozen=True):
    """The query, in the model's own names."""

    layout: ModelLayout
    where: Condition = EVERYTHING
    ordering: tuple[Order, ...] = ()
    visibility: Visibility = "live"
    using_index: str | None = None
    consistent: bool = False
    allow_scan: bool = False
    without: tuple[str, ...] = ()
    #: The maximum number of discarded items, if the queryset sets it.
    allow_reads: int | None = None
    #: The names of keys that not every item has, and of such attributes.
    missing_keys: frozenset[str] = frozenset()
    missing_attributes: frozenset[str] = frozenset()
    #: Whether the result is read in pages, each from the end of the previous page: sorting in memory is impossible.
    in_pages: bool = False
    #: The ways to find an object by a unique value, and the fingerprints of the incomplete ones.
    lookups: tuple[Lookup, ...] = ()
    missing_rules: frozenset[str] = frozenset()
    #: How many shards the model's sharded keys have; ``None`` for a model without any.
    schedule: Schedule | None = None


class KeyCondition(Struct, frozen=True):
    """The range of one Query: one partition, and at most one condition on the sort key.

    For a sharded key it is one shard: ``partition`` is then the whole string, and ``place`` its number.
    """

    partition: str
    operator: SortOperator = ""
    operands: tuple[str, ...] = ()
    place: int = 0

    def includes(self, sort: str) -> bool:
        """Return whether the range includes an item of the partition with this sort key."""
        if not self.operator:
            return True
        first, last = self.operands[0], self.operands[-1]
        if self.operator == "begins_with":
            return sort.startswith(first)
        if self.operator == "between":
            return first <= sort <= last
        return bool(_COMPARISONS[self.operator](sort, first))


class Rejection(Struct, frozen=True):
    """The reason why a key does not support a query."""

    key: AccessKey
    reason: str


class Plan(Struct, frozen=True):
    """The requests of a query, and the processing of their results.

    ``keys`` are the primary keys of a get or a batch_get, in the order of the results. ``conditions`` are a query's,
    one request each (and more for further pages). ``filter`` contains the conditions outside the key: DynamoDB applies
    it for a query and a scan, the reader applies it to each item of a get, a batch_get and a claim. The ``keys`` of a
    claim are the claims' own, which name the objects' keys; ``lookup`` describes the claimed values.

    With several conditions ``merge`` sets the order of their items: ``concatenate``, or ``sort_key`` to merge them by
    the string of the key's sort attribute, descending unless ``forward``.

    A union has ``parts``, plans of the other kinds. The app reads them sequentially, or merges them in the requested
    order. Each item comes from one part only: a part omits items that meet a condition of its ``exclusions``, in stored
    names. ``merged_by`` is the part of the order that distinguishes items, and empty if there is none.

    ``projection`` contains the physical names to read of each item; without any, it reads the whole item. With
    ``in_memory`` the matches are processed further. A ``held`` plan has one part. The app reads it once, without its
    filter, which the reader applies to each item.
    """

    kind: PlanKind
    query: Query
    key: AccessKey | None = None
    conditions: tuple[KeyCondition, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    filter: Condition = EVERYTHING
    forward: bool = True
    merge: Merge = "concatenate"
    single: bool = False
    reason: str = ""
    rejected: tuple[Rejection, ...] = ()
    parts: tuple[Plan, ...] = ()
    exclusions: tuple[Condition, ...] = ()
    merged_by: tuple[Order, ...] = ()
    projection: tuple[str, ...] = ()
    in_memory: InMemory | None = None
    lookup: Lookup | None = None

    def backwards(self) -> Plan:
        """The plan that gives the same items in the opposite order; for a plan without an order of its own."""
        return replace(
            self,
            forward=not self.forward,
            keys=self.keys[::-1],
            # The app merges shards, so the direction alone reverses the order.
            conditions=self.conditions if self.is_sharded else self.conditions[::-1],
            parts=tuple(part.backwards() for part in self.parts[::-1]),
        )

    @property
    def is_sharded(self) -> bool:
        """Whether what is read is divided into shards, be it one."""
        return self.kind == "query" and self.key is not None and self.key.sharding is not None

    @property
    def is_merged(self) -> bool:
        """Whether to merge the items of several conditions."""
        return self.merge == "sort_key" and len(self.conditions) > 1

    @property
    def is_paged(self) -> bool:
        """Whether the result is the items of the pages in sequence, without a check of each item."""
        return self.kind in {"query", "scan"} and not self.is_merged and self.in_memory is None

    @property
    def layout(self) -> ModelLayout:
        """The layout of the queried model."""
        return self.query.layout

    @property
    def index(self) -> str | None:
        """The index of the read; ``None`` for the table itself."""
        return None if self.key is None else self.key.index

    @property
    def consistent(self) -> bool:
        """Whether the requests are strongly consistent, as those of a claim always are."""
        return self.query.consistent or self.kind == "claim"


# The attributes that a plan reads if it does not need whole items.  A projection makes a response smaller, but DynamoDB
# charges for the whole item. This module does not depend on querysets.


class PartialItem(dict[str, dict[str, Any]]):
    """An item of which only the attributes of some physical ``names`` were read."""

    def __init__(self, item: Mapping[str, dict[str, object]], names: Collection[str]) -> None:
        super().__init__(item)
        self.names = frozenset(names)


def project(plan: Plan, wanted: Collection[str]) -> Plan:
    """Limit a plan to these attributes and those that reading needs; read whole items if these are all.

    Cached results are whole items, for other queries. Required attributes are those of every used key, the identity,
    the markers of the trash and expiry, the attributes of the order, and the attributes of conditions that the app
    checks after reading.
    """
    layout = plan.layout
    state = {DELETED_AT, layout.expires} if layout.soft_delete else {layout.expires}
    ordering = (order.attribute for order in plan.query.ordering)
    # For a path inside a document, the document.
    sorted_by = (sort.attribute.partition("__")[0] for sort in plan.in_memory.ordering) if plan.in_memory else ()
    read = {*wanted, *layout.identity, *state, *ordering, *sorted_by}
    if plan.kind in ("empty", "held") or layout.attributes.keys() <= {*read, ITEM_TYPE}:
        return plan
    stored = tuple(info.stored for name, info in layout.attributes.items() if name in read)
    # By the time objects are created from the items, the other name may be the current one.
    stored += tuple(twin.other for twin in layout.twins if twin.used in stored)
    parts = tuple(replace(part, projection=_projection(part, stored)) for part in plan.parts)
    return replace(plan, projection=_projection(plan, stored), parts=parts)


def narrow(plan: Plan, wanted: Collection[str]) -> Plan:
    """Let a plan that does not read whole items read these attributes and the type only, if its pages are the result.

    ``wanted`` may name the whole identity, which is no attribute.
    """
    if not plan.projection or not plan.is_paged:
        return plan
    attributes = plan.layout.attributes
    read = wanted if attributes.keys() >= set(wanted) else {*wanted, *plan.layout.identity}
    stored = (info.stored for name, info in attributes.items() if name in read)
    return replace(plan, projection=tuple(dict.fromkeys((names.ITEM_TYPE, *stored))))


def widen(plan: Plan, wanted: Collection[str]) -> Plan:
    """Let a plan read these attributes as well, if it does not read whole items."""
    stored = [plan.layout.attributes[name].stored for name in wanted if name in plan.layout.attributes]
    if not plan.projection:
        return plan
    parts = tuple(replace(part, projection=(*dict.fromkeys((*part.projection, *stored)),)) for part in plan.parts)
    return replace(plan, projection=(*dict.fromkeys((*plan.projection, *stored)),), parts=parts)


def _projection(plan: Plan, stored: Iterable[str]) -> tuple[str, ...]:
    layout = plan.layout
    index = plan.index
    keys = () if index is None else names.key_names(index)
    # DynamoDB does not filter single items, and the app drops duplicates of another part of a union after reading.
    matched = (*((plan.filter,) if plan.kind in ("get", "batch_get", "claim") else ()), *plan.exclusions)
    compared = (name for condition in matched for name in names_in(lower(condition, layout)))
    claimed = () if plan.lookup is None else (names.DELETED_AT, *sorted(plan.lookup.stored_names))
    physical = (names.PARTITION_KEY, names.SORT_KEY, names.ITEM_TYPE, *keys, *stored, *compared, *claimed)
    return tuple(dict.fromkeys(physical))


def attributes_of(condition: Condition) -> Iterator[str]:
    """The attributes that a condition names, in the model's own names."""
    for each in leaves(condition):
        if isinstance(each, Compare):
            yield each.attribute
        elif isinstance(each, ComparePair):
            yield from (each.attribute, each.other)
