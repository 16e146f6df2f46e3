"""Changes that DynamoDB makes to stored values: sums, longer lists, other sets, and elements of maps and lists.

A change is a value in the item's own names. This module defines its requirements on the item, and its result, as
DynamoDB computes it. It does not depend on models, Django's expressions or requests.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions.matching import matches, normalized_value, value_at
from dynamo_single.orm.conditions.terms import Condition, Or, Stored, join
from dynamo_single.orm.schema.keys.values import number_to_text
from dynamo_single.table.request import Item, StoredValue

Operator = Literal["set", "remove", "copy", "sum", "append", "prepend", "include", "exclude"]

#: Enough digits for the sum of any two DynamoDB numbers, such as the smallest and the largest.
_EXACT = Context(prec=300)


class Place(Struct, frozen=True):
    """An attribute by its physical name, or a place in it."""

    name: str
    path: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        """Write the path as ``filter()`` accepts it."""
        return "__".join(map(str, (self.name, *self.path)))

    def stored(self, operator: str, *operands: StoredValue) -> Stored:
        """Return a comparison of the value at this path."""
        return Stored(self.name, operator, operands, self.path)

    def within(self) -> Place:
        """The map or list that a place is in."""
        return Place(self.name, self.path[:-1])

    def overlaps(self, other: Place) -> bool:
        """Return whether one of the paths equals or contains the other."""
        shorter = min(len(self.path), len(other.path))
        return self.name == other.name and self.path[:shorter] == other.path[:shorter]


class Change(Struct, frozen=True):
    """The change of one path.

    ``operand`` is a value to set, append or include, or the first number of a sum (``None`` for no number). ``places``
    are copied, added (1) or subtracted (-1): together with the number at most two, which is DynamoDB's limit.
    ``source_text`` is the change in the caller's form. With ``computed`` DynamoDB cannot make it alone.
    """

    place: Place
    operator: Operator
    operand: StoredValue | None = None
    places: tuple[tuple[Place, int], ...] = ()
    source_text: str = ""
    computed: bool = False

    @property
    def is_cumulative(self) -> bool:
        """Whether repeating the change has another result."""
        shifts = self.operator == "remove" and bool(self.place.path) and isinstance(self.place.path[-1], int)
        return shifts or self.operator not in ("set", "remove", "include", "exclude")

    @property
    def operands(self) -> tuple[Place, ...]:
        """The places that the result depends on, its own included if that is kept in part."""
        own = (self.place,) if self.place.path or self.operator not in ("set", "remove", "copy", "sum") else ()
        return (*own, *(place for place, _ in self.places))

    def needs(self) -> tuple[Condition, ...]:
        """Return the condition under which the change is valid for the item."""
        return (*self._container(), *self._operands())

    def _container(self) -> tuple[Condition, ...]:
        if not self.place.path:
            return ()
        last = self.place.path[-1]
        kind = self.place.within().stored("type", {"S": "L" if isinstance(last, int) else "M"})
        # DynamoDB would put a value for a place after the end at the end.
        return (kind, self.place.stored("exists")) if isinstance(last, int) and self.operator != "remove" else (kind,)

    def _operands(self) -> tuple[Condition, ...]:
        if self.operator == "sum":
            return tuple(place.stored("type", {"S": "N"}) for place, _ in self.places)
        if self.operator == "copy":
            return tuple(place.stored("exists") for place, _ in self.places)
        if self.operator in ("set", "remove") or self.operand is None:
            return ()
        (kind,) = self.operand
        return (Or((self.place.stored("missing"), self.place.stored("type", {"S": kind}))),)


def with_names(changes: Iterable[Change], names: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the changes with some physical names replaced."""

    def named(place: Place) -> Place:
        return replace(place, name=names.get(place.name, place.name))

    return tuple(
        replace(each, place=named(each.place), places=tuple((named(place), sign) for place, sign in each.places))
        for each in changes
    )


def required_conditions(changes: Iterable[Change]) -> Condition:
    """Return the condition on the item for all the changes."""
    found: list[Condition] = []
    for change in changes:
        found += (condition for condition in change.needs() if condition not in found)
    return join(found)


def unmet_change(changes: Iterable[Change], item: Item) -> Change | None:
    """Return the first change whose requirements an item does not meet."""
    return next((change for change in changes if not matches(join(change.needs()), item)), None)


def as_stored(item: Item, name: str) -> Stored:
    """The condition that an attribute is as it is in an item."""
    return Stored(name, "=", (item[name],)) if name in item else Stored(name, "missing")


def operand_names(changes: Iterable[Change]) -> set[str]:
    """The physical names of the attributes that the changes depend on."""
    return {place.name for change in changes for place in change.operands}


def overlapping_places(places: Sequence[Place]) -> tuple[Place, Place] | None:
    """Two of the places that cannot be changed at once, since one is in the other."""
    for number, place in enumerate(places):
        for other in places[:number]:
            if place.overlaps(other):
                return other, place
    return None


def evaluate(changes: Iterable[Change], item: Item) -> dict[str, StoredValue | None]:
    """Return the resulting attributes, ``None`` for a removed one; the item must meet the changes' requirements.

    As in DynamoDB, each change looks at the item as it was before all of them. Elements of lists are removed last, so
    that every number means the element that it meant.
    """
    changes = sorted(changes, key=_removal_order)
    after = {change.place.name: copy.deepcopy(item.get(change.place.name)) for change in changes}
    for change in changes:
        value = _result(change, item)
        if change.place.path:
            _put(after[change.place.name], change.place.path, value)
        else:
            after[change.place.name] = value
    return after


