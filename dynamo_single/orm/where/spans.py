"""Sets of days or of moments, as the spans that they consist of: sorted, apart from each other, without their ends.

This module must not know dates, time zones or queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")

Spans = tuple[tuple[T, T], ...]


def union(spans: Iterable[tuple[Any, Any]]) -> Spans[Any]:
    """What lies in any of these spans; empty ones disappear, and those that touch become one."""
    merged: list[tuple[Any, Any]] = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(one: Spans[Any], other: Spans[Any]) -> Spans[Any]:
    """What lies in both."""
    return union((max(low, begin), min(high, end)) for low, high in one for begin, end in other)


def complement(spans: Spans[Any], first: Any, end: Any) -> Spans[Any]:
    """What lies between ``first`` and ``end`` and in none of these spans."""
    edges = [first, *(edge for span in spans for edge in span), end]
    return union(zip(edges[::2], edges[1::2], strict=True))
