"""Conditions and orderings in words, as a Django developer would write them.

This module must not know keys, plans or requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.conditions.terms import (
    IDENTITY,
    And,
    ComparePair,
    Condition,
    Not,
    Nothing,
    Or,
    Order,
    Stored,
    StoredPair,
    with_names,
)
from dynamo_single.orm.schema.keys.secret_values import MASK, Path, is_secret_name
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.layout import AttributeInfo, ModelLayout

#: Alternatives that errors name; ``queryset`` is the queryset without the unsupported part.
FILTER_IN_PYTHON = "filter in Python: [each for each in queryset if ...]"
FILTER_IN_MEMORY = f"compute it in memory with .allow_in_memory(limit=1000), or {FILTER_IN_PYTHON}"
SORT_IN_PYTHON = "sort in Python: sorted(queryset, key=...)"
COMPUTE_IN_PYTHON = "compute it in Python: [... for each in queryset]"


def extraction_advice(place: str) -> str:
    """Return the declarations that store a nested value in an attribute: for strings, and for numbers."""
    declared = f"models.ExtractedAttribute({place!r}"
    return f"{declared}), for numbers {declared}, output=models.DecimalAttribute())"


def capitalized(text: str) -> str:
    """Return a string that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def condition_text(condition: Condition, layout: ModelLayout | AttributeInfo | None = None) -> str:
    """Return a condition as a Django developer would write it: ``company_id='1', name__startswith='A'``.

    Values of secrets are masked. ``layout`` is the model's, or describes a single attribute; without it the names
    determine the secrets.
    """
    if isinstance(condition, And | Or):
        return _word_group(condition, layout)
    if isinstance(condition, Not):
        return f"not ({condition_text(condition.child, layout)})"
    if isinstance(condition, Nothing):
        return "nothing"
    if isinstance(condition, StoredPair):
        other = "__".join(map(str, (condition.other, *condition.other_path)))
        return f"{'__'.join(map(str, (condition.name, *condition.path)))} {condition.operator} {other}"
    if isinstance(condition, Stored):
        steps = "__".join(map(str, (condition.name, *condition.path)))
        is_hidden = bool(condition.operands) and hides(layout, condition.name, condition.path)
        operands = MASK if is_hidden else ", ".join(map(_plain, condition.operands))
        return f"{steps} {condition.operator} {operands}".rstrip()
    steps = "__".join(map(str, (condition.attribute, *condition.path)))
    operator = condition.operator.replace("size_", "size__").removesuffix("exact").removesuffix("__")
    lookup = f"__{operator}" if operator else ""
    if isinstance(condition, ComparePair):
        return f"{steps}{lookup}=F({'__'.join(map(str, (condition.other, *condition.other_path)))!r})"
    is_hidden = operator != "isnull" and hides(layout, condition.attribute, condition.path)
    return f"{steps}{lookup}={MASK if is_hidden else _short(condition.value)}"


def hides(layout: ModelLayout | AttributeInfo | None, name: str, path: Path) -> bool:
    """Return whether an attribute, by its Python or stored name, or a place inside it, holds a secret."""
    if isinstance(layout, ModelLayout):
        if name == IDENTITY:
            return any(hides(layout, part, ()) for part in layout.identity)
        stored = (each for each in layout.attributes.values() if each.stored == name)
        info = layout.attributes.get(name) or next(stored, None)
    else:
        info = layout
    if info is not None and info.hides is not None:
        return info.hides(path)
    return any(isinstance(step, str) and is_secret_name(step) for step in (name, *path))


def _plain(operand: object) -> str:
    """Return a stored value without its type, if it is a Python value: ``1`` of ``{"N": "1"}``."""
    match operand:
        case {"N": str(number)}:
            return number
        case {"S": str() as value} | {"BOOL": bool() as value}:
            return shown(value, 200)
        case _:
            return shown(operand, 200)


def _word_group(condition: And | Or, layout: ModelLayout | AttributeInfo | None) -> str:
    # A step of a path that may be a key or a position reads the same either way.
    texts = tuple(dict.fromkeys(condition_text(child, layout) for child in condition.children))
    if isinstance(condition, And):
        return ", ".join(texts) if texts else "everything"
    return texts[0] if len(texts) == 1 else f"({' | '.join(texts)})"


def ordering_text(ordering: Sequence[Order]) -> str:
    """Write an ordering as ``order_by`` takes it: ``-name, person_id``."""
    return ", ".join(map(str, ordering))


def _short(value: object) -> str:
    """A list of a thousand identities must not drown the rest of a message."""
    if isinstance(value, list | tuple | set | frozenset) and len(value) > 5:
        first = ", ".join(shown(element) for element in list(value)[:3])
        return f"[{first}, … {len(value)} in all]"
    return shown(value, 200)


# Conditions in stored names as plain tuples, for files and fingerprints, and back.
#
# ``("=", "status", {"S": "open"})`` compares, ``("and", ...)``, ``("or", ...)`` and ``("not", ...)`` connect; a place
# in a document is a tuple.

Plain = tuple[Any, ...]
Place = str | tuple[str | int, ...]


def plain_condition(condition: Condition) -> Plain:
    """A condition in stored names as tuples; raises ``ConfigurationError`` for one in a model's names."""
    if isinstance(condition, And | Or):
        return ("and" if isinstance(condition, And) else "or", *map(plain_condition, condition.children))
    if isinstance(condition, Not):
        return ("not", plain_condition(condition.child))
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
    """Read the condition that ``plain_condition`` wrote; raise ``ConfigurationError`` for an invalid one."""
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


def rename_in_plain(given: Plain, old: str, new: str) -> Plain:
    """Return a plain condition about another physical name."""
    return plain_condition(with_names(condition_of(given), {old: new}))


def _place(name: str, path: tuple[str | int, ...]) -> Place:
    return (name, *path) if path else name


def _split(place: Any) -> tuple[str, tuple[str | int, ...]]:
    return (place, ()) if isinstance(place, str) else (place[0], tuple(place[1:]))
