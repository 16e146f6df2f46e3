"""Turn a query into a plan: one key, several keys together, or an error that names the missing parts.

Planning does not send requests or guess: a query that no keys support raises ``NoAccessPattern``, unless the caller
allows a scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import NoAccessPattern, UnknownField
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.lowering import check, lower
from dynamo_single.orm.conditions.terms import (
    DELETED_AT,
    EVERYTHING,
    IDENTITY,
    ITEM_TYPE,
    Compare,
    Condition,
    Or,
    Order,
    conjuncts,
    join,
    simplify,
)
from dynamo_single.orm.plan.candidates import Candidate
from dynamo_single.orm.plan.choice import (
    best_plan,
    evaluate_keys,
    is_sortable,
    needs_python,
    plan_of_claims,
    plan_of_one_key,
    type_condition,
    unexpired_condition,
    visibility_condition,
    with_memory_sort,
)
from dynamo_single.orm.plan.constraints import Constraints, constraints_of, merge_equalities
from dynamo_single.orm.plan.ordering import ReadOrder, significant_order
from dynamo_single.orm.plan.plan import Plan, PlanKind, Query, Rejection, attributes_of

if TYPE_CHECKING:
    from dynamo_single.orm.plan import advice
else:
    advice = LazyModule("dynamo_single.orm.plan.advice")

# Split a query into several queries: the alternatives of an ``|``, and live and deleted objects.  This module turns
# queries into queries. It does not depend on keys, plans or requests.

#: The maximum number of parts of one query. Each has a separate plan and separate requests.
MAX_PARTS = 100
#: The most values of an ``in`` that are looked up one by one rather than read past.
MAX_VALUES = 25


class Alternative(Struct, frozen=True):
    """One of the parts of a query: ``own`` replaces the part that is ``split``."""

    query: Query
    own: Condition = EVERYTHING
    split: Condition = EVERYTHING


def alternatives(query: Query) -> Iterator[tuple[Alternative, ...]]:
    """Yield each way to split a query once: the queries that are together equivalent to it.

    First the ways to split at an ``|`` or an ``in``, in the order of the conditions; then live and deleted apart.
    """
    terms = tuple(merge_equalities(term, query.layout) for term in conjuncts(simplify(query.where)))
    for place, term in enumerate(terms):
        sides = _sides(term)
        if sides:
            others = (*terms[:place], *terms[place + 1 :])
            yield tuple(Alternative(replace(query, where=join((*others, each))), each, term) for each in sides)
    if query.layout.soft_delete and query.visibility == "all":
        live, deleted = replace(query, visibility="live"), replace(query, visibility="deleted")
        yield Alternative(live), Alternative(deleted)


def _sides(term: Condition) -> tuple[Condition, ...]:
    if isinstance(term, Or):
        return term.children if len(term.children) <= MAX_PARTS else ()
    if not isinstance(term, Compare) or term.operator != "in" or term.path or term.attribute == IDENTITY:
        return ()
    values = tuple(term.value)
    return tuple(Compare(term.attribute, "exact", value) for value in values) if len(values) <= MAX_VALUES else ()


#: The maximum number of splits, one ``|`` after another, before a query is treated as unsupported.
MAX_STEPS = 3
#: The kinds of plans that read items by their keys.
_SINGLE_ITEMS = ("get", "batch_get", "claim")
#: The types of values whose own order a key has, and therefore a merge of several keys.
_ORDERED_TYPES = ("S", "N")
#: ``using_index`` of this name means the table itself, which a scan reads.
PRIMARY = "primary"


def plan(query: Query, *, now: object = None) -> Plan:
    """Find the plan of a query.

    ``now`` is the current time as a value of the expiry attribute; a model with that attribute needs it.
    """
    layout = query.layout
    _check_names(query)
    if layout.expires is not None and now is None:
        raise ValueError(f"{layout.label} has items that expire, so planning needs the current time.")
    constraints = _gather(query)
    if constraints is None:
        return _nothing(query)
    if query.missing_attributes:
        _refuse_missing(query)
    found, rejected = plan_of_one_key(query, constraints, now)
    merged_by = significant_order(query, constraints) if query.ordering else ()
    parts = _parts(query, found, merged_by, now, MAX_STEPS)
    if parts is not None and parts != [found]:
        union = _union(query, parts, rejected, found, now)
        if all(_has_order(part, merged_by) for part in parts):
            return replace(union, merged_by=merged_by) if union.parts else union
        return with_memory_sort(union, constraints)
    if found is not None:
        return found
    if _may_scan(query) and not needs_python(*constraints.terms):
        wanted = (
            *constraints.terms,
            *visibility_condition(query, None),
            *unexpired_condition(layout, now),
            type_condition(layout),
        )
        reason = "no key supports it, and allow_scan() allows a scan: it reads every item of the table"
        return Plan("scan", query, filter=join(wanted), reason=reason, rejected=tuple(rejected))
    if (query.missing_keys or query.missing_rules) and (filled := _as_if_filled(query, now)) is not None:
        raise advice.key_not_filled(query, filled)
    raise advice.no_access_pattern(query, constraints, rejected, in_any_order=_without_order(query, constraints))


def _as_if_filled(query: Query, now: object) -> Plan | None:
    """Return the plan with complete keys and claims."""
    try:
        return plan(replace(query, missing_keys=frozenset(), missing_rules=frozenset()), now=now)
    except NoAccessPattern:
        return None


def plan_of_keys(query: Query, keys: Sequence[tuple[str, str]], *, now: object = None) -> Plan:
    """The plan that reads items by their whole primary keys, each given once; ``now`` is as of ``plan()``.

    It is the plan that ``plan()`` returns for the values of these keys, without the ``rejected`` ones: it does not
    compare keys. The query has no conditions.
    """
    kind: PlanKind = "get" if len(keys) == 1 else "batch_get"
    key = query.layout.primary
    return best_plan(query, [Candidate(kind, key, keys=tuple(keys), served=ReadOrder(single=kind == "get"))], [], now)


def _gather(query: Query) -> Constraints | None:
    if query.visibility == "deleted" and not query.layout.soft_delete:
        return None
    return constraints_of(query.where, query.layout)


def _nothing(query: Query) -> Plan:
    return Plan("empty", query, reason="no item can meet the conditions")


def _parts(query: Query, found: Plan | None, merged_by: Sequence[Order], now: object, steps: int) -> list[Plan] | None:
    """Return the plans that together serve a query, or an empty list for an empty query.

    ``found`` is the plan of a single key, if there is one.
    """
    if found is not None and (found.kind != "query" or found.filter == EVERYTHING):
        return [found]
    if steps:
        for way in alternatives(query):
            if found is not None and way[0].split not in conjuncts(found.filter):
                continue
            parts = _parts_of_each(way, merged_by, now, steps - 1)
            pairs = [(plan, each) for plans, each in zip(parts or (), way, strict=False) for plan in plans]
            if parts is not None and (found is None or all(_reads_less(plan, found, each.own) for plan, each in pairs)):
                return [plan for plans in parts for plan in plans if plan.kind != "empty"]
    return None if found is None else [found]


def _parts_of_each(
    way: Sequence[Alternative], merged_by: Sequence[Order], now: object, steps: int
) -> list[list[Plan]] | None:
    """Return the plans of each query, or ``None`` if one of them is not supported or there are too many."""
    all_parts: list[list[Plan]] = []
    count = 0
    for each in way:
        constraints = _gather(each.query)
        if constraints is None:
            parts: list[Plan] | None = []
        else:
            found, _ = plan_of_one_key(each.query, constraints, now)
            parts = _parts(each.query, found, merged_by, now, steps)
        count += len(parts or ())
        if parts is None or count > MAX_PARTS:
            return None
        all_parts.append(parts)
    return all_parts if _in_one_order([part for parts in all_parts for part in parts], merged_by) else None


def _in_one_order(parts: Sequence[Plan], merged_by: Sequence[Order]) -> bool:
    """Return whether the app can merge parts during the read, or they have only single items, which it sorts later."""
    if all(_has_order(part, merged_by) for part in parts):
        return True
    return all(part.kind in _SINGLE_ITEMS and is_sortable(part.query, Constraints((), {})) for part in parts)


def _reads_less(part: Plan, whole: Plan, own: Condition) -> bool:
    """Return whether a part's key covers the conditions of its side of an ``|``.

    It must also cover the conditions that the key of the whole query covers.
    """
    if part.kind != "query":
        return True
    asked, left = _compared(own), _compared(part.filter)
    always = {DELETED_AT, ITEM_TYPE, part.layout.expires}
    return bool(asked - left) and not left - asked - _compared(whole.filter) - always


def _compared(condition: Condition) -> set[str | None]:
    return {term.attribute for term in conjuncts(condition) if isinstance(term, Compare) and not term.path}


def _has_order(part: Plan, merged_by: Sequence[Order]) -> bool:
    """Return whether every item of a part has comparable values for the attributes of the merge."""
    query, key = part.query, part.key
    constraints = _gather(query)
    if constraints is None or key is None:
        return True
    for order in merged_by:
        name = order.attribute
        info = query.layout.attributes[name]
        if not info.kind or info.type not in _ORDERED_TYPES:
            return False
        present = info.required or constraints.fixed(name) or constraints.excludes_empty(name, text=False)
        if not (present or name in query.layout.identity or (key.index is not None and name in key.required_variables)):
            return False
    return True


def _union(query: Query, parts: list[Plan], rejected: list[Rejection], whole: Plan | None, now: object) -> Plan:
    if not parts:
        return _nothing(query)
    reason = f"{len(parts)} queries, each by its own key, read fewer items than one that filters"
    if whole is None:
        reason = f"no key supports all of it, but {len(parts)} queries together do"
    unexpired = unexpired_condition(query.layout, now)
    given: list[Condition] = []
    distinct: list[Plan] = []
    for part in parts:
        distinct.append(replace(part, exclusions=tuple(given)))
        meets = join((part.query.where, *visibility_condition(part.query, None), *unexpired))
        given.append(simplify(lower(meets, query.layout)))
    return Plan("union", query, reason=reason, rejected=tuple(rejected), parts=tuple(distinct))


def _without_order(query: Query, constraints: Constraints) -> str | None:
    """Return the key or claims that would serve a query without its order."""
    if not query.ordering:
        return None
    unordered = replace(query, ordering=())
    candidates, _ = evaluate_keys(unordered, constraints)
    if candidates:
        return candidates[0].key.name
    return "what is unique" if query.lookups and plan_of_claims(unordered, constraints) is not None else None


def _may_scan(query: Query) -> bool:
    return query.allow_scan and not query.ordering and query.using_index in (None, PRIMARY)


def _refuse_missing(query: Query) -> None:
    """Reject a condition or an order by an attribute that some items do not have yet, because results would be
    wrong."""
    named = {*attributes_of(query.where), *(order.attribute for order in query.ordering)}
    for name in sorted(query.missing_attributes & named):
        raise advice.attribute_not_filled(query, name)


def _check_names(query: Query) -> None:
    """An error reports a wrong name or value, regardless of the key."""
    check(query.where, query.layout)
    layout = query.layout
    keys = (*layout.keys, *(() if layout.trash is None else (layout.trash,)))
    for name in query.without:
        if not any(name in (key.name, key.index) for key in keys):
            raise advice.unknown_key(query, keys, name)
    for order in query.ordering:
        if order.attribute not in query.layout.attributes:
            known = ", ".join(sorted(query.layout.attributes))
            raise UnknownField(f"Cannot order {query.layout.label} by {order.attribute!r}. It has {known}.")
