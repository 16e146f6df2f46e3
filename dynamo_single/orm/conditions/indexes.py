"""The conditions of indexes: as tuples, as texts that know no names, and in the stored names of a model.

This module must not know Django's lookups, keys, plans or requests.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable
from functools import lru_cache

from dynamo_single.orm.conditions.algebra import names_in, with_names
from dynamo_single.orm.conditions.lowering import absent
from dynamo_single.orm.conditions.plain import Plain, condition_of, plain
from dynamo_single.orm.conditions.terms import And, Compare, ComparePair, Condition, Not, Or, Stored, StoredPair
from dynamo_single.orm.conditions.wording import word
from dynamo_single.orm.schema.encoding.values import text_to_number
from dynamo_single.orm.schema.layout import IndexCondition, ModelLayout
from dynamo_single.table.items import StoredValue


def of(condition: Condition) -> IndexCondition:
    """The condition of an index of one whose comparisons have attributes' names, and stored values."""
    attributes = tuple(dict.fromkeys(names_in(condition)))
    numbers = {name: str(number) for number, name in enumerate(attributes)}
    return IndexCondition(repr(plain(_sorted(with_names(condition, numbers)))), attributes)


def of_plain(given: Plain) -> IndexCondition:
    """The same of a condition as a migration file has it; ``ConfigurationError`` for what is none."""
    return of(condition_of(given))


def as_plain(given: IndexCondition) -> Plain:
    """The condition as a migration file has it, by the attributes' names."""
    return plain(by_names(given, given.attributes))


def by_names(given: IndexCondition, names: Iterable[str]) -> Condition:
    """The condition with these names in the places of its attributes', in their order."""
    return with_names(_read(given.text), {str(number): name for number, name in enumerate(names)})


def stored(given: IndexCondition, layout: ModelLayout) -> Condition:
    """The condition in a model's stored names, as they are now."""
    return by_names(given, (layout.attributes[name].stored for name in given.attributes))


def worded(given: IndexCondition) -> str:
    """The condition as a filter has it, of stored values: ``status='open', due__isnull=False``."""
    return word(_asked(by_names(given, given.attributes)))


#: What a filter calls the operators.
_LOOKUPS = {
    "=": "exact",
    "<": "lt",
    "<=": "lte",
    ">": "gt",
    ">=": "gte",
    "between": "range",
    "begins_with": "startswith",
    "type": "attribute_type",
}


def _asked(condition: Condition) -> Condition:
    """A condition as a filter has it, by the names that it has."""
    for is_null, found in ((False, condition.child if isinstance(condition, Not) else None), (True, condition)):
        if isinstance(found, Or) and isinstance(found.children[0], Stored):
            name = found.children[0].name
            if found == absent(name):
                return Compare(name, "isnull", is_null)
    if isinstance(condition, And | Or):
        return type(condition)(tuple(map(_asked, condition.children)))
    if isinstance(condition, Not):
        return Not(_asked(condition.child))
    if isinstance(condition, StoredPair):
        operator = _LOOKUPS[condition.operator]
        return ComparePair(condition.name, operator, condition.other, condition.path, condition.other_path)
    if not isinstance(condition, Stored):
        return condition
    if condition.operator in ("exists", "missing"):
        return Compare(condition.name, "isnull", condition.operator == "missing", condition.path)
    values = tuple(map(_shown, condition.operands))
    operator = _LOOKUPS.get(condition.operator, condition.operator)
    if operator.startswith("size"):
        operator = f"size_{_LOOKUPS[operator[4:]]}"
    return Compare(condition.name, operator, values if operator in ("in", "range") else values[0], condition.path)


def _shown(operand: StoredValue) -> object:
    ((kind, value),) = operand.items()
    return text_to_number(value) if kind == "N" else value


@lru_cache(maxsize=1024)
def _read(text: str) -> Condition:
    return condition_of(literal_eval(text))


def _sorted(condition: Condition) -> Condition:
    """The members of an ``in`` in one order, since a set of Python's has another one in each process."""
    if isinstance(condition, And | Or):
        return type(condition)(tuple(map(_sorted, condition.children)))
    if isinstance(condition, Not):
        return Not(_sorted(condition.child))
    if isinstance(condition, Stored) and condition.operator == "in":
        return Stored(condition.name, "in", tuple(sorted(condition.operands, key=repr)), condition.path)
    return condition
