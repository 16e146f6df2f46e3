"""Read several querysets together: one Query reads models that are adjacent in one partition.

Each queryset gets the results of its own plan, in its order: the items of its range that meet its filter, which
includes the item type if the range can contain several types. In addition, the combined Query reads only single items
between the ranges. This module does not depend on querysets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import NoAccessPattern, PendingWrite
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Condition, Or, simplify
from dynamo_single.orm.plan.plan import KeyCondition, Plan
from dynamo_single.orm.reading import execute
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.requests.atomic_block import check_plan
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.state import ALL_MATCHES, QueryState
from dynamo_single.orm.schema.keys.template import prefix_end
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.request import Item


class _ModelRange(Struct, frozen=True, eq=False):
    """All objects of a model in one partition, as a part of a queryset."""

    state: QueryState
    plan: Plan
    filter: Condition
    condition: KeyCondition
    found: list[Any]

    @property
    def low(self) -> str:
        """The prefix of all its sort keys."""
        return self.plan.layout.primary.sort.head

    def takes(self, item: Item, sort: str) -> bool:
        """Return whether its own Query would return an item of the partition."""
        return self.condition.includes(sort) and matches(self.filter, item)


async def read_partitions(states: Sequence[QueryState], most: int | None = None) -> list[list[Any] | None]:
    """Return the objects of each queryset: one Query for each megabyte of a partition; ``None`` for one to read
    separately, which all are if there are ``most`` items or more."""
    found = [_plan(state) for state in states]
    kinds = [_model_ranges(state, plan) if plan else [] for state, plan in zip(states, found, strict=True)]
    groups = [*_range_groups(chain.from_iterable(kinds))]
    shared = {id(kind.state) for group in groups if len(group) > 1 for kind in group}
    groups = [group for group in groups if any(id(kind.state) in shared for kind in group)]
    if not groups or not await _read(groups, most):
        return [None] * len(states)
    return [
        _in_order(state, plan, own) if plan and id(state) in shared else None
        for state, plan, own in zip(states, found, kinds, strict=True)
    ]


def adjacent_querysets(states: Mapping[str, QueryState]) -> list[list[str]]:
    """Return the names of querysets of one partition, those together that one Query reads. Sends no requests."""
    plans = {name: _plan(state) for name, state in states.items()}
    kinds = {name: _model_ranges(states[name], plan)[0] for name, plan in plans.items() if plan and plan.conditions}
    groups = [[name for name, kind in kinds.items() if kind in group] for group in _range_groups(kinds.values())]
    return [*groups, *([name] for name in states if name not in kinds)]


def _plan(state: QueryState) -> Plan | None:
    """Return the plan of a queryset that reads all objects of a model in some partitions of the table."""
    asked = state.asked
    special = (
        asked.columns,
        asked.allow_reads,
        asked.in_memory,
        state.computation,
        state.loading[0],
        state.related_reads.has_lookups,
    )
    if state.is_empty or any(special) or state.window != ALL_MATCHES:
        return None
    try:
        plan = objects.plan(state)
    except NoAccessPattern:
        return None  # evaluating the queryset raises the error
    by_table = plan.kind == "query" and plan.key is plan.layout.primary and not plan.projection
    merged = plan.is_merged or plan.is_sharded
    return plan if by_table and not merged and all(_is_whole(plan, each) for each in plan.conditions) else None


def _is_whole(plan: Plan, condition: KeyCondition) -> bool:
    """Return whether a range contains all objects of the model in its partition."""
    head = plan.layout.primary.sort.head
    return not condition.operator or (condition.operator, condition.operands) == ("begins_with", (head,))


def _model_ranges(state: QueryState, plan: Plan) -> list[_ModelRange]:
    condition = lower(plan.filter, plan.layout)
    return [_ModelRange(state, plan, condition, each, []) for each in plan.conditions]


def _range_groups(kinds: Iterable[_ModelRange]) -> Iterator[list[_ModelRange]]:
    """Yield the ranges that one Query reads, in each partition from its beginning on."""
    partitions: dict[tuple[str, str, bool], list[_ModelRange]] = {}
    for kind in kinds:
        place = (kind.plan.layout.alias, kind.condition.partition, kind.plan.consistent)
        partitions.setdefault(place, []).append(kind)
    for ranges in partitions.values():
        group: list[_ModelRange] = []
        for kind in sorted(ranges, key=_lowest_key):
            if group and _has_other_items([*group, kind]):
                yield group
                group = []
            group.append(kind)
        yield group


def _lowest_key(kind: _ModelRange) -> str:
    return kind.low


def _has_other_items(group: Sequence[_ModelRange]) -> bool:
    """Return whether items of other models may be between those of a group."""
    first, last = group[0].low, max(_highest_key(kind.plan.layout) for kind in group)
    own = {kind.plan.layout.label for kind in group}
    partition = group[0].condition.partition
    return any(
        other.primary.sort.parts
        and other.primary.sort.head <= last
        and first <= _highest_key(other)
        and other.primary.has_partition(partition)
        for other in group[0].plan.layout.neighbours()
        if other.label not in own
    )


def _highest_key(layout: ModelLayout) -> str:
    return prefix_end(layout.primary.sort.head)


async def _read(groups: Sequence[Sequence[_ModelRange]], most: int | None) -> bool:
    """Read the items of groups of ranges.

    Return ``False`` if a pending write only affects the combined Query, or if there are ``most`` items or more.
    """
    for alias, consistent in dict.fromkeys((each[0].plan.layout.alias, each[0].plan.consistent) for each in groups):
        some = [each for each in groups if (each[0].plan.layout.alias, each[0].plan.consistent) == (alias, consistent)]
        state, plan = some[0][0].state, _combined_plan(some)
        try:
            check_plan(alias, plan)
        except PendingWrite:
            return False
        takers: dict[str, list[_ModelRange]] = {}
        for kind in chain.from_iterable(some):
            takers.setdefault(kind.condition.partition, []).append(kind)
        items = await execute.item_list(state.table, plan, stop=most)
        if most is not None and len(items) >= most:
            return False
        for item in items:
            partition, sort = key_of(item)
            for kind in takers[partition]:
                if kind.takes(item, sort):
                    kind.found.append(item)
    return True


def _combined_plan(groups: Sequence[Sequence[_ModelRange]]) -> Plan:
    """Return the plan that reads all groups: a Query for each, and more for further pages."""
    filters: list[Condition] = []
    for kind in chain.from_iterable(groups):
        if kind.filter not in filters:
            filters.append(kind.filter)
    return replace(
        groups[0][0].plan,
        conditions=tuple(map(_range, groups)),
        filter=simplify(Or(tuple(filters))),
        forward=True,
        merge="concatenate",
        reason="one Query reads several kinds of objects",
    )


def _range(group: Sequence[_ModelRange]) -> KeyCondition:
    first = group[0]
    if len(group) == 1 or any(not kind.condition.operator for kind in group):
        return first.condition if len(group) == 1 else KeyCondition(first.condition.partition)
    end = max(_highest_key(kind.plan.layout) for kind in group)
    return KeyCondition(first.condition.partition, "between", (first.low, end))


def _in_order(state: QueryState, plan: Plan, kinds: Sequence[_ModelRange]) -> list[DynamoModel]:
    items = chain.from_iterable(kind.found if plan.forward else reversed(kind.found) for kind in kinds)
    return list(map(objects.object_reader(state), items))
