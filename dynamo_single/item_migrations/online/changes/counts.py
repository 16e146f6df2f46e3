"""Numbers that follow from other objects, written into items: each is counted again, by a Query for each item.

The one change that asks the table: no key names what it has to do with. What it writes is held to the number that the
item had while it was counted, as whoever creates or deletes one of them adds to that in its own transaction.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from dynamo_single.exceptions import ConfigurationError, InvalidValue, KeyNotFilled, NoAccessPattern
from dynamo_single.item_migrations.online.changes.rewriting import rewriting, with_value
from dynamo_single.item_migrations.online.work import Others, Task, of_type
from dynamo_single.orm.effects import child_counters
from dynamo_single.orm.items.serialization import pk_of
from dynamo_single.orm.reading import single
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import Action, Item, ItemKey, key_of
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.flow import pause, run
from dynamo_single.table.table import get_table

#: How many looks in a row have to be alike: at an item that nobody seems to write, and at one that was another between
#: two of them. That one object comes and goes, and another comes, can make two alike that are wrong, and hardly four.
ALIKE: Final = 2
ALIKE_IF_BUSY: Final = 4
#: How often an item is looked at until they are.
LOOKS: Final = 12


class Counting(Struct, frozen=True):
    """What is counted: the model that has the number under a physical ``name``, the ``children``, and which of them."""

    model: type[DynamoModel]
    name: str
    children: Any
    condition: Any = None


class Look(Struct, frozen=True):
    """Which children an item had, and the item itself after that, ``None`` if it was gone; ``at`` is the clock's."""

    seen: child_counters.Seen
    item: Item | None
    at: float


def counted_items(item_type: str, counting: Callable[[], Counting | None]) -> Task:
    """Write into each item of a type how many live objects refer to it; nothing where ``counting`` gives ``None``.

    Whoever writes such an object adds to the number in the same transaction. So objects and number are read twice, and
    where either was another the second time until they are the same four times in a row: a Query for each megabyte of
    what is counted and a GetItem each. Where an index counts, a second lies between two readings, which all items of a
    page wait for together. An item that is never the same, in twelve readings, is a failure.
    """
    ahead = threading.local()

    def look_ahead(items: Sequence[Item]) -> None:
        """The first look at each item of a page."""
        found = counting()
        if found is not None:
            ahead.looks = {key_of(item): _look(found, item) for item in items if not has_expired(item)}

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        found = counting()
        if found is None or has_expired(item):
            return ()
        looks: dict[ItemKey, Look] = ahead.__dict__.get("looks", {})
        look, lag = looks.pop(key_of(item), None) or _look(found, item), child_counters.lag(found.children)
        alike, is_busy = 1, look.item is not None and _held(found, look.item) != _held(found, item)
        for _ in range(LOOKS - 1):
            run(pause(max(0.0, look.at + lag - time.monotonic())))
            before, look = look, _look(found, item)
            if look.item is None or before.item is None:
                return ()  # it is gone
            if before.seen == look.seen and _held(found, before.item) == _held(found, look.item):
                alike += 1
            else:
                alike, is_busy = 1, True
            if alike == (ALIKE_IF_BUSY if is_busy else ALIKE):
                return _counted(found, look.item, look.seen.number)
        raise InvalidValue(
            f"It was counted {LOOKS} times, and others wrote what it counts meanwhile. Run this again when fewer do."
        )

    return Task(of_type(item_type), change, ahead=look_ahead)


def _counted(found: Counting, item: Item, number: int) -> tuple[Action, ...]:
    """The actions that write another number into an item than it has."""
    if number == _held(found, item):
        return ()
    return rewriting(item, with_value(item, found.name, {"N": str(number)}), (found.name,))


def _look(found: Counting, item: Item) -> Look:
    """Which children an item has, and after that the item as it is."""
    try:
        seen = run(child_counters.seen(found.children, _pk(found.model, item), found.condition))
    except (KeyNotFilled, NoAccessPattern) as error:
        raise ConfigurationError(f"{found.children.model._meta.label} cannot be counted yet. {error}") from error
    fresh = run(single.get_item(get_table(found.model._options.alias), key_of(item)))
    return Look(seen, fresh, time.monotonic())


def _held(found: Counting, item: Item) -> int:
    return int(item.get(found.name, {"N": "0"})["N"])


def _pk(model: Any, item: Item) -> object:
    """The ``pk`` of the object that a model's item is."""
    attributes = {name: model._meta.get_field(name).attribute for name in model._identity}
    if lacking := [each.attr_name for each in attributes.values() if each.attr_name not in item]:
        raise InvalidValue(f"{', '.join(lacking)} is missing, and is in the primary key of {model._meta.label}.")
    stored = {name: each.from_attribute_value(dict(item[each.attr_name])) for name, each in attributes.items()}
    return pk_of(model, stored)
