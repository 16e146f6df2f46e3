"""The behavior of code under each revision, and the effect of each pass: derived from the facets of ``phases.KINDS``.

The checker is independent of operations. A part or a pass that is not listed here raises ``UnknownPart``, so that a new
kind of change is either checked or a failing test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dynamo_single.evolution.phases import PUBLIC, Phase, Phases

#: The code of before and that of after the migration.
BEFORE, AFTER = 0, 1
#: The value of an attribute that a migration adds with a default.
DEFAULT = "default"


class UnknownPart(Exception):
    """An unknown part or pass of ``phases.KINDS``: its meaning must be written here."""


class Change(NamedTuple):
    """One change: its phases, and the positions of its parts in an item.

    ``names`` are the positions of the old and the new name, ``indexes`` those of the old and the new key.
    ``is_derived``: an added or removed value is computed from the item's own value.
    """

    phases: Phases
    names: tuple[int, int] = (0, 1)
    indexes: tuple[int, int] = (0, 0)
    is_derived: bool = False

    @property
    def last(self) -> int:
        """The number of the last phase."""
        return len(self.phases) - 1

    @property
    def aspect(self) -> str:
        """The subject of the change: names, keys, a value, a number, claims, or no part that code writes."""
        parts = frozenset(part for phase in self.phases for part in phase.parts)
        if parts not in ASPECTS:
            raise UnknownPart(f"The checker does not know what code does with the parts {sorted(parts)}.")
        return ASPECTS[parts]

    @property
    def owner(self) -> int:
        """The code that has the value, the number or the rule: old code, if the change removes it."""
        return BEFORE if self.phases[0].parts else AFTER


ASPECTS: dict[frozenset[str], str] = {
    frozenset(): "nothing",
    frozenset({"old", "new"}): "names",
    frozenset({"old"}): "value",
    frozenset({"new"}): "value",
    frozenset({"old key"}): "keys",
    frozenset({"new key"}): "keys",
    frozenset({"old key", "new key"}): "keys",
    frozenset({"number"}): "number",
    frozenset({"claims"}): "claims",
    frozenset({"entry"}): "schedule",
}
#: ``ChangeShards``: the table's schedule gets an entry, which begins once every process knows it.
CHANGE_SHARDS: Phases = (Phase(), Phase({"entry": PUBLIC}))


class Meaning(NamedTuple):
    """The behavior of code under one revision, unless it is blocked.

    ``fallback`` and ``removes`` occur in the protocol of before only: it read the first of several names that an item
    has, and writers took a name out.
    """

    reads: tuple[int, ...] = (0,)
    writes: tuple[int, ...] = (0,)
    keys: tuple[tuple[int, str], ...] = ()
    lists: tuple[tuple[int, str], ...] = ()
    value: str = ""
    reads_value: bool = False
    claims: bool = False
    looks_up: bool = False
    counts: bool = False
    reads_number: bool = False
    knows_entry: bool = False
    fallback: bool = False
    removes: tuple[int, ...] = ()


#: The phase of each change under one revision.
Vector = tuple[int, ...]


def schedule(changes: Sequence[Change]) -> list[Vector]:
    """Return the revisions of changes that are open together.

    They move in the same bumps; a change that starts with a name that another one ends with stays announced until then.
    """
    found = [tuple(0 for _ in changes)]
    while any(phase < change.last for phase, change in zip(found[-1], changes, strict=True)):
        now = found[-1]
        moved = [phase + (not _waits(changes, now, n)) for n, phase in enumerate(now)]
        found.append(tuple(min(phase, change.last) for phase, change in zip(moved, changes, strict=True)))
    return found


def _waits(changes: Sequence[Change], now: Vector, number: int) -> bool:
    own = changes[number]
    return own.aspect == "names" and any(
        each.aspect == "names" and each.names[1] == own.names[0] and now[n] < each.last
        for n, each in enumerate(changes)
    )


def together(changes: Sequence[Change], vector: Vector) -> Iterator[tuple[Change, Phase]]:
    """Yield each change with its phase. Only the current one of several renames determines the value's position."""
    renames = [n for n, each in enumerate(changes) if each.aspect == "names"]
    active = next((n for n in renames if vector[n] < changes[n].last), renames[-1] if renames else -1)
    for n, change in enumerate(changes):
        if change.aspect != "names" or n == active:
            yield change, change.phases[vector[n]]


def meaning(changes: Sequence[Change], vector: Vector, code: int) -> Meaning | None:
    """Return the behavior of code under a revision, or ``None`` if it is blocked."""
    found = Meaning()
    phases = [change.phases[number] for change, number in zip(changes, vector, strict=True)]
    if any(phase.refused in ("everybody", ("before", "after")[code]) for phase in phases):
        return None
    for change, phase in together(changes, vector):
        found = _ADD[change.aspect](found, change, phase, code)
    return found


def _names(found: Meaning, change: Change, phase: Phase, code: int) -> Meaning:
    where = {"old": change.names[0], "new": change.names[1]}
    written = tuple(where[part] for part in phase.parts)
    public = tuple(where[part] for part, facet in phase.parts.items() if facet == PUBLIC)
    if not public:
        raise UnknownPart(f"Code that is not refused has no name to read by: {phase}.")
    return found._replace(reads=public, writes=written)


def _keys(found: Meaning, change: Change, phase: Phase, code: int) -> Meaning:
    written = keys_of(change, phase)
    if len({index for index, _ in written}) < len(written):
        raise UnknownPart(f"One index has one key of an item: {phase}.")
    public = tuple(each for each, facet in zip(written, phase.parts.values(), strict=True) if facet == PUBLIC)
    return found._replace(keys=found.keys + written, lists=found.lists + public)


def keys_of(change: Change, phase: Phase) -> tuple[tuple[int, str], ...]:
    """Return the index and the form of each key that is not absent."""
    where = {"old key": (change.indexes[0], "old"), "new key": (change.indexes[1], "new")}
    return tuple(where[part] for part in phase.parts)


def _value(found: Meaning, change: Change, phase: Phase, code: int) -> Meaning:
    if code != change.owner or not phase.parts:
        return found
    is_public = PUBLIC in phase.parts.values()
    return found._replace(value="derived" if change.is_derived else "stored", reads_value=is_public)


def _number(found: Meaning, change: Change, phase: Phase, code: int) -> Meaning:
    if code != change.owner:
        return found
    return found._replace(counts=bool(phase.parts), reads_number=PUBLIC in phase.parts.values())


def _claims(found: Meaning, change: Change, phase: Phase, code: int) -> Meaning:
    if code != change.owner:
        return found
    return found._replace(claims=bool(phase.parts), looks_up=PUBLIC in phase.parts.values())


def _schedule(found: Meaning, change: Change, phase: Phase, code: int) -> Meaning:
    return found._replace(knows_entry=bool(phase.parts))


def _nothing(found: Meaning, change: Change, phase: Phase, code: int) -> Meaning:
    return found


_ADD: dict[str, Callable[[Meaning, Change, Phase, int], Meaning]] = {
    "names": _names,
    "keys": _keys,
    "value": _value,
    "number": _number,
    "claims": _claims,
    "schedule": _schedule,
    "nothing": _nothing,
}
