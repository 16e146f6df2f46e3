"""What an event loop may do itself, and what a project's own code has to be called in a thread for.

A method of a project may send requests and wait, and so may a synchronous receiver of a signal. Where neither would be
passed by, a coroutine of ours is awaited. Classes are looked at once. This module sends nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db.models.signals import post_init, pre_init

_OURS = frozenset({"dynamo_single", "django", "pynamodb"})


@cache
def are_ours(cls: type[Any], names: tuple[str, ...]) -> bool:
    """Whether all methods of some names are this app's or the libraries' own, as far as a class has them."""
    found = (next((each for each in cls.__mro__ if name in vars(each)), None) for name in names)
    return all(owner is None or owner.__module__.partition(".")[0] in _OURS for owner in found)


def makes_objects(model: Any) -> bool:
    """Whether nothing of a project is called when an object is made of an item: no ``from_db()``, and no receiver."""
    return not (model._has_from_db or pre_init.has_listeners(model) or post_init.has_listeners(model))
