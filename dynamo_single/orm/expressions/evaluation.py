"""Compute one of Django's expressions in a scope: ``evaluate()`` has one function for each class of expressions.

Missing values follow SQL: a computation with ``None`` is ``None``, except in functions that handle it. The expressions
are resolved by Django's query, which has checked their names and types. This module sends no requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import singledispatch
from typing import Any

from django.db.models import Case, Func, Value
from django.db.models.expressions import Col, ExpressionList, ExpressionWrapper, NegatedExpression, OrderBy, Ref, Star
from django.db.models.functions import Coalesce, Greatest, Least, NullIf

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.comparing import comparable, is_equal
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON
from dynamo_single.orm.expressions.scope import Expression, Scope, value_of

#: Functions by the name that ``Func(function=...)`` gives them, of their arguments' values.
NAMED: dict[str, Callable[..., Any]] = {}


@singledispatch
def evaluate(expression: Expression, scope: Scope) -> Any:
    """Return the value of an expression; raises ``NotSupported`` for classes that are SQL."""
    raise refusal_of(expression)


def refusal_of(expression: Expression) -> NotSupported:
    """Return the error for an expression that is SQL."""
    return NotSupported(
        f"Cannot compute {type(expression).__name__} in memory: it is SQL. Either {COMPUTE_IN_PYTHON}. Or use "
        "Django's own functions, such as Case(), Coalesce() and Concat()."
    )


def arguments(expression: Expression, scope: Scope) -> list[Any]:
    """Return the values of an expression's sources."""
    return [evaluate(each, scope) for each in expression.get_source_expressions() if each is not None]


def function(*kinds: type[Any], name: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of values for classes of expressions; it is ``None`` if an argument is."""

    registered: Any = evaluate.register

    def register(compute: Callable[..., Any]) -> Callable[..., Any]:
        def of_expression(expression: Expression, scope: Scope) -> Any:
            return computed(compute, arguments(expression, scope))

        for kind in kinds:
            registered(kind)(of_expression)
            NAMED.setdefault(str(kind.function).upper(), compute)
        if name is not None:
            NAMED[name] = compute
        return compute

    return register


def computed(compute: Callable[..., Any], values: list[Any]) -> Any:
    """Return a function's result; ``None`` if a value is, or if the function has no result for the values."""
    if None in values:
        return None
    try:
        return compute(*values)
    except (ArithmeticError, ValueError):
        return None  # as SQLite: outside the function's domain there is no value


@evaluate.register(Func)
def _named(expression: Expression, scope: Scope) -> Any:
    """Compute ``Func(..., function="LOWER")`` and subclasses of a project by the function's name."""
    values = arguments(expression, scope)
    name = check_named(expression)
    return NAMED[name](*values) if name == "COALESCE" else computed(NAMED[name], values)


def check_named(expression: Expression) -> str:
    """Return the name of an SQL function that can be computed; raises ``NotSupported`` for others and for templates."""
    name = str(expression.extra.get("function", expression.function)).upper()
    if name not in NAMED or expression.template != Func.template or "template" in expression.extra:
        raise refusal_of(expression)
    return name


@evaluate.register(Value)
def _value(expression: Expression, scope: Scope) -> Any:
    return expression.value


@evaluate.register(Col)
def _column(expression: Expression, scope: Scope) -> Any:
    return value_of(scope, expression)


@evaluate.register(Ref)
def _reference(expression: Expression, scope: Scope) -> Any:
    if expression.refs in scope.known:
        return scope.known[expression.refs]
    return evaluate(expression.source, scope)


@evaluate.register(Star)
def _star(expression: Expression, scope: Scope) -> Any:
    return True


@evaluate.register(ExpressionList)
def _list(expression: Expression, scope: Scope) -> Any:
    return tuple(arguments(expression, scope))


@evaluate.register(OrderBy)
def _ordered(expression: Expression, scope: Scope) -> Any:
    return evaluate(expression.expression, scope)


@evaluate.register(ExpressionWrapper)
def _wrapped(expression: Expression, scope: Scope) -> Any:
    return evaluate(expression.expression, scope)


@evaluate.register(NegatedExpression)
def _negated(expression: Expression, scope: Scope) -> Any:
    found = evaluate(expression.expression, scope)
    return None if found is None else not found


@evaluate.register(Case)
def _case(expression: Expression, scope: Scope) -> Any:
    for case in expression.cases:
        if evaluate(case.condition, scope):
            return evaluate(case.result, scope)
    return evaluate(expression.default, scope)


@evaluate.register(Coalesce)
def _coalesce(expression: Expression, scope: Scope) -> Any:
    for each in expression.get_source_expressions():
        found = evaluate(each, scope)
        if found is not None:
            return found
    return None


@evaluate.register(NullIf)
def _null_if(expression: Expression, scope: Scope) -> Any:
    one, other = arguments(expression, scope)
    return None if is_equal(one, other) else one


@function(Greatest, name="GREATEST")
def _greatest(*values: Any) -> Any:
    return max(values, key=comparable)


@function(Least, name="LEAST")
def _least(*values: Any) -> Any:
    return min(values, key=comparable)


def evaluate_all(expressions: Iterable[Expression], scope: Scope) -> tuple[Any, ...]:
    """Return the values of several expressions."""
    return tuple(evaluate(each, scope) for each in expressions)


NAMED["COALESCE"] = lambda *values: next((each for each in values if each is not None), None)
