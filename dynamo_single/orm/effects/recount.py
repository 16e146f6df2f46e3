"""Recount the children of an object while other processes write, with an optimistic marker.

Every write that changes the number removes the marker in the same update (``counters``). A count is therefore correct
if the marker is still there at the write. This module does not depend on the reason for a recount.
"""

from __future__ import annotations

import time
import uuid
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import BeginAgain, ConditionFailed, StaleObject
from dynamo_single.orm.conditions.terms import Stored, join
from dynamo_single.orm.effects import counters
from dynamo_single.orm.effects.base import Subject
from dynamo_single.orm.effects.counters import ChildrenSnapshot, CountTarget
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ItemKey, Update, key_of, type_condition
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import bindings
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import pause
from dynamo_single.table.table import Table, get_table

#: How often to read the children after the first time, until two snapshots in a row are equal.
MAX_SNAPSHOTS: Final = 6
#: How often ``recount()`` sets its marker if other processes remove it.
MAX_MARKS: Final = 5


class CountMark(Struct, frozen=True):
    """A marker, the first snapshot after it, and the time of the snapshot, in seconds of the monotonic clock."""

    text: str
    at: float
    seen: ChildrenSnapshot


class RecountResult(Struct, frozen=True):
    """The numbers of an item before and after a recount."""

    before: int
    number: int


def mark_update(key: ItemKey, item_type: str) -> tuple[str, Update]:
    """Return the text of a new marker, and the update that sets it on an item of an unchanged type."""
    text = uuid.uuid4().hex
    return text, Update(
        key, set={names.COUNTING: {"S": text}}, condition=join((ITEM_EXISTS, type_condition(item_type)))
    )


def number_update(key: ItemKey, item_type: str, mark: CountMark, name: str, number: int | None) -> Update:
    """Return the update that sets or removes a number and removes the marker, conditional on the marker."""
    condition = join((type_condition(item_type), Stored(names.COUNTING, "=", ({"S": mark.text},))))
    if number is None:
        return Update(key, remove=(name, names.COUNTING), condition=condition)
    return Update(key, set={name: {"N": str(number)}}, remove=(names.COUNTING,), condition=condition)


async def new_mark(text: str, found: CountTarget, pk: object) -> CountMark:
    """Return a marker that was just set, with the first snapshot."""
    return CountMark(text, time.monotonic(), await found.snapshot(pk))


async def stable_count(found: CountTarget, pk: object, mark: CountMark) -> int | None:
    """Return the number in two equal snapshots in a row; ``None`` if ``MAX_SNAPSHOTS`` after the first all differ.

    An object that moves within the key, for example with a new name, does not remove the marker, and a Query of several
    pages may skip it or return it twice. With an index there is a second between two snapshots.
    """
    at, seen, lag = mark.at, mark.seen, found.index_lag()
    for _ in range(MAX_SNAPSHOTS):
        await pause(max(0.0, at + lag - time.monotonic()))
        at, before, seen = time.monotonic(), seen, await found.snapshot(pk)
        if seen == before:
            return seen.number
    return None


async def recount(table: Table, key: ItemKey, found: CountTarget, pk: object) -> RecountResult | None:
    """Recount for the object with a ``key`` and a ``pk``, and write the number: two UpdateItems and two Queries.

    If another process removes the marker, the recount starts again, ``MAX_MARKS`` times in all. Returns ``None`` if
    other processes keep writing or the item is gone. The number is unchanged then; a marker may be left, which has no
    effect.
    """
    item_type = found.model._options.item_type
    for _ in range(MAX_MARKS):
        lease = bindings.binding_of(found.model).lease
        text, update = mark_update(key, item_type)
        try:
            item = (await table.ask_patiently(compile_action(update, returns_item=True)))["Attributes"]
        except ConditionFailed:
            return None
        mark = await new_mark(text, found, pk)
        number = await stable_count(found, pk, mark)
        if number is None:
            return None
        is_absent = number == 0 and found.name not in item
        try:
            written = number_update(key, item_type, mark, found.name, None if is_absent else number)
            await table.ask_patiently(replace(compile_action(written), lease=lease))
        except BeginAgain:
            knowledge.stale()
            continue
        except ConditionFailed:
            continue
        return RecountResult(found.held(item), number)
    return None


async def count_earlier_children(obj: DynamoModel, pending: Block | None) -> None:
    """Count the children that exist before their parent (fixtures): a Query for each counter, and ``recount()``.

    In a block it adds an update that is conditional on the number as read. Raises ``StaleObject`` if other processes
    keep writing.
    """
    model = type(obj)
    for each in counters.own_counters(model):
        number = await each.count(obj.pk)
        if number and pending is not None:
            await counters.send_count(obj, each.name, number, pending)
        elif number:
            table = get_table(model._options.alias)
            counted = await recount(table, key_of(obj._stored), each, obj.pk)
            if counted is None:
                raise StaleObject(
                    f"{Subject(obj).name} is stored, but {each.name} is not counted yet: other processes keep "
                    "changing the counted objects. Load it again at a quieter time, or run manage.py "
                    "dynamo_rebuild."
                )
            counters.set_known_count(obj, each.name, counted.number)
