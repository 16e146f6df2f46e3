"""The table's items in the model: the effect of writes and passes, and the required result of reads.

``truth`` contains the acknowledged values as of their execution by the server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dynamo_single.evolution.phases import PUBLIC
from tests.protocol.meaning import BEFORE, DEFAULT, Change, Meaning, UnknownPart, Vector, keys_of, together


class Violation(Exception):
    """A history that the protocol must not have."""


class Item(NamedTuple):
    """One stored item: a value for each stored name, an entry ``(form, value)`` for each index, and a further value."""

    names: tuple[int | None, ...]
    keys: tuple[tuple[str, int | None] | None, ...] = (None,)
    value: object = None


class Data(NamedTuple):
    """The stored state. ``values`` contains acknowledged further values, and ``shown`` the contents of the indexes.

    ``until`` is the number of ticks before the start of a schedule entry, and ``None`` before it is recorded.
    """

    items: tuple[Item | None, ...]
    truth: tuple[int | None, ...]
    values: tuple[object, ...]
    claims: tuple[int | None, ...] = ()
    number: int | None = None
    mark: bool = False
    shown: tuple[Item | None, ...] = ()
    blank: Item = Item((None,))
    until: int | None = None


class Operation(NamedTuple):
    """A write of one item. ``seen`` is the value that a save compares.

    ``is_later``: the object's time is after the beginning of a schedule's entry.
    """

    kind: str
    item: int
    argument: int = 0
    seen: int | None = None
    is_later: bool = False


def changed(values: tuple, place: int, value: object) -> tuple:
    return (*values[:place], value, *values[place + 1 :])


def read(item: Item, meaning: Meaning) -> int | None:
    """Return the value of an item as code reads it."""
    if meaning.fallback:
        return next((item.names[n] for n in meaning.reads if item.names[n] is not None), None)
    return item.names[meaning.reads[0]]


def derived(value: int | None) -> object:
    """Return the further value derived from an item's own value."""
    return ("of", value)


#: The further value of an object whose time is after the beginning of an entry: the shard that it is in.
LATER = 1


def shard(meaning: Meaning, era: object) -> int:
    """Return the shard in which code looks for an object of an era."""
    return int(meaning.knows_entry and era == LATER)


# Writes.


def carried_out(data: Data, meaning: Meaning, operation: Operation) -> Data | None:
    """Return the data after an accepted write, or ``None`` if its condition fails, which is an error."""
    item = data.items[operation.item]
    if operation.kind != "put" and (item is None) != (operation.kind == "create"):
        return None
    before = None if item is None else read(item, meaning)
    if operation.kind == "save":
        if before != operation.seen:
            return None
        if data.truth[operation.item] != operation.seen:
            raise Violation(f"a save of what was read as {operation.seen} undoes {data.truth[operation.item]}")
    value = {"delete": None, "add": (data.truth[operation.item] or 0) + 1}.get(operation.kind, operation.argument)
    return _written(data, meaning, operation, item, before, value)


def _written(
    data: Data, meaning: Meaning, operation: Operation, item: Item | None, before: int | None, value: int | None
) -> Data | None:
    number = operation.item
    claims = data.claims
    if meaning.claims and claims:
        found = _claimed(claims, number, before, value)
        if found is None:
            return None
        claims = found
    after = None if operation.kind == "delete" else _item(data, meaning, operation, item, value)
    told = data.values[number] if operation.kind not in {"create", "put", "delete"} else None
    if operation.is_later:
        told = LATER
    data = data._replace(
        items=changed(data.items, number, after),
        truth=changed(data.truth, number, value),
        values=changed(data.values, number, after.value if after and meaning.value else told),
        claims=claims,
    )
    difference = (after is not None) - (item is not None)
    if meaning.counts and difference:
        data = data._replace(number=(data.number or 0) + difference, mark=False)
    return data


def _claimed(
    claims: tuple[int | None, ...], number: int, before: int | None, value: int | None
) -> tuple[int | None, ...] | None:
    if before is not None and claims[before] == number:
        claims = changed(claims, before, None)
    if value is None:
        return claims
    if claims[value] not in (None, number):
        return None
    return changed(claims, value, number)


def _item(data: Data, meaning: Meaning, operation: Operation, item: Item | None, value: int | None) -> Item:
    if item is None or operation.kind == "put":
        item = data.blank
    names = list(item.names)
    for name in meaning.writes:
        names[name] = (names[name] or 0) + 1 if operation.kind == "add" else value
    for name in meaning.removes:
        names[name] = None
    keys = item.keys
    for index, form in meaning.keys:
        keys = changed(keys, index, (form, value))
    further = item.value
    if meaning.value == "derived":
        further = derived(value)
    elif meaning.value and further is None:
        further = DEFAULT
    elif operation.is_later:
        further = shard(meaning, LATER)
    return Item(tuple(names), keys, further)


