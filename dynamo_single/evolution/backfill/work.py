"""Work on a table's items, as values: passes, tasks, and options.

Operations create these values, and this module sends no requests. A change is a pure function, except the one that
counts. It can be computed again for an item that changed in the meantime, and repeating a page is harmless.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.conditions.terms import And, Condition, Or, Stored
from dynamo_single.orm.requests.actions import Action, Item, ItemKey
from dynamo_single.table import names

#: ``open`` is what ``migrate`` does, ``finish`` what ``migrate --finish`` does, ``back`` what takes both back.
Phase = Literal["open", "finish", "back"]
#: Other items by their keys; one that is not stored is not among them.
Others = Mapping[ItemKey, Item]
#: Sends actions as one request.
Write = Callable[[Sequence[Action]], object]

#: The most segments of one walk: one transaction takes over the checkpoints of all of them.
MAX_SEGMENTS: Final = 64


def no_other_items(item: Item) -> Iterable[ItemKey]:
    """What a change asks for that depends on the item alone."""
    return ()


def no_early_writes(items: Sequence[Item], write: Write) -> None:
    """What a change does ahead that depends on the item alone."""


def below_version(items: Condition, version: int) -> Condition:
    """Those of some items that are of an earlier schema version, or say none."""
    earlier = Stored(names.SCHEMA_VERSION, "<", ({"N": str(version)},))
    return And((items, Or((Stored(names.SCHEMA_VERSION, "missing"), earlier))))


@dataclass(frozen=True, slots=True)
class Task:
    """What is done to which ``items`` of a table.

    ``change`` gives the actions that bring an item up to date, the item's own first: they are sent as one request, as a
    transaction if there are several, and each has to be conditional on what was read. Without any there is nothing to
    do. It raises an ``InvalidValue`` for an item that cannot be changed, with a sentence for the operator. ``wanted``
    names other items to be read with each item; the change is given those that are stored. ``ahead`` is called in the
    same thread with the items of a page, and with one that was read again, and may write; no rehearsal calls it.

    What was done may be done again, after a process was killed: a change gives nothing for an item that it has changed.
    """

    items: Condition
    change: Callable[[Item, Others], Sequence[Action]]
    wanted: Callable[[Item], Iterable[ItemKey]] = no_other_items
    ahead: Callable[[Sequence[Item], Write], object] = no_early_writes


def digest_of(*parts: object) -> str:
    """A text that differs when one of some values does, as they are represented: snapshots, names, numbers."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Work:
    """One pass of an operation of a migration over a table.

    ``app``, ``migration``, ``number`` (of the operation in its migration) and ``phase`` name the checkpoints; where an
    operation has several passes in a phase, ``step`` counts them. ``mark`` is a text that differs when the task does:
    checkpoints of another one are begun again. ``label`` says in a line what is done.
    """

    app: str
    migration: str
    number: int
    phase: Phase
    label: str
    task: Task
    step: int = 0
    mark: str = ""

    @property
    def name(self) -> str:
        """The work's name, for messages."""
        return f"{self.app}.{self.migration}, operation {self.number} ({self.phase})"


@dataclass(frozen=True, slots=True)
class Options:
    """How work is carried out.

    ``segments`` parts of the table are read beside each other, each in a thread, as far as the table has connections;
    of work that was begun before, the number of then counts. ``max_rcu`` and ``max_wcu`` are the most read and write
    units a second of all threads together. ``page`` is the most items that are read at once. ``lease`` is for how many
    seconds an operator who says nothing more counts as being at work; ``take_over`` says that this is known to be over.
    """

    segments: int = 4
    max_rcu: float | None = None
    max_wcu: float | None = None
    page: int = 500
    lease: float = 60.0
    take_over: bool = False
    progress: Callable[[Progress], object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.segments <= MAX_SEGMENTS:
            raise ConfigurationError(f"Work has 1 to {MAX_SEGMENTS} segments, not {self.segments}.")
        if self.page < 1 or self.lease <= 0:
            raise ConfigurationError("A page has at least one item, and a lease lasts more than 0 seconds.")
        for name, units in (("max_rcu", self.max_rcu), ("max_wcu", self.max_wcu)):
            if units is not None and units <= 0:
                raise ConfigurationError(f"{name} is a number of units a second, more than 0, not {units}.")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far work is: items of the table that were read, of those the model's, and what became of them.

    ``expected`` is DynamoDB's own count of the table's items, which it brings up to date about every six hours (AWS API
    reference, TableDescription), and ``seconds_left`` what follows from it: estimates, ``None`` where there is none.
    """

    label: str
    scanned: int
    matched: int
    changed: int
    failed: int
    expected: int
    seconds_left: float | None = None
    read_units: float = 0.0
    write_units: float = 0.0
