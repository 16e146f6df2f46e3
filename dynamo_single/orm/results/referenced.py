"""Attributes of referenced objects, for orders and rows: ``customer__name`` and ``product__category__name``.

DynamoDB has no joins. The objects of each reference are read by their keys, as ``select_related()`` reads them. This
module does not depend on plans.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from dynamo_single.orm.results.columns import place_of
from dynamo_single.orm.schema.attributes.computed import value_at
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.paths import reference_of
from dynamo_single.table.flow import call_sync

#: The objects that were read for several paths of one result, by model and ``pk``; ``None`` for a missing one.
Known = dict[type[DynamoModel], dict[Any, Any]]


async def values_of(model: type[DynamoModel], path: str, keys: Iterable[Any], known: Known) -> dict[Any, Any]:
    """Return the values at a path from objects of a model, by the ``pk`` of these.

    Sends a BatchGetItem for each hundred objects that are not in ``known``, and adds them to it. Objects that are
    missing have no value.
    """
    wanted = list(dict.fromkeys(key for key in keys if key is not None))
    manager: Any = model._base_manager
    held = known.setdefault(model, {})
    absent = [key for key in wanted if key not in held]
    if absent:
        held |= dict.fromkeys(absent) | await call_sync(partial(manager.in_bulk, absent))
    objects = {key: held[key] for key in wanted if held[key] is not None}
    found = reference_of(model, path)
    if found is not None:
        field, rest = found
        behind = {pk: getattr(obj, field.attname) for pk, obj in objects.items()}
        values = await values_of(field.related_model, rest, behind.values(), known)
        return {pk: values.get(key) for pk, key in behind.items()}
    place = place_of(model, path) if hasattr(model, "_stored") else None
    if place is not None:
        return {pk: value_at(getattr(obj, place[0]), place[1]) for pk, obj in objects.items()}
    # Any further name is that of a key that the reference contains.
    name = path.partition("__")[0]
    names = {field.name: field.attname for field in model._meta.concrete_fields}
    return {pk: getattr(obj, names.get(name, name)) for pk, obj in objects.items()}
