"""Querysets as values of ``__in``: the inner queryset is read first, and the outer one filters by its values.

DynamoDB has no subqueries, so the number of values is bounded. This module must not know plans.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.db.models import OuterRef, Q
from django.db.models.expressions import ResolvedOuterRef

from dynamo_single.exceptions import InvalidValue, TooManyMatches
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.results.state import DEFAULT_LIMIT
from dynamo_single.orm.where.arguments import leaves_of, sides_of, with_leaves_of

if TYPE_CHECKING:
    from dynamo_single.orm.expressions import computing
else:
    computing = LazyModule("dynamo_single.orm.expressions.computing")

#: Returns the values of a queryset, given the lookup's name and the queryset.
SubqueryReader = Callable[[str, Any], list[Any]]
#: Reads the values of a queryset, with the requests of that queryset.
ValuesReader = Callable[[str, Any], Awaitable[list[Any]]]


def has_subquery(conditions: Iterable[object]) -> bool:
    """Return whether a condition of ``filter()`` compares with one of our querysets by ``__in``."""
    return any(map(_has_queryset, leaves_of(conditions)))


def _has_queryset(condition: Any) -> bool:
    pair = isinstance(condition, tuple) and len(condition) == 2
    return pair and str(condition[0]).endswith("__in") and hasattr(condition[1], "_asked")


def has_expression(conditions: Iterable[object]) -> bool:
    """Return whether a condition contains ``Exists()``, ``Subquery()`` or ``OuterRef()``."""
    waiting: list[Any] = list(conditions)
    while waiting:
        each = waiting.pop()
        if isinstance(each, Q | tuple | list):
            waiting += each.children if isinstance(each, Q) else each
        elif getattr(each, "subquery", False) or isinstance(each, OuterRef | ResolvedOuterRef):
            return True
        elif hasattr(each, "_asked"):
            waiting += sides_of(each.query.where)
            waiting += [condition for _, condition in each._asked.inside]
        elif hasattr(each, "get_source_expressions"):
            waiting += each.get_source_expressions()
    return False


def with_subqueries_replaced(condition: Any, read: SubqueryReader) -> Any:
    """Return the condition with each queryset replaced by a list."""

    def replaced(leaf: Any) -> Any:
        return (leaf[0], read(*leaf)) if _has_queryset(leaf) else leaf

    return with_leaves_of(condition, replaced)


def result_names(queryset: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a queryset's rows; ``None`` for objects."""
    asked, computed = queryset._asked, queryset._computation
    found: tuple[str, ...] | None = None if asked.columns is None else asked.columns.names
    if asked.row_shape is not None:
        found = computing.output_names(queryset.query)
    elif computed is not None:
        found = computed.output or found
    return found


def check(model: Any, name: str, queryset: Any) -> list[Any]:
    """Raise ``InvalidValue`` for a queryset that Django rejects too; else return an empty list. Nothing is read."""
    asked, names = queryset._asked, result_names(queryset) or ("pk",)
    if len(names) != 1:
        raise InvalidValue(
            f"The queryset in {name} gives {', '.join(names)}: name one, by values_list(..., flat=True)."
        )
    fields = {field.name: field for field in model._meta.concrete_fields if field.is_relation}
    field = fields.get(name.removesuffix("__in"))
    if field is None or asked.columns is not None or asked.row_shape is not None:
        return []
    target = field.related_model._meta
    if queryset.model._meta.concrete_model is not target.concrete_model:
        raise InvalidValue(
            f"Cannot use a queryset of {queryset.model._meta.label} for {name}: it takes {target.label}."
        )
    return []


async def with_subquery_values(condition: Q, read: ValuesReader | None = None) -> Q:
    """Return the condition with each queryset replaced by its values, which ``read`` reads once."""
    read = read or subquery_values
    found: dict[tuple[str, int], list[Any]] = {}
    for name, queryset in filter(_has_queryset, leaves_of((condition,))):
        if (name, id(queryset)) not in found:
            found[name, id(queryset)] = await read(name, queryset)
    result: Q = with_subqueries_replaced(condition, lambda name, queryset: found[name, id(queryset)])
    return result


async def subquery_values(name: str, queryset: Any) -> list[Any]:
    """Return the values of a queryset, or the ``pk`` of each object; sends the requests of that queryset.

    Raises ``TooManyMatches`` for more than 1,000 values, or more than its ``allow_in_memory(limit=...)``.
    """
    steps = queryset._asked.steps
    limit = (queryset._asked.in_memory or DEFAULT_LIMIT) if steps is None else steps.left
    source = queryset
    asked = queryset._asked
    if asked.columns is None and queryset._computation is None and asked.row_shape is None:
        source = source.values_list("pk", flat=True)
    if not source.query.is_sliced:
        # The order does not matter here, and no key may support Meta.ordering.
        source = source.order_by()[: limit + 1]
    if steps is not None:
        source = await source._narrowed()
    found = [_single_value(row) for row in await source._read()]
    if steps is not None:
        steps.take(source, len(found))
    if len(found) > limit:
        raise TooManyMatches(
            f"The queryset of {queryset.model._meta.label} in {name} returns more than {limit} values. Narrow "
            "it, or raise the limit with .allow_in_memory(limit=...) on that queryset.",
            limit=limit,
        )
    return list(dict.fromkeys(found))


def _single_value(row: object) -> Any:
    if isinstance(row, dict):
        return next(iter(row.values()))
    return row[0] if isinstance(row, tuple) else row
