"""Compare a key's own order with the order that a query requests.

Attributes that the query fixes to one value order nothing and may stand anywhere. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions.terms import Order
from dynamo_single.orm.conditions.wording import ordering_text
from dynamo_single.orm.plan.constraints import Constraints
from dynamo_single.orm.plan.plan import Merge, Query, Sort
from dynamo_single.orm.schema.keys.template import KeyPart
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.table.request import Item

#: The types of stored values that have an order in memory.
_SORTABLE = frozenset(("S", "N", "B", "BOOL"))


class UnsuitableKey(Exception):
    """The reason why a key cannot serve a query; the planner always catches it."""


class ReadOrder(Struct, frozen=True):
    """The way to read a key so that its items have the requested order."""

    forward: bool = True
    merge: Merge = "concatenate"
    partitions: tuple[str, ...] = ()
    single: bool = False
    #: Whether this is the requested order: without one, partitions may be read in any sequence.
    orders: bool = False


def read_order_of(query: Query, key: AccessKey, constraints: Constraints, partitions: Item) -> ReadOrder:
    """Return the direction, and the order of several partitions, for reading a key; or raise ``UnsuitableKey``."""
    names = tuple(partitions)
    wanted = _wanted(query.ordering, constraints)
    if not wanted:
        return ReadOrder(partitions=names)
    settled = {name for name in query.layout.identity if constraints.fixed(name)}
    sort_parts = [part for part in key.sort.parts if not _constant(part, constraints)]
    if len(names) > 1:
        varying = [part for part in key.partition.parts if len(constraints.allowed.get(part.name, ())) > 1]
        leading = wanted[: len(varying)]
        if [order.attribute for order in leading] == [part.name for part in varying]:
            names = tuple(_sorted_partitions(leading, varying, partitions))
            rest = wanted[len(varying) :]
            settled |= {part.name for part in varying}
            # A part that is the same all through a partition orders nothing within it.
            inner = [part for part in sort_parts if part.name not in settled]
            forward = not rest or _direction(query, rest, inner, settled, constraints)
            return ReadOrder(forward, "concatenate", names, orders=True)
        return ReadOrder(_direction(query, wanted, sort_parts, settled, constraints), "sort_key", names)
    return ReadOrder(_direction(query, wanted, sort_parts, settled, constraints), "concatenate", names)


def merged_order(served: ReadOrder) -> ReadOrder:
    """Return the same for a sharded key, whose shards the app merges by the sort key; or raise ``UnsuitableKey``."""
    several = len(served.partitions) > 1
    if several and served.merge == "concatenate" and not served.single and served.orders:
        raise UnsuitableKey("the app merges its shards by the sort key, so it cannot read its partitions sequentially")
    return replace(served, merge="sort_key")


def memory_order(
    query: Query,
    found: Mapping[tuple[str, str], Mapping[str, object]],
    constraints: Constraints,
    parts: Sequence[KeyPart],
) -> Iterable[tuple[str, str]]:
    """Sort complete primary keys in the query's order; raise ``UnsuitableKey`` if their values do not determine it."""
    by_name = {part.name: part for part in parts}
    wanted = _wanted(query.ordering, constraints)
    # A stable sort keeps the sequence of equal keys, so the opposite order needs them reversed.
    keys = list(found)[::-1] if wanted and wanted[-1].descending else list(found)
    for order in reversed(wanted):
        part = by_name.get(order.attribute)
        if part is None or not part.bound.ordered:
            raise UnsuitableKey(
                f"the app can sort individual items only by {', '.join(by_name)}, not by {order.attribute}"
            )
        texts = {key: part.bound.encode(found[key][order.attribute]) for key in keys}
        keys.sort(key=texts.__getitem__, reverse=order.descending)
    return keys


def sorts_like(key: AccessKey, query: Query, constraints: Constraints) -> tuple[Sort, ...]:
    """Return the sorts that put items into the order of a key, or raise ``UnsuitableKey``.

    Attributes outside the query's order break ties, as in the key, and the identity comes last. Across several
    partitions the key has the order too if the query orders by these first.
    """
    wanted = _wanted(query.ordering, constraints)
    settled = {name for name in query.layout.identity if constraints.fixed(name)}
    parts = [part for part in key.sort.parts if not _constant(part, constraints)]
    varying = [part for part in key.partition.parts if not _constant(part, constraints)]
    leading = wanted[: len(varying)]
    sorts: list[Sort] = []
    if [order.attribute for order in leading] == [part.name for part in varying]:
        wanted = wanted[len(varying) :]
        settled |= {part.name for part in varying}
        parts = [part for part in parts if part.name not in settled]
        given = zip(leading, varying, strict=True)
        sorts = [Sort(order.attribute, order.descending, part=part) for order, part in given]
        if not all(part.bound.ordered for part in varying):
            raise UnsuitableKey(f"{key.name} does not have its partitions in the order of their values")
    descending = not _direction(query, wanted, parts, settled, constraints) if wanted else False
    sorts += [Sort(part.name, descending, part=part) for part in parts]
    return (*sorts, *_identity_after(query, sorts, descending=descending))


