"""Window functions over the rows of a result: ``Window()`` with partitions, orders and frames.

All rows are known before the first value is computed, so the caller bounds their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db.models import Aggregate, RowRange, Window
from django.db.models.functions import (
    CumeDist,
    DenseRank,
    FirstValue,
    Lag,
    LastValue,
    Lead,
    NthValue,
    Ntile,
    PercentRank,
    Rank,
    RowNumber,
)

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.comparing import hashable
from dynamo_single.orm.expressions.evaluation import evaluate, evaluate_all
from dynamo_single.orm.expressions.ordering import orders_of, sort_scopes
from dynamo_single.orm.expressions.scope import Expression, Scope

Peers = list[tuple[int, int]]


@evaluate.register(Window)
def _known(expression: Expression, scope: Scope) -> Any:
    return scope.known[id(expression)]


def windows_in(expressions: Iterable[Expression]) -> list[Expression]:
    """Return the window functions in expressions, the innermost first."""
    found: list[Expression] = []
    for each in expressions:
        if each is None or not getattr(each, "contains_over_clause", False):
            continue
        children = getattr(each, "children", None)
        found += windows_in(children if children is not None else each.get_source_expressions())
        if isinstance(each, Window):
            found.append(each)
        elif hasattr(each, "source"):
            found += windows_in([each.source])
    return found


def compute(window: Expression, scopes: Sequence[Scope]) -> None:
    """Store the value of a window function in each scope."""
    partitions: dict[object, list[Scope]] = {}
    by = window.partition_by.get_source_expressions() if window.partition_by is not None else ()
    for scope in scopes:
        partitions.setdefault(hashable(evaluate_all(by, scope)), []).append(scope)
    for members in partitions.values():
        _compute(window, members)


def _compute(window: Expression, members: list[Scope]) -> None:
    orders = orders_of(window.order_by)
    ordered = sort_scopes(members, orders)
    peers = _peers(ordered, orders)
    inner = window.source_expression
    for kind, rank in _RANKS.items():
        if isinstance(inner, kind):
            for place, scope in enumerate(ordered):
                scope.known[id(window)] = rank(inner, ordered, peers, place)
            return
    for place, scope in enumerate(ordered):
        first, last = _frame(window, peers, place, len(ordered), is_ordered=bool(orders))
        scope.known[id(window)] = _of_frame(inner, scope, ordered[first : last + 1])


def _peers(ordered: list[Scope], orders: Sequence[Expression]) -> Peers:
    """Return the first and the last place of the rows that are equal in the order, for each row."""
    keys = [hashable(evaluate_all(orders, scope)) for scope in ordered]
    found: Peers = []
    start = 0
    for place in range(1, len(keys) + 1):
        if place == len(keys) or keys[place] != keys[start]:
            found += [(start, place - 1)] * (place - start)
            start = place
    return found


def _frame(window: Expression, peers: Peers, place: int, number: int, *, is_ordered: bool) -> tuple[int, int]:
    frame = window.frame
    if frame is None:
        return 0, (peers[place][1] if is_ordered else number - 1)
    if frame.exclusion is not None:
        raise NotSupported("Cannot compute the exclusion of a window's frame in memory. Leave it out.")
    start, end = frame.start.value, frame.end.value
    if isinstance(frame, RowRange):
        first = 0 if start is None else max(place + start, 0)
        return first, (number - 1 if end is None else min(place + end, number - 1))
    if start not in (None, 0) or end not in (None, 0):
        raise NotSupported(
            "A ValueRange begins and ends at the current row or has no bound. Use RowRange() for a number."
        )
    return (0 if start is None else peers[place][0]), (number - 1 if end is None else peers[place][1])


def _of_frame(inner: Expression, scope: Scope, rows: list[Scope]) -> Any:
    if isinstance(inner, FirstValue | LastValue | NthValue):
        sources = inner.get_source_expressions()
        at = 0 if isinstance(inner, FirstValue) else -1
        if isinstance(inner, NthValue):
            at = evaluate(sources[1], scope) - 1
        return evaluate(sources[0], rows[at]) if rows and at < len(rows) else None
    if not _is_aggregate(inner):
        raise NotSupported(f"Cannot compute Window({type(inner).__name__}()) in memory. Use an aggregate or a rank.")
    return evaluate(inner, Scope(scope.statement, scope.row, rows, scope.outer))


def _is_aggregate(inner: Expression) -> bool:
    return isinstance(inner, Aggregate) or any(
        _is_aggregate(each) for each in inner.get_source_expressions() if each is not None
    )


def _shifted(sign: int) -> Callable[[Expression, list[Scope], Peers, int], Any]:
    def value(inner: Expression, rows: list[Scope], peers: Peers, place: int) -> Any:
        source, offset, *default = inner.get_source_expressions()
        at = place + sign * evaluate(offset, rows[place])
        if 0 <= at < len(rows):
            return evaluate(source, rows[at])
        return evaluate(default[0], rows[place]) if default else None

    return value


def _tile(inner: Expression, rows: list[Scope], peers: Peers, place: int) -> int:
    number = evaluate(inner.get_source_expressions()[0], rows[place])
    size, larger = divmod(len(rows), number)
    if place < larger * (size + 1):
        return int(place // (size + 1) + 1)
    return int(larger + (place - larger * (size + 1)) // size + 1)


_RANKS: dict[type[Any], Callable[[Expression, list[Scope], Peers, int], Any]] = {
    RowNumber: lambda inner, rows, peers, place: place + 1,
    Rank: lambda inner, rows, peers, place: peers[place][0] + 1,
    DenseRank: lambda inner, rows, peers, place: len({start for start, _ in peers[: place + 1]}),
    PercentRank: lambda inner, rows, peers, place: peers[place][0] / (len(rows) - 1) if len(rows) > 1 else 0.0,
    CumeDist: lambda inner, rows, peers, place: (peers[place][1] + 1) / len(rows),
    Ntile: _tile,
    Lag: _shifted(-1),
    Lead: _shifted(1),
}
