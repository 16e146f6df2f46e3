"""The operations on stored values that an attribute can be set to; DynamoDB executes them.

They are plain values; this module must not know attributes, models or requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


class Operation:
    """Base of the operations; as with ``F()``, an attribute may be set to one until the object is saved."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[object]) -> None:
        # An expression has items and no end: a tuple of it would take all memory.
        if not isinstance(values, Iterable):
            raise TypeError(f"{type(self).__name__}() takes a list of values, not {type(values).__name__}.")
        self.values = tuple(values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.values)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Operation) and other.values == self.values

    def __hash__(self) -> int:
        return hash((type(self), repr(self.values)))


class Append(Operation):
    """Put values after the stored list, or make one of them."""

    __slots__ = ()


class Prepend(Operation):
    """Put values before the stored list, or make one of them."""

    __slots__ = ()


class AddToSet(Operation):
    """Add members to the stored set, or make one of them; members that are there already stay."""

    __slots__ = ()


class RemoveFromSet(Operation):
    """Take members out of the stored set; members that are not there are no error, and the last one takes the set."""

    __slots__ = ()


class Removal(Operation):
    """Remove a value, or a key of a map: the only instance is ``REMOVE``."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(())

    def __repr__(self) -> str:
        return "REMOVE"


REMOVE: Final = Removal()


def is_expression(value: object) -> bool:
    """Return whether a value is an expression of Django's or an operation, which the app has to resolve first."""
    return isinstance(value, Operation) or hasattr(value, "resolve_expression")
