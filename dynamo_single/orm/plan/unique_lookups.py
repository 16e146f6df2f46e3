"""Find an object by a unique value: its claim names the object that holds it.

A lookup is a value that the planner receives. This module does not depend on writing or reading claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from math import prod

from msgspec import Struct

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import (
    DELETED_AT,
    EVERYTHING,
    MAX_MEMBERS,
    Compare,
    Condition,
    conjuncts,
    join,
    names_in,
    simplify,
)
from dynamo_single.orm.plan.constraints import Constraints
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table.request import Item, NewItem

#: The most combinations of values that a rule's condition is tried with.
_MAX_TRIED = 100

Key = tuple[str, str]


class Lookup(Struct, frozen=True):
    """Some attributes whose values, taken together, only one live object has: it holds a claim on them.

    ``condition`` is in stored names: an item that does not meet it has no claim. ``stored_names`` are the physical
    names of all attributes that determine the claim; attributes in ``canonical`` are claimed without regard to case.
    ``claim_key`` returns the key of the claim on an item's values, and ``claim_keys`` those of all claims of an item.
    """

    fields: tuple[str, ...]
    fingerprint: str
    stored_names: frozenset[str]
    claim_key: Callable[[NewItem], Key | None]
    claim_keys: Callable[[Item], Collection[Key]]
    condition: Condition = EVERYTHING
    canonical: frozenset[str] = frozenset()
    #: The attributes that keep the canonical form of one of these, by its name.
    copies: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """The attributes, as messages name them."""
        return " and ".join(self.fields)


def claims_of(lookup: Lookup, constraints: Constraints, layout: ModelLayout) -> tuple[Key, ...] | None:
    """Return the keys of the claims of which each matching object holds one; ``None`` if this is uncertain.

    None at all means that no object can meet them.
    """
    given = [_values(name, lookup, constraints) for name in lookup.fields]
    if not all(given) or prod(map(len, given)) > MAX_MEMBERS or not _implies(constraints, lookup.condition, layout):
        return None
    infos = [layout.attributes[name] for name in lookup.fields]
    found: dict[Key, None] = {}
    for values in product(*given):
        try:
            claim = lookup.claim_key(
                {info.stored: info.serialize(each) for info, each in zip(infos, values, strict=True)}
            )
        except InvalidValue:
            continue  # no claim contains an unsupported value
        if claim is None:
            return None  # an empty value has no claim
        found[claim] = None
    return tuple(found)


def _values(name: str, lookup: Lookup, constraints: Constraints) -> Sequence[object]:
    for given in (name, lookup.copies.get(name, "")):
        if given in constraints.allowed:
            return constraints.allowed[given]
    if name not in lookup.canonical:
        return ()
    return [term.value for term in constraints.on(name) if term.operator == "canonical"][:1]


def _implies(constraints: Constraints, condition: Condition, layout: ModelLayout) -> bool:
    """Return whether every live object that meets the constraints meets a condition in stored names."""
    if condition == EVERYTHING:
        return True
    live = (Compare(DELETED_AT, "isnull", True),) if layout.soft_delete else ()
    known = conjuncts(simplify(lower(join((*constraints.terms, *live)), layout)))
    return all(each in known or _always(each, constraints, layout) for each in conjuncts(simplify(condition)))


def _always(condition: Condition, constraints: Constraints, layout: ModelLayout) -> bool:
    """Return whether a condition holds for all values that the constraints allow."""
    names = set(names_in(condition))
    infos = [info for info in layout.attributes.values() if info.stored in names]
    lists = [constraints.allowed.get(info.name, ()) for info in infos]
    if len(infos) < len(names) or not all(lists) or prod(map(len, lists)) > _MAX_TRIED:
        return False
    items = (
        {info.stored: info.serialize(value) for info, value in zip(infos, values, strict=True)}
        for values in product(*lists)
    )
    return all(matches(condition, item) for item in items)
