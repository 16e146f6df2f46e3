"""Changing how many shards a model has: an entry of the schedule, recorded in the table for a time to come.

An entry begins after every process has read it, so that the schedule of an item's time always determines its shard.
This module does not depend on commands.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.rollout.knowledge import LEAD, change, record, server_time, state_of
from dynamo_single.orm.rollout.schedules import Divided
from dynamo_single.orm.rollout.states import TableState, refuse_foreign
from dynamo_single.orm.schema.keys.shards import Entry, Schedule, seconds, time_text
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table import names
from dynamo_single.table.flow import run
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table, get_table

#: The start of the first entry, which also covers all earlier times.
_BEGINNING: Final = 0
#: Entries begin at whole minutes.
MINUTE: Final = 60


def earliest_start(table: Table | None = None) -> datetime:
    """Return when an entry that is recorded now can begin: the first whole minute after everybody knows it."""
    return datetime.fromtimestamp(math.ceil((server_time(table or get_table()) + LEAD) / MINUTE) * MINUTE, tz=UTC)


def grow(table: Table, model: ModelLayout | Divided, shards: int, since: datetime) -> Schedule:
    """Let a model have another number of shards from a time on: a GetItem and a conditional PutItem.

    Older items are not moved. Raises ``NotSupported`` for a time that is too near, because items would have to move,
    and ``InvalidValue`` for an entry that does not follow the existing ones.
    """
    begins, divided = seconds(since), _divided(model)
    wanted = entry_of(divided, begins, shards)
    if begins < server_time(table) + LEAD:
        raise NotSupported(
            f"Cannot use {shards} shards for {divided.label} starting at {time_text(begins)}: processes read the "
            "number of shards only twice a minute, and would write items into the former shards until then. Nothing "
            f"was written. The earliest time is {time_text(seconds(earliest_start(table)))}."
        )

    def grown(found: Schedule | None) -> Schedule:
        before = found or Schedule()
        if is_same(before.entries[-1], wanted):
            raise InvalidValue(
                f"{divided.label} has {shards} shards from {time_text(before.entries[-1].since)} on already."
            )
        if before.entries[-1].since >= begins:
            raise InvalidValue(
                f"{divided.label} has {before.entries[-1].shards} shards from "
                f"{time_text(before.entries[-1].since)} on: a "
                "further entry begins later than that."
            )
        return Schedule((*before.entries, wanted))

    return record(table, divided, grown)


def record_first(table: Table, model: ModelLayout | Divided, shards: int, *, is_empty: bool = False) -> Schedule:
    """Let a model without items have its shards at once: a Query, or a Scan if its partitions have values in them.

    A caller that has called ``has_items()`` passes ``is_empty``, so that it is not called again. Raises
    ``NotSupported`` if there is a record, which the first item writes.
    """
    divided = _divided(model)
    wanted = Schedule((entry_of(divided, _BEGINNING, shards),))

    def first(found: Schedule | None) -> Schedule:
        if found not in (None, wanted):
            raise NotSupported(
                f"{table.name} already records shards for {divided.label}: {found or wanted}. Its items use this "
                "number. Nothing was written. Set a time in the future for the new number."
            )
        return wanted

    if not is_empty and has_items(table, divided):
        raise NotSupported(
            f"{table.name} holds items of {divided.label}, in one shard: {shards} shards cannot be the first that it "
            "has. Let the number change at a time to come."
        )
    return record(table, divided, first)


def entry_of(divided: Divided, since: int, shards: int) -> Entry:
    """Return the entry of a number of shards: it hashes the value as the primary key of now folds it."""
    return Entry(since, shards, divided.sharding.fold if shards > 1 else "")


def is_same(one: Entry, other: Entry) -> bool:
    """Return whether two entries of different times put items into the same places."""
    return (one.shards, one.fold) == (other.shards, other.fold)


def _divided(model: ModelLayout | Divided) -> Divided:
    found = model if isinstance(model, Divided) else Divided.of(model)
    assert found is not None  # noqa: S101 - who asks has looked
    return found


def has_items(table: Table, divided: Divided) -> bool:
    """Return whether a table has items of a model in one shard: a Query, or a Scan if its partitions contain values."""
    expression: dict[str, Any] = {
        "FilterExpression": "#type = :type",
        "ExpressionAttributeNames": {"#type": names.ITEM_TYPE},
        "ExpressionAttributeValues": {":type": {"S": divided.item_type}},
        "ConsistentRead": True,
    }
    partition = divided.partition
    operation = "Scan" if partition.parts else "Query"
    if not partition.parts:
        expression["KeyConditionExpression"] = "#pk = :pk"
        expression["ExpressionAttributeNames"]["#pk"] = names.PARTITION_KEY
        expression["ExpressionAttributeValues"][":pk"] = {"S": partition.head}
    return any(page["Items"] for page in table.pages(Request(operation, expression)))


# Whose table it is: a mark in the table's state, so that no other project's commands take its items for theirs.


def check_owner(table: Table) -> None:
    """Raise ``ForeignTable`` if the table belongs to another project: one GetItem if the project has a name.

    Any project can use a table without an owner.
    """
    if table.settings.owner:
        refuse_foreign(table.settings, run(state_of(table)))


def claim_table(table: Table) -> bool:
    """Mark the table as this project's; return whether it wrote: a GetItem, and a PutItem without an existing marker.

    Raises ``ForeignTable`` as ``check_owner()``. A project without a name does not write a marker or send a request.
    """
    owner = table.settings.owner
    if not owner or not table.settings.keeps_own_items:
        return False
    state = run(state_of(table))
    refuse_foreign(table.settings, state)
    if state.owner == owner:
        return False

    def marked(found: TableState) -> TableState:
        refuse_foreign(table.settings, found)
        return replace(found, owner=owner)

    change(table, marked)
    return True
