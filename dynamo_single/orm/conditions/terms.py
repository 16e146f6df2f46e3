"""The values that a read passes through: a query, its plan, and the requests.

Nothing here does I/O or knows Django's querysets; each value is made once, compared and printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.table.request import StoredValue

#: A pseudo attribute of a ``Compare`` with ``in``: its values are mappings of the identity's attributes to values.
IDENTITY = "identity"
#: The pseudo attribute by which layouts name the discriminator.
ITEM_TYPE = "item_type"
#: The attribute with the time when an item moved to the trash.
DELETED_AT = "deleted_at"
#: Operators for parts of a string without regard to case, or from its end: only Python supports them.
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

    It is false for an item without one of them. Both must have the same stored type, which the caller ensures.
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

    Operators: ``= < <= > >= between in begins_with contains exists missing canonical type``, ``size`` with each of the
    first five after it, and those of ``TEXT_OPERATORS``.
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
    """Sorting by one attribute; missing values have the key's position, unless ``missing_first`` sets it."""

    attribute: str
    descending: bool = False
    missing_first: bool | None = None

    def __str__(self) -> str:
        """Write the order as ``order_by()`` accepts it, with the position of missing values if it was set."""
        where = {None: "", True: " (missing values first)", False: " (missing values last)"}[self.missing_first]
        return f"{'-' if self.descending else ''}{self.attribute}{where}"

    def reversed(self) -> Order:
        """The opposite order."""
        missing_first = None if self.missing_first is None else not self.missing_first
        return Order(self.attribute, not self.descending, missing_first)


# The algebra of conditions: simplify, split and join them, and list their attributes.


def simplify(condition: Condition) -> Condition:
    """Give an equivalent condition without nested conjunctions; ``Nothing`` is left only as the whole of it."""
    if isinstance(condition, And | Or):
        return _simplify_group(condition)
    if isinstance(condition, Not):
        child = simplify(condition.child)
        if isinstance(child, Not):
            return child.child
        if child == EVERYTHING:
            return Nothing()
        return EVERYTHING if isinstance(child, Nothing) else Not(child)
    if isinstance(condition, Compare) and condition.operator == "in" and not condition.value:
        return Nothing()
    return condition


def conjuncts(condition: Condition) -> tuple[Condition, ...]:
    """Give the conditions that all have to hold, of a simplified one."""
    return condition.children if isinstance(condition, And) else (condition,)


def join(children: Iterable[Condition]) -> Condition:
    """Give the condition that all of these hold."""
    return simplify(And(tuple(children)))


def leaves(condition: Condition) -> list[Condition]:
    """Return the comparisons of a condition, at any depth."""
    if isinstance(condition, And | Or):
        found: list[Condition] = []
        for child in condition.children:
            found += leaves(child)
        return found
    return leaves(condition.child) if isinstance(condition, Not) else [condition]


def with_leaves(condition: Condition, change: Callable[[Condition], Condition]) -> Condition:
    """Return a condition with each of its comparisons replaced by the result of ``change``."""
    if isinstance(condition, And | Or):
        return type(condition)(tuple([with_leaves(child, change) for child in condition.children]))
    if isinstance(condition, Not):
        return Not(with_leaves(condition.child, change))
    return change(condition)


def names_in(condition: Condition) -> Iterator[str]:
    """The physical names that a condition in stored names looks at."""
    for each in leaves(condition):
        if isinstance(each, Stored):
            yield each.name
        elif isinstance(each, StoredPair):
            yield from (each.name, each.other)


def _simplify_group(condition: And | Or) -> Condition:
    together = isinstance(condition, And)
    neutral, absorbing = (EVERYTHING, Nothing()) if together else (Nothing(), EVERYTHING)
    children: list[Condition] = []
    for child in map(simplify, condition.children):
        if child == absorbing:
            return child
        if isinstance(child, type(condition)):
            children.extend(child.children)
        elif child != neutral:
            children.append(child)
    if not children:
        return neutral
    if len(children) == 1:
        return children[0]
    return And(tuple(children)) if together else Or(tuple(children))


def with_names(condition: Condition, names: Mapping[str, str]) -> Condition:
    """Return a condition in stored names with some names replaced."""

    def named(leaf: Condition) -> Condition:
        if isinstance(leaf, Stored):
            return replace(leaf, name=names.get(leaf.name, leaf.name))
        if isinstance(leaf, StoredPair):
            return replace(leaf, name=names.get(leaf.name, leaf.name), other=names.get(leaf.other, leaf.other))
        return leaf

    return with_leaves(condition, named)
