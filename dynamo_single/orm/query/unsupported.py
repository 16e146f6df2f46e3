"""The public methods of Django's QuerySet and Manager that have no answer here, and what to do instead.

Each becomes a method that raises ``NotSupported``, so that none of them can reach Django's SQL compiler by inheritance.
A test compares this table and our own methods with Django's, by introspection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from dynamo_single.exceptions import NotSupported

C = TypeVar("C", bound=type)

#: Method name: why DynamoDB cannot, and the nearest thing that can.
REFUSED = {
    "alias": "DynamoDB filters and orders by what is stored. Keep the value in an attribute of its own, set in save(), "
    "or compute it in Python over the objects: [each for each in queryset if ...] and sorted(queryset, key=...)",
    "difference": "there are no set operations in DynamoDB: combine conditions with Q, or work on lists",
    "extra": "there is no SQL in DynamoDB",
    "intersection": "there are no set operations in DynamoDB: combine conditions with Q, or work on lists",
    "raw": "there is no SQL in DynamoDB; PynamoDB's Model.query() takes keys and conditions as they are",
    "select_for_update": "DynamoDB locks nothing; with a VersionAttribute, a save that would undo another's change "
    "is refused with StaleObject",
}


def refusing(name: str) -> Callable[..., object]:
    """A method that raises ``NotSupported`` with the table's words."""

    def method(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise NotSupported(f"{name}() is not supported: {REFUSED[name]}.")

    method.__name__ = name
    method.__doc__ = "Refused by name; see ``REFUSED``."
    return method


def refuse_all(cls: C) -> C:
    """Class decorator: put a refusing method on the class for every row of the table."""
    for name in REFUSED:
        setattr(cls, name, refusing(name))
    return cls
