"""``union()``, ``intersection()`` and ``difference()`` of querysets that SQL compares by their rows.

Django's query holds the querysets, as with an SQL database. Nothing is sent. ``orm.expressions.united`` computes the
results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from django.db import models
from django.db.models.sql.where import WhereNode
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.terms import Nothing
from dynamo_single.orm.expressions.nested import within
from dynamo_single.orm.expressions.united import Part, United
from dynamo_single.orm.query.interpreted import entered
from dynamo_single.orm.query.subqueries import result_names
from dynamo_single.orm.results.columns import Shape
from dynamo_single.orm.results.state import QueryState, Window
from dynamo_single.orm.schema.keys.values import shown

Q = TypeVar("Q", bound=models.QuerySet[Any])


def combined(queryset: Q, given: Sequence[object], operation: str, *, keeps_duplicates: bool = False) -> Q:
    """Return the queryset of a set operation."""
    others: list[Any] = list(given)
    for each in others:
        if not hasattr(each, "_asked"):
            raise NotSupported(f"{operation}() accepts querysets of models in DynamoDB, not {shown(each)}.")
    before: Any = queryset
    clone = before._asking(replace(before._asked, inside=(), by_objects=""))
    query = clone.query
    query.clear_ordering(force=True)
    query.clear_limits()
    query.where = WhereNode()
    query.combined_queries = (before.query, *(each.query for each in others))
    query.combinator, query.combinator_all = operation, keeps_duplicates
    result: Q = clone
    return result


def state_of(queryset: Any) -> QueryState:
    """Return the state of a set operation; raises ``NotSupported`` for results that cannot be compared."""
    asked, query = queryset._asked, queryset.query
    parts = [_queryset_of(each) for each in query.combined_queries]
    given = result_names(queryset)
    columns = () if given is None else _columns(queryset, result_names(parts[0]), given)
    return QueryState(
        model=queryset.model,
        asked=replace(asked, columns=None, computation=None, distinct=False),
        where=Nothing(),
        ordering=tuple(query.order_by),
        reversed=not query.standard_ordering,
        window=Window.between(query.low_mark, query.high_mark),
        is_empty=query.is_empty(),
        interpretation=United(
            operation=query.combinator,
            keeps_duplicates=query.combinator_all,
            parts=tuple(_part(queryset, each, columns) for each in parts),
            columns=columns,
            shape=shape_of(queryset),
            names=given or (),
            annotations=() if columns else tuple(parts[0].query.annotation_select),
        ),
    )


def explain(queryset: Any, *, execute: bool) -> str:
    """Return the explanation of each queryset of a set operation."""
    parts = [_queryset_of(each).explain(execute=execute) for each in queryset.query.combined_queries]
    return "\n".join((f"{queryset.query.combinator}() of {len(parts)} querysets, compared in memory", *parts))


def shape_of(queryset: Any) -> Shape | None:
    """Return the function that makes a queryset's rows; ``None`` for objects."""
    asked, computed = queryset._asked, queryset._computation
    if asked.row_shape is not None:
        found: Shape | None = asked.row_shape
        return found
    if computed is not None and (computed.shape or computed.groups):
        return computed.shape or computed.groups.shape  # type: ignore[no-any-return]  # of Any
    return None if asked.columns is None else asked.columns.shape


def _queryset_of(query: Any) -> Any:
    """Return a queryset of a set operation in the form that counts the bytes of its items."""
    queryset = query.model._base_manager.all()
    queryset.query = query.clone()
    # Groups and dates are held in any case.
    return queryset if query.combinator or queryset._asked.computation is not None else entered(queryset)


def _order_names(query: Any) -> list[str]:
    """Return the names in the order of the result."""
    named: list[Any] = [getattr(each, "name", each) for each in within(query.order_by)]
    return list(dict.fromkeys(name.lstrip("-+") for name in named if isinstance(name, str)))


def _columns(queryset: Any, first: tuple[str, ...] | None, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that are compared: those of the first queryset, or of the result and its order."""
    wanted = tuple(dict.fromkeys((*given, *_order_names(queryset.query))))
    missing = [name for name in wanted if name not in (first or wanted)]
    if missing:
        raise NotSupported(
            f"{queryset.query.combinator}() does not return {', '.join(missing)}: its columns are "
            f"{', '.join(first or ())}. Name the columns by values() of each queryset."
        )
    return first or wanted


def _part(queryset: Any, part: Any, columns: tuple[str, ...]) -> Part:
    """Return a queryset of a set operation with the columns of its result."""
    names = result_names(part)
    if names is None and columns:
        part = part.values_list(*columns)
        names = columns
    if names is None:
        if part.model._meta.concrete_model is not queryset.model._meta.concrete_model or shape_of(part) is not None:
            _refuse(queryset, part)
        return Part(part, None)
    if len(names) != len(columns):
        _refuse(queryset, part)
    return Part(part, shape_of(part))


def _refuse(queryset: Any, part: Any) -> NoReturn:
    ours, theirs = queryset.model._meta.label, part.model._meta.label
    raise NotSupported(
        f"{queryset.query.combinator}() of {ours} cannot compare the results of {theirs}, which have other columns. "
        "Call .values_list(...) with as many names on each queryset."
    )
