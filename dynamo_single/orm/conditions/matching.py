"""Conditions evaluated on an item in Python, as DynamoDB evaluates them: GetItem and BatchGetItem take no filter.

A comparison with a missing attribute, or between two types, does not hold; its negation does. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.lowering import ORDERED_TYPES, lower, order_value
from dynamo_single.orm.conditions.terms import IN_PYTHON, And, Condition, Not, Or, Stored, StoredPair, leaves
from dynamo_single.orm.schema.keys.codecs import canonical
from dynamo_single.orm.schema.keys.documents import normalized_value as normalized_value
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table.request import Item, StoredValue

_Comparison = Callable[[StoredValue, tuple[StoredValue, ...]], bool]


def matches(condition: Condition, item: Item, layout: ModelLayout | None = None) -> bool:
    """Return whether a stored item meets a condition; ``layout`` is needed if the condition uses the model's names."""
    return _matches(lower(condition, layout), item)


def is_comparable(condition: Condition) -> bool:
    """Return whether DynamoDB can evaluate a condition in stored names too: some operators work only here."""
    return not any(isinstance(each, Stored) and each.operator in IN_PYTHON for each in leaves(condition))


def _matches(condition: Condition, item: Item) -> bool:
    if isinstance(condition, And):
        return all(_matches(child, item) for child in condition.children)
    if isinstance(condition, Or):
        return any(_matches(child, item) for child in condition.children)
    if isinstance(condition, Not):
        return not _matches(condition.child, item)
    if isinstance(condition, StoredPair):
        return _compare_pair(condition, item)
    return isinstance(condition, Stored) and _compare(condition, item)


def _compare_pair(pair: StoredPair, item: Item) -> bool:
    one, other = value_at(item, pair.name, pair.path), value_at(item, pair.other, pair.other_path)
    if one is None or other is None:
        return False
    if pair.operator == "=":
        return bool(normalized_value(one) == normalized_value(other))
    return one.keys() <= ORDERED_TYPES and _ordered(ORDERINGS[pair.operator], one, other)


def _compare(stored: Stored, item: Item) -> bool:
    value = value_at(item, stored.name, stored.path)
    if stored.operator == "exists":
        return value is not None
    if stored.operator == "missing":
        return value is None
    if value is None:
        return False
    operator = stored.operator
    if operator.startswith("size"):
        size = _size(value)
        return size is not None and ORDERINGS[operator[4:]](size, Decimal(stored.operands[0]["N"]))
    if operator in ORDERINGS and operator != "=":
        return _ordered(ORDERINGS[operator], value, stored.operands[0])
    try:
        return _COMPARISONS[operator](value, stored.operands)
    except KeyError:
        raise NotSupported(f"{operator!r} is not an operator of a stored comparison.") from None


def value_at(item: Item, name: str, path: tuple[str | int, ...]) -> StoredValue | None:
    """Return the value of an attribute, or the one at a path in it; ``None`` if there is none."""
    value = item.get(name)
    for step in path:
        if value is None:
            return None
        if isinstance(step, int):
            elements = value.get("L", ())
            value = elements[step] if 0 <= step < len(elements) else None
        else:
            value = value.get("M", {}).get(step)
    return value


def _ordered(compare: Callable[[object, object], bool], value: StoredValue, operand: StoredValue) -> bool:
    if value.keys() != operand.keys():
        return False
    return compare(order_value(value)[1], order_value(operand)[1])


def _contains(value: StoredValue, operand: StoredValue) -> bool:
    ((kind, content),) = value.items()
    ((operand_kind, part),) = operand.items()
    if kind == "L":
        return any(normalized_value(element) == normalized_value(operand) for element in content)
    if kind in ("SS", "NS", "BS"):
        return any(normalized_value({kind[0]: element}) == normalized_value(operand) for element in content)
    return kind in ("S", "B") and kind == operand_kind and part in content


def _size(value: StoredValue) -> int | None:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode("utf-16-le")) // 2  # Java's length of a String, which is DynamoDB's
    return len(content) if kind in ("B", "L", "M", "SS", "NS", "BS") else None


def _texts(value: StoredValue) -> list[str]:
    """Return the searchable parts of a value: a string, an encoded number, and the members of sets of these."""
    ((kind, content),) = value.items()
    if kind in ("S", "N"):
        return [content]
    return list(content) if kind in ("SS", "NS") else []


def _of_text(compare: Callable[[str, str], bool], *, folds: bool = True) -> _Comparison:
    """Compare a string, or any member of a set, with a string."""

    def compared(value: StoredValue, operands: tuple[StoredValue, ...]) -> bool:
        text = operands[0]["S"]
        if not folds:
            return any(compare(each, text) for each in _texts(value))
        text = text.casefold()
        return any(compare(each.casefold(), text) for each in _texts(value))

    return compared


#: The results of DynamoDB's operators for two comparable values.
ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda value, operand: bool(value == operand),
    "<": lambda value, operand: bool(value < operand),
    "<=": lambda value, operand: bool(value <= operand),
    ">": lambda value, operand: bool(value > operand),
    ">=": lambda value, operand: bool(value >= operand),
}

#: The types whose equal values can be written in several ways.
_WRITTEN_IN_WAYS = {"N", "L", "M", "SS", "NS", "BS"}

_COMPARISONS: dict[str, _Comparison] = {
    "=": lambda value, operands: bool(normalized_value(value) == normalized_value(operands[0])),
    # A list of strings may have thousands of members: equal ones have equal encodings.
    "in": lambda value, operands: bool(
        value in operands
        or (value.keys() <= _WRITTEN_IN_WAYS and normalized_value(value) in map(normalized_value, operands))
    ),
    "between": lambda value, operands: (
        _ordered(ORDERINGS[">="], value, operands[0]) and _ordered(ORDERINGS["<="], value, operands[1])
    ),
    "begins_with": lambda value, operands: bool(
        value.keys() == operands[0].keys() and next(iter(value.values())).startswith(next(iter(operands[0].values())))
    ),
    "contains": lambda value, operands: _contains(value, operands[0]),
    "type": lambda value, operands: operands[0]["S"] in value,
    "iexact": _of_text(str.__eq__),
    "icontains": _of_text(str.__contains__),
    "istartswith": _of_text(str.startswith),
    "iendswith": _of_text(str.endswith),
    "endswith": _of_text(str.endswith, folds=False),
    "canonical": lambda value, operands: "S" in value and canonical(value["S"]) == operands[0]["S"],
}
