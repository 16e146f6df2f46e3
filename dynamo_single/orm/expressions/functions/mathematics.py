"""Django's mathematical functions. Decimals stay exact in ``Abs``, ``Round``, ``Mod`` and ``Power``.

Outside of a function's domain there is no value, as on SQLite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db.models import DecimalField
from django.db.models.functions import (
    Abs,
    ACos,
    ASin,
    ATan,
    ATan2,
    Ceil,
    Cos,
    Cot,
    Degrees,
    Exp,
    Floor,
    Ln,
    Log,
    Mod,
    Pi,
    Power,
    Radians,
    Random,
    Round,
    Sign,
    Sin,
    Sqrt,
    Tan,
)

from dynamo_single.orm.expressions.evaluation import arguments, computed, evaluate, function
from dynamo_single.orm.expressions.functions.arithmetic import power, remainder
from dynamo_single.orm.expressions.scope import Expression, Scope

_CURVES: dict[type[Any], Callable[..., float]] = {
    ACos: math.acos,
    ASin: math.asin,
    ATan: math.atan,
    ATan2: math.atan2,
    Cos: math.cos,
    Cot: lambda value: 1 / math.tan(value),
    Degrees: math.degrees,
    Exp: math.exp,
    Ln: math.log,
    Radians: math.radians,
    Sin: math.sin,
    Sqrt: math.sqrt,
    Tan: math.tan,
    # SQL's first argument is the base.
    Log: lambda base, value: math.log(value, base),
}


def _of_floats(compute: Callable[..., float]) -> Callable[[Expression, Scope], Any]:
    def found(expression: Expression, scope: Scope) -> Any:
        result = computed(lambda *values: compute(*map(float, values)), arguments(expression, scope))
        is_decimal = result is not None and isinstance(expression.output_field, DecimalField)
        return Decimal(repr(result)) if is_decimal else result

    return found


_registered: Any = evaluate.register
for _kind, _compute in _CURVES.items():
    _registered(_kind)(_of_floats(_compute))


@evaluate.register(Pi)
def _pi(expression: Expression, scope: Scope) -> Any:
    return math.pi


@evaluate.register(Random)
def _random(expression: Expression, scope: Scope) -> Any:
    return scope.statement.random()


@function(Abs)
def _absolute(value: Any) -> Any:
    return abs(value)


@function(Ceil, name="CEIL")
def _ceiling(value: Any) -> Any:
    return math.ceil(value)


@function(Floor)
def _floor(value: Any) -> Any:
    return math.floor(value)


@function(Mod)
def _remainder(one: Any, other: Any) -> Any:
    return remainder(one, other)


@function(Power)
def _power(one: Any, other: Any) -> Any:
    return power(one, other)


@function(Sign)
def _sign(value: Any) -> int:
    return int(value > 0) - int(value < 0)


@function(Round)
def _rounded(value: Any, precision: int = 0) -> Any:
    step = Decimal(1).scaleb(-precision)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    # SQL rounds half away from zero.
    found = exact.quantize(step, ROUND_HALF_UP) if precision >= 0 else (exact / step).quantize(1, ROUND_HALF_UP) * step
    return type(value)(found)
