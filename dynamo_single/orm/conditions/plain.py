"""Conditions in stored names as plain tuples, for files and fingerprints, and back.

``("=", "status", {"S": "open"})`` compares, ``("and", ...)``, ``("or", ...)`` and ``("not", ...)`` connect; a place in
a document is a tuple. This module must not know models or requests.
"""

from __future__ import annotations

from typing import Any

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.conditions.terms import And, Condition, Not, Nothing, Or, Stored, StoredPair

Plain = tuple[Any, ...]
Place = str | tuple[str | int, ...]


def plain(condition: Condition) -> Plain:
    """A condition in stored names as tuples; raises ``ConfigurationError`` for one in a model's names."""
    if isinstance(condition, And | Or):
        return ("and" if isinstance(condition, And) else "or", *map(plain, condition.children))
    if isinstance(condition, Not):
        return ("not", plain(condition.child))
    if isinstance(condition, Nothing):
        return ("nothing",)
    if isinstance(condition, StoredPair):
        places = (_place(condition.name, condition.path), _place(condition.other, condition.other_path))
        return ("pair", condition.operator, *places)
    if isinstance(condition, Stored):
        operands = (dict(each) if isinstance(each, dict) else each for each in condition.operands)
        return (condition.operator, _place(condition.name, condition.path), *operands)
    raise ConfigurationError(f"The condition {condition!r} is not in stored names.")


def condition_of(given: Plain) -> Condition:
    """The condition that ``plain`` wrote; raises ``ConfigurationError`` for what it cannot have written."""
    match given:
        case ("and", *children):
            return And(tuple(map(condition_of, children)))
        case ("or", *children):
            return Or(tuple(map(condition_of, children)))
        case ("not", child):
            return Not(condition_of(child))
        case ("nothing",):
            return Nothing()
        case ("pair", str(operator), place, other):
            (name, path), (other_name, other_path) = _split(place), _split(other)
            return StoredPair(name, operator, other_name, path, other_path)
        case (str(operator), place, *operands):
            name, path = _split(place)
            return Stored(name, operator, tuple(operands), path)
    raise ConfigurationError(f"{given!r} is no condition: write (operator, name, value), or ('and', ...).")


def renamed(given: Plain, old: str, new: str) -> Plain:
    """A plain condition about another physical name."""

    def place(given: Place) -> Place:
        name, path = _split(given)
        return _place(new if name == old else name, path)

    match given:
        case ("and" | "or" | "not" | "nothing" as word, *children):
            return (word, *(renamed(child, old, new) for child in children))
        case ("pair", operator, one, other):
            return ("pair", operator, place(one), place(other))
        case (operator, one, *operands):
            return (operator, place(one), *operands)
    raise ConfigurationError(f"{given!r} is no condition.")


def _place(name: str, path: tuple[str | int, ...]) -> Place:
    return (name, *path) if path else name


def _split(place: Any) -> tuple[str, tuple[str | int, ...]]:
    return (place, ()) if isinstance(place, str) else (place[0], tuple(place[1:]))
