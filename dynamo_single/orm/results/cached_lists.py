"""Cache the rows of a list, up to a bound, and evaluate in memory what no key supports.

DynamoDB executes a query that keys support exactly. For any other query, the app reads the complete range of its key
conditions without a filter. Python evaluates all conditions, orders and measures: a page of the admin sends many
queries for the same rows. This module does not depend on querysets or objects.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from dynamo_single.exceptions import NoAccessPattern, TooManyMatches
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import (
    DELETED_AT,
    EVERYTHING,
    ITEM_TYPE,
    Compare,
    Condition,
    conjuncts,
    join,
    simplify,
)
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.choice import needs_python
from dynamo_single.orm.plan.plan import DEFAULT_BYTES, KeyCondition, Plan, Query, attributes_of
from dynamo_single.orm.reading import execute
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.requests.expressions import split_conditions
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table.request import NewItem
from dynamo_single.table.table import Table

#: The part of a plan that decides which items are read: the index, the key conditions, and the consistency.
ReadRange = tuple[str | None, tuple[KeyCondition, ...], bool]


class CachedLists:
    """The cached rows: at most ``limit`` items of each range, and as many of each partition if there are several.

    The items of one range have at most ``most_bytes`` bytes together.

    ``is_exceeded`` is set after ``TooManyMatches`` reported that there are more, which are not read again, and
    ``is_heavy`` if there are too many bytes.
    """

    def __init__(self, limit: int, most_bytes: int = DEFAULT_BYTES) -> None:
        self.limit = limit
        self.most_bytes = most_bytes
        self.is_exceeded = False
        self.is_heavy = False
        self._read: dict[ReadRange, list[NewItem] | None] = {}

    @property
    def is_used(self) -> bool:
        """Whether Python has evaluated any query."""
        return any(found is not None for found in self._read.values())

    def has(self, plan: Plan) -> bool:
        """Return whether the cache contains the range of a plan."""
        return self._read.get((plan.index, plan.conditions, plan.consistent)) is not None

    @property
    def rows(self) -> int:
        """The number of cached items."""
        return sum(len(found) for found in self._read.values() if found is not None)

    async def pages(
        self, table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None
    ) -> AsyncGenerator[Sequence[NewItem], None]:
        """Yield the items of a plan of the kind ``held``, from number ``skip`` up to ``stop``, as one page."""
        condition = lower(plan.filter, plan.layout)
        items = await self._items(table, plan.parts[0])
        found = [item for item in items if matches(condition, item)] if condition != EVERYTHING else items
        yield found[skip:stop]

    async def hold(self, table: Table, plan: Plan) -> None:
        """Read the range of a plan of the kind ``held``, unless it is cached."""
        await self._items(table, plan.parts[0])

    async def _items(self, table: Table, reach: Plan) -> list[NewItem]:
        key = reach.index, reach.conditions, reach.consistent
        if key not in self._read:
            self._read[key], is_heavy = await _read_range(table, reach, self.limit, self.most_bytes)
            self.is_heavy |= is_heavy
        known = self._read[key]
        if known is None:
            self.is_exceeded = True
            raise TooManyMatches(
                f"{reach.layout.label}: there are more than {self.limit} objects to read, or more than "
                f"{self.most_bytes} bytes, which are the limits for lists in memory. The result would be incomplete, "
                "so none is returned. Filter further, or raise the limit with .allow_in_memory(limit=..., "
                "max_bytes=...).",
                limit=self.limit,
            )
        return known


async def _read_range(table: Table, reach: Plan, limit: int, most_bytes: int) -> tuple[list[NewItem] | None, bool]:
    """Return the items of a range, each once; ``None`` for more than the limits allow, and whether of bytes."""
    found: dict[ItemKey, NewItem] = {}
    size, stop = 0, None if reach.kind == "union" else limit + 1
    async with aclosing(execute.pages(table, reach, stop=stop)) as pages:
        async for page in pages:
            for item in page:
                found.setdefault(key_of(item), item)
            size += sum(map(item_size, page))
            if len(found) > limit or size > most_bytes:
                return None, size > most_bytes
    return list(found.values()), False


def is_exact(plan: Plan) -> bool:
    """Return whether a plan reads only matching items: its keys express all conditions."""
    if plan.kind == "union":
        return all(map(is_exact, plan.parts))
    return plan.kind not in ("scan", "held") and (
        plan.kind != "query" or _type_conditions(plan) == conjuncts(plan.filter)
    )


def plan_cached(query: Query, *, now: object) -> Plan:
    """Return the plan that caches the range of a query's key conditions; ``query`` has no order.

    It reads single items by their keys instead. Raises ``NoAccessPattern`` if no key supports a range of the query.
    """
    try:
        found = planner.plan(query, now=now)
    except NoAccessPattern:
        found = _weaker_plan(query, now)
    if found.kind in ("get", "batch_get", "claim", "empty"):
        return found
    if found.kind == "union":
        found = _weaker_plan(query, now)
    wanted = join((query.where, *_type_conditions(found)))
    reach = replace(found, filter=EVERYTHING, query=replace(found.query, where=EVERYTHING))
    return Plan(
        "held",
        query,
        found.key,
        filter=wanted,
        parts=(reach,),
        reason="the app keeps the objects that the key reads in memory",
    )


def with_short_filter(plan: Plan, limit: int) -> Plan:
    """Return the plan itself if DynamoDB accepts the length of its filters.

    Otherwise Python evaluates the longest conditions: the plan caches up to ``limit`` items that match the others, in
    the same order.
    """
    if plan.kind == "union":
        parts = [_divided(part) for part in plan.parts]
        if not any(rest for _, rest in parts):
            return plan
        # Only all conditions together define the items that a part excludes because another part returns them.
        reach = replace(plan, parts=tuple(replace(part, exclusions=()) for part, _ in parts), in_memory=None)
        wanted = plan.query.where
    else:
        reach, rest = _divided(plan)
        if not rest:
            return plan
        wanted = join(rest)
    return Plan(
        "held",
        plan.query,
        plan.key,
        filter=wanted,
        parts=(reach,),
        in_memory=plan.in_memory,
        rejected=plan.rejected,
        reason=(
            "DynamoDB does not accept a filter of this length, so the app keeps the results of the other "
            f"conditions, at most {limit} items"
        ),
    )


def _divided(plan: Plan) -> tuple[Plan, tuple[Condition, ...]]:
    """Return the plan with as much of its filter as DynamoDB accepts, and the rest of the filter."""
    if plan.kind not in ("query", "scan") or plan.filter == EVERYTHING:
        return plan, ()
    sent, rest = split_conditions(conjuncts(plan.filter), plan.layout, first=_type_conditions(plan))
    return (replace(plan, filter=join(sent)), rest) if rest else (plan, ())


def _weaker_plan(query: Query, now: object) -> Plan:
    """Return the plan of the conditions that keys support, without alternatives and comparisons of Python."""
    terms = [term for term in conjuncts(simplify(query.where)) if isinstance(term, Compare) and not needs_python(term)]
    for where in (join(terms), EVERYTHING):
        try:
            found = planner.plan(replace(query, where=where), now=now)
        except NoAccessPattern:
            continue
        if found.kind in ("query", "scan"):
            return found
    return planner.plan(query, now=now)


def _type_conditions(plan: Plan) -> tuple[Condition, ...]:
    """Return the conditions of a plan's filter that decide whether an item is one of the model's objects."""
    always = {DELETED_AT, ITEM_TYPE, plan.layout.expires}
    return tuple(term for term in conjuncts(plan.filter) if {*attributes_of(term)} <= always)
