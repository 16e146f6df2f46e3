"""All modules that register functions with ``evaluate()``: ``evaluate()`` knows every expression after their import."""

from dynamo_single.orm.expressions.functions import (
    aggregates,
    arithmetic,
    casting,
    conditions,
    dates,
    documents,
    mathematics,
    subqueries,
    texts,
    windows,
)

__all__ = [
    "aggregates",
    "arithmetic",
    "casting",
    "conditions",
    "dates",
    "documents",
    "mathematics",
    "subqueries",
    "texts",
    "windows",
]
