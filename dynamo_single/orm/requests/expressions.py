"""DynamoDB's expression language: conditions and changes written with placeholders for every name and value.

As no name is ever written as it is, no reserved word and no odd character needs care. This module must not know plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import And, Condition, Not, Nothing, Or, Stored, StoredPair, simplify
from dynamo_single.orm.conditions.wording import condition_text
from dynamo_single.orm.requests.updates import Change, Place
from dynamo_single.orm.schema.keys.values import checked_text
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table import names
from dynamo_single.table.request import LIMITS, MAX_EXPRESSION, MAX_IN_OPERANDS, MAX_OPERATORS, StoredValue

_FUNCTIONS = {"begins_with": "begins_with", "contains": "contains", "type": "attribute_type"}
#: The bytes and operators reserved for the rest of an expression that was divided.
_RESERVED = (512, 20)
_COMPARATORS = ("=", "<", "<=", ">", ">=")


class ExpressionTooLong(NotSupported):
    """An expression is longer than DynamoDB takes."""


class ExpressionBuilder:
    """Hands out the placeholders of one request: a name gets one, each value its own."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, StoredValue] = {}

    def name(self, stored: str) -> str:
        """Give the placeholder of an attribute's name."""
        return self._names.setdefault(stored, f"#a{len(self._names)}")

    def path(self, stored: str, path: tuple[str | int, ...] = ()) -> str:
        """Return the placeholder of a path inside an attribute; raise ``InvalidValue`` for a key without UTF-8 form."""
        steps = (
            f"[{step}]" if isinstance(step, int) else f".{self.name(checked_text(step, path=f'a place in {stored}'))}"
            for step in path
        )
        return self.name(stored) + "".join(steps)

    def value(self, attribute_value: StoredValue) -> str:
        """Give the placeholder of a value."""
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = attribute_value
        return placeholder

    def params(self) -> dict[str, Any]:
        """Give the request's parameters that explain the placeholders."""
        params: dict[str, Any] = {}
        if self._names:
            params["ExpressionAttributeNames"] = {placeholder: name for name, placeholder in self._names.items()}
        if self._values:
            params["ExpressionAttributeValues"] = dict(self._values)
        return params


def compile_condition(condition: Condition, layout: ModelLayout | None, builder: ExpressionBuilder) -> str:
    """Write a condition; everything gives ``""``, which stands for no expression at all.

    ``layout`` is needed only if the condition uses the model's own names. A condition over DynamoDB's limits is
    rejected.
    """
    lowered = simplify(condition if layout is None else lower(condition, layout))
    text = _write(lowered, builder)
    size, operators = len(text.encode()), _operators(lowered)
    if size > MAX_EXPRESSION or operators > MAX_OPERATORS:
        shown = condition_text(condition, layout)
        # Without a layout it is the condition of a write, so the advice about querysets does not apply.
        memory = " before writing" if layout is None else ", or call allow_in_memory(), which compares in Python"
        raise ExpressionTooLong(
            f"{shown if len(shown) <= 200 else shown[:200] + '...'}: as an expression this has {size} bytes "
            f"and {operators} operators; DynamoDB accepts {MAX_EXPRESSION} bytes and {MAX_OPERATORS} "
            f"operators ({LIMITS}). Send several queries with fewer values each{memory}."
        )
    return text


