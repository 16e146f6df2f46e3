"""The shards of a model in a table's state, read and written as values, without requests."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import FormNotApplied, UnexpectedItem
from dynamo_single.orm.rollout.states import StoredShards, TableState
from dynamo_single.orm.schema.keys.shards import Schedule, Sharding
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.layout import ModelLayout


class Divided(Struct, frozen=True):
    """A sharded model, as declared now or in a migration: its label, its items, and their division.

    ``attribute`` and ``at`` are physical names, and ``sharding`` contains the model's names; ``partition`` belongs to
    the primary key.
    """

    label: str
    item_type: str
    attribute: str
    at: str
    partition: Template
    sharding: Sharding

    @classmethod
    def of(cls, layout: ModelLayout) -> Divided | None:
        """A model as it is declared; ``None`` if it has no sharded key."""
        sharding = layout.sharding
        if sharding is None:
            return None
        attribute, at = (layout.attributes[name].stored for name in (sharding.attribute, sharding.at))
        return cls(layout.label, layout.item_type, attribute, at, layout.primary.partition, sharding)


def schedule_in(state: TableState, divided: Divided | None) -> Schedule | None:
    """The schedule that is recorded for a model; raises ``FormNotApplied`` for items that are divided otherwise."""
    recorded = None if divided is None else state.shards.get(divided.item_type)
    if recorded is None or divided is None:
        return None
    found = known_schedule(recorded, divided.label)
    if (divided.attribute, divided.at) != (recorded.attribute, recorded.at):
        raise FormNotApplied(
            f"{divided.label} divides its items by {divided.attribute} and {divided.at}, and they are stored by "
            f"{recorded.attribute} and {recorded.at}. Nothing was read or written. Declare the shards as before."
        )
    if not all(divided.sharding.can_fold(entry.fold) for entry in found.entries):
        raise FormNotApplied(
            f"{divided.label} has {found.fold!r} of {divided.attribute} hashed for its shards, and its primary key "
            "does not fold it so. Nothing was read or written. Declare the primary key as before."
        )
    return found


def known_schedule(recorded: StoredShards, label: str) -> Schedule:
    """Return a recorded schedule; raise ``UnexpectedItem`` for a schedule that only another release can read."""
    found = Schedule(recorded.entries)
    if recorded.scheme != found.scheme:
        raise UnexpectedItem(
            f"The shards of {label} are recorded in a way of another release of dynamo_single (scheme "
            f"{recorded.scheme}; this release would write scheme {found.scheme}). Nothing was read or written. Use "
            "that release."
        )
    return found


def refuse_divided(state: TableState, layout: ModelLayout) -> None:
    """Raise ``FormNotApplied`` for a model without sharded keys whose items are in several shards, or will be.

    One shard is stored as a key that is not sharded, so that older code can run until the number changes.
    """
    recorded = state.shards.get(layout.item_type)
    if recorded is None or layout.sharding is not None or all(each.shards == 1 for each in recorded.entries):
        return
    raise FormNotApplied(
        f"Cannot use {layout.label}: its items are divided into shards ({Schedule(recorded.entries)}), but the model "
        "has no sharded key, so this code would use only one shard. Nothing was read or written. Deploy the code whose "
        "class Keys has models.Shards."
    )


def with_schedule(state: TableState, divided: Divided, schedule: Schedule) -> TableState:
    """Return the state with a sharded model's schedule; return the same state if it contains the schedule."""
    recorded = StoredShards(divided.attribute, divided.at, schedule.entries, schedule.scheme)
    shards = {**state.shards, divided.item_type: recorded}
    return state if shards == state.shards else replace(state, shards=shards)


def without_schedule(state: TableState, item_type: str) -> TableState:
    """Return the state without the schedule of an item type; return the same state if it has no such schedule."""
    if item_type not in state.shards:
        return state
    return replace(state, shards={name: each for name, each in state.shards.items() if name != item_type})
