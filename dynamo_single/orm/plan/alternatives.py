"""One question taken apart into several that are answered one by one: what ``|`` joins, and live and deleted objects.

This module makes queries out of a query. It must not know keys, plans or requests.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions.algebra import conjuncts, join, simplify
from dynamo_single.orm.conditions.terms import EVERYTHING, IDENTITY, Compare, Condition, Or
from dynamo_single.orm.plan.constraints import together
from dynamo_single.orm.plan.plan import Query

#: The most parts that one query is taken apart into. Each is planned by itself, and sends requests of its own.
MAX_PARTS = 100
#: The most values of an ``in`` that are looked up one by one rather than read past.
MAX_VALUES = 25


class Alternative(Struct, frozen=True):
    """One of the queries that a query is taken apart into: ``own`` stands there in the place of what is ``split``."""

    query: Query
    own: Condition = EVERYTHING
    split: Condition = EVERYTHING


def alternatives(query: Query) -> Iterator[tuple[Alternative, ...]]:
    """Give each way to take one step: the queries which together give what this one does.

    First the ways to split at an ``|`` or an ``in``, in the order of the conditions; then live and deleted apart.
    """
    terms = tuple(together(term, query.layout) for term in conjuncts(simplify(query.where)))
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
