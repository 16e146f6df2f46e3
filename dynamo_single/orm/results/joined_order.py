"""Orders by what a reference leads to, among rows that are held in memory: the objects are read in batches.

DynamoDB has no joins, so nothing else is ordered so. One reference is followed, and no further one from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from django.db.models.expressions import OrderBy
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.items.hydration import Item
from dynamo_single.orm.items.readers import value_reader
from dynamo_single.orm.plan.plan import Sort
from dynamo_single.orm.results import sorting
from dynamo_single.orm.results.places import ordered_reader, place_of
from dynamo_single.orm.results.sorting import OrderName
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.flow import local

#: Between a reference and the attribute of what it leads to, in the name of a ``Sort``.
_STEP = "__"


def read_joined_sorting(model: type[DynamoModel], names: Iterable[OrderName]) -> tuple[Sort, ...]:
    """The order, with ``company__name`` for an attribute of what a reference leads to."""
    found: dict[str, Sort] = {}
    for name in names:
        try:
            sorts = sorting.read_sorting(model, (name,))
        except (NotSupported, UnknownField):
            joined = _joined(model, name)
            if joined is None:
                raise
            sorts = joined
        for sort in sorts:
            found.setdefault(sort.attribute, sort)
    return tuple(found.values())


def _joined(model: type[DynamoModel], name: OrderName) -> tuple[Sort, ...] | None:
    """The order by one reference, or an attribute of what it leads to; ``None`` if that is not what is named."""
    descending = isinstance(name, str) and name.startswith("-")
    if isinstance(name, OrderBy):
        descending, name = name.descending, getattr(name.expression, "name", "")
    reference, _step, rest = str(name).lstrip("-+").partition(_STEP)
    field: Any = {each.name: each for each in model._meta.concrete_fields}.get(reference)
    other: Any = field.related_model if field is not None and field.is_relation else None
    if other is None or not hasattr(other, "_stored"):  # another's attribute, or an object in SQL
        return None
    sorts = sorting.read_sorting(other, (rest,) if rest else other._meta.ordering or (other._meta.pk.name,))
    for sort in sorts:
        sorting.check_orderable(other, sort.attribute, "order_by()")
    return tuple(
        replace(sort, attribute=f"{field.attname}{_STEP}{sort.attribute}", descending=sort.descending != descending)
        for sort in sorts
    )


def is_joined(sort: Sort) -> bool:
    """Whether an order is by what a reference leads to, or by a place inside a document."""
    return _STEP in sort.attribute


async def readers(
    model: type[DynamoModel], ordering: Sequence[Sort], items: Sequence[Item]
) -> dict[str, Callable[[Item], object]]:
    """What reads the value of each order of an item: of a reference, one BatchGetItem for each hundred objects."""
    found: dict[str, Callable[[Item], Any]] = {}
    led_to: dict[str, dict[Any, Any]] = {}
    for sort in ordering:
        if not is_joined(sort) or place_of(model, sort.attribute) is not None:
            found[sort.attribute] = ordered_reader(model, sort.attribute)
            continue
        reference, _step, attribute = sort.attribute.partition(_STEP)
        key_of = value_reader(model, reference)
        if reference not in led_to:
            keys = {key for item in items if (key := key_of(item)) is not None}
            other = _related(model, reference)
            led_to[reference] = await local(partial(other._base_manager.in_bulk, list(keys))) if keys else {}
        found[sort.attribute] = partial(_value, led_to[reference], key_of, attribute)
    return found


def _related(model: type[DynamoModel], reference: str) -> Any:
    return next(field.related_model for field in model._meta.concrete_fields if field.attname == reference)


def _value(objects: dict[object, object], key_of: Callable[[Item], object], attribute: str, item: Item) -> Any:
    return getattr(objects.get(key_of(item)), attribute, None)
