"""What an event loop may do itself, and what a project's own code has to be called in a thread for.

A method of a project (``schema.types``) may send requests and wait, and so may a synchronous receiver of a signal.
Where neither would be passed by, a coroutine of ours is awaited. This module sends no request.
"""

from __future__ import annotations

from functools import partial

from django.db.models.signals import post_init, pre_init
from django.dispatch import Signal

from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import is_run, outside_run


def creates_plain_objects(model: type[DynamoModel]) -> bool:
    """Whether nothing of a project is called when an object is made of an item: no ``from_db()``, and no receiver."""
    return not (model._has_from_db or pre_init.has_listeners(model) or post_init.has_listeners(model))


async def notify(signal: Signal, sender: type[object] | None, **named: object) -> None:
    """Send a signal; in an event loop synchronous receivers are called in a thread, and others are awaited."""
    if not (signal.receivers and signal.has_listeners(sender)):
        return
    if is_run():
        outside_run(partial(signal.send, sender=sender, **named))
    else:
        await signal.asend(sender=sender, **named)
