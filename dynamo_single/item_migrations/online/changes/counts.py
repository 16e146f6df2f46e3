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
from dynamo_single.orm.reading import single
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import Action, Item, ItemKey, key_of
from dynamo_single.orm.schema.fields.fields import IdentityField
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.flow import pause, run
from dynamo_single.table.table import get_table

#: After how many seconds an index shows a write: "within a fraction of a second, under normal conditions", AWS
#: developer guide, "Data synchronization between tables and global secondary indexes".
LAG: Final = 2.0


class Counting(Struct, frozen=True):
    """What is counted: the model that has the number under a physical ``name``, the ``children``, and which of them."""

    model: type[DynamoModel]
    name: str
    children: Any
    condition: Any = None


def counted_items(item_type: str, counting: Callable[[], Counting | None]) -> Task:
    """Write into each item of a type how many live objects refer to it, if it has another number.

    One COUNT Query for each item, in the trash too, and for each megabyte of what is counted; a GetItem where the
    number is right. An index does not show at once what is written, so that the items of a page are counted two seconds
    after they were read, at the earliest: what is written later changes the number that they had. ``counting`` gives
    ``None`` where nothing is to be counted any more.
    """
    read = threading.local()

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        found = counting()
        if found is None or has_expired(item):
            return ()
        wait = read.at + LAG - time.monotonic()
        if wait > 0:
            run(pause(wait))
        number, held = _number(found, item), _held(found, item)
        if number != held:
            return rewriting(item, with_value(item, found.name, {"N": str(number)}), (found.name,))
        fresh = run(single.get_item(get_table(found.model._options.alias), key_of(item)))
        if fresh is not None and _held(found, fresh) != held:
            raise InvalidValue("What it counts was written by others each time that it was counted.")
        return ()

    def noted(item: Item) -> tuple[ItemKey, ...]:
        """It is asked for after each page, and after an item that was read again."""
        read.at = time.monotonic()
        return ()

    return Task(of_type(item_type), change, wanted=noted)


def _held(found: Counting, item: Item) -> int:
    return int(item.get(found.name, {"N": "0"})["N"])


def _number(found: Counting, item: Item) -> int:
    try:
        return run(child_counters.count(found.children, _pk(found.model, item), found.condition))
    except (KeyNotFilled, NoAccessPattern) as error:
        raise ConfigurationError(f"{found.children.model._meta.label} cannot be counted yet. {error}") from error


def _pk(model: Any, item: Item) -> object:
    """The ``pk`` of the object that a model's item is."""
    attributes = [model._meta.get_field(name).attribute for name in model._identity]
    if lacking := [each.attr_name for each in attributes if each.attr_name not in item]:
        raise InvalidValue(f"{', '.join(lacking)} is missing, and is in the primary key of {model._meta.label}.")
    values = [each.from_attribute_value(dict(item[each.attr_name])) for each in attributes]
    field = model._meta.pk
    return field.joined(values) if isinstance(field, IdentityField) else values[0]
