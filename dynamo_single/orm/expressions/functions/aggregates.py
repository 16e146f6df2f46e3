"""Django's aggregates over the rows of a group: ``filter``, ``distinct`` and ``default`` as the documentation has them.

Sums of whole numbers and decimals are exact; sums of floats are rounded once. A group without values has no result,
except a count.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from django.db import models
from django.db.models import Aggregate, Avg, Count, Max, Min, StdDev, Sum, Variance
from django.db.models import aggregates as django_aggregates

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.comparing import hashable, sort_key
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON
from dynamo_single.orm.expressions import ordering
from dynamo_single.orm.expressions.evaluation import evaluate, evaluate_all
from dynamo_single.orm.expressions.functions.arithmetic import CONTEXT
from dynamo_single.orm.expressions.scope import Expression, Scope


@evaluate.register(Aggregate)
def _aggregate(expression: Expression, scope: Scope) -> Any:
    for kind, compute in _COMPUTED:
        if isinstance(expression, kind):
            return compute(list(_values(expression, _members(scope))), expression)
    raise NotSupported(
        f"Cannot compute {type(expression).__name__}() in memory. There are Count, Sum, Avg, Min, Max, StdDev, "
        f"Variance, and those of Django 6.1; otherwise {COMPUTE_IN_PYTHON}."
    )


def _members(scope: Scope) -> Sequence[Scope]:
    return (scope,) if scope.members is None else scope.members


def _condition(expression: Expression) -> Expression:
    """Return the condition of ``filter=``: since Django 6.0 it is inside an ``AggregateFilter``."""
    return getattr(expression.filter, "condition", expression.filter)


def _argument(expression: Expression, scope: Scope) -> Any:
    """Return the value of the only source of an argument."""
    return evaluate(expression.get_source_expressions()[0], scope)


# Since Django 6.0 the arguments of an aggregate have classes.
_register: Any = evaluate.register
for _name in ("AggregateFilter", "AggregateOrderBy", "StringAggDelimiter"):
    if hasattr(django_aggregates, _name):
        _register(getattr(django_aggregates, _name))(_argument)


def _values(expression: Expression, members: Sequence[Scope]) -> Iterator[Any]:
    """Yield the values that are present, each once for ``distinct``."""
    condition = _condition(expression)
    sources = expression.source_expressions
    seen: set[object] = set()
    orders = ordering.orders_of(getattr(expression, "order_by", None))
    for member in ordering.sort_scopes(members, orders) if orders else members:
        if condition is not None and not evaluate(condition, member):
            continue
        values = evaluate_all(sources, member)
        if None in values:
            continue
        value = values[0] if len(values) == 1 else values
        if expression.distinct:
            form = hashable(value)
            if form in seen:
                continue
            seen.add(form)
        yield value


def _sum(values: list[Any], expression: Expression) -> Any:
    return total(values) if values else None


def total(values: Sequence[Any]) -> Any:
    """Return a sum in the type of its values."""
    if isinstance(values[0], datetime.timedelta):
        return sum(values, datetime.timedelta())
    if any(isinstance(each, float) for each in values):
        return math.fsum(map(float, values))
    if any(isinstance(each, Decimal) for each in values):
        result = Decimal(0)
        for each in values:
            result = CONTEXT.add(result, Decimal(each))
        return result
    if not all(isinstance(each, int) for each in values):
        raise NotSupported(
            "Sum() and Avg() add numbers and durations. Use Min(), Max() or Count(), or Cast() to a number."
        )
    return sum(values)


def _average(values: list[Any], expression: Expression) -> Any:
    if not values:
        return None
    added = total(values)
    if isinstance(added, Decimal):
        found = CONTEXT.divide(added, Decimal(len(values)))
        return float(found) if isinstance(expression.output_field, models.FloatField) else found
    if isinstance(added, datetime.timedelta):
        return added / len(values)
    mean = float(Fraction(added) / len(values))
    return Decimal(repr(mean)) if isinstance(expression.output_field, models.DecimalField) else mean


def _variance(values: list[Any], *, sample: bool) -> float | None:
    number = len(values) - sample
    if number < 1:
        return None
    exact = [Fraction(each) for each in values]
    mean = sum(exact) / len(exact)
    return float(sum((each - mean) ** 2 for each in exact) / number)


def _text(values: list[tuple[Any, Any]], expression: Expression) -> str | None:
    """Return the values of ``StringAgg()``; each has the delimiter before it."""
    if not values:
        return None
    (first, _), *others = values
    return str(first) + "".join(f"{delimiter}{value}" for value, delimiter in others)


def _bits(combine: Callable[[int, int], int]) -> Callable[[list[Any], Expression], int | None]:
    return lambda values, expression: reduce(combine, values) if values else None


def _deviation(values: list[Any], expression: Expression) -> float | None:
    found = _variance(values, sample=expression.function.endswith("SAMP"))
    return None if found is None else math.sqrt(found)


_COMPUTED: tuple[tuple[type[Any], Callable[[list[Any], Expression], Any]], ...] = (
    (Count, lambda values, expression: len(values)),
    (Sum, _sum),
    (Avg, _average),
    (Min, lambda values, expression: min(values, key=sort_key, default=None)),
    (Max, lambda values, expression: max(values, key=sort_key, default=None)),
    (StdDev, _deviation),
    (Variance, lambda values, expression: _variance(values, sample=expression.function.endswith("SAMP"))),
)
#: Aggregates of Django 6.0 and 6.1 by name.
_LATER: dict[str, Callable[[list[Any], Expression], Any]] = {
    "AnyValue": lambda values, expression: values[0] if values else None,
    "BitAnd": _bits(and_),
    "BitOr": _bits(or_),
    "BitXor": _bits(xor),
    "StringAgg": _text,
}
_COMPUTED += tuple(
    (getattr(django_aggregates, name), compute) for name, compute in _LATER.items() if hasattr(django_aggregates, name)
)
