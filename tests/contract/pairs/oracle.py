"""The expected contents of the table as plain Python, and the operations of a history on both."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from tests.contract.pairs.drafts import Family

Errors = frozenset[type[Exception]]
NO_ERRORS: Errors = frozenset()
Row = dict[str, Any]

NOTES = ("one", "two", "two", "three")


class Kept(Struct):
    """An object's expected state; the times of its write and its expiry, in seconds since 1970."""

    values: Row
    live: bool = True
    expires: float | None = None
    written: float = 0.0
    #: The owner with which it went to the trash.
    mark: str = ""


class World:
    """The expected contents."""

    def __init__(self, family: Family, capabilities: Sequence[Capability]) -> None:
        self.family = family
        self.capabilities = capabilities
        self.now = 0.0
        self.things: dict[str, Kept] = {}
        self.owners: dict[str, Row] = {}
        #: References to deleted objects: the attribute and its value.
        self.in_trash: set[tuple[str, str]] = set()
        #: Further state of capabilities.
        self.more: dict[str, Any] = {}

    def pass_to(self, now: float) -> None:
        """Let time pass: expired objects are removed."""
        self.now = now
        gone = [pk for pk, kept in self.things.items() if kept.expires is not None and kept.expires <= now]
        for pk in gone:
            del self.things[pk]

    def binned(self, owner: str) -> bool:
        """Return whether an owner is in the trash."""
        return self.hides("owner_id", owner)

    def hides(self, name: str, value: object) -> bool:
        """Return whether what an attribute refers to is in the trash."""
        owners = {each.attname for each in self.family.references.values()}
        return isinstance(value, str) and ("owner_id" if name in owners else name, value) in self.in_trash

    @property
    def live(self) -> dict[str, Row]:
        """The things that are not in the trash."""
        return {pk: kept.values for pk, kept in self.things.items() if kept.live}

    def referring(self, attname: str, owner: str) -> dict[str, Kept]:
        """The things that refer to an owner, also from the trash."""
        return {pk: kept for pk, kept in self.things.items() if kept.values.get(attname) == owner}

    def refusals(self, pk: str, after: Row | None, way: str) -> Errors:
        """Return the errors with which a way to write may reject or not delete a thing."""
        return frozenset().union(*(each.refusals(self, pk, after, way) for each in self.capabilities))

    def new_values(self, chance: random.Random) -> Row:
        """Return values of every attribute for a new or changed thing."""
        found: Row = {"note": chance.choice(NOTES), self.family.id_name: chance.choice(self.family.ids)}
        for capability in self.capabilities:
            found |= capability.values(chance, self)
        return found

    def write(self, pk: str, after: Row) -> None:
        """Create, change or restore a thing."""
        kept = self.things[pk] = Kept(after, written=self.now)
        for capability in self.capabilities:
            capability.stored(self, kept)

    def bin(self, pk: str) -> None:
        """A thing goes to the trash."""
        kept = self.things[pk]
        kept.live, kept.written = False, self.now
        for capability in self.capabilities:
            capability.trashed(self, kept)

    def bin_with(self, owner: str, pk: str) -> None:
        """A thing goes to the trash along with an owner, and stays as long as that does."""
        kept = self.things[pk]
        kept.live, kept.written, kept.mark = False, self.now, owner

    def bring_back(self, pk: str) -> None:
        """A thing leaves the trash along with its owner."""
        kept = self.things[pk]
        kept.live, kept.written, kept.mark = True, self.now, ""

    def listed(self) -> dict[str, Row]:
        """Return the live things as they are read."""
        return {pk: self._row(pk) for pk in self.live}

    def _row(self, pk: str) -> Row:
        found = dict(self.things[pk].values)
        for capability in self.capabilities:
            found |= capability.shown(self, pk)
        return {name: found[name] for name in self.family.shown}