# Reads.


def check_reads(data: Data, meaning: Meaning, is_delayed: bool) -> None:
    """Raise ``Violation`` unless every read of live code returns the acknowledged values, or is an error."""
    for number, item in enumerate(data.items):
        if item is not None:
            _check_item(data, meaning, number, item)
    for index, form in meaning.lists:
        _check_list(data, index, form, is_delayed)
    if meaning.looks_up:
        check_claims(data)
    if meaning.reads_number and data.number != (count := sum(each is not None for each in data.items)):
        raise Violation(f"reads the number {data.number} of {count}")


def _check_item(data: Data, meaning: Meaning, number: int, item: Item) -> None:
    names = (read(item, meaning),) if meaning.fallback else (item.names[n] for n in meaning.reads)
    for found in names:
        if found != data.truth[number]:
            raise Violation(f"reads {found} of item {number} {item.names}, acknowledged is {data.truth[number]}")
    if data.until is not None and (item.value or 0) != shard(meaning, data.values[number]):
        raise Violation(f"does not find item {number}, which is in the shard {item.value}")
    if meaning.reads_value:
        wanted = derived(data.truth[number]) if meaning.value == "derived" else data.values[number]
        if item.value != wanted:
            raise Violation(f"reads the further value {item.value} of item {number}, right is {wanted}")


def _check_list(data: Data, index: int, form: str, is_delayed: bool) -> None:
    """A delayed index has to be right for each item as soon as it shows the item as it is."""
    listed, wanted = {}, {}
    for number, item in enumerate(data.items):
        if is_delayed and data.shown[number] != item:
            continue
        if item is not None:
            wanted[number] = data.truth[number]
            entry = item.keys[index]
            if entry is not None and entry[0] == form:
                listed[number] = entry[1]
    if listed != wanted:
        raise Violation(f"lists {listed} without an error, acknowledged is {wanted}")


def check_claims(data: Data) -> None:
    for value, owner in enumerate(data.claims):
        having = [number for number, each in enumerate(data.truth) if each == value]
        if len(having) > 1:
            raise Violation(f"two items have the unique value {value}")
        if having != ([] if owner is None else [owner]):
            raise Violation(f"the claim on {value} names {owner}, and {having} has it")


def check_end(data: Data, changes: Sequence[Change], vector: Vector) -> None:
    """Raise ``Violation`` if an item contains an absent value."""
    for change, phase in together(changes, vector):
        for number, item in enumerate(data.items):
            if item is not None:
                _check_absent(change, phase.parts.keys(), number, item)
        if change.aspect == "claims":
            _check_claims_at_end(data, bool(phase.parts))
        if change.aspect == "number" and not phase.parts and data.number is not None:
            raise Violation(f"ended, and the number {data.number} is left")


def _check_claims_at_end(data: Data, are_taken: bool) -> None:
    if are_taken:
        check_claims(data)
    elif any(each is not None for each in data.claims):
        raise Violation(f"ended, and the claims {data.claims} are left")


def _check_absent(change: Change, parts: object, number: int, item: Item) -> None:
    if change.aspect == "names":
        left = [n for part, n in zip(("old", "new"), change.names, strict=True) if part not in parts]
        if any(item.names[n] is not None for n in left):
            raise Violation(f"ended, and item {number} is {item.names}")
    elif change.aspect == "keys":
        for part, index in zip(("old key", "new key"), change.indexes, strict=True):
            entry = item.keys[index]
            if part not in parts and entry is not None and entry[0] == part.removesuffix(" key"):
                raise Violation(f"ended, and item {number} has the entry {entry}")
    elif change.aspect == "value" and not parts and item.value is not None:
        raise Violation(f"ended, and item {number} has the further value {item.value}")


# Passes.


Rewrite = Callable[[Item, Change, Vector, Sequence[Change]], Item]


def _value_of(item: Item, changes: Sequence[Change], vector: Vector) -> int | None:
    """Return an item's value by the name that all code reads now."""
    for change, phase in together(changes, vector):
        if change.aspect == "names":
            where = {"old": change.names[0], "new": change.names[1]}
            public = [where[part] for part, facet in phase.parts.items() if facet == PUBLIC]
            return item.names[public[0]]
    return item.names[0]


def _copy(source: int, target: int) -> Rewrite:
    def copied(item: Item, change: Change, vector: Vector, changes: Sequence[Change]) -> Item:
        return item._replace(names=changed(item.names, change.names[target], item.names[change.names[source]]))

    return copied


