"""What the table is to hold, as plain Python, and what a history may do to both."""

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
    """An object as it is to be stored; when it was written, and when it is gone, in seconds since 1970."""

    values: Row
    live: bool = True
    expires: float | None = None
    written: float = 0.0
    #: The owner with which it went to the trash.
    mark: str = ""


class World:
    """What there is."""

    def __init__(self, family: Family, capabilities: Sequence[Capability]) -> None:
        self.family = family
        self.capabilities = capabilities
        self.now = 0.0
        self.things: dict[str, Kept] = {}
        self.owners: dict[str, Row] = {}
        #: What things refer to and is in the trash: the attribute, and its value.
        self.in_trash: set[tuple[str, str]] = set()
        #: What capabilities keep besides.
        self.more: dict[str, Any] = {}

    def pass_to(self, now: float) -> None:
        """Time passes: what has expired is gone."""
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
        """The errors for which a thing cannot be stored so, or not be deleted, by a way to write."""
        return frozenset().union(*(each.refusals(self, pk, after, way) for each in self.capabilities))

    def new_values(self, chance: random.Random) -> Row:
        """Values of every attribute, for a thing that is created or changed."""
        found: Row = {"note": chance.choice(NOTES), self.family.id_name: chance.choice(self.family.ids)}
        for capability in self.capabilities:
            found |= capability.values(chance, self)
        return found

    def write(self, pk: str, after: Row) -> None:
        """A thing is created, changed or restored."""
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
        """The live things as they are read."""
        return {pk: self._row(pk) for pk in self.live}

    def _row(self, pk: str) -> Row:
        found = dict(self.things[pk].values)
        for capability in self.capabilities:
            found |= capability.shown(self, pk)
        return {name: found[name] for name in self.family.shown}


class ByIndex(Struct, frozen=True):
    """What an act may miss since it finds things by an index that is late, as the documentation says.

    ``missed`` is an expression for the identities of things that it has left. ``dynamo_verify`` has to report them by
    one of ``kinds``, and ``repair`` is the way out. ``errors`` are allowed as well.
    """

    missed: str = "[]"
    kinds: frozenset[str] = frozenset()
    repair: str = ""
    errors: Errors = NO_ERRORS


class Act(Struct, frozen=True):
    """One thing that is done: Python, what it does to the world, and the errors one of which it has to end in.

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
    """One row of the table: how it joins a model, what holds of it, and what can be done with it.

    ``covers`` names the public attributes, options and classes that it is about. Every method adds nothing by itself.
    """

    title = ""
    covers: tuple[str, ...] = ()
    #: The ways to write that refuse a model with it, and their error.
    refuses: Mapping[str, type[Exception]] = MappingProxyType({})
    #: What ``dynamo_verify`` finds of it that is no fault, and why it is there.
    reports: frozenset[str] = frozenset()
    limit = ""
    #: Of those that do not refuse it, the ways to write that refuse to delete an object with it, and their error.
    keeps: Mapping[str, type[Exception]] = MappingProxyType({})
    #: Why no migration adds it; empty if one does.
    unadded = ""
    #: Why every write of the model is refused until a migration that adds it is finished; empty if none is.
    paused = ""
    #: Values of things that were stored before a migration has added it.
    earlier: Mapping[str, Any] = MappingProxyType({})
    #: What is left to do when the migration is finished.
    afterwards = ""

    @property
    def name(self) -> str:
        """What the table calls it."""
        return type(self).__name__

    def add(self, family: Family) -> None:
        """Add it to the models."""

    def prior(self, family: Family) -> None:
        """Add what the models have before a migration adds it."""

    def values(self, chance: random.Random, world: World) -> Row:
        """Values of its attributes for an object that is created or changed."""
        return {}

    def refusals(self, world: World, pk: str, after: Row | None, way: str) -> Errors:
        """The errors for which an object cannot be stored with these values; ``None`` deletes it."""
        return NO_ERRORS

    def stored(self, world: World, kept: Kept) -> None:
        """What follows for an object that was just written."""

    def trashed(self, world: World, kept: Kept) -> None:
        """What follows for an object that went to the trash."""

    def shown(self, world: World, pk: str) -> Row:
        """What is computed of an object, by the names that it adds to ``family.shown``."""
        return {}

    def acts(self, chance: random.Random, world: World) -> Iterator[Act]:
        """What else can be done."""
        return iter(())

    def expected(self, world: World) -> Iterator[Expected]:
        """What else has to hold."""
        return iter(())


class Snapshots(Struct):
    """What lists were some time ago: a read that may be late shows each object as it was at one of these times."""

    most: float
    kept: list[tuple[float, dict[str, Row], dict[str, float | None]]] = field(default_factory=list)

    def note(self, world: World) -> None:
        """The lists are so from now on."""
        self.kept.append((world.now, world.listed(), {pk: kept.expires for pk, kept in world.things.items()}))

    def may_show(self, now: float, found: dict[str, Row]) -> str:
        """What is wrong with a list; empty if nothing is."""
        first = max((number for number, (time, *_) in enumerate(self.kept) if time <= now - self.most), default=0)
        window = [
            # Whether an object has expired is asked now, of what it said then.
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
