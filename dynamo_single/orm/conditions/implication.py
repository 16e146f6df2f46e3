"""Decide whether one condition in stored names implies another for every possible item.

``True`` is a proof. ``False`` is not: the condition may still be implied. This module must not know models, keys, plans
or requests.
"""

from __future__ import annotations

from collections.abc import Callable

from dynamo_single.orm.conditions.lowering import ORDERED_TYPES, missing_condition, order_value
from dynamo_single.orm.conditions.matching import ORDERINGS, matches
from dynamo_single.orm.conditions.terms import And, Condition, Not, Nothing, Or, Stored, conjuncts, names_in, simplify
from dynamo_single.table.request import StoredValue

#: The operators that only a stored attribute meets.
_PRESENT = ("=", "in", "<", "<=", ">", ">=", "between", "begins_with", "contains", "exists")


def implies(given: Condition, wanted: Condition) -> bool:
    """Return whether ``given`` provably implies ``wanted``."""
    if isinstance(wanted, And):
        return all(implies(given, child) for child in wanted.children)
    facts = conjuncts(simplify(given))
    if Nothing() in facts or wanted in facts or any(_follows(fact, wanted) for fact in facts):
        return True
    if isinstance(wanted, Or) and any(implies(given, child) for child in wanted.children):
        return True
    return any(isinstance(fact, Or) and all(implies(child, wanted) for child in fact.children) for fact in facts)


def gives_value(given: Condition, name: str, *, text: bool) -> bool:
    """Return whether a condition implies that an attribute is stored and, if it is a ``text``, not empty."""
    if not text:
        return implies(given, Not(missing_condition(name)))
    return implies(given, Stored(name, ">", ({"S": ""},)))


def _follows(fact: Condition, wanted: Condition) -> bool:
    """Return whether a single comparison implies a condition."""
    if not isinstance(fact, Stored):
        return False
    if fact.operator in ("=", "in") and not fact.path and set(names_in(wanted)) == {fact.name}:
        return all(matches(wanted, {fact.name: value}) for value in fact.operands)
    if not fact.path and wanted == Not(missing_condition(fact.name)):
        return fact.operator in _PRESENT and fact.operator != "exists"
    if not isinstance(wanted, Stored) or (wanted.name, wanted.path) != (fact.name, fact.path):
        return False
    if wanted.operator == "exists":
        return fact.operator in _PRESENT
    if fact.operator == "begins_with" and wanted.operator in ("begins_with", ">=", ">"):
        return _prefix_follows(fact, wanted)
    return _range_follows(fact, wanted)


def _prefix_follows(fact: Stored, wanted: Stored) -> bool:
    """Return whether a prefix implies a shorter prefix or a lower bound."""
    ((kind, prefix),), ((other_kind, other),) = fact.operands[0].items(), wanted.operands[0].items()
    if kind != other_kind or kind not in ("S", "B"):
        return False
    if wanted.operator == "begins_with":
        return bool(prefix.startswith(other))
    one, bound = order_value(fact.operands[0])[1], order_value(wanted.operands[0])[1]
    return ORDERINGS[wanted.operator](one, bound)


#: A bound and whether it is included; ``None`` if there is no bound.
_Bound = tuple[StoredValue, bool] | None


def _bounds(comparison: Stored) -> tuple[_Bound, _Bound] | None:
    read: dict[str, Callable[[tuple[StoredValue, ...]], tuple[_Bound, _Bound]]] = {
        ">": lambda values: ((values[0], False), None),
        ">=": lambda values: ((values[0], True), None),
        "<": lambda values: (None, (values[0], False)),
        "<=": lambda values: (None, (values[0], True)),
        "between": lambda values: ((values[0], True), (values[1], True)),
    }
    found = read.get(comparison.operator)
    return None if found is None else found(comparison.operands)


def _range_follows(fact: Stored, wanted: Stored) -> bool:
    """Return whether the range of one comparison lies within that of another of the same type."""
    within, around = _bounds(fact), _bounds(wanted)
    if within is None or around is None:
        return False
    (kind,) = fact.operands[0]
    if kind not in ORDERED_TYPES or any(kind not in value for value in (*fact.operands, *wanted.operands)):
        return False
    return _reaches(within[0], around[0], ">") and _reaches(within[1], around[1], "<")


def _reaches(inner: _Bound, outer: _Bound, operator: str) -> bool:
    """Return whether the inner bound is at least as narrow as the outer one."""
    if outer is None:
        return True
    if inner is None:
        return False
    one, other = order_value(inner[0])[1], order_value(outer[0])[1]
    return ORDERINGS[operator](one, other) or (one == other and (outer[1] or not inner[1]))
