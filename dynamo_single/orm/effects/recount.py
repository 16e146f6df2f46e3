"""Counting again what an object's number stands for, while others write: under a mark that they take away.

Whoever changes such a number removes the mark in the same update (``counters``). So a number that is written on
the condition that the mark is as it was set is that of what was counted after it. This module must not know why a
number is to be counted.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, Final

from msgspec import Struct

from dynamo_single.exceptions import ConditionFailed, StaleObject
from dynamo_single.orm.conditions.terms import Stored, join
from dynamo_single.orm.effects import counters
from dynamo_single.orm.effects.base import Subject
from dynamo_single.orm.effects.counters import Seen
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Item, ItemKey, Update, key_of, of_type
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import pause
from dynamo_single.table.table import Table, get_table

#: How often an item is counted after the first time, until two times in a row see the same.
LOOKS: Final = 6
#: How often ``recount()`` sets its mark again where another writer has taken it away.
MARKS: Final = 5


class Counting(Struct, frozen=True):
    """What is counted: the model that has the number under a physical ``name``, the ``children``, and which of them."""

    model: type[DynamoModel]
    name: str
    children: Any
    condition: Any = None

    def held(self, item: Item) -> int:
        """The number that an item has."""
        return int(item.get(self.name, {"N": "0"})["N"])


class Mark(Struct, frozen=True):
    """What an item was marked by; what was counted after that, and when, in seconds of the monotonic clock."""

    text: str
    at: float
    seen: Seen


class Recounted(Struct, frozen=True):
    """The number that an item had under the mark, and the one that was counted, which it has now."""

    before: int
    number: int


def marking(key: ItemKey, item_type: str) -> tuple[str, Update]:
    """The text of a new mark, and the update that sets it on an item which is still of its type."""
    text = uuid.uuid4().hex
    return text, Update(key, set={names.COUNTING: {"S": text}}, condition=join((ITEM_EXISTS, of_type(item_type))))


def setting(key: ItemKey, item_type: str, mark: Mark, name: str, number: int | None) -> Update:
    """The update that writes a number, or takes it away, and removes the mark; it holds while the mark is there."""
    condition = join((of_type(item_type), Stored(names.COUNTING, "=", ({"S": mark.text},))))
    if number is None:
        return Update(key, remove=(name, names.COUNTING), condition=condition)
    return Update(key, set={name: {"N": str(number)}}, remove=(names.COUNTING,), condition=condition)


async def marked(text: str, found: Counting, pk: object) -> Mark:
    """A mark that was just set, with the first look."""
    return Mark(text, time.monotonic(), await look(found, pk))


async def look(found: Counting, pk: object) -> Seen:
    """Which live objects are counted by the object with a ``pk``: a Query for each megabyte of them."""
    return await counters.seen(found.children, pk, found.condition)


async def settled(found: Counting, pk: object, mark: Mark) -> int | None:
    """How many two looks in a row have seen, the one at the mark being the first; ``None`` after ``LOOKS`` more.

    Objects that come to another place in the key which counts them, as one that is renamed may, leave the mark, and are
    passed by a Query of several pages, or met twice. Where an index counts, a second lies between two looks.
    """
    at, seen, lag = mark.at, mark.seen, counters.lag(found.children)
    for _ in range(LOOKS):
        await pause(max(0.0, at + lag - time.monotonic()))
        at, before, seen = time.monotonic(), seen, await look(found, pk)
        if seen == before:
            return seen.number
    return None


async def recount(table: Table, key: ItemKey, found: Counting, pk: object) -> Recounted | None:
    """Count again for the object with a ``key`` and a ``pk``, and write the number: two UpdateItems and two Queries.

    Where another writer takes the mark away it begins again, ``MARKS`` times in all. ``None`` if others went on
    writing, or the item is gone: nothing was written then, but perhaps a mark, which means nothing to anybody else.
    """
    item_type = found.model._options.item_type
    for _ in range(MARKS):
        text, update = marking(key, item_type)
        try:
            item = (await table.ask_patiently(compile_action(update)))["Attributes"]
        except ConditionFailed:
            return None
        mark = await marked(text, found, pk)
        number = await settled(found, pk, mark)
        if number is None:
            return None
        is_absent = number == 0 and found.name not in item
        try:
            written = setting(key, item_type, mark, found.name, None if is_absent else number)
            await table.ask_patiently(compile_action(written))
        except ConditionFailed:
            continue
        return Recounted(found.held(item), number)
    return None


async def catch_up(obj: DynamoModel, pending: Block | None) -> None:
    """Count the children that were stored before their parent: a Query for each counter, and ``recount()``.

    In a block it is an update that is held to the number as it was read. ``StaleObject`` where others go on writing.
    """
    model = type(obj)
    for name, children, condition in counters.counters_on(model):
        number = await counters.count(children, obj.pk, condition)
        if number and pending is not None:
            await counters.send_count(obj, name, number, pending)
        elif number:
            table = get_table(model._options.alias)
            counted = await recount(table, key_of(obj._stored), Counting(model, name, children, condition), obj.pk)
            if counted is None:
                raise StaleObject(
                    f"{Subject(obj).name} is stored, and {name} is not counted yet: others write what it counts all "
                    "the time. Load it again at a quieter time, or run manage.py dynamo_rebuild."
                )
            counters.know(obj, name, counted.number)
