"""``save(False, False)``: the positional arguments that Django 5.2 still takes, with its warning, and 6.1 does not; and
what ``force_insert`` may be.

This module must not know what is done with them.
"""

from __future__ import annotations

import warnings
from typing import Any

from django.db.models.base import ModelBase
from django.utils import deprecation

#: In this order, and with these defaults.
_SAVE: dict[str, Any] = {"force_insert": False, "force_update": False, "using": None, "update_fields": None}
#: Django's own warning; a release that has dropped it has dropped positional arguments.
_WARNING: type[Warning] | None = getattr(deprecation, "RemovedInDjango60Warning", None)


def save_options(args: tuple[object, ...], by_name: tuple[object, ...]) -> tuple[Any, ...]:
    """The four options of ``save()``, of those that were given by position and those that were given by name."""
    most = len(_SAVE) if _WARNING is not None else 0
    if _WARNING is None or len(args) > most:
        takes = f"from 1 to {most + 1} positional arguments" if most else "1 positional argument"
        raise TypeError(f"Model.save() takes {takes} but {len(args) + 1} were given")
    if not isinstance(args[0], bool | int | tuple | type):
        # PynamoDB's first argument is a condition, which would be true and create, without being asked.
        raise TypeError("Model.save() takes force_insert in the first place, and a condition by name: condition=...")
    warnings.warn("Passing positional arguments to save() is deprecated", _WARNING, stacklevel=4)
    for (name, default), _, named in zip(_SAVE.items(), args, by_name, strict=False):
        if named is not default:
            raise TypeError(f"Model.save() got multiple values for argument '{name}'")
    return (*args, *by_name[len(args) :])


def check_force_insert(model: type, given: object) -> None:
    """Refuse what Django refuses as ``force_insert``: it is a boolean, or a tuple of the model and its bases."""
    if isinstance(given, bool):
        return
    if not isinstance(given, tuple):
        raise TypeError("force_insert must be a bool or tuple.")
    for member in given:
        if not isinstance(member, ModelBase):
            raise TypeError(f"Invalid force_insert member. {member!r} must be a model subclass.")
        if not issubclass(model, member):
            raise TypeError(f"Invalid force_insert member. {member!r} must be a base of {model.__qualname__}.")
