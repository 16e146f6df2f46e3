"""Numbers to which many processes add: DynamoDB itself adds, so that no addition is lost.

The functions write one object at a time, and must not depend on what is counted, or why.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from asgiref.sync import sync_to_async
from msgspec.structs import replace as struct_replace

from dynamo_single import clock
from dynamo_single.exceptions import (
    BeginAgain,
    ConditionFailed,
    ConditionNotMet,
    ImmutableAttribute,
    InvalidValue,
    NotSupported,
    StaleObject,
)
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Condition, Or, Stored, join
from dynamo_single.orm.effects import all_effects
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.async_safety import creates_plain_objects
from dynamo_single.orm.items.expiry import free_key_condition
from dynamo_single.orm.items.form import item_of
from dynamo_single.orm.model.model import Model
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ITEM_MISSING, Put, Update, key_of
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import DecimalAttribute, IntegerAttribute, NumberAttribute
from dynamo_single.orm.schema.keys.values import named
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import Flow, run
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import Item
from dynamo_single.table.table import get_table

M = TypeVar("M", bound=Model)

#: Between two requests, an item can expire, another process can create it, or the lease can end; hardly ever twice.
_ATTEMPTS: Final = 3
_NUMBERS: Final = (IntegerAttribute, NumberAttribute, DecimalAttribute)


def add(obj: M, *numbers: str, seen: M | None = None, at_most: int | None = None) -> M:
    """Write an object's values, add its ``numbers`` to the stored ones, and return the object as stored.

    Sends one UpdateItem, which creates the item if necessary, and a second request if only an expired item is left. The
    requests are sent immediately, even within ``transactions.atomic()``, which does not undo them. Sends no signals.

    - ``seen`` is an object as it was read: raises ``StaleObject`` if its numbers have changed, so that only one of
      several processes that read a number succeeds.
    - ``at_most`` is a limit: raises ``ConditionNotMet`` if a number would exceed it, so that of many concurrent
      processes only as many succeed as there is room for.
    """
    return run(_added(obj, numbers, seen, at_most))


async def aadd(obj: M, *numbers: str, seen: M | None = None, at_most: int | None = None) -> M:
    """Do the same as ``add()``, asynchronously; in a thread if the project overrides how objects are created."""
    if creates_plain_objects(type(obj)):
        return await _added(obj, numbers, seen, at_most)
    return await sync_to_async(add)(obj, *numbers, seen=seen, at_most=at_most)


async def _added(obj: M, numbers: tuple[str, ...], seen: M | None, at_most: int | None) -> M:
    model = type(obj)
    _check(model, numbers)
    for name in numbers:
        if getattr(obj, name) is None:
            raise InvalidValue(f"{model._meta.label}.{name} is None: set it to the number to add.")
    if seen is not None and at_most is not None:
        raise NotSupported("add() accepts seen or at_most, but not both: the number in seen already limits the sum.")
    return await _by_present_state(obj, partial(_add, obj, numbers, seen, at_most))


async def _add(obj: M, numbers: tuple[str, ...], seen: M | None, at_most: int | None, lease: Lease | None) -> M:
    model, item = type(obj), item_of(obj)
    if seen is not None:
        return await _sent(obj, _update(model, item, numbers, _as_seen(seen, numbers)), lease)
    within = () if at_most is None else _within(obj, numbers, at_most)
    for _ in range(_ATTEMPTS):
        try:
            return await _sent(obj, _update(model, item, numbers, join((_not_expired(model), *within))), lease)
        except StaleObject as error:
            stored = error.__cause__.item if isinstance(error.__cause__, ConditionFailed) else None
            if within and stored is not None and matches(_not_expired(model), stored):
                raise _full(obj, at_most, stored) from error
            if registry.layout_of(model).expires is None:
                raise
        try:
            return await _sent(obj, Put(item, free_key_condition(model)), lease)
        except StaleObject:
            continue
    raise StaleObject(f"{named(obj)} is being created and deleted repeatedly. Nothing was written. Try again.")


def replace(obj: M) -> M:
    """Write an object instead of the item that is stored under its key, and return it as stored: one PutItem.

    Use it for a counter with a damaged item, to which DynamoDB cannot add. The previous count is lost. The request is
    sent immediately, even within ``transactions.atomic()``, and sends no signals.
    """
    return run(_replaced(obj))


async def areplace(obj: M) -> M:
    """Do the same as ``replace()``, asynchronously."""
    if creates_plain_objects(type(obj)):
        return await _replaced(obj)
    return await sync_to_async(replace)(obj)


async def _replaced(obj: M) -> M:
    model = type(obj)
    _check_alone(model)
    return await _by_present_state(obj, lambda lease: _sent(obj, Put(item_of(obj)), lease))


def spread(obj: M, *numbers: str, over: str, shards: int) -> M:
    """Add to one of several items at random, as ``add()`` does: for more writes than one item supports.

    ``over`` names the integer in the primary key that distinguishes the items, from 0 to ``shards`` - 1; the function
    sets it. Sends one UpdateItem, and returns the count of that item only; ``total()`` returns the sum. The number of
    shards can change at any time. An item, and a partition key, supports 1,000 write units a second: name ``over`` in
    the partition key. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
    """
    _choose(obj, over, shards)
    return add(obj, *numbers)


async def aspread(obj: M, *numbers: str, over: str, shards: int) -> M:
    """Do the same as ``spread()``, asynchronously."""
    _choose(obj, over, shards)
    return await aadd(obj, *numbers)


def _choose(obj: DynamoModel, over: str, shards: int) -> None:
    model = type(obj)
    if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
        raise InvalidValue(f"spread(shards=...) takes the number of items, from 1 up, not {shards!r}.")
    attribute = registry.attributes_of(model).get(over)
    if not isinstance(attribute, IntegerAttribute) or over not in registry.layout_of(model).identity:
        raise InvalidValue(
            f"spread(over={over!r}): {model._meta.label} has no whole number of this name in its primary key."
        )
    setattr(obj, over, random.randrange(shards))  # noqa: S311   # not a secret: it only spreads the load


def total(queryset: QuerySet[DynamoModel], number: str) -> Any:
    """Return the sum of a number over a queryset, such as the items of ``spread()``; 0 if there are none.

    Sends the requests of the queryset: one Query if they are in one partition, or one BatchGetItem for each hundred if
    all their keys are given. The sum may or may not include concurrent additions.
    """
    return sum(value for value in _addends(queryset, number) if value is not None)


async def atotal(queryset: QuerySet[DynamoModel], number: str) -> Any:
    """Return the same as ``total()``, asynchronously."""
    return sum([value async for value in _addends(queryset, number) if value is not None])


def _addends(queryset: QuerySet[DynamoModel], number: str) -> Any:
    model = queryset.model
    if not isinstance(registry.attributes_of(model).get(number), _NUMBERS):
        raise InvalidValue(f"{model._meta.label}.{number} is not a number, and only numbers have a sum.")
    return queryset.values_list(number, flat=True)


def _check(model: type[DynamoModel], numbers: tuple[str, ...]) -> None:
    layout = registry.layout_of(model)
    label = model._meta.label
    for name in numbers:
        if not isinstance(registry.attributes_of(model).get(name), _NUMBERS):
            raise InvalidValue(f"{label}.{name} is not a number, and only numbers can be added to.")
        if name in layout.identity or any(name in key.named_attributes for key in layout.index_keys):
            raise NotSupported(f"{label}.{name} is part of a key, which DynamoDB cannot compute: set it and save().")
        if registry.attributes_of(model)[name].immutable:
            raise ImmutableAttribute(label=label, field=name)
    if not numbers:
        raise InvalidValue(f"Name the attributes of {label} that are to be added to.")
    if version.version_attribute(model) is not None:
        raise NotSupported(
            f"{label} has a version attribute, which this call would not check. Call save() with "
            f"F({numbers[0]!r}) + ... instead."
        )
    _check_alone(model)


def _check_alone(model: type[DynamoModel]) -> None:
    """Refuse a model that has dependent items, or is derived from another one."""
    label = model._meta.label
    if all_effects.linked_attributes(model) or registry.layout_of(model).soft_delete:
        raise NotSupported(
            f"{label} has unique attributes, copies, counters, derived items or a trash, which one request cannot keep "
            "right. Count in an object of a model of its own."
        )


def _update(model: type[DynamoModel], item: Item, numbers: tuple[str, ...], condition: Condition) -> Update:
    layout = registry.layout_of(model)
    added = {layout.attributes[name].stored for name in numbers}
    added |= {twin.other for twin in layout.twins if twin.is_kept and twin.used in added}
    values = {name: value for name, value in item.items() if name not in added | _KEY}
    return Update(key_of(item), set=values, add={name: item[name] for name in sorted(added)}, condition=condition)


_KEY: Final = {names.PARTITION_KEY, names.SORT_KEY}


def _not_expired(model: type[DynamoModel]) -> Condition:
    if registry.layout_of(model).expires is None:
        return join(())
    later = Stored(names.EXPIRES_AT, ">", ({"N": str(int(clock.timestamp()))},))
    return Or((ITEM_MISSING, Stored(names.EXPIRES_AT, "missing"), later))


def _within(obj: DynamoModel, numbers: tuple[str, ...], at_most: int) -> tuple[Condition, ...]:
    """Return the conditions that no number exceeds ``at_most``; refuse immediately if the addend itself is larger."""
    if any(getattr(obj, name) > at_most for name in numbers):
        raise _full(obj, at_most, None)
    found, stored_as = [], registry.layout_of(type(obj)).attributes
    for name in numbers:
        attribute, stored = registry.attributes_of(type(obj))[name], stored_as[name].stored
        room = attribute.to_attribute_value(at_most - getattr(obj, name))
        found.append(Or((Stored(stored, "missing"), Stored(stored, "<=", (room,)))))
    return tuple(found)


def _full(obj: DynamoModel, at_most: int | None, stored: Any) -> ConditionNotMet:
    model = type(obj)
    current = None if stored is None else decode.instance(model, stored)
    return ConditionNotMet(f"{named(obj)} would count past {at_most}. Nothing was written.", current=current)


def _as_seen(seen: Any, numbers: tuple[str, ...]) -> Condition:
    stored = [registry.layout_of(type(seen)).attributes[name].stored for name in numbers]
    return join((ITEM_EXISTS, *(Stored(name, "=", (seen._stored[name],)) for name in stored)))


async def _by_present_state(obj: M, write: Callable[[Lease | None], Flow[M]]) -> M:
    """Compose and send a write under a lease; begin again if the lease ends before the request, which then is not sent.

    The lease is taken before the item is composed, so that no item is sent by a later state than it was composed by.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return await write((await knowledge.binding_for(type(obj))).lease)
        except BeginAgain:
            knowledge.stale()
    return await write((await knowledge.binding_for(type(obj))).lease)


async def _sent(obj: M, action: Put | Update, lease: Lease | None) -> M:
    model = type(obj)
    request = struct_replace(compile_action(action, returns_item=True), lease=lease)
    try:
        answer = await get_table(model._options.alias).ask(request)
    except ConditionFailed as error:
        raise StaleObject(
            f"{named(obj)} has changed since it was read: another process counted, or deleted it. Nothing was written."
        ) from error
    stored: Any = answer["Attributes"] if isinstance(action, Update) else action.item
    result: M = decode.instance(model, stored)
    return result
