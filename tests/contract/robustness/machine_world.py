"""The in-memory model that the stateful tests compare with the table, and helpers for their steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.table import Request, get_table
from tests.deep import examples

EXAMPLES = examples(5, 25, "MACHINE_EXAMPLES")
STEPS = 40
#: Making a failing sequence shorter takes minutes: ``MACHINE_SHRINK=1`` does.
PHASES = [Phase.generate, Phase.reuse, *([Phase.shrink] if "MACHINE_SHRINK" in os.environ else [])]
BUDGET = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)

Errors = set[type[Exception]]

AISLES = st.sampled_from("AB")
NAMES = st.sampled_from(["north", "south", "east"])
NUMBERS = st.integers(1, 3)
TITLES = st.sampled_from(["one", "One", "two", "x#y"])
ISBNS = st.sampled_from([None, "i", "j", "k#"])
SLOTS = st.sampled_from([None, 1, 2])
MARKS = st.sampled_from(["m", "n"])
CHOICES = st.integers(0, 1000)
FRESH = st.booleans()
OF_VOLUMES = {"title": TITLES, "isbn": ISBNS, "slot": SLOTS, "mark": MARKS}
#: Changes of a single attribute are more frequent: unchanged ones may conflict with another writer's change.
VALUES = st.one_of(
    *(st.fixed_dictionaries({name: values}) for name, values in OF_VOLUMES.items()),
    st.fixed_dictionaries({}, optional=OF_VOLUMES),
)
NEW = st.fixed_dictionaries({"aisle_id": AISLES, "number": NUMBERS, **OF_VOLUMES})


@dataclass(frozen=True)
class Kept:
    """A volume's expected state; ``batch`` is its deletion into the trash."""

    aisle_id: str
    number: int
    title: str
    isbn: str | None = None
    slot: int | None = None
    mark: str = "m"
    loans: int = 0
    batch: tuple[str, int] | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The identity of the volume."""
        return self.aisle_id, self.number

    @property
    def claims(self) -> set[Any]:
        """The values that no other one may have."""
        found = {("isbn", self.isbn), ("slot", self.aisle_id, self.slot)}
        return set() if self.batch else {claim for claim in found if claim[-1] is not None}


@dataclass
class Shelf:
    """An aisle's expected state."""

    name: str
    batch: tuple[str, int] | None = None


@dataclass
class World:
    """The expected contents of the table."""

    aisles: dict[str, Shelf] = field(default_factory=dict)
    volumes: dict[tuple[str, int], Kept] = field(default_factory=dict)

    def is_taken(self, wanted: Kept, *, apart_from: Iterable[tuple[str, int]] = ()) -> bool:
        """Return whether another volume has one of the values."""
        without = {*apart_from}
        return any(other.claims & wanted.claims for key, other in self.volumes.items() if key not in without)

    def put(self, volume: Kept) -> None:
        """Store a volume."""
        self.volumes[volume.key] = volume


def outcome(write: Callable[[], Any]) -> DynamoSingleError | None:
    """The error that a write ends in."""
    try:
        write()
    except DynamoSingleError as error:
        note(f"{type(error).__name__}: {error}")
        return error
    return None


def is_done(error: Exception | None, *, must: Errors, may: Errors | None = None) -> bool:
    """Return whether a write was executed; it fails exactly for the reasons in ``must``."""
    reasons = tuple({*must, *(may or ())})
    assert error is not None or not must, f"It was carried out, in spite of {must}."
    assert error is None or isinstance(error, reasons), f"{error!r} has no reason, but for {reasons}."
    return error is None


def stored_items() -> dict[Any, dict[str, Any]]:
    """Return the stored items."""
    return {key_of(item): item for item in get_table().send(Request("Scan", {"ConsistentRead": True}))["Items"]}


def is_stale(obj: Any) -> bool:
    """Return whether an object differs from the table."""
    return stored_items().get(key_of(obj._stored)) != obj._stored
