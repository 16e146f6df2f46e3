"""Count logins and mails: a counter whose item is damaged begins again, so that it keeps nobody out.

The log names the item. This module must not depend on what is counted.
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
    """Do what ``counters.add()`` does; a PutItem more replaces a damaged item."""
    try:
        counted: C = await call_method(counters, "add", more, number, seen=seen, at_most=at_most)
        return counted
    except ConditionNotMet as error:
        # A number that DynamoDB cannot compare is no larger than what is allowed.
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
    """See ``added()``."""
    return run(added(more, number, at_most=at_most))


async def found(fresh: Sequence[C], needed: Sequence[str]) -> list[C]:
    """Return counters as they are stored, or as they are given if they are not: one BatchGetItem, strongly consistent.

    One GetItem more for each if one is damaged, and a PutItem that replaces it.
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
    logger.error("The counter %s %r was damaged: it was replaced and begins again.", fresh._meta.label, fresh.pk)
    stored: C = await call_method(counters, "replace", fresh)
    return stored
