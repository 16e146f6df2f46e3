"""Attributes of referenced objects, for orders and rows: ``customer__name`` and ``product__category__name``.

DynamoDB has no joins. The objects of each reference are read by their keys, as ``select_related()`` reads them. This
module does not depend on plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dynamo_single.orm.results.columns import place_of
from dynamo_single.orm.schema.attributes.computed import value_at
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.paths import reference_of
from dynamo_single.table.flow import call_sync
from dynamo_single.table.request import MAX_BATCH_KEYS

if TYPE_CHECKING:
    from dynamo_single.orm.reading.limits import Steps


class Known:
    """The objects that were read for several paths of one result, by model and ``pk``; ``None`` for a missing one.

    ``steps`` and ``max_bytes`` bound them together with the objects of the result, if these are held.
    """

    def __init__(self, steps: Steps | None = None, max_bytes: int = 0) -> None:
        self.steps, self.max_bytes = steps, max_bytes
        self._objects: dict[type[DynamoModel], dict[Any, Any]] = {}

    async def objects(self, model: type[DynamoModel], keys: Iterable[Any]) -> Mapping[Any, Any]:
        """Return objects of a model by ``pk``: a BatchGetItem for each hundred that were not read before.

        Raises ``TooManyMatches`` above the limits.
        """
        manager: Any = model._base_manager
        held = self._objects.setdefault(model, {})
        absent = [key for key in keys if key not in held]
        size = MAX_BATCH_KEYS if self.steps is not None else len(absent)
        for start in range(0, len(absent), size or 1):
            some = absent[start : start + size]
            found = await call_sync(partial(manager.in_bulk, some))
            if self.steps is not None:
                self.steps.hold(manager, found.values(), self.max_bytes)
            held |= dict.fromkeys(some) | found
        return held


async def values_of(model: type[DynamoModel], path: str, keys: Iterable[Any], known: Known) -> dict[Any, Any]:
    """Return the values at a path from objects of a model, by the ``pk`` of these.

    Sends a BatchGetItem for each hundred objects that are not in ``known``, and adds them to it. Objects that are
    missing have no value.
    """
    wanted = list(dict.fromkeys(key for key in keys if key is not None))
    held = await known.objects(model, wanted)
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
