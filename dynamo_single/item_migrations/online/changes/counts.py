"""Numbers that follow from other objects, written into items: each is counted again, by a Query for each item.

The one change that asks the table, as no key names what it has to do with. Before that it writes a mark, which whoever
creates or deletes one of them takes away in its own transaction.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from dynamo_single.exceptions import (
    ConditionFailed,
    ConfigurationError,
    InvalidValue,
    KeyNotFilled,
    NoAccessPattern,
)
from dynamo_single.item_migrations.online.changes.rewriting import rewriting, with_value
from dynamo_single.item_migrations.online.work import Others, Task, Write, of_type
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.effects import child_counters
from dynamo_single.orm.items.serialization import pk_of
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Item, ItemKey, Update, key_of
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import pause, run


class Counting(Struct, frozen=True):
    """What is counted: the model that has the number under a physical ``name``, the ``children``, and which of them."""

    model: type[DynamoModel]
    name: str
    children: Any
    condition: Any = None


class Mark(Struct, frozen=True):
    """What an item was marked by, and when, in seconds of the monotonic clock."""

    text: str
    at: float


def counted_items(item_type: str, counting: Callable[[], Counting | None]) -> Task:
    """Write into each item of a type how many live objects refer to it; nothing where ``counting`` gives ``None``.

    Whoever writes such an object adds to the number in the same transaction, and takes the item's mark away. So an item
    is marked, counted, and given the number while the mark is there: two UpdateItems, and a COUNT Query for each
    megabyte of what is counted. Where an index counts, a second lies between the mark and the Query, which all items of
    a page wait for together. A mark that is gone is another writer's doing: the item is marked and counted again.
    """
    ahead = threading.local()

    def mark(items: Sequence[Item], write: Write) -> None:
        """Mark the items of a page; one that is gone has no mark."""
        if counting() is None:
            return
        marks: dict[ItemKey, Mark | None] = ahead.__dict__.setdefault("marks", {})
        for item in items:
            if not has_expired(item):
                marks[key_of(item)] = _marked(item, item_type, write)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        found, key = counting(), key_of(item)
        if found is None or has_expired(item):
            return ()
        marks: dict[ItemKey, Mark | None] = ahead.__dict__.get("marks", {})
        if key not in marks:  # it is a rehearsal
            number = _number(found, item)
            after = with_value(item, found.name, {"N": str(number)})
            return () if number == _held(found, item) else rewriting(item, after, (found.name,))
        mark = marks.pop(key)
        if mark is None:
            return ()
        run(pause(max(0.0, mark.at + _lag(found) - time.monotonic())))
        number = _number(found, item)
        condition = join((of_type(item_type), Stored(names.COUNTING, "=", ({"S": mark.text},))))
        if number == 0:  # it has no number, as if nobody had ever referred to it
            return (Update(key, remove=(found.name, names.COUNTING), condition=condition),)
        return (Update(key, set={found.name: {"N": str(number)}}, remove=(names.COUNTING,), condition=condition),)

    return Task(of_type(item_type), change, ahead=mark)


def _marked(item: Item, item_type: str, write: Write) -> Mark | None:
    text = uuid.uuid4().hex
    condition = join((ITEM_EXISTS, of_type(item_type)))
    try:
        write([Update(key_of(item), set={names.COUNTING: {"S": text}}, condition=condition)])
    except ConditionFailed:
        return None
    return Mark(text, time.monotonic())


def _lag(found: Counting) -> float:
    try:
        return child_counters.lag(found.children)
    except (KeyNotFilled, NoAccessPattern):
        return 0.0  # counting says so


def _number(found: Counting, item: Item) -> int:
    try:
        return run(child_counters.count(found.children, _pk(found.model, item), found.condition))
    except (KeyNotFilled, NoAccessPattern) as error:
        raise ConfigurationError(f"{found.children.model._meta.label} cannot be counted yet. {error}") from error


def _held(found: Counting, item: Item) -> int:
    return int(item.get(found.name, {"N": "0"})["N"])


def _pk(model: Any, item: Item) -> object:
    """The ``pk`` of the object that a model's item is."""
    attributes = {name: model._meta.get_field(name).attribute for name in model._identity}
    if lacking := [each.attr_name for each in attributes.values() if each.attr_name not in item]:
        raise InvalidValue(f"{', '.join(lacking)} is missing, and is in the primary key of {model._meta.label}.")
    stored = {name: each.from_attribute_value(dict(item[each.attr_name])) for name, each in attributes.items()}
    return pk_of(model, stored)
