"""The best of a model's keys for a query: every key is weighed, and each other is rejected with a sentence.

What the key leaves open becomes a filter. This module must not know how a query is taken apart or refused.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any

from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.terms import DELETED_AT, ITEM_TYPE, And, Compare, Condition, Not, Or
from dynamo_single.orm.plan.advice import unknown_key
from dynamo_single.orm.plan.candidates import Candidate, KeyRange, weigh
from dynamo_single.orm.plan.constraints import Constraints
from dynamo_single.orm.plan.ordering import Unfit
from dynamo_single.orm.plan.plan import KeyCondition, Plan, Query, Rejection
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.table import names

_KINDS = {"empty": 0, "get": 1, "batch_get": 2, "query": 3}
#: What each place of a candidate's rank means, for the one that is worse there.
_DRAWBACKS = (
    "it would read more than single items",
    "it does not use its whole sort key",
    "it uses fewer parts of its sort key",
    "it narrows no part of its sort key",
    "it leaves more to the filter",
    "the table comes before an index",
    "it is declared later and is just as good",
)


def by_one_key(query: Query, constraints: Constraints, now: Any) -> tuple[Plan | None, list[Rejection]]:
    """Find the plan that reads one key, or ``None``, and why each other key was rejected."""
    candidates, rejected = weigh_all(query, constraints)
    return (chosen(query, candidates, rejected, now) if candidates else None), rejected


def weigh_all(query: Query, constraints: Constraints) -> tuple[list[Candidate], list[Rejection]]:
    candidates: list[Candidate] = []
    rejected: list[Rejection] = []
    for key in _keys(query):
        try:
            _check_usable(key, query)
            candidate = weigh(key, query, constraints, lambda key, reading: _shared(query.layout, key, reading))
            if candidate.kind == "query" and is_canonical(*candidate.residual):
                raise Unfit("it is not written in the canonical form that is compared")
        except Unfit as unfit:
            rejected.append(Rejection(key, str(unfit)))
        else:
            candidates.append(candidate)
    return candidates, rejected


def _keys(query: Query) -> tuple[AccessKey, ...]:
    layout = query.layout
    trash = () if layout.trash is None else (layout.trash,)
    if query.using_index is None:
        return (*layout.keys, *trash) if query.visibility == "deleted" else layout.keys
    everything = (*layout.keys, *trash)
    named = tuple(key for key in everything if query.using_index in (key.name, key.index))
    if not named:
        raise unknown_key(query, everything, query.using_index)
    if query.visibility == "live" and len(named) > 1:
        return tuple(key for key in named if key is not layout.trash)
    return named


def _check_usable(key: AccessKey, query: Query) -> None:
    if {key.name, key.index} & set(query.without):
        raise Unfit("without_index() leaves it out")
    if key.index is None:
        return
    if query.consistent:
        raise Unfit("an index cannot be read consistently")
    is_trash = key is query.layout.trash
    if query.layout.soft_delete and (query.visibility == "all" or is_trash != (query.visibility == "deleted")):
        raise Unfit(f"it does not hold {'live' if is_trash else 'soft-deleted'} items")


def chosen(query: Query, candidates: list[Candidate], rejected: list[Rejection], now: Any) -> Plan:
    declared = {id(key): place for place, key in enumerate((*query.layout.keys, query.layout.trash))}
    ranks = {id(candidate): _rank(candidate, declared[id(candidate.key)]) for candidate in candidates}
    best = min(candidates, key=lambda candidate: ranks[id(candidate)])
    for other in candidates:
        if other is not best:
            pairs = zip(ranks[id(best)], ranks[id(other)], strict=True)
            worse = next(place for place, (ours, theirs) in enumerate(pairs) if ours != theirs)
            rejected.append(Rejection(other.key, _DRAWBACKS[worse]))
    if best.kind == "empty":
        return Plan("empty", query, best.key, reason="no item can have such a key", rejected=tuple(rejected))
    ranges = best.ranges or tuple(KeyRange(KeyCondition(pk, "=", (sk,)), sk) for pk, sk in best.keys)
    wanted = (*best.residual, *visible(query, best.key, ranges), *alive(query.layout, now))
    if any(_is_foreign(query.layout, best.key, reading) for reading in ranges):
        wanted = (*wanted, of_type(query.layout))
    return Plan(
        best.kind,
        query,
        best.key,
        tuple(reading.condition for reading in best.ranges),
        best.keys,
        join(wanted),
        best.served.forward,
        best.served.merge,
        best.served.single,
        _reason(best),
        tuple(rejected),
    )


def _rank(candidate: Candidate, place: int) -> tuple[int, ...]:
    return (
        _KINDS[candidate.kind],
        not candidate.complete,
        -candidate.equal,
        not candidate.narrowed,
        -candidate.consumed,
        candidate.key.index is not None,
        place,
    )


def _reason(best: Candidate) -> str:
    if best.kind == "get":
        return "the whole primary key is given"
    if best.kind == "batch_get":
        return f"{len(best.keys)} whole primary keys are given"
    used = [part.name for part in best.key.sort.parts[: best.equal + best.narrowed]]
    partitions = f"{len(best.ranges)} partitions are" if len(best.ranges) > 1 else "its partition is"
    sort = "its whole sort key" if best.complete else f"its sort key by {', '.join(used)}" if used else ""
    return f"{partitions} given{', and ' + sort if sort else ''}"


def of_type(layout: ModelLayout) -> Condition:
    return Compare(ITEM_TYPE, "exact", layout.item_type)


def alive(layout: ModelLayout, now: Any) -> tuple[Condition, ...]:
    """DynamoDB removes expired items up to days later, so until then they are filtered out."""
    if layout.expires is None:
        return ()
    return (Or((Compare(layout.expires, "isnull", True), Compare(layout.expires, "gt", now))),)


def visible(query: Query, key: AccessKey | None, ranges: tuple[KeyRange, ...]) -> tuple[Condition, ...]:
    layout = query.layout
    if not layout.soft_delete or query.visibility == "all":
        return ()
    if key is not None and key.index is not None:
        # An index holds live items under one key and deleted ones under another; the two may lie in one range.
        others = [other for other in (*layout.indexes, layout.trash) if other is not None and other is not key]
        mixed = [other for other in others if (other is layout.trash) != (key is layout.trash)]
        if not any(_lies_in(other, key, reading) for other in mixed for reading in ranges):
            return ()
    return (Compare(DELETED_AT, "isnull", query.visibility == "live"),)


def _shared(layout: ModelLayout, key: AccessKey, reading: KeyRange) -> bool:
    own = (other for other in (*layout.keys, layout.trash) if other is not None and other is not key)
    return _is_foreign(layout, key, reading) or any(_lies_in(other, key, reading) for other in own)


def _is_foreign(layout: ModelLayout, key: AccessKey, reading: KeyRange) -> bool:
    """Whether items of other models, or unique claims, can lie in the range."""
    if key.index is None and reading.condition.partition.startswith(f"{names.UNIQUE_PREFIX}#"):
        return True
    return any(_lies_in(other, key, reading) for other in _meeting(key, layout, tuple(layout.neighbours())))


@lru_cache(maxsize=1024)
def _meeting(key: AccessKey, layout: ModelLayout, neighbours: tuple[ModelLayout, ...]) -> tuple[AccessKey, ...]:
    """The other models' keys on the same index that can share a partition with this one; compared once."""
    foreign = chain.from_iterable((other.primary, *other.index_keys) for other in neighbours if other is not layout)
    return tuple(other for other in foreign if other.index == key.index and other.partition.could_equal(key.partition))


def _lies_in(other: AccessKey, key: AccessKey, reading: KeyRange) -> bool:
    condition = reading.condition
    if other.index != key.index or not other.partition.matches(condition.partition):
        return False
    if condition.operator == "=":
        return other.sort.matches(condition.operands[0])
    if condition.operator == "begins_with":
        return other.sort.could_start_with(condition.operands[0])
    # All keys between two bounds start with what both start with, except the upper bound itself.
    return other.sort.could_start_with(reading.prefix) or any(map(other.sort.matches, condition.operands))


def is_canonical(*conditions: Condition) -> bool:
    for condition in conditions:
        if isinstance(condition, And | Or) and is_canonical(*condition.children):
            return True
        if isinstance(condition, Not) and is_canonical(condition.child):
            return True
        if isinstance(condition, Compare) and condition.operator == "canonical":
            return True
    return False
