"""From Django's description of a query to ours.

Django collects conditions in a where-tree and never compiles it to SQL here; this module walks through that tree, and
``comparisons`` and ``dates`` read its leaves. It must not know keys, plans or requests.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from django.db.models.expressions import Col, OrderBy
from django.db.models.sql.where import AND, OR, NothingNode, WhereNode

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.terms import And, Condition, Not, Nothing, Or, Order
from dynamo_single.orm.conditions.wording import SORT_IN_PYTHON
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.comparisons import attribute_comparison, read_lookup
from dynamo_single.orm.where.dates import EVERY_DAY, DatePart, Spans, condition_of, days_of, read_part
from dynamo_single.orm.where.lookups import refuse_path

#: The days that surrounding conditions leave, by attribute and time zone: a month is one of the years around it.
Around = Mapping[tuple[str, datetime.tzinfo | None], Spans[int]]


def read_where(
    model: type[DynamoModel], node: Any, around: Around | None = None, *, in_python: bool = False
) -> Condition:
    """Return the condition of a where-tree; raise ``NotSupported`` by name if DynamoDB has no exact equivalent.

    With ``in_python`` it may use comparisons that only Python supports.
    """
    around = around or {}
    if isinstance(node, NothingNode):
        return Nothing()
    if isinstance(node, WhereNode):
        return _read_node(model, node, around, in_python=in_python)
    part = _part(model, node)
    if part is None:
        return read_lookup(model, node, in_python=in_python)
    if part.is_null_test:
        return attribute_comparison(part.field, "isnull", part.value)
    return condition_of(part, _days([part], around))


def _read_node(model: type[DynamoModel], node: WhereNode, around: Around, *, in_python: bool) -> Condition:
    children: tuple[Condition, ...]
    if node.connector == AND:
        children = _read_together(model, node, around, in_python=in_python)
    else:
        children = tuple(read_where(model, child, around, in_python=in_python) for child in node.children)
    condition: Condition
    if len(children) == 1:
        condition = children[0]
    elif node.connector == AND:
        condition = And(children)
    elif node.connector == OR:
        condition = Or(children) if children else And()
    else:
        raise NotSupported("XOR between conditions is not supported. Write it as (one | other) & ~(one & other).")
    return Not(condition) if node.negated else condition


def _read_together(
    model: type[DynamoModel], node: WhereNode, around: Around, *, in_python: bool
) -> tuple[Condition, ...]:
    """Conditions that all have to hold: a year, a month and a day of one attribute are one range."""
    parts: dict[int, DatePart] = {}
    together: dict[Any, list[DatePart]] = {}
    for place, child in enumerate(node.children):
        part = None if isinstance(child, WhereNode | NothingNode) else _part(model, child)
        if part is not None and not part.is_null_test:
            parts[place] = part
            together.setdefault(part.subject, []).append(part)
    days = {subject: _days(group, around) for subject, group in together.items()}
    around = {**around, **days}
    children: list[Condition] = []
    for place, child in enumerate(node.children):
        part = parts.get(place)
        if part is None:
            children.append(read_where(model, child, around, in_python=in_python))
        elif part is together[part.subject][0]:
            children.append(condition_of(part, days[part.subject]))
    return tuple(children)


def _part(model: type[DynamoModel], node: object) -> DatePart | None:
    """Return a lookup as a comparison of a part of a date; a whole attribute, the usual subject, has no part."""
    return None if isinstance(getattr(node, "lhs", None), Col) else read_part(model, node)


def _days(parts: list[DatePart], around: Around) -> Spans[int]:
    return days_of(parts, around.get(parts[0].subject, EVERY_DAY))


def parts_of_order(name: Any) -> tuple[str, bool, bool | None] | None:
    """Return the name of an order, whether it descends, and whether missing values come first, if it sets that.

    Returns ``None`` for an order by an expression, or a random one.
    """
    if isinstance(name, str):
        return None if name == "?" else (name.lstrip("-+"), name.startswith("-"), None)
    if not isinstance(name, OrderBy) or not hasattr(name.expression, "name"):
        return None
    missing_first = bool(name.nulls_first) if name.nulls_first or name.nulls_last else None
    return str(name.expression.name), bool(name.descending), missing_first


def read_ordering(model: type[DynamoModel], names: Any) -> tuple[Order, ...]:
    """The order of ``order_by()`` or ``Meta.ordering``, with ``pk`` as the key's own attributes."""
    orders: list[Order] = []
    for name in names:
        parts = parts_of_order(name)
        if parts is None:
            raise NotSupported(
                f"Ordering by {shown(name)} is not supported: DynamoDB orders by the sort key only. Either "
                f"{SORT_IN_PYTHON}. Or store the value in a separate attribute and order by that, such as "
                "models.CanonicalAttribute(source=...) for a string without regard to case."
            )
        text, descending, missing_first = parts
        orders.extend(Order(attribute, descending, missing_first) for attribute in _ordered_attributes(model, text))
    return tuple(dict.fromkeys(orders))


def _ordered_attributes(model: type[DynamoModel], name: str) -> tuple[str, ...]:
    layout = registry.layout_of(model)
    if name in ("pk", "identity"):
        return layout.identity
    by_name = {field.name: field.attname for field in model._meta.concrete_fields}
    # By the key of an object that is referred to, which the reference holds.
    by_name |= {f"{field.name}__pk": field.attname for field in model._meta.concrete_fields if field.is_relation}
    attribute = by_name.get(name, name)
    if attribute != name and not name.endswith("__pk"):
        _check_own_order(model, name, attribute)
    if attribute not in layout.attributes:
        refuse_path(model, name, "order_by")
        raise UnknownField(f"Cannot order {model._meta.label} by {name!r}. It has {', '.join(sorted(by_name))}.")
    return (attribute,)


def _check_own_order(model: type[DynamoModel], name: str, attribute: str) -> None:
    """Return the order by a reference, which in Django is the referenced model's own order, if it has one."""
    other: Any = model._meta.get_field(name).related_model
    ordering = tuple(other._meta.ordering)
    if ordering not in ((), ("pk",), (other._meta.pk.name,)):
        raise NotSupported(
            f"Ordering {model._meta.label} by {name!r} means the order of {other._meta.label} itself, which is by "
            f"{', '.join(map(str, ordering))}, and DynamoDB has no joins. Order by {attribute!r}, or {SORT_IN_PYTHON}. "
            "Or call .allow_in_memory(limit=1000), which reads the related objects."
        )
