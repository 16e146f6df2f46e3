"""Choose the best of a model's keys for a query: weigh every key, and reject each other key with a sentence.

Conditions outside the key become a filter. This module does not depend on how a query is split or rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.terms import DELETED_AT, IN_PYTHON, ITEM_TYPE, Compare, Condition, Or, join, leaves
from dynamo_single.orm.plan.candidates import Candidate, evaluate_key, sorted_in_memory
from dynamo_single.orm.plan.constraints import Constraints
from dynamo_single.orm.plan.neighbours import KEY, KeyRange, Shape, Sharing, neighbours
from dynamo_single.orm.plan.ordering import UnsuitableKey, check_sortable
from dynamo_single.orm.plan.plan import KeyCondition, Plan, Query, Rejection
from dynamo_single.orm.plan.unique_lookups import Lookup, claims_of
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout

if TYPE_CHECKING:
    from dynamo_single.orm.plan import advice
else:
    advice = LazyModule("dynamo_single.orm.plan.advice")

_KINDS = {"empty": 0, "get": 1, "batch_get": 2, "query": 3}
#: The explanation for each position of a candidate's rank, for the candidate that is worse there.
_DRAWBACKS = (
    "it would read more than single items",
    "it does not use its whole sort key",
    "it uses fewer parts of its sort key",
    "it narrows no part of its sort key",
    "it leaves more to the filter",
    "the table comes before an index",
    "it is equally good, but comes later in Keys",
)


def plan_of_one_key(query: Query, constraints: Constraints, now: object) -> tuple[Plan | None, list[Rejection]]:
    """Find the plan that reads one key, or claims, or ``None``, and the reason against each other key."""
    candidates, rejected = evaluate_keys(query, constraints)
    claimed = plan_of_claims(query, constraints, candidates, now) if query.lookups else None
    if claimed is not None:
        passed_over = (Rejection(each.key, _DRAWBACKS[0]) for each in candidates)
        return _in_order(replace(claimed, rejected=(*rejected, *passed_over)), constraints, candidates), rejected
    if not candidates:
        return None, rejected
    found = best_plan(query, candidates, rejected, now)
    is_ordered = any(each.kind == "batch_get" and each.served.orders for each in candidates)
    return (found if is_ordered else _in_order(found, constraints, candidates)), rejected


def _in_order(plan: Plan, constraints: Constraints, candidates: Sequence[Candidate]) -> Plan:
    if plan.kind not in ("batch_get", "claim") or plan.single or not plan.query.ordering:
        return plan
    return with_memory_sort(plan, constraints, candidates)


def with_memory_sort(plan: Plan, constraints: Constraints, candidates: Sequence[Candidate] = ()) -> Plan:
    """Let a plan of single items sort them in memory, as the best of the other keys with this order has them."""
    query = plan.query
    others = sorted(_ranked(query.layout, candidates), key=itemgetter(0))
    keys = (*(each.key for _, each in others if each.kind == "query"), *_keys(query))
    return replace(plan, in_memory=sorted_in_memory(query, constraints, keys))


def plan_of_claims(
    query: Query, constraints: Constraints, candidates: Sequence[Candidate] = (), now: object = None
) -> Plan | None:
    """Find the plan that reads claims; ``None`` if no rule is given completely, or a key finds the one item by itself.

    Objects in the trash have no claims, and several claims have no order, so pages do not use them.
    """
    layout = query.layout
    if query.using_index is not None or (layout.soft_delete and query.visibility != "live"):
        return None
    if any(_finds_one(candidate, query.lookups) for candidate in candidates):
        return None
    for lookup in query.lookups:
        if lookup.fingerprint in query.missing_rules:
            continue
        keys = claims_of(lookup, constraints, layout)
        if keys is not None and (len(keys) < 2 or not query.ordering or is_sortable(query, constraints)):
            return _of_claims(query, constraints, lookup, keys, now)
    return None


def is_sortable(query: Query, constraints: Constraints) -> bool:
    """Return whether the app can sort the results of a query in memory, given a limit on their number."""
    try:
        check_sortable(query, constraints)
    except UnsuitableKey:
        return False
    return True


def _finds_one(candidate: Candidate, lookups: Iterable[Lookup]) -> bool:
    """Return whether a key reads only complete keys, or the items of one unique value by one Query."""
    parts = (*candidate.key.partition.parts, *candidate.key.sort.parts[: candidate.equal])
    given = {part.name for part in parts}
    is_one = len(candidate.ranges) == 1 and any(given.issuperset(lookup.fields) for lookup in lookups)
    return candidate.kind != "query" or is_one


def _of_claims(
    query: Query, constraints: Constraints, lookup: Lookup, keys: tuple[tuple[str, str], ...], now: object
) -> Plan:
    primary = query.layout.primary
    if not keys:
        return Plan("empty", query, primary, reason=f"no object can have such a {lookup.name}")
    # The claim is not sufficient: its owner may have changed since then, and claims contain strings in a normal form.
    wanted = (*constraints.terms, *visibility_condition(query, None), *unexpired_condition(query.layout, now))
    verb, several = ("are", "together") if len(lookup.fields) > 1 else ("is", "")
    return Plan(
        "claim",
        query,
        primary,
        keys=keys,
        filter=join(wanted),
        single=len(keys) == 1,
        reason=f"{lookup.name} {verb} unique{several and ' ' + several}, so that a claim names the object",
        lookup=lookup,
    )


def evaluate_keys(query: Query, constraints: Constraints) -> tuple[list[Candidate], list[Rejection]]:
    candidates: list[Candidate] = []
    rejected: list[Rejection] = []
    for key in _keys(query):
        try:
            _check_usable(key, query)
            candidate = evaluate_key(
                key, query, constraints, lambda key, reading: is_shared(query.layout, key, reading)
            )
            if candidate.kind == "query" and needs_python(*candidate.residual):
                raise UnsuitableKey("it does not contain the canonical form that the query compares")
        except UnsuitableKey as unfit:
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
        raise advice.unknown_key(query, everything, query.using_index)
    if query.visibility == "live" and len(named) > 1:
        return tuple(key for key in named if key is not layout.trash)
    return named


def _check_usable(key: AccessKey, query: Query) -> None:
    if {key.name, key.index} & set(query.without):
        raise UnsuitableKey("without_index() leaves it out")
    if key.name in query.missing_keys:
        raise UnsuitableKey("some items may not have it until a migration has backfilled it")
    if key.index is None:
        return
    if query.consistent:
        raise UnsuitableKey("an index does not support consistent reads")
    is_trash = key is query.layout.trash
    if query.layout.soft_delete and (query.visibility == "all" or is_trash != (query.visibility == "deleted")):
        raise UnsuitableKey(f"it does not hold {'live' if is_trash else 'soft-deleted'} items")


def best_plan(query: Query, candidates: list[Candidate], rejected: list[Rejection], now: object) -> Plan:
    best = candidates[0] if len(candidates) == 1 else _best(query.layout, candidates, rejected)
    if best.kind == "empty":
        return Plan("empty", query, best.key, reason="no item can have such a key", rejected=tuple(rejected))
    wanted = (*best.residual, *visibility_condition(query, best), *unexpired_condition(query.layout, now))
    if can_contain_others(neighbours(query.layout, best.key).foreign, best):
        wanted = (*wanted, type_condition(query.layout))
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


def _best(layout: ModelLayout, candidates: list[Candidate], rejected: list[Rejection]) -> Candidate:
    ranks = [rank for rank, _ in _ranked(layout, candidates)]
    best = min(ranks)  # no two are alike, for each key has its own place
    for other, rank in zip(candidates, ranks, strict=True):
        if rank != best:
            differs = [ours != theirs for ours, theirs in zip(best, rank, strict=True)]
            rejected.append(Rejection(other.key, _DRAWBACKS[differs.index(True)]))
    return candidates[ranks.index(best)]


def _ranked(layout: ModelLayout, candidates: Iterable[Candidate]) -> list[tuple[tuple[int, ...], Candidate]]:
    declared = [id(key) for key in (*layout.keys, layout.trash)]
    return [(_rank(candidate, declared.index(id(candidate.key))), candidate) for candidate in candidates]


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
        return "the query contains the complete primary key"
    if best.kind == "batch_get":
        return f"the query contains {len(best.keys)} complete primary keys"
    used = [part.name for part in best.key.sort.parts[: best.equal + best.narrowed]]
    several = "partitions" if best.key.sharding is None else "shards"
    partitions = f"{len(best.ranges)} {several} are" if len(best.ranges) > 1 else "its partition is"
    sort = "its whole sort key" if best.complete else f"its sort key by {', '.join(used)}" if used else ""
    return f"{partitions} given{', and ' + sort if sort else ''}"


def type_condition(layout: ModelLayout) -> Condition:
    return Compare(ITEM_TYPE, "exact", layout.item_type)


def unexpired_condition(layout: ModelLayout, now: object) -> tuple[Condition, ...]:
    """DynamoDB removes expired items up to days later, so a filter excludes them until then."""
    if layout.expires is None:
        return ()
    return (Or((Compare(layout.expires, "isnull", True), Compare(layout.expires, "gt", now))),)


def visibility_condition(query: Query, best: Candidate | None) -> tuple[Condition, ...]:
    """The condition that an item is live, or deleted, unless all that is read by the key is so."""
    layout = query.layout
    if not layout.soft_delete or query.visibility == "all":
        return ()
    # An index contains live items under one key and deleted ones under another; both may be in one range.
    in_index = best is not None and best.key.index is not None and not _others_delete(layout)
    if best is not None and in_index and not can_contain_others(neighbours(layout, best.key).opposite, best):
        return ()
    return (Compare(DELETED_AT, "isnull", query.visibility == "live"),)


def _others_delete(layout: ModelLayout) -> bool:
    """Return whether another program may set the time of a deletion, and leave the keys of live items."""
    try:
        settings = table_settings(layout.alias)
    except ConfigurationError:
        return False  # a query reports it
    return not (settings.owns and settings.shape.is_own)


def can_contain_others(sharings: Mapping[Shape, Sharing], best: Candidate) -> bool:
    """Return whether the items read by a key can include items of the others."""
    if best.keys:
        return sharings[KEY].applies(KeyRange(KeyCondition(pk, "=", (sk,)), sk, KEY) for pk, sk in best.keys)
    return any(sharings[reading.shape].applies((reading,)) for reading in best.ranges)


def is_shared(layout: ModelLayout, key: AccessKey, reading: KeyRange) -> bool:
    """Return whether other models' items, unique claims, or other keys of the model can be in the range."""
    found = neighbours(layout, key)
    return found.foreign[reading.shape].applies((reading,)) or found.own[reading.shape].applies((reading,))


def needs_python(*conditions: Condition) -> bool:
    """Return whether a condition needs a comparison that DynamoDB does not have."""
    for condition in conditions:
        for each in leaves(condition):
            if isinstance(each, Compare) and each.operator in IN_PYTHON:
                return True
    return False
