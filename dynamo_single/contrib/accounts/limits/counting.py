"""Count logins and e-mails, and replace damaged counters so that they do not lock users out.

The log names each damaged item. This module must not depend on users or requests.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from dynamo_single import counters, models
from dynamo_single.exceptions import ConditionNotMet, RequestFailed, StaleObject, UnexpectedItem, UnreadableItem
from dynamo_single.table.flow import call_method, run

logger = logging.getLogger("accounts")

C = TypeVar("C", bound=models.Model)

_DAMAGED = (UnexpectedItem, UnreadableItem)


async def added(more: C, number: str, *, seen: C | None = None, at_most: int | None = None) -> C:
    """Call ``counters.add()``; replace a damaged item with one more PutItem."""
    try:
        counted: C = await call_method(counters, "add", more, number, seen=seen, at_most=at_most)
        return counted
    except ConditionNotMet as error:
        # DynamoDB could not compare the number: the item is damaged, and the limit is not reached.
        if error.current is None or getattr(error.current, number) is not None:
            raise
    except StaleObject:
        if seen is not None:  # another attempt counted first
            raise
    except RequestFailed as error:
        if error.code != "ValidationException":
            raise
    except _DAMAGED:
        pass
    return await replaced(more)


def add(more: C, number: str, *, at_most: int | None = None) -> C:
    """Run ``added()`` synchronously."""
    return run(added(more, number, at_most=at_most))


async def found(fresh: Sequence[C], needed: Sequence[str]) -> list[C]:
    """Return the stored counters, or the given objects if they are not stored: one consistent BatchGetItem.

    If an item is damaged, sends one more GetItem for each counter, and a PutItem that replaces the damaged item.
    """
    model: Any = type(fresh[0])
    try:
        stored = await call_method(model.objects.consistent(), "in_bulk", [each.pk for each in fresh])
    except _DAMAGED:
        stored = {each.pk: await _found(model, each) for each in fresh}
    counted = ((each, stored.get(each.pk)) for each in fresh)
    return [each if one is None or any(getattr(one, name) is None for name in needed) else one for each, one in counted]


async def _found(model: Any, fresh: C) -> C | None:
    try:
        one: C | None = await call_method(model.objects.consistent().filter(pk=fresh.pk), "first")
    except _DAMAGED:
        return await replaced(fresh)
    return one


async def replaced(fresh: C) -> C:
    """Write a counter instead of a damaged item: one PutItem."""
    logger.error("The counter %s %r was damaged: it was replaced and starts again.", fresh._meta.label, fresh.pk)
    stored: C = await call_method(counters, "replace", fresh)
    return stored
