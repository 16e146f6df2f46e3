"""The algebra of conditions: simplifying them, taking them apart and joining them, and what they look at.

This module must not know models, keys, plans or requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from dynamo_single.orm.conditions.terms import (
    EVERYTHING,
    And,
    Compare,
    Condition,
    Not,
    Nothing,
    Or,
    Stored,
    StoredPair,
)


def simplify(condition: Condition) -> Condition:
    """Give an equivalent condition without nested conjunctions; ``Nothing`` is left only as the whole of it."""
    if isinstance(condition, And | Or):
        return _simplify_group(condition)
    if isinstance(condition, Not):
        child = simplify(condition.child)
        if isinstance(child, Not):
            return child.child
        if child == EVERYTHING:
            return Nothing()
        return EVERYTHING if isinstance(child, Nothing) else Not(child)
    if isinstance(condition, Compare) and condition.operator == "in" and not condition.value:
        return Nothing()
    return condition


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """Give the conditions that all have to hold, of a simplified one."""
    return condition.children if isinstance(condition, And) else (condition,)


def join(children: Iterable[Condition]) -> Condition:
    """Give the condition that all of these hold."""
    return simplify(And(tuple(children)))


def names_in(condition: Condition) -> Iterator[str]:
    """The physical names that a condition in stored names looks at."""
    if isinstance(condition, And | Or):
        for child in condition.children:
            yield from names_in(child)
    elif isinstance(condition, Not):
        yield from names_in(condition.child)
    elif isinstance(condition, Stored):
        yield condition.name
    elif isinstance(condition, StoredPair):
        yield from (condition.name, condition.other)


def _simplify_group(condition: And | Or) -> Condition:
    together = isinstance(condition, And)
    neutral, absorbing = (EVERYTHING, Nothing()) if together else (Nothing(), EVERYTHING)
    children: list[Condition] = []
    for child in map(simplify, condition.children):
        if child == absorbing:
            return child
        if isinstance(child, type(condition)):
            children.extend(child.children)
        elif child != neutral:
            children.append(child)
    if not children:
        return neutral
    if len(children) == 1:
        return children[0]
    return And(tuple(children)) if together else Or(tuple(children))


def with_names(condition: Condition, names: Mapping[str, str]) -> Condition:
    """A condition in stored names with others in the place of some."""
    if isinstance(condition, And | Or):
        return type(condition)(tuple(with_names(child, names) for child in condition.children))
    if isinstance(condition, Not):
        return Not(with_names(condition.child, names))
    if isinstance(condition, Stored):
        return replace(condition, name=names.get(condition.name, condition.name))
    if isinstance(condition, StoredPair):
        pair = names.get(condition.name, condition.name), names.get(condition.other, condition.other)
        return replace(condition, name=pair[0], other=pair[1])
    return condition
