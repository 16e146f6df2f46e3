"""Which attributes a plan reads, where not all of an item is wanted, and the items that are read so.

A projection makes an answer smaller; DynamoDB charges the whole item all the same. This module must not know querysets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from dynamo_single.orm.conditions.algebra import names_in
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import (
    DELETED_AT,
    ITEM_TYPE,
    And,
    Compare,
    ComparePair,
    Condition,
    Not,
    Or,
)
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.table import names


class PartialItem(dict[str, dict[str, Any]]):
    """An item of which only the attributes of some physical ``names`` were read."""

    def __init__(self, item: Mapping[str, dict[str, object]], names: Collection[str]) -> None:
        super().__init__(item)
        self.names = frozenset(names)


def project(plan: Plan, wanted: Collection[str]) -> Plan:
    """Let a plan read these attributes only, and what reading itself needs; whole items if that is all of them.

    What is held in memory is held whole, for other questions.
    Needed are every key that is read by, the identity, what says whether an item is there, what a sequence is put in
    order by, and what conditions compare that are looked at after reading.
    """
    layout = plan.layout
    state = {DELETED_AT, layout.expires} if layout.soft_delete else {layout.expires}
    ordering = (order.attribute for order in plan.query.ordering)
    # Of a place inside a document, the document.
    sorted_by = (sort.attribute.partition("__")[0] for sort in plan.in_memory.ordering) if plan.in_memory else ()
    read = {*wanted, *layout.identity, *state, *ordering, *sorted_by}
    # An upgrade of an item takes all of it.
    if layout.schema is not None or plan.kind in ("empty", "held") or layout.attributes.keys() <= {*read, ITEM_TYPE}:
        return plan
    stored = tuple(info.stored for name, info in layout.attributes.items() if name in read)
    # Whoever makes objects of the items may have heard meanwhile that the other name is the one to read.
    stored += tuple(twin.other for twin in layout.twins if twin.used in stored)
    parts = tuple(replace(part, projection=_projection(part, stored)) for part in plan.parts)
    return replace(plan, projection=_projection(plan, stored), parts=parts)


def narrow(plan: Plan, wanted: Collection[str]) -> Plan:
    """Let a plan that does not read whole items read these attributes and the type only, if its pages are the result.

    ``wanted`` may name the whole identity, which is no attribute.
    """
    if not plan.projection or not plan.comes_in_pages:
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
    keys = () if index is None else (names.index_partition(index), names.index_sort(index))
    # DynamoDB takes no filter for single items, and what another part of a union gives is dropped after reading.
    matched = (*((plan.filter,) if plan.kind in ("get", "batch_get", "claim") else ()), *plan.others)
    compared = (name for condition in matched for name in names_in(lower(condition, layout)))
    claimed = () if plan.lookup is None else (names.DELETED_AT, *sorted(plan.lookup.stored))
    physical = (names.PARTITION_KEY, names.SORT_KEY, names.ITEM_TYPE, *keys, *stored, *compared, *claimed)
    return tuple(dict.fromkeys(physical))


def attributes_of(condition: Condition) -> Iterator[str]:
    """The attributes that a condition names, in the model's own names."""
    if isinstance(condition, Compare):
        yield condition.attribute
    elif isinstance(condition, ComparePair):
        yield from (condition.attribute, condition.other)
    elif isinstance(condition, Not):
        yield from attributes_of(condition.child)
    elif isinstance(condition, And | Or):
        for child in condition.children:
            yield from attributes_of(child)
