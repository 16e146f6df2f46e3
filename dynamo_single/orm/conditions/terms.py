"""The values that a read passes through: a query, its plan, and the requests.

Nothing here does I/O or knows Django's querysets; each value is made once, compared and printed.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dynamo_single.table.items import StoredValue

#: A pseudo attribute of a ``Compare`` with ``in``: its values are mappings of the identity's attributes to values.
IDENTITY = "identity"
#: The pseudo attribute by which layouts name the discriminator.
ITEM_TYPE = "item_type"
#: The attribute that says when an item was soft-deleted.
DELETED_AT = "deleted_at"
#: What parts of a text are compared by without regard to case, or from its end: DynamoDB cannot, Python does.
TEXT_OPERATORS = frozenset(("iexact", "icontains", "istartswith", "endswith", "iendswith"))
#: The operators that only Python compares by.
IN_PYTHON = TEXT_OPERATORS | {"canonical"}
#: The most values of one ``in``: as many keys, or partitions, as one query may be spread over.
MAX_MEMBERS = 10_000


class Compare(Struct, frozen=True):
    """One comparison: ``attribute`` is the Python name, ``path`` leads into a map or a list."""

    attribute: str
    operator: str
    value: Any = None
    path: tuple[str | int, ...] = ()


class ComparePair(Struct, frozen=True):
    """One comparison of two attributes of an item, by ``exact``, ``lt``, ``lte``, ``gt`` or ``gte``.

    It holds for no item that lacks one of them. Both have to be stored alike, which whoever makes one sees to.
    """

    attribute: str
    operator: str
    other: str
    path: tuple[str | int, ...] = ()
    other_path: tuple[str | int, ...] = ()


class And(Struct, frozen=True):
    """All of the conditions; with none of them, everything."""

    children: tuple[Condition, ...] = ()


class Or(Struct, frozen=True):
    """Any of the conditions."""

    children: tuple[Condition, ...]


class Not(Struct, frozen=True):
    """The opposite of a condition."""

    child: Condition


class Nothing(Struct, frozen=True):
    """A condition that no item meets."""


class Stored(Struct, frozen=True):
    """One comparison in the item's own names and values, which needs no model to be understood.

    Operators: ``= < <= > >= between in begins_with contains exists missing canonical type``, ``size`` with each of
    the first five after it, and those of ``TEXT_OPERATORS``.
    """

    name: str
    operator: str
    operands: tuple[StoredValue, ...] = ()
    path: tuple[str | int, ...] = ()


class StoredPair(Struct, frozen=True):
    """A comparison of two different places of an item, by ``= < <= > >=``; what is missing compares to nothing."""

    name: str
    operator: str
    other: str
    path: tuple[str | int, ...] = ()
    other_path: tuple[str | int, ...] = ()


Condition = Compare | ComparePair | And | Or | Not | Nothing | Stored | StoredPair

EVERYTHING = And()


class Order(Struct, frozen=True):
    """Sorting by one attribute; missing values come where the key has them, unless ``missing_first`` says where."""

    attribute: str
    descending: bool = False
    missing_first: bool | None = None

    def reversed(self) -> Order:
        """The opposite order."""
        missing_first = None if self.missing_first is None else not self.missing_first
        return Order(self.attribute, not self.descending, missing_first)
