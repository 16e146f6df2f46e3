"""Orders that DynamoDB does not have: what they are by, and putting a list in order.

This module must not know plans, groups, aggregates or columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from django.db.models.expressions import Combinable, OrderBy

from dynamo_single import clock
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON, SORT_IN_PYTHON
from dynamo_single.orm.plan.plan import InMemory, Sort
from dynamo_single.orm.results.places import place_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute, JSONAttribute
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.where import tree

#: What ``order_by()`` and ``Meta.ordering`` take.
OrderName = str | Combinable

T = TypeVar("T")

_ORDERED_TYPES = ("S", "N", "B", "BOOL")


def read_sorting(model: type[DynamoModel], names: Iterable[OrderName]) -> tuple[Sort, ...]:
    """The order of ``order_by()`` or ``Meta.ordering``, with where missing values go if that was given and matters."""
    found: dict[str, Sort] = {}
    for name in names:
        placed = _of_place(model, name)
        if placed is not None:
            found.setdefault(placed.attribute, placed)
            continue
        plain = without_missing(model, name)
        missing_first = None
        if isinstance(plain, OrderBy) and (plain.nulls_first or plain.nulls_last):
            missing_first, plain = bool(plain.nulls_first), OrderBy(plain.expression, descending=plain.descending)
        for order in tree.read_ordering(model, (plain,)):
            found.setdefault(order.attribute, Sort(order.attribute, order.descending, missing_first))
    return tuple(found.values())


def _of_place(model: type[DynamoModel], name: OrderName) -> Sort | None:
    """The order by a place inside a document; ``None`` if that is not what is named."""
    if isinstance(name, OrderBy):
        text, descending = str(getattr(name.expression, "name", "")), bool(name.descending)
        missing_first = bool(name.nulls_first) if name.nulls_first or name.nulls_last else None
    else:
        text, descending, missing_first = str(name).lstrip("-+"), str(name).startswith("-"), None
    return None if place_of(model, text) is None else Sort(text, descending, missing_first)


def is_by_attribute(sort: Sort) -> bool:
    """Whether an order is by an attribute of the objects themselves, and by no place inside one."""
    return "__" not in sort.attribute


def without_missing(model: type[DynamoModel], name: OrderName) -> OrderName:
    """What an order is by; where missing values go is left out if no item lacks the attribute."""
    if not isinstance(name, OrderBy) or not (name.nulls_first or name.nulls_last):
        return name
    plain = OrderBy(name.expression, descending=name.descending)
    attributes = registry.layout_of(model).attributes
    required = all(attributes[order.attribute].required for order in tree.read_ordering(model, (plain,)))
    return plain if required else name


def check_orderable(model: type[DynamoModel], name: str, what: str) -> None:
    """Refuse values that have no order: documents, sets and JSON."""
    if place_of(model, name) is not None:
        return  # what lies there is known when it is read
    attribute: Attribute = registry.attributes_of(model)[name]
    if isinstance(attribute, JSONAttribute) or attribute.attr_type not in _ORDERED_TYPES:
        otherwise = SORT_IN_PYTHON if what == "order_by()" else COMPUTE_IN_PYTHON
        raise NotSupported(
            f"{model._meta.label}: {what} cannot take {name}, a {type(attribute).__name__}: its values have no order. "
            f"Keep the value to compare in a separate attribute, or {otherwise}."
        )


def put_in_order(found: list[T], how: InMemory, value: Callable[[T, str], object]) -> None:
    """Sort a list in place; ``value`` gives what one of its members has under a name.

    Text is ordered by its code points, as DynamoDB does, which is the order of its UTF-8 bytes.
    """
    for sort in reversed(how.ordering):
        found.sort(key=_sort_key(sort, value), reverse=sort.descending)
    if how.backwards:
        found.reverse()


def _sort_key(sort: Sort, value: Callable[[T, str], object]) -> Callable[[T], Any]:
    part = sort.part
    if part is not None:
        return lambda member: part.encode(value(member, sort.attribute)) + part.terminator
    first = not sort.descending if sort.missing_first is None else sort.missing_first
    missing = (0,) if first != sort.descending else (2,)

    def key(member: T) -> tuple[object, ...]:
        own = value(member, sort.attribute)
        if isinstance(own, datetime):
            own = clock.in_utc(own)
        return missing if own is None else (1, own)

    return key
