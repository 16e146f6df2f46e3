"""Conditions and expressions with subqueries, in the form that is computed in memory.

Django's query alone describes a queryset within ``Exists()`` or ``Subquery()``, so options of this app such as the
columns of ``values()`` are translated to it. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.db.models.expressions import ResolvedOuterRef

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.expressions.nested import within
from dynamo_single.orm.query import interpreted
from dynamo_single.orm.relations import filters
from dynamo_single.orm.results.state import Asked
from dynamo_single.orm.schema.types import DynamoModel


def prepared(conditions: Sequence[Any]) -> list[Any]:
    """Return the conditions of ``filter()`` in the form that is computed, or that is read first.

    A subquery after ``__in`` without ``OuterRef`` is read first, as its queryset would be.
    """
    found = [_prepared(each) for each in conditions]
    interpreted.prepare(found)
    return found


def _prepared(condition: Any) -> Any:
    if isinstance(condition, Q):
        return Q.create([_prepared(each) for each in condition.children], condition.connector, condition.negated)
    if not isinstance(condition, tuple) or not str(condition[0]).endswith("__in"):
        return condition
    name, value = condition
    if type(value) is Subquery and not names_outer([value]):
        query: Any = value.query
        queryset = query.model._base_manager.all()
        queryset.query = query.clone()
        return name, queryset
    if hasattr(value, "_asked") and names_outer([value.query]):
        return name, interpreted.entered(value)
    return condition


def names_outer(expressions: Iterable[Any]) -> bool:
    """Return whether expressions or conditions name an attribute of an outer queryset, at any depth."""
    for each in within(expressions):
        if isinstance(each, OuterRef | ResolvedOuterRef):
            return True
        if isinstance(each, tuple) and names_outer(each[1:]):
            return True
        value = each.query if isinstance(each, Subquery) or hasattr(each, "_asked") else each
        if hasattr(value, "where"):
            asked: Asked = getattr(value, "asked", (Asked(),))[0]
            inside = [condition for _, condition in asked.inside]
            if names_outer([value.where, *value.annotations.values(), *inside]):
                return True
    return False


def separated(model: type[DynamoModel], conditions: Sequence[Any], *, negate: bool) -> tuple[list[Any], list[Any]]:
    """Return the conditions that Django's query keeps, and those that are read first.

    Raises ``NotSupported`` for conditions that can be neither.
    """
    own = [each for each in conditions if _is_computed(each)]
    others = [each for each in conditions if not _is_computed(each)]
    if filters.leads_on(model, own) or (negate and own and filters.leads_on(model, others)):
        # Related objects are joined, as in SQL.
        if any(filters.leads_to_several(model, each) for each in conditions) and (negate or _has_negation(own)):
            raise NotSupported(
                f"{model._meta.label}: OuterRef() in exclude(), or in ~Q(), over a relation to several objects is not "
                "supported. Write ~Exists(...) of the related model."
            )
        return [*own, *others], []
    if negate and own and others:
        return [*own, *others], []
    return own, others


def _has_negation(conditions: Iterable[Any]) -> bool:
    return any(isinstance(each, Q) and (each.negated or _has_negation(each.children)) for each in conditions)


def _is_computed(condition: Any) -> bool:
    """Return whether a condition is an expression, or names an outer queryset."""
    if isinstance(condition, Q):
        return any(map(_is_computed, condition.children))
    return not isinstance(condition, tuple) or names_outer([condition[1]]) or isinstance(condition[1], Subquery)
