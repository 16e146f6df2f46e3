"""Separate the conditions that keys and filters support from the conditions that are computed in memory."""

from __future__ import annotations

from typing import Any

from django.db.models.sql.where import AND, WhereNode

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import Condition, join
from dynamo_single.orm.expressions.computing import Interpretation
from dynamo_single.orm.results.columns import Shape
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where import lookups, tree


def interpretation_of(model: type[DynamoModel], query: Any, shape: Shape | None) -> tuple[Condition, Interpretation]:
    """Return the condition to read by, and the rest of the query to compute."""
    where, having, qualify = query.where.split_having_qualify(must_group_by=query.group_by is not None)
    pushed, rest = _separated(model, where)
    return lookups.with_canonical_equality(model, join(pushed)), Interpretation(query, rest, having, qualify, shape)


def _separated(model: type[DynamoModel], node: Any) -> tuple[list[Condition], Any]:
    """Return the conditions that the planner understands, and a node of the others; ``None`` if there are none."""
    if node is None or not node.children:
        return [], None
    if not isinstance(node, WhereNode) or node.negated or node.connector != AND:
        found = read(model, node)
        return ([found], None) if found is not None else ([], node)
    whole = read(model, node)
    if whole is not None:
        return [whole], None
    pushed: list[Condition] = []
    rest: list[Any] = []
    for child in node.children:
        inner, left = _separated(model, child) if isinstance(child, WhereNode) else _leaf(model, child)
        pushed += inner
        rest += [] if left is None else [left]
    return pushed, WhereNode(rest, AND) if rest else None


def _leaf(model: type[DynamoModel], node: Any) -> tuple[list[Condition], Any]:
    found = read(model, node)
    return ([], node) if found is None else ([found], None)


def read(model: type[DynamoModel], node: Any) -> Condition | None:
    """Return a condition that keys and filters support; ``None`` for other conditions."""
    try:
        found = tree.read_where(model, node)
        lower(found, registry.layout_of(model))
    except NotSupported:
        return None
    return found
