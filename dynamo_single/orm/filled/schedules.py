"""What a table's state says of the shards of a model: read for the model, and written, as values. It sends nothing."""

from __future__ import annotations

from msgspec.structs import replace

from dynamo_single.exceptions import FormNotApplied, UnexpectedItem
from dynamo_single.orm.filled.states import StoredShards, TableState
from dynamo_single.orm.schema.encoding.shards import SCHEME, Schedule, Sharding
from dynamo_single.orm.schema.layout import ModelLayout


def schedule_in(state: TableState, layout: ModelLayout) -> Schedule | None:
    """The schedule that is recorded for a model; raises ``FormNotApplied`` for items that are divided otherwise."""
    recorded, sharding = state.shards.get(layout.item_type), layout.sharding
    if recorded is None or sharding is None:
        return None
    if recorded.scheme != SCHEME:
        raise UnexpectedItem(
            f"The shards of {layout.label} are recorded in a way of another release of dynamo_single ("
            f"{recorded.scheme}, and this one knows {SCHEME}). Use that release."
        )
    divided = _stored(layout, sharding)
    if divided != (recorded.attribute, recorded.at):
        raise FormNotApplied(
            f"{layout.label} divides its items by {divided[0]} and {divided[1]}, and they are stored by "
            f"{recorded.attribute} and {recorded.at}. Nothing was read or written. Declare the shards as before."
        )
    return Schedule(recorded.entries)


def refuse_divided(state: TableState, layout: ModelLayout) -> None:
    """Raise ``FormNotApplied`` for a model without sharded keys whose items are in several shards, or will be.

    One shard is stored as a key that is not sharded, so that older code can run until the number changes.
    """
    recorded = state.shards.get(layout.item_type)
    if recorded is None or layout.sharding is not None or all(each.shards == 1 for each in recorded.entries):
        return
    raise FormNotApplied(
        f"{layout.label}: the table has its items divided into shards ({Schedule(recorded.entries)}), and none of the "
        "model's keys is sharded: this code would look into one of them. Nothing was read or written. It is older than "
        "the table: run the code whose class Keys has models.Shards."
    )


def with_schedule(state: TableState, layout: ModelLayout, schedule: Schedule) -> TableState:
    """The state with a sharded model's schedule; the same one, if it says so already."""
    sharding = layout.sharding
    assert sharding is not None  # noqa: S101 - who records has a sharded model
    shards = {**state.shards, layout.item_type: StoredShards(*_stored(layout, sharding), schedule.entries)}
    return state if shards == state.shards else replace(state, shards=shards)


def _stored(layout: ModelLayout, sharding: Sharding) -> tuple[str, str]:
    return layout.attributes[sharding.attribute].stored, layout.attributes[sharding.at].stored