def check_sortable(query: Query, constraints: Constraints) -> None:
    """Raise ``UnsuitableKey`` for a query that does not allow sorting in memory."""
    if query.in_pages:
        raise UnsuitableKey("a page starts at the end of the previous page, so the app cannot sort results in memory")
    for order in _wanted(query.ordering, constraints):
        info = query.layout.attributes[order.attribute]
        if info.type not in _SORTABLE or not (info.kind or info.type == "B"):
            raise UnsuitableKey(f"the values of {order.attribute} have no order")


def sorts_by_value(query: Query, constraints: Constraints) -> tuple[Sort, ...]:
    """Return the sort of items if no key has their order; the identity breaks ties."""
    wanted = _wanted(query.ordering, constraints)
    sorts = [Sort(order.attribute, order.descending, order.missing_first) for order in wanted]
    return (*sorts, *_identity_after(query, sorts, descending=bool(sorts) and sorts[-1].descending))


def _identity_after(query: Query, sorts: Iterable[Sort], *, descending: bool) -> tuple[Sort, ...]:
    seen = {sort.attribute for sort in sorts if sort.part is None or not sort.part.path}
    return tuple(Sort(name, descending) for name in query.layout.identity if name not in seen)


def significant_order(query: Query, constraints: Constraints) -> tuple[Order, ...]:
    """Return the part of a query's order that distinguishes its items."""
    found: list[Order] = []
    seen = {name for name in query.layout.identity if constraints.fixed(name)}
    for order in _wanted(query.ordering, constraints):
        if seen.issuperset(query.layout.identity):
            break
        found.append(order)
        seen.add(order.attribute)
    return tuple(found)


def _wanted(ordering: Sequence[Order], constraints: Constraints) -> list[Order]:
    first: dict[str, Order] = {}
    for order in ordering:
        if not constraints.fixed(order.attribute):
            first.setdefault(order.attribute, order)
    return list(first.values())


def _constant(part: KeyPart, constraints: Constraints) -> bool:
    if constraints.fixed(part.name):
        return True
    return part.bound.spec == "canonical" and any(term.operator == "canonical" for term in constraints.on(part.name))


def _sorted_partitions(leading: Sequence[Order], varying: Sequence[KeyPart], partitions: Item) -> list[str]:
    names = list(partitions)
    for order, part in reversed(list(zip(leading, varying, strict=True))):
        if not part.bound.ordered:
            raise UnsuitableKey(f"the stored form of {part.name} does not sort like its values")
        texts = {name: part.bound.encode(partitions[name][part.name]) for name in names}
        names.sort(key=texts.__getitem__, reverse=order.descending)
    return names


def _has_missing_where_wanted(order: Order, part: KeyPart, constraints: Constraints) -> bool:
    """Return whether the position of objects without a value matches the order, if both specify it."""
    if order.missing_first is None or not part.place or constraints.excludes_empty(order.attribute, text=False):
        return True
    return order.missing_first == ((part.place == "first") != order.descending)


def _direction(
    query: Query, wanted: Sequence[Order], parts: Sequence[KeyPart], settled: Iterable[str], constraints: Constraints
) -> bool:
    names = [part.name for part in parts]
    seen = set(settled)
    for position, order in enumerate(wanted):
        if seen.issuperset(query.layout.identity):
            # No two items are equal after this, so further attributes do not change their order.
            break
        if position >= len(names) or names[position] != order.attribute:
            kept = f"its order is {', '.join(names)}" if names else "it keeps no order"
            raise UnsuitableKey(f"{kept}, not {ordering_text(wanted)}")
        if order.descending != wanted[0].descending:
            raise UnsuitableKey(f"a Query reads it in one direction, so it cannot order by {ordering_text(wanted)}")
        if not _has_missing_where_wanted(order, parts[position], constraints):
            raise UnsuitableKey(
                f"it sorts items without {order.attribute} at the other end than {ordering_text(wanted)} requires"
            )
        if not parts[position].ordered:
            raise UnsuitableKey(f"the stored form of {order.attribute} does not sort like its values")
        seen.add(order.attribute)
    return not wanted[0].descending