class ByIndex(Struct, frozen=True):
    """Documented omissions of an operation that finds things with a late index.

    ``missed`` is an expression for the identities of missed things. ``dynamo_verify`` must report them with one of
    ``kinds``, and ``repair`` is the fix. ``errors`` are also allowed.
    """

    missed: str = "[]"
    kinds: frozenset[str] = frozenset()
    repair: str = ""
    errors: Errors = NO_ERRORS


class Act(Struct, frozen=True):
    """An operation: Python, its effect on the world, and its errors, one of which must occur.

    ``by_index``: it finds things by an index; what it may miss if that is late. ``settled``: no index may be late.
    """

    text: str
    effect: Callable[[World], object] = lambda world: None
    errors: Errors = NO_ERRORS
    by_index: ByIndex | None = None
    settled: bool = False


class Expected(Struct, frozen=True):
    """An expression, and its value once the indexes are up to date; ``consistent``: at any time."""

    text: str
    value: object
    consistent: bool = False


class Capability:
    """A row of the table: its declaration, expectations and operations.

    ``covers`` names the public attributes, options and classes that it is about. Every method adds nothing by itself.
    """

    title = ""
    covers: tuple[str, ...] = ()
    #: The ways to write that refuse a model with it, and their error.
    refuses: Mapping[str, type[Exception]] = MappingProxyType({})
    #: Expected findings of ``dynamo_verify``, with the reason.
    reports: frozenset[str] = frozenset()
    limit = ""
    #: Ways to write that support the capability but cannot delete an object, and their error.
    keeps: Mapping[str, type[Exception]] = MappingProxyType({})
    #: Why no migration adds it; empty if one does.
    unadded = ""
    #: The reason why all writes of the model are blocked until its migration is finished; empty if they are not.
    paused = ""
    #: Values of things from before the migration.
    earlier: Mapping[str, Any] = MappingProxyType({})
    #: Remaining steps after the end of the migration.
    afterwards = ""

    @property
    def name(self) -> str:
        """Return its name in the table."""
        return type(self).__name__

    def add(self, family: Family) -> None:
        """Add it to the models."""

    def prior(self, family: Family) -> None:
        """Add what the models have before a migration adds it."""

    def values(self, chance: random.Random, world: World) -> Row:
        """Return attribute values for a new or changed object."""
        return {}

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        """Return the errors of an object with these values; ``None`` deletes it."""
        return NO_ERRORS

    def stored(self, world: World, kept: Kept) -> None:
        """Update dependents of a written object."""

    def trashed(self, world: World, kept: Kept) -> None:
        """Update dependents of an object in the trash."""

    def shown(self, world: World, pk: str) -> Row:
        """Return an object's computed values by the names in ``family.shown``."""
        return {}

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        """Return further operations."""
        return iter(())

    def expected(self, world: World) -> Iterator[Expected]:
        """Check further expectations."""
        return iter(())


class Snapshots(Struct):
    """Former contents of lists: a late read returns each object as of one of these times."""

    most: float
    kept: list[tuple[float, dict[str, Row], dict[str, float | None]]] = field(default_factory=list)

    def note(self, world: World) -> None:
        """The lists are so from now on."""
        self.kept.append((world.now, world.listed(), {pk: kept.expires for pk, kept in world.things.items()}))

    def may_show(self, now: float, found: dict[str, Row]) -> str:
        """Return the errors in a list; empty if it is right."""
        first = max((number for number, (time, *_) in enumerate(self.kept) if time <= now - self.most), default=0)
        window = [
            # Expiry depends on the current time and on the former value.
            {pk: row for pk, row in listed.items() if (expires[pk] or math.inf) > now}
            for _, listed, expires in self.kept[first:]
        ]
        for pk in {*found}.union(*window):
            states = [listed.get(pk) for listed in window]
            if found.get(pk) not in states:
                return f"{pk!r} is read as {found.get(pk)}, and was in this time {states}"
        return ""


def arguments(values: Row) -> str:
    """Values as arguments of a call."""
    return ", ".join(f"{name}={value!r}" for name, value in sorted(values.items()))
