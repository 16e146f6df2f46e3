"""What turns one stored document into another: changes place by place, so that two writers of different places agree.

It holds that the two are as they were read and as they are to be. This module must not know models or requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from dynamo_single.orm.conditions.matching import normal
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.requests.changes import Change, Place
from dynamo_single.table.items import StoredValue

Value = StoredValue

#: What another writer may have put something into, so that writing over it whole could lose that.
_CONTAINERS = frozenset({"M", "L", "SS", "NS", "BS"})
_SETS = _CONTAINERS - {"M", "L"}


class Difference(Struct, frozen=True):
    """Changes of one attribute, none of which is in another, and what has to hold of the item for them."""

    changes: tuple[Change, ...]
    conditions: tuple[Stored, ...] = ()


def by_place(name: str, before: Value | None, after: Value | None) -> Difference:
    """The difference of an attribute by its physical name; ``None`` is one that is not there.

    A place of a map is set or removed if the map that it is in is one still. A list, a set in a map, and what is or
    was a map on one side only, is written whole if it is as it was read. A set gets or loses members.
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
    return whole(name, before, after)


def whole(name: str, before: Value | None, after: Value | None) -> Difference:
    """The attribute written whole, if it is as it was read."""
    place = Place(name)
    return Difference((_set(place, after),), (_as_read(place, before),))


def _of_maps(place: Place, before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        old, new, inner = before.get(key), after.get(key), Place(place.name, (*place.path, key))
        if old is not None and new is not None:
            if "M" in old and "M" in new:
                yield from _of_maps(inner, old["M"], new["M"])
                continue
            if normal(old) == normal(new):
                continue
        yield _set(inner, new)


def _of_sets(place: Place, kind: str, before: Value | None, after: Value | None) -> Change | None:
    """The members to add or to take away; ``None`` where it is both, which DynamoDB does not do at once."""
    old, new = (
        {normal({kind[0]: member}): member for member in (value or {}).get(kind, ())} for value in (before, after)
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
    """That the map which a place is in is one, and of a place with places of its own that it is as it was read."""
    yield change.place.within().stored("type", {"S": "M"})
    old: Value | None = before
    for step in change.place.path:
        old = (old or {})["M"].get(step)
    kinds = {*(old or {}), *(change.operand or {})}
    if kinds & _CONTAINERS:
        yield _as_read(change.place, old)
