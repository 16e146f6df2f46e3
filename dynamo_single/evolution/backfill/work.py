"""Work on a table's items, as values: passes, tasks, and options.

Operations create these values. This module does not send requests. A change is a pure function, except for the change
that counts. It can be computed again for an item that changed in the meantime, and a page can be processed repeatedly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.requests.actions import Action, Item, ItemKey
from dynamo_single.table.lease import Lease

#: Other stored items by their keys.
Others = Mapping[ItemKey, Item]
#: Sends actions as one request.
Write = Callable[[Sequence[Action]], object]

#: The most segments of one walk: one transaction (at most 100 actions) takes over the checkpoints of all of them.
MAX_SEGMENTS: Final = 64


@dataclass(frozen=True, slots=True)
class Task:
    """The items of a table to change, and the change.

    - ``change`` returns the actions that update an item, the item's own action first. They are sent as one request, or
      as one transaction if there are several, and each must be conditional on the values that were read. Without
      actions, the item is up to date. ``change`` raises ``InvalidValue`` with a sentence for the operator if an item
      cannot be changed.
    - ``wanted`` returns the keys of other items to read with each item; ``change`` gets the stored items. It may raise
      ``InvalidValue`` like ``change``: call it through ``keys_wanted()``. By default there are none.
    - ``prepare`` is called with the items of a page, or with an item that was read again, in the same thread. It may
      write. A rehearsal does not call it.
    - ``of_claims``: the items are claims, which are in the companion of a table that the app does not own.

    A change may run again after a process was killed, and must return no actions for an item that it has already
    changed.
    """

    items: Condition
    change: Callable[[Item, Others], Sequence[Action]]
    wanted: Callable[[Item], Iterable[ItemKey]] = lambda item: ()
    prepare: Callable[[Sequence[Item], Write], object] = lambda items, write: None
    of_claims: bool = False

    def keys_wanted(self, item: Item) -> frozenset[ItemKey]:
        """Return the keys of other items to read with an item; none if a value fits none, which ``change`` reports."""
        try:
            return frozenset(self.wanted(item))
        except InvalidValue:
            return frozenset()


def digest_of(*parts: object) -> str:
    """Return a digest of the ``repr()`` of some values: snapshots, names and numbers."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Work:
    """One pass of a migration's operation over a table.

    ``app``, ``migration``, ``number`` (of the operation in its migration), ``phase`` (the name of the pass) and
    ``step`` (of several in one pass) identify the checkpoints. ``mark`` is a digest of the task: checkpoints with
    another mark start again. ``label`` describes the work in one line.
    """

    app: str
    migration: str
    number: int
    phase: str
    label: str
    task: Task
    step: int = 0
    mark: str = ""

    @property
    def name(self) -> str:
        """The name of the work, for messages."""
        return f"{self.app}.{self.migration}, operation {self.number} ({self.phase})"


@dataclass(frozen=True, slots=True)
class Options:
    """How work is run.

    - ``segments``: the parts of the table that are read in parallel, each in a thread, up to the table's number of
      connections. Resumed work keeps the number that it started with.
    - ``max_rcu``, ``max_wcu``: the maximum read and write units per second, of all threads together.
    - ``page``: the maximum number of items that one request reads.
    - ``lease``: the seconds after which a silent operator is treated as stopped.
    - ``repairs``: work with a damaged checkpoint starts from the beginning.
    - ``lease_now``: returns the lease of requests; it raises an error after another command has continued the change.
    """

    segments: int = 4
    max_rcu: float | None = None
    max_wcu: float | None = None
    page: int = 500
    lease: float = 60.0
    repairs: bool = False
    lease_now: Callable[[], Lease | None] = field(default=lambda: None, repr=False)
    progress: Callable[[Report], object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.segments <= MAX_SEGMENTS:
            raise ConfigurationError(f"Work has 1 to {MAX_SEGMENTS} segments, not {self.segments}.")
        if self.page < 1 or self.lease <= 0:
            raise ConfigurationError("A page has at least one item, and a lease lasts more than 0 seconds.")
        for name, units in (("max_rcu", self.max_rcu), ("max_wcu", self.max_wcu)):
            if units is not None and units <= 0:
                raise ConfigurationError(f"{name} is a number of units a second, more than 0, not {units}.")


@dataclass(frozen=True, slots=True)
class Report:
    """The progress or the result of work: table items read, items of the model, and their outcomes.

    ``expected`` is DynamoDB's own count of the table's items, which it updates about every six hours (AWS API
    reference, TableDescription). ``seconds_left`` is an estimate based on it, or ``None``. If ``before`` is set, an
    earlier run completed the work and nothing was read.
    """

    label: str
    scanned: int = 0
    matched: int = 0
    changed: int = 0
    failed: int = 0
    expected: int = 0
    seconds: float = 0.0
    seconds_left: float | None = None
    read_units: float = 0.0
    write_units: float = 0.0
    before: bool = False

    def __str__(self) -> str:
        """Return the result as one line."""
        if self.before:
            return f"{self.label}: completed in an earlier run."
        return f"{self.label}: {self.scanned:,} items read, {self.changed:,} changed in {self.seconds:.1f} s."
