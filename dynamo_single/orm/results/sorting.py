"""Sort in memory: read the order of a queryset, and sort lists by attributes, references and nested values.

Results in memory may also be ordered by attributes of referenced objects. DynamoDB has no joins, so the app reads these
objects in batches.

This module does not depend on plans, groups, aggregates or columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from django.db.models.expressions import Combinable, OrderBy
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.comparing import sort_key
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON, SORT_IN_PYTHON
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.items.readers import value_reader
from dynamo_single.orm.plan.plan import InMemory, Sort
from dynamo_single.orm.results import referenced
from dynamo_single.orm.results.columns import place_of, sort_value_reader
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute, JSONAttribute
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where import tree
from dynamo_single.orm.where.paths import is_followed, reference_of

#: The values that ``order_by()`` and ``Meta.ordering`` accept.
OrderName = str | Combinable

T = TypeVar("T")

_ORDERED_TYPES = ("S", "N", "B", "BOOL")


def read_sorting(model: type[DynamoModel], names: Iterable[OrderName]) -> tuple[Sort, ...]:
    """Return the order of ``order_by()`` or ``Meta.ordering``, with the position of missing values if it matters."""
    found: dict[str, Sort] = {}
    for name in names:
        placed = _nested_sort(model, name)
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


def _nested_sort(model: type[DynamoModel], name: OrderName) -> Sort | None:
    """Return the order by a nested value; ``None`` if the name means something else."""
    parts = tree.parts_of_order(name)
    return None if parts is None or place_of(model, parts[0]) is None else Sort(*parts)


def is_by_attribute(sort: Sort) -> bool:
    """Return whether an order is by an attribute of the objects themselves rather than by a nested value."""
    return "__" not in sort.attribute


def without_missing(model: type[DynamoModel], name: OrderName) -> OrderName:
    """Return the order; the position of missing values is omitted if no item lacks the attribute."""
    if not isinstance(name, OrderBy) or not (name.nulls_first or name.nulls_last):
        return name
    plain = OrderBy(name.expression, descending=name.descending)
    attributes = registry.layout_of(model).attributes
    required = all(attributes[order.attribute].required for order in tree.read_ordering(model, (plain,)))
    return plain if required else name


def check_orderable(model: type[DynamoModel], name: str, what: str) -> None:
    """Raise an error for values without an order: documents, sets and JSON."""
    if place_of(model, name) is not None:
        return  # the type of a nested value is known when it is read
    attribute: Attribute = registry.attributes_of(model)[name]
    if isinstance(attribute, JSONAttribute) or attribute.attr_type not in _ORDERED_TYPES:
        otherwise = SORT_IN_PYTHON if what == "order_by()" else COMPUTE_IN_PYTHON
        raise NotSupported(
            f"{model._meta.label}: {what} cannot take {name}, a {type(attribute).__name__}: its values have no order. "
            f"Keep the value to compare in a separate attribute, or {otherwise}."
        )


def sort_items(found: list[T], how: InMemory, value: Callable[[T, str], object]) -> None:
    """Sort a list in place; ``value`` returns the value of one of its members under a name.

    Strings sort by their code points, as in DynamoDB, which is the order of their UTF-8 bytes.
    """
    for sort in reversed(how.ordering):
        found.sort(key=_sort_key(sort, value), reverse=sort.descending)
    if how.is_reversed:
        found.reverse()


def _sort_key(sort: Sort, value: Callable[[T, str], object]) -> Callable[[T], Any]:
    part = sort.part
    if part is not None:
        return lambda member: part.encode(value(member, sort.attribute)) + part.terminator
    first = not sort.descending if sort.missing_first is None else sort.missing_first
    missing = (0,) if first != sort.descending else (2,)

    def key(member: T) -> tuple[object, ...]:
        found = value(member, sort.attribute)
        return missing if found is None else (1, sort_key(found))

    return key


#: The separator between a reference and an attribute of the referenced object, in the name of a ``Sort``.
_SEPARATOR = "__"


def read_joined_sorting(model: type[DynamoModel], names: Iterable[OrderName]) -> tuple[Sort, ...]:
    """Return the order, with ``company__name`` for an attribute of a referenced object."""
    found: dict[str, Sort] = {}
    for name in names:
        try:
            sorts = read_sorting(model, (name,))
        except (NotSupported, UnknownField):
            joined = _joined_sort(model, name)
            if joined is None:
                raise
            sorts = joined
        for sort in sorts:
            found.setdefault(sort.attribute, sort)
    return tuple(found.values())


def _joined_sort(model: type[DynamoModel], name: OrderName) -> tuple[Sort, ...] | None:
    """Return the order by a reference, or by an attribute of its object; ``None`` if the name means something else."""
    parts = tree.parts_of_order(name)
    if parts is None:
        return None
    text, descending, missing_first = parts
    field, rest = reference_of(model, text) or (_reference(model, text), "")
    if field is None or not is_followed(field):
        return None
    sorts, key = _sorts_of(field.related_model, rest), field.target_field.attname
    return tuple(
        replace(
            sort,
            # The reference holds the key of the other object.
            attribute=field.attname if sort.attribute == key else f"{field.attname}{_SEPARATOR}{sort.attribute}",
            descending=sort.descending != descending,
            missing_first=sort.missing_first if missing_first is None else missing_first,
        )
        for sort in sorts
    )


def _sorts_of(other: Any, rest: str) -> tuple[Sort, ...]:
    """Return the order of referenced objects by a name, or by their own order."""
    names = (rest,) if rest else other._meta.ordering or (other._meta.pk.name,)
    if not hasattr(other, "_stored"):
        return tuple(Sort(other._meta.get_field(name).attname) for name in names)
    sorts = read_joined_sorting(other, names)
    for sort in sorts:
        if not is_joined(sort):
            check_orderable(other, sort.attribute, "order_by()")
    return sorts


def _reference(model: type[DynamoModel], name: str) -> Any:
    fields: Any = model._meta.concrete_fields
    return next((field for field in fields if field.is_relation and field.name == name), None)


def is_joined(sort: Sort) -> bool:
    """Return whether an order is by a referenced object, or by a nested value."""
    return _SEPARATOR in sort.attribute


async def value_readers(
    model: type[DynamoModel], ordering: Sequence[Sort], items: Sequence[Item], known: referenced.Known
) -> dict[str, Callable[[Item], object]]:
    """Return the functions that read the values of an order from an item.

    For a reference, one BatchGetItem for each hundred objects that are not ``known`` is sent.
    """
    found: dict[str, Callable[[Item], Any]] = {}
    for sort in ordering:
        reference = None if place_of(model, sort.attribute) is not None else reference_of(model, sort.attribute)
        if reference is None:
            found[sort.attribute] = sort_value_reader(model, sort.attribute)
            continue
        field, rest = reference
        key_of = value_reader(model, field.attname)
        values = await referenced.values_of(field.related_model, rest, map(key_of, items), known)
        found[sort.attribute] = partial(_value, values, key_of)
    return found


def _value(values: dict[object, object], key_of: Callable[[Item], object], item: Item) -> Any:
    return values.get(key_of(item))