def _removal_order(change: Change) -> tuple[bool, int]:
    last = change.place.path[-1] if change.place.path else 0
    removed = change.operator == "remove" and isinstance(last, int)
    return removed, -last if removed and isinstance(last, int) else 0


def _put(container: Any, path: tuple[str | int, ...], value: StoredValue | None) -> None:
    for step in path[:-1]:
        container = container["L" if isinstance(step, int) else "M"][step]
    last = path[-1]
    inner = container["L" if isinstance(last, int) else "M"]
    if value is not None:
        inner[last] = value
    elif isinstance(last, int):
        del inner[last : last + 1]  # DynamoDB too ignores what lies after the end
    else:
        inner.pop(last, None)


def stored_value_at(item: Item, place: Place) -> StoredValue | None:
    """Return the value at a path of an item."""
    return value_at(item, place.name, place.path)


def _result(change: Change, item: Item) -> StoredValue | None:
    before = stored_value_at(item, change.place)
    operand = change.operand
    if change.operator == "copy":
        return copy.deepcopy(stored_value_at(item, change.places[0][0]))
    if change.operator == "sum":
        terms = [(stored_value_at(item, place), sign) for place, sign in change.places]
        return {"N": number_to_text(_total(operand, terms), path=str(change.place))}
    if operand is None or change.operator == "set":
        return operand
    ((kind, given),) = operand.items()
    held = (before or {}).get(kind, [])
    if change.operator in ("append", "prepend"):
        return {kind: [*held, *given] if change.operator == "append" else [*given, *held]}
    members = {normalized_value({kind[0]: member}): member for member in held}
    others = {normalized_value({kind[0]: member}): member for member in given}
    kept = (
        {**others, **members} if change.operator == "include" else {k: members[k] for k in members if k not in others}
    )
    return {kind: list(kept.values())} if kept else None


def _total(first: StoredValue | None, terms: Iterable[tuple[StoredValue | None, int]]) -> Decimal:
    total = Decimal(0 if first is None else first["N"])
    for value, sign in terms:
        number = Decimal((value or {})["N"])
        total = add(total, number if sign > 0 else number.copy_negate())
    return total


def add(one: Decimal, other: Decimal) -> Decimal:
    """The exact sum of two numbers that DynamoDB can hold; Python's own rounds to 28 digits."""
    return _EXACT.add(one, other)


# The difference of two stored documents: changes by path, so that processes with different paths do not conflict.  The
# documents are the state that was read and the intended state. This module does not depend on models or requests.

Value = StoredValue

#: A container that another process may have changed, so that overwriting it whole could lose that change.
_CONTAINERS = frozenset({"M", "L", "SS", "NS", "BS"})
_SETS = _CONTAINERS - {"M", "L"}


class Difference(Struct, frozen=True):
    """Disjoint changes of one attribute, and their conditions on the item."""

    changes: tuple[Change, ...]
    conditions: tuple[Stored, ...] = ()


def difference_of(name: str, before: Value | None, after: Value | None) -> Difference:
    """Return the difference of an attribute by its physical name; ``None`` stands for a missing value.

    An element of a map is set or removed if its container is still a map. A list, a set in a map, and a value that is a
    map only before or after the change, are written whole if they are unchanged since they were read. A set gets or
    loses members.
    """
    place = Place(name)
    kinds = {kind for value in (before, after) if value is not None for kind in value}
    if kinds == {"M"} and before is not None and after is not None:
        found = list(_of_maps(place, before["M"], after["M"]))
        if all(step for change in found for step in change.place.path):  # DynamoDB can address no empty name
            needed = (condition for change in found for condition in _needs(change, before))
            return Difference(tuple(found), (*{(each.path, each.operator): each for each in needed}.values(),))
    if len(kinds) == 1 and kinds <= _SETS:
        (kind,) = kinds
        members = _of_sets(place, kind, before, after)
        if members is not None:
            return Difference((members,))
    return whole_write(name, before, after)


def whole_write(name: str, before: Value | None, after: Value | None) -> Difference:
    """The attribute written whole, if it is as it was read."""
    place = Place(name)
    return Difference((_set(place, after),), (_as_read(place, before),))


def _of_maps(place: Place, before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is new:
            continue  # as most places of a document are, which keep their stored form when it is encoded
        inner = Place(place.name, (*place.path, key))
        if old is not None and new is not None:
            if "M" in old and "M" in new:
                yield from _of_maps(inner, old["M"], new["M"])
                continue
            if normalized_value(old) == normalized_value(new):
                continue
        yield _set(inner, new)


def _of_sets(place: Place, kind: str, before: Value | None, after: Value | None) -> Change | None:
    """The members to add or to take away; ``None`` where it is both, which DynamoDB does not do at once."""
    old, new = (
        {normalized_value({kind[0]: member}): member for member in (value or {}).get(kind, ())}
        for value in (before, after)
    )
    added, taken = [new[each] for each in new if each not in old], [old[each] for each in old if each not in new]
    if bool(added) == bool(taken):
        return None
    return Change(place, "include" if added else "exclude", {kind: added or taken})


def _set(place: Place, value: Value | None) -> Change:
    return Change(place, "remove") if value is None else Change(place, "set", value)


def _as_read(place: Place, before: Value | None) -> Stored:
    return place.stored("missing") if before is None else place.stored("=", before)


def _needs(change: Change, before: Value) -> Iterator[Stored]:
    """Return the condition that a path's container is a map, and that a path with nested elements is unchanged."""
    yield change.place.within().stored("type", {"S": "M"})
    old: Value | None = before
    for step in change.place.path:
        old = (old or {})["M"].get(step)
    kinds = {*(old or {}), *(change.operand or {})}
    if kinds & _CONTAINERS:
        yield _as_read(change.place, old)