def _drop(which: int) -> Rewrite:
    def dropped(item: Item, change: Change, vector: Vector, changes: Sequence[Change]) -> Item:
        return item._replace(names=changed(item.names, change.names[which], None))

    return dropped


def _convert(source: int, target: int) -> Rewrite:
    def converted(item: Item, change: Change, vector: Vector, changes: Sequence[Change]) -> Item:
        if item.names[change.names[source]] is None:
            return item  # an earlier run has converted it
        return _drop(source)(_copy(source, target)(item, change, vector, changes), change, vector, changes)

    return converted


def _write_keys(item: Item, change: Change, vector: Vector, changes: Sequence[Change]) -> Item:
    phase = change.phases[vector[list(changes).index(change)]]
    keys = item.keys
    for index in set(change.indexes):
        keys = changed(keys, index, None)
    for index, form in keys_of(change, phase):
        keys = changed(keys, index, (form, _value_of(item, changes, vector)))
    return item._replace(keys=keys)


def _fill_value(item: Item, change: Change, vector: Vector, changes: Sequence[Change]) -> Item:
    if change.is_derived:
        return item._replace(value=derived(_value_of(item, changes, vector)))
    return item._replace(value=DEFAULT if item.value is None else item.value)


def _drop_value(item: Item, change: Change, vector: Vector, changes: Sequence[Change]) -> Item:
    return item._replace(value=None)


def _raised(by: int) -> Rewrite:
    def raised(item: Item, change: Change, vector: Vector, changes: Sequence[Change]) -> Item:
        value = item.names[0]
        is_done = value is None or (value >= 100) == (by > 0)
        return item if is_done else item._replace(names=changed(item.names, 0, value + by))

    return raised


#: The effect of a pass on each item by the subject of the change: a read, and a write if the item is unchanged.
REWRITES: dict[tuple[str, str], Rewrite] = {
    ("names", "copy"): _copy(0, 1),
    ("names", "copy back"): _copy(1, 0),
    ("names", "drop old"): _drop(0),
    ("names", "drop new"): _drop(1),
    ("names", "convert"): _convert(0, 1),
    ("names", "convert back"): _convert(1, 0),
    ("keys", "fill"): _write_keys,
    ("keys", "copy back"): _write_keys,
    ("keys", "drop old"): _write_keys,
    ("keys", "drop new"): _write_keys,
    ("value", "fill"): _fill_value,
    ("value", "copy back"): _fill_value,
    ("value", "drop old"): _drop_value,
    ("value", "drop new"): _drop_value,
    ("nothing", "fill"): _raised(100),
    ("nothing", "convert back"): _raised(-100),
}
#: Passes whose steps differ: each claim by itself, or a count under a mark.
CLAIM_PASSES = {"drop": "needless", "fill": "take", "copy back": "take", "drop old": "release", "drop new": "release"}
NUMBER_PASSES = {"count": "count", "copy back": "count", "drop old": "forget", "drop new": "forget"}


def pass_of(change: Change, name: str) -> str:
    """Return how a pass steps: ``rewrite``, a pass over claims, or one over numbers."""
    if (change.aspect, name) in REWRITES:
        return "rewrite"
    found = {"claims": CLAIM_PASSES, "number": NUMBER_PASSES}.get(change.aspect, {}).get(name)
    if found is None:
        raise UnknownPart(f"The checker does not know what the pass {name!r} does with {change.aspect}.")
    return found


def first_data(changes: Sequence[Change], vector: Vector, delayed: bool = False) -> Data:
    """Return the table before the change: item 0 without item 1, and the contents of the first phases."""
    names = max((max(each.names) for each in changes if each.aspect == "names"), default=0) + 1
    indexes = max((max(each.indexes) for each in changes if each.aspect == "keys"), default=0) + 1
    item = Item((0,) + (None,) * (names - 1), (None,) * indexes)
    claims: tuple[int | None, ...] = ()
    number = None
    for change, phase in zip(changes, (c.phases[v] for c, v in zip(changes, vector, strict=True)), strict=True):
        if change.aspect == "keys":
            item = _write_keys(item, change, vector, changes)
        elif change.aspect == "value" and change.owner == BEFORE:
            item = _fill_value(item, change, vector, changes)
        elif change.aspect == "claims":
            claims = (0 if phase.parts else None, None, None)
        elif change.aspect == "number" and phase.parts:
            number = 1
    blank = Item((None,) * names, (None,) * indexes)
    shown = (item, None) if delayed else ()
    return Data((item, None), (0, None), (item.value, None), claims, number, False, shown, blank)
