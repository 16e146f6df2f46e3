"""One question taken apart into several that are answered one by one: what ``|`` joins, and live and deleted objects.

This module makes queries out of a query. It must not know keys, plans or requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dynamo_single.conditions import conjuncts, join, simplify
from dynamo_single.constraints import together
from dynamo_single.query import EVERYTHING, Condition, Or, Query

#: The most parts that one query is taken apart into. Each is planned by itself, and sends requests of its own.
MAX_PARTS = 100


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the queries that a query is taken apart into, and the condition that it alone has."""

    query: Query
    own: Condition = EVERYTHING


def alternatives(query: Query) -> Iterator[tuple[Alternative, ...]]:
    """Give each way to take one step: the queries which together give what this one does.

    First the ways to split at an ``|``, in the order of the conditions; then live and deleted objects apart.
    """
    terms = tuple(together(term, query.layout) for term in conjuncts(simplify(query.where)))
    for place, term in enumerate(terms):
        if isinstance(term, Or) and len(term.children) <= MAX_PARTS:
            others = (*terms[:place], *terms[place + 1 :])
            yield tuple(Alternative(replace(query, where=join((*others, each))), each) for each in term.children)
    if query.layout.soft_delete and query.visibility == "all":
        live, deleted = replace(query, visibility="live"), replace(query, visibility="deleted")
        yield Alternative(live), Alternative(deleted)
