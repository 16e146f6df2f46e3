"""Numbers that follow from other objects, written into items: each is counted again, by a Query for each item.

The one change that asks the table: no key names what it has to do with. What it writes is held to the number that the
item had before it was counted, as whoever creates or deletes one of them adds to that in its own transaction.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
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

#: After how many seconds an index shows a write: "within a fraction of a second, under normal conditions", AWS
#: developer guide, "Data synchronization between tables and global secondary indexes".
LAG: Final = 1.0
#: How often an item is counted until two in a row say the same.
LOOKS: Final = 6


class Counting(Struct, frozen=True):
    """What is counted: the model that has the number under a physical ``name``, the ``children``, and which of them."""

    model: type[DynamoModel]
    name: str
    children: Any
    condition: Any = None


def counted_items(item_type: str, counting: Callable[[], Counting | None]) -> Task:
    """Write into each item of a type how many live objects refer to it; nothing where ``counting`` gives ``None``.

    Whoever writes such an object adds to the number in the same transaction, so that what is missing from it stays the
    same while it changes. It is looked for twice, as a look may see an object whose addition it has not seen, or the
    other way round: one COUNT Query for each megabyte of what is counted, and the same again with two GetItems. Where
    an index counts, the second look is a second after the first one, which all items of a page get before. Two that
    differ are followed by others; what says something else each time is a failure of the item.
    """
    first = threading.local()

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        found = counting()
        if found is None or has_expired(item):
            return ()
        lag = LAG if _is_by_index(found) else 0.0
        seen_at, missing = first.looks.pop(key_of(item))
        for _ in range(LOOKS):
            run(pause(max(0.0, seen_at + lag - time.monotonic())))
            seen_at, before, (fresh, again) = time.monotonic(), missing, _look(found, item)
            if fresh is None:
                return ()  # it is gone
            missing = again
            if missing is not None and missing == before:
                number = {"N": str(_held(found, fresh) + missing)}
                return rewriting(fresh, with_value(fresh, found.name, number), (found.name,)) if missing else ()
        raise InvalidValue(
            f"It was counted {LOOKS} times, and others wrote what it counts each time. Run this again when fewer do."
        )

    def looked_at(item: Item) -> tuple[ItemKey, ...]:
        """The first look, which this is asked for before: at each item of a page, and at one that was read again."""
        found = counting()
        if found is not None and not has_expired(item):
            missing = _number(found, item) - _held(found, item)
            first.__dict__.setdefault("looks", {})[key_of(item)] = time.monotonic(), missing
        return ()

    return Task(of_type(item_type), change, wanted=looked_at)


def _look(found: Counting, item: Item) -> tuple[Item | None, int | None]:
    """The item as it is now, and what its number lacks; ``None`` if the number changed meanwhile."""
    table, key = get_table(found.model._options.alias), key_of(item)
    before = run(single.get_item(table, key))
    number = _number(found, item)
    after = run(single.get_item(table, key))
    if before is None or after is None:
        return None, None
    held = _held(found, after)
    return after, number - held if held == _held(found, before) else None


def _is_by_index(found: Counting) -> bool:
    """Whether an index answers; without one what was written just before is read."""
    try:
        return child_counters.is_by_index(found.children)
    except (KeyNotFilled, NoAccessPattern):
        return False  # counting says so


def _held(found: Counting, item: Item) -> int:
    return int(item.get(found.name, {"N": "0"})["N"])


def _number(found: Counting, item: Item) -> int:
    try:
        return run(child_counters.count(found.children, _pk(found.model, item), found.condition))
    except (KeyNotFilled, NoAccessPattern) as error:
        raise ConfigurationError(f"{found.children.model._meta.label} cannot be counted yet. {error}") from error


def _pk(model: Any, item: Item) -> object:
    """The ``pk`` of the object that a model's item is."""
    attributes = {name: model._meta.get_field(name).attribute for name in model._identity}
    if lacking := [each.attr_name for each in attributes.values() if each.attr_name not in item]:
        raise InvalidValue(f"{', '.join(lacking)} is missing, and is in the primary key of {model._meta.label}.")
    stored = {name: each.from_attribute_value(dict(item[each.attr_name])) for name, each in attributes.items()}
    return pk_of(model, stored)
