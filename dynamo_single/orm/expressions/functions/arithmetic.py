"""``F("price") * 2`` and its like, with the results that SQLite and PostgreSQL agree on.

Integers divide without a remainder, towards zero, and the sign of ``%`` is the dividend's. A division by zero has no
value. Numbers are exact as long as all of them are decimals or whole.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from django.db.models.expressions import CombinedExpression

from dynamo_single.orm.expressions.evaluation import computed, evaluate
from dynamo_single.orm.expressions.scope import Expression, Scope
from dynamo_single.table.request import MAX_DIGITS

#: Results of divisions and powers have as many digits as DynamoDB stores.
CONTEXT = Context(prec=MAX_DIGITS)
_DAY = datetime.timedelta(days=1)


@evaluate.register(CombinedExpression)
def _combined(expression: Expression, scope: Scope) -> Any:
    one, other = evaluate(expression.lhs, scope), evaluate(expression.rhs, scope)
    return computed(OPERATORS[expression.connector], [one, other])


def of_one_type(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two numbers as numbers of one type: decimals if one is a decimal; text becomes its number."""
    one, other = _number(one), _number(other)
    if isinstance(one, float) and isinstance(other, Decimal):
        return Decimal(repr(one)), other
    if isinstance(other, float) and isinstance(one, Decimal):
        return one, Decimal(repr(other))
    return one, other


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return Decimal(value) if isinstance(value, str) else value


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, datetime.timedelta) and not isinstance(other, datetime.timedelta):
        one, other = other, one
    if isinstance(other, datetime.timedelta):
        return _moved(one, other)
    one, other = of_one_type(one, other)
    return CONTEXT.add(one, other) if isinstance(one, Decimal) else one + other


def _moved(value: Any, delta: datetime.timedelta) -> Any:
    if isinstance(value, datetime.datetime | datetime.timedelta):
        return value + delta
    if isinstance(value, datetime.time):
        return (datetime.datetime.combine(datetime.date.min + _DAY, value) + delta).time()
    return datetime.datetime.combine(value, datetime.time()) + delta


def _subtract(one: Any, other: Any) -> Any:
    if isinstance(other, datetime.timedelta):
        return _moved(one, -other)
    if isinstance(one, datetime.time):
        return datetime.datetime.combine(datetime.date.min, one) - datetime.datetime.combine(datetime.date.min, other)
    if isinstance(one, datetime.date):
        return _moment(one, other) - _moment(other, one)
    one, other = of_one_type(one, other)
    return CONTEXT.subtract(one, other) if isinstance(one, Decimal) else one - other


def _moment(value: Any, beside: Any) -> Any:
    if isinstance(value, datetime.datetime) or not isinstance(beside, datetime.datetime):
        return value
    return datetime.datetime.combine(value, datetime.time(), beside.tzinfo)


def _multiply(one: Any, other: Any) -> Any:
    if isinstance(one, datetime.timedelta) or isinstance(other, datetime.timedelta):
        return one * other
    one, other = of_one_type(one, other)
    return CONTEXT.multiply(one, other) if isinstance(one, Decimal) else one * other


def _divide(one: Any, other: Any) -> Any:
    if isinstance(one, datetime.timedelta):
        return one / other
    one, other = of_one_type(one, other)
    if isinstance(one, int) and isinstance(other, int):
        quotient = abs(one) // abs(other)
        return quotient if (one < 0) == (other < 0) else -quotient
    return CONTEXT.divide(one, other) if isinstance(one, Decimal) or isinstance(other, Decimal) else one / other


def remainder(one: Any, other: Any) -> Any:
    """Return the remainder with the sign of the dividend."""
    one, other = of_one_type(one, other)
    if isinstance(one, Decimal) or isinstance(other, Decimal):
        return CONTEXT.remainder(one, other)
    if isinstance(one, int) and isinstance(other, int):
        return one - other * _divide(one, other)
    return math.fmod(one, other)


def power(one: Any, other: Any) -> Any:
    """Return a power: exact for decimals and whole numbers."""
    one, other = of_one_type(one, other)
    if isinstance(one, Decimal) or isinstance(other, Decimal):
        return CONTEXT.power(one, other)
    # A power of two large numbers would take all memory.
    if isinstance(one, int) and isinstance(other, int) and 0 <= other <= MAX_DIGITS * 4:
        return one**other
    return math.pow(one, other)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%%": remainder,
    "^": power,
    "&": operator.and_,
    "|": operator.or_,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "#": operator.xor,
}
