"""What an event loop may do itself, and what a project's own code has to be called in a thread for.

A method of a project may send requests and wait, and so may a synchronous receiver of a signal. Where neither would be
passed by, a coroutine of ours is awaited. This module sends no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

from django.db.models.signals import post_init, pre_init
from django.dispatch import Signal

from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.flow import apart, is_run

#: Where methods are that a coroutine of ours does the same as. Other faces of this app, such as ``auth``, add to them.
_PLAIN = ("dynamo_single.orm.", "django.", "pynamodb.")


def are_plain(cls: Any, names: tuple[str, ...]) -> bool:
    """Whether all methods of some names are the mapping's or the libraries' own, as far as a class has them.

    Decided once for a class, and again if a method was replaced, as tests do.
    """
    return _are_plain(cls, names, tuple([getattr(cls, name, None) for name in names]))


@lru_cache(maxsize=1024)
def _are_plain(cls: Any, names: tuple[str, ...], methods: tuple[Any, ...]) -> bool:
    return all(owner is None or f"{owner.__module__}.".startswith(_PLAIN) for owner in owners_of(cls, names))


def owners_of(cls: type[Any], names: Iterable[str]) -> Iterator[type[Any] | None]:
    """The class that a class has each of some methods from; ``None`` for one that it does not have."""
    return (next((each for each in cls.__mro__ if name in vars(each)), None) for name in names)


def makes_objects(model: type[DynamoModel]) -> bool:
    """Whether nothing of a project is called when an object is made of an item: no ``from_db()``, and no receiver."""
    return not (model._has_from_db or pre_init.has_listeners(model) or post_init.has_listeners(model))


async def notify(signal: Signal, sender: type[Any] | None, **named: Any) -> None:
    """Send a signal; in an event loop synchronous receivers are called in a thread, and others are awaited."""
    if not (signal.receivers and signal.has_listeners(sender)):
        return
    if is_run():
        apart(partial(signal.send, sender=sender, **named))
    else:
        await signal.asend(sender=sender, **named)
