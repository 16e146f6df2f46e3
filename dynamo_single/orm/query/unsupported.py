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
    "alias": "DynamoDB filters and orders by stored values. Keep the value in a separate attribute that save() sets, "
    "or compute it in Python: [each for each in queryset if ...] and sorted(queryset, key=...)",
    "difference": "DynamoDB has no set operations. Combine conditions, or compare in Python: "
    "[each for each in queryset if each not in set(other)]",
    "extra": "DynamoDB has no SQL. Use filter() and order_by(), or compute in Python: [... for each in queryset]",
    "intersection": "DynamoDB has no set operations. Combine the querysets, queryset & other, or compare in Python: "
    "[each for each in queryset if each in set(other)]",
    "raw": "DynamoDB has no SQL. Use filter(), or PynamoDB's Model.query(), which takes keys and conditions",
    "select_for_update": "DynamoDB has no locks. Write on the condition that no other process changed the value: "
    "save(condition=Q(...)). With a VersionAttribute, every save() of a changed object raises StaleObject",
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
