"""The constraints of a query on each attribute, from the conditions that must all hold.

This module combines equalities: several conditions on one attribute leave the values that meet all of them. This module
must not know keys beyond the identity's attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from dynamo_single.orm.conditions.lowering import lower, operand
from dynamo_single.orm.conditions.matching import matches, normalized_value
from dynamo_single.orm.conditions.terms import IDENTITY, Compare, Condition, Nothing, Or, conjuncts, simplify
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table.request import NewItem

Identity = Mapping[str, Any]


class Constraints(Struct, frozen=True):
    """The conditions of a query, by attribute.

    ``allowed`` are the only values an attribute may have; ``terms`` are all the conditions, with each such attribute's
    put into one. ``identities`` are the only tuples of the identity's attributes, if several were given together.
    """

    terms: tuple[Condition, ...]
    allowed: Mapping[str, tuple[Any, ...]]
    identities: tuple[Identity, ...] = ()
    # Derived from the terms.
    _by_attribute: Mapping[str, tuple[Compare, ...]] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "_by_attribute", _grouped(self.terms))

    def on(self, attribute: str) -> tuple[Compare, ...]:
        """Give the comparisons of a whole attribute."""
        return self._by_attribute.get(attribute, ())

    def fixed(self, attribute: str) -> bool:
        """Return whether the attribute can have one value only."""
        return len(self.allowed.get(attribute, ())) == 1

    def excludes_empty(self, attribute: str, *, text: bool) -> bool:
        """Return whether every matching item has a value here other than the empty string."""
        return any(_excludes_empty(term, text=text) for term in self.on(attribute))


def constraints_of(where: Condition, layout: ModelLayout) -> Constraints | None:
    """Take a condition apart; ``None`` if no item can meet it."""
    terms = tuple([merge_equalities(term, layout) for term in conjuncts(simplify(where))])
    if Nothing() in terms:
        return None
    identities, terms = _identities(terms, layout)
    if identities is not None:
        narrowed = _narrow_identities(identities, terms, layout)
        if len(narrowed) == 1 or len(layout.identity) == 1:
            terms = (*terms, *_as_comparisons(narrowed, layout.identity))
            narrowed = ()
        elif not narrowed:
            return None
        else:
            terms = (*terms, Compare(IDENTITY, "in", narrowed))
        identities = narrowed
    allowed = _allowed(terms, layout)
    if not all(allowed.values()):
        return None
    kept = [term for term in terms if not (isinstance(term, Compare) and term.attribute in allowed and not term.path)]
    memberships = [_membership(attribute, values) for attribute, values in allowed.items()]
    derived = {name: _distinct(name, identities, layout) for name in layout.identity} if identities else {}
    return Constraints((*memberships, *kept), derived | allowed, identities or ())


def merge_equalities(term: Condition, layout: ModelLayout) -> Condition:
    """Put equalities of one attribute, or of whole identities, that ``|`` joins into one membership."""
    if not isinstance(term, Or):
        return term
    first = term.children[0]
    if isinstance(first, Compare) and first.attribute != IDENTITY:
        name = first.attribute
        if all(_names(child, name) and child.operator in ("exact", "in") for child in term.children):  # type: ignore[union-attr]  # _names() is of a Compare
            values = (value for child in term.children for value in _listed(child))
            return Compare(name, "in", tuple(values))
    identities = [_whole_identities(child, layout) for child in term.children]
    if None in identities:
        return term
    return Compare(IDENTITY, "in", tuple(each for found in identities for each in found or ()))


def _listed(term: Any) -> tuple[object, ...]:
    return (term.value,) if term.operator == "exact" else tuple(term.value)


def _whole_identities(term: Condition, layout: ModelLayout) -> tuple[Identity, ...] | None:
    """Return the identities that a condition fixes completely, if it has no other parts."""
    if isinstance(term, Compare) and term.attribute == IDENTITY and term.operator == "in":
        return tuple(term.value)
    equal = {
        each.attribute: each.value
        for each in conjuncts(term)
        if isinstance(each, Compare) and each.operator == "exact" and not each.path
    }
    whole = equal.keys() == set(layout.identity) and len(equal) == len(conjuncts(term))
    return (equal,) if whole else None


def _names(term: Condition, attribute: str) -> bool:
    return isinstance(term, Compare) and term.attribute == attribute and not term.path


def _identities(
    terms: Sequence[Condition], layout: ModelLayout
) -> tuple[tuple[Identity, ...] | None, tuple[Condition, ...]]:
    found: dict[Any, Identity] | None = None
    others: list[Condition] = []
    for term in terms:
        if isinstance(term, Compare) and term.attribute == IDENTITY and term.operator == "in":
            given = {_identity_key(each, layout): each for each in term.value}
            found = given if found is None else {key: each for key, each in given.items() if key in found}
        else:
            others.append(term)
    return None if found is None else tuple(found.values()), tuple(others)


def _identity_key(identity: Identity, layout: ModelLayout) -> tuple[object, ...]:
    return tuple(_normal(name, identity[name], layout) for name in layout.identity)


def _narrow_identities(
    identities: Iterable[Identity], terms: Sequence[Condition], layout: ModelLayout
) -> tuple[Identity, ...]:
    comparisons = [lower(term, layout) for name in layout.identity for term in terms if _names(term, name)]
    return tuple(each for each in identities if _meets(comparisons, each, layout)) if comparisons else tuple(identities)


def _item(values: Mapping[str, object], layout: ModelLayout) -> NewItem:
    infos = ((layout.attributes[name], value) for name, value in values.items())
    return {info.stored: info.serialize(value) for info, value in infos}


def _as_comparisons(identities: Sequence[Identity], names: Sequence[str]) -> Iterable[Compare]:
    for name in names:
        yield Compare(name, "in", tuple(each[name] for each in identities))


def _allowed(terms: Sequence[Condition], layout: ModelLayout) -> dict[str, tuple[object, ...]]:
    allowed = {}
    for attribute, comparisons in _grouped(terms).items():
        equalities = [term for term in comparisons if term.operator in ("exact", "in")]
        if equalities and attribute in layout.attributes:
            others = [lower(term, layout) for term in comparisons if term.operator not in ("exact", "in")]
            values = _common_values(equalities, layout)
            met = (each for each in values if _meets(others, {attribute: each}, layout))
            allowed[attribute] = tuple(met) if others else values
    return allowed


def _grouped(terms: Iterable[Condition]) -> dict[str, tuple[Compare, ...]]:
    """The comparisons of each whole attribute."""
    found: dict[str, list[Compare]] = {}
    for term in terms:
        if isinstance(term, Compare) and not term.path:
            found.setdefault(term.attribute, []).append(term)
    return {attribute: tuple(comparisons) for attribute, comparisons in found.items()}


def _common_values(equalities: Sequence[Compare], layout: ModelLayout) -> tuple[object, ...]:
    """The values that all the equalities allow, each once."""
    if len(equalities) == 1 and equalities[0].operator == "exact":
        (term,) = equalities
        operand(term, layout.attributes[term.attribute], term.value)  # raises for values that equal nothing
        return (term.value,)
    first, *further = (_normal_values(term, layout) for term in equalities)
    for values in further:
        first = {key: value for key, value in first.items() if key in values}
    return tuple(first.values())


def _normal_values(term: Compare, layout: ModelLayout) -> dict[object, object]:
    info = layout.attributes[term.attribute]
    return {normalized_value(operand(term, info, value)): value for value in _listed(term)}


def _meets(conditions: Iterable[Condition], values: Identity, layout: ModelLayout) -> bool:
    return all(matches(condition, _item(values, layout)) for condition in conditions)


def _membership(attribute: str, values: tuple[object, ...]) -> Compare:
    return Compare(attribute, "exact", values[0]) if len(values) == 1 else Compare(attribute, "in", values)


def _distinct(name: str, identities: Sequence[Identity], layout: ModelLayout) -> tuple[object, ...]:
    return tuple({_normal(name, each[name], layout): each[name] for each in identities}.values())


def _normal(name: str, value: object, layout: ModelLayout) -> object:
    return normalized_value(layout.attributes[name].serialize(value))


def _excludes_empty(term: Compare, *, text: bool) -> bool:
    operator, value = term.operator, term.value
    if operator == "isnull":
        return not value and not text
    if operator in ("lt", "lte"):
        return not text
    if operator == "gt":
        return True
    if operator == "in":
        return not text or all(value)
    if operator == "range":
        return not text or bool(value[0])
    return operator in ("exact", "gte", "startswith", "contains", "canonical") and (not text or bool(value))