def split_conditions(
    terms: Sequence[Condition], layout: ModelLayout, first: Sequence[Condition] = ()
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """Divide conditions that must all hold: those that fit into one expression, and the longest others.

    If all of them fit, there are no others. If not, ``first`` come first, and some room is left for the rest of the
    expression.
    """
    measured: list[tuple[bool, int, int, int]] = []
    builder = ExpressionBuilder()
    for place, term in enumerate(terms):
        lowered = simplify(lower(term, layout))
        # With the parentheses around it, and the AND before it. A placeholder that is handed out later is no shorter.
        size, operators = len(_write(lowered, builder).encode()) + 7, _operators(lowered) + 1
        measured.append((term not in first, size, operators, place))
    if sum(each[1] for each in measured) <= MAX_EXPRESSION and sum(each[2] for each in measured) <= MAX_OPERATORS:
        return tuple(terms), ()
    kept: set[int] = set()
    size, operators = _RESERVED
    for _, its_size, its_operators, place in sorted(measured):
        if size + its_size <= MAX_EXPRESSION and operators + its_operators <= MAX_OPERATORS:
            size, operators = size + its_size, operators + its_operators
            kept.add(place)
    return (
        tuple(term for place, term in enumerate(terms) if place in kept),
        tuple(term for place, term in enumerate(terms) if place not in kept),
    )


def _write(condition: Condition, builder: ExpressionBuilder) -> str:
    if isinstance(condition, And):
        return " AND ".join(_nested(child, builder) for child in condition.children)
    if isinstance(condition, Or):
        return " OR ".join(_nested(child, builder) for child in condition.children)
    if isinstance(condition, Not):
        return f"NOT ({_write(condition.child, builder)})"
    if isinstance(condition, StoredPair):
        other = builder.path(condition.other, condition.other_path)
        return f"{builder.path(condition.name, condition.path)} {condition.operator} {other}"
    if isinstance(condition, Stored):
        return _write_stored(condition, builder)
    if isinstance(condition, Nothing):
        # The language has no constant, so what can never hold is spelled out.
        name = builder.name(names.ITEM_TYPE)
        return f"attribute_exists({name}) AND attribute_not_exists({name})"
    raise UnknownField(f"{condition_text(condition)}: without a layout only stored names can be compared.")


def _operators(condition: Condition) -> int:
    if isinstance(condition, And | Or):
        return sum(map(_operators, condition.children)) + max(len(condition.children) - 1, 0)
    if isinstance(condition, Not):
        return 1 + _operators(condition.child)
    if isinstance(condition, Nothing):
        return 3
    if isinstance(condition, Stored) and condition.operator == "in":
        # One IN for each hundred values, and an OR between two of them.
        return 2 * -(-len(condition.operands) // MAX_IN_OPERANDS) - 1
    return 2 if isinstance(condition, Stored) and condition.operator.startswith("size") else 1


def _nested(condition: Condition, builder: ExpressionBuilder) -> str:
    text = _write(condition, builder)
    split_in = (
        isinstance(condition, Stored) and condition.operator == "in" and len(condition.operands) > MAX_IN_OPERANDS
    )
    return f"({text})" if isinstance(condition, And | Or) or split_in else text


def _write_stored(stored: Stored, builder: ExpressionBuilder) -> str:
    place = builder.path(stored.name, stored.path)
    operator = stored.operator
    if operator in ("exists", "missing"):
        return f"attribute_{'' if operator == 'exists' else 'not_'}exists({place})"
    if operator == "canonical":
        raise NotSupported(
            f"DynamoDB cannot compare {stored.name} without regard to case; only a key with "
            f"{{{stored.name}:canonical}} can, so add one, or compare exactly."
        )
    if operator == "in":
        return _write_in(place, stored.operands, builder)
    values = [builder.value(operand) for operand in stored.operands]
    if operator in _COMPARATORS:
        return f"{place} {operator} {values[0]}"
    if operator == "between":
        return f"{place} BETWEEN {values[0]} AND {values[1]}"
    if operator in _FUNCTIONS:
        return f"{_FUNCTIONS[operator]}({place}, {values[0]})"
    if operator.startswith("size") and operator[4:] in _COMPARATORS:
        return f"size({place}) {operator[4:]} {values[0]}"
    raise NotSupported(f"{operator!r} is not an operator of a stored comparison.")


def _write_in(place: str, operands: tuple[StoredValue, ...], builder: ExpressionBuilder) -> str:
    chunks = (operands[start : start + MAX_IN_OPERANDS] for start in range(0, len(operands), MAX_IN_OPERANDS))
    return " OR ".join(f"{place} IN ({', '.join(map(builder.value, chunk))})" for chunk in chunks)


def compile_change(change: Change, builder: ExpressionBuilder) -> tuple[str, str]:
    """Write a change as one entry of an update's clause, and the clause: SET, REMOVE, ADD or DELETE."""
    place = builder.path(change.place.name, change.place.path)
    if change.operator == "remove":
        return "REMOVE", place
    if change.operator in ("copy", "sum"):
        return "SET", f"{place} = {_write_sum(change, builder)}"
    operand = builder.value(change.operand or {"NULL": True})
    if change.operator in ("include", "exclude"):
        return "ADD" if change.operator == "include" else "DELETE", f"{place} {operand}"
    if change.operator == "set":
        return "SET", f"{place} = {operand}"
    held = f"if_not_exists({place}, {builder.value({'L': []})})"
    both = (held, operand) if change.operator == "append" else (operand, held)
    return "SET", f"{place} = list_append({', '.join(both)})"


def _write_sum(change: Change, builder: ExpressionBuilder) -> str:
    (first, sign), *more = sorted(change.places, key=_sign, reverse=True)
    text = builder.path(first.name, first.path)
    if sign < 0:
        return f"{builder.value(change.operand or {'N': '0'})} - {text}"
    for place, its_sign in more:
        text += f" {'+' if its_sign > 0 else '-'} {builder.path(place.name, place.path)}"
    return text if change.operand is None else f"{text} + {builder.value(change.operand)}"


def _sign(term: tuple[Place, int]) -> int:
    return term[1]
