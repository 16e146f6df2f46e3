"""Decide which code an event loop may run, and which of a project's code must run in a thread.

A project's method (``schema.types``) may send requests and wait, and so may a synchronous signal receiver. Unless this
would bypass one of them, the app awaits its own coroutine. This module does not send requests.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models.signals import post_init, pre_init
from django.dispatch import Signal

from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.flow import is_run, outside_run


def creates_plain_objects(model: type[DynamoModel]) -> bool:
    """Return whether creating an object from an item calls no project code: no ``from_db()``, and no receiver."""
    return not (model._has_from_db or pre_init.has_listeners(model) or post_init.has_listeners(model))


def is_heard(model: type[DynamoModel], *signals: Signal) -> bool:
    """Return whether a signal about a model's objects has receivers.

    As in Django, none of them is notified of the edges that a many-to-many relation without ``through`` creates.
    """
    return not model._meta.auto_created and any(signal.has_listeners(model) for signal in signals)


async def notify(signal: Signal, sender: Any, **named: object) -> None:
    """Send a signal; in an event loop synchronous receivers are called in a thread, and others are awaited."""
    if not (signal.receivers and is_heard(sender, signal)):
        return
    if is_run():
        outside_run(partial(signal.send, sender=sender, **named))
    else:
        await signal.asend(sender=sender, **named)
