"""Count the children of items with Queries for each item.

This is the only change that reads further items itself. It first sets a marker. Any process that creates or deletes a
child removes the marker in the same transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dynamo_single.evolution.backfill.rewrite import rewrite_actions, with_value
from dynamo_single.evolution.backfill.work import Others, Task, Write
from dynamo_single.exceptions import (
    ConditionFailed,
    ConfigurationError,
    InvalidValue,
    ItemTooLarge,
    KeyNotFilled,
    NoAccessPattern,
)
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.effects.counters import CountTarget
from dynamo_single.orm.effects.recount import (
    MAX_SNAPSHOTS,
    CountMark,
    mark_update,
    new_mark,
    number_update,
    stable_count,
)
from dynamo_single.orm.items.encode import pk_of
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import Action, Item, ItemKey, key_of, type_condition
from dynamo_single.table.flow import run

#: The result of marking an item: a marker, the item's error, or ``None`` if the item is gone.
MarkResult = CountMark | InvalidValue | ItemTooLarge | None


def count_items(item_type: str, counting: Callable[[], CountTarget | None]) -> Task:
    """Write into each item of a type how many live objects refer to it, unless ``counting`` returns ``None``.

    A process that creates or deletes a child updates the count in the same transaction and removes the marker of the
    item. Therefore the task sets a marker, counts, and writes the count on condition that the marker still exists: two
    UpdateItems. If the marker is gone, another process wrote a child, and the task marks and counts the item again.

    A child that moves within the counting key, for example because it was renamed, does not remove the marker, and a
    Query can miss it or read it twice. The task therefore counts until two successive snapshots are equal, at most
    ``MAX_SNAPSHOTS`` times after the first one. Each snapshot sends a Query per megabyte of children. With an index
    there is a second between two snapshots; all items of a page get their first snapshot before any of them waits.
    """
    ahead = threading.local()

    def mark(items: Sequence[Item], write: Write) -> None:
        """Mark the items of a page, and take the first snapshot of each."""
        found = counting()
        if found is None:
            return
        marks: dict[ItemKey, MarkResult] = ahead.__dict__.setdefault("marks", {})
        for item in items:
            if not has_expired(item):
                marks[key_of(item)] = _mark_item(found, item, item_type, write)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        found, key = counting(), key_of(item)
        if found is None or has_expired(item):
            return ()
        marks: dict[ItemKey, MarkResult] = ahead.__dict__.get("marks", {})
        if key in marks:
            return _number_action(found, item, item_type, marks.pop(key))
        with _check_key(found):  # a rehearsal does not set markers
            number = run(found.snapshot(_pk(found.model, item))).number
        after = with_value(item, found.name, {"N": str(number)})
        return () if number == found.held(item) else rewrite_actions(item, after, (found.name,))

    return Task(type_condition(item_type), change, prepare=mark)


def rename_number(old: str, new: str) -> Task:
    """Rename the count of a reference in all items, while processes cannot write counted objects."""

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        after = {**with_value(item, old, None), new: item[old]}
        return rewrite_actions(item, after, (old, new))

    return Task(Stored(old, "exists"), change)


def _mark_item(found: CountTarget, item: Item, item_type: str, write: Write) -> MarkResult:
    text, update = mark_update(key_of(item), item_type)
    try:
        write([update])
        with _check_key(found):
            return run(new_mark(text, found, _pk(found.model, item)))
    except ConditionFailed:
        return None
    except (InvalidValue, ItemTooLarge) as error:
        return error  # the error of this item, not of its page


def _number_action(found: CountTarget, item: Item, item_type: str, mark: MarkResult) -> tuple[Action, ...]:
    """Return the write of the count, conditional on the marker."""
    if mark is None:
        return ()
    if isinstance(mark, Exception):
        raise mark
    with _check_key(found):
        number = run(stable_count(found, _pk(found.model, item), mark))
    if number is None:
        times = f"The app counted {MAX_SNAPSHOTS + 1} times, but other processes wrote the counted objects each time."
        raise InvalidValue(f"{times} Run this again at a quieter time.")
    # An item without children has no count, as if it never had any.
    return (number_update(key_of(item), item_type, mark, found.name, number or None),)


@contextmanager
def _check_key(found: CountTarget) -> Iterator[None]:
    """Raise ``ConfigurationError`` if no complete key serves the query that counts."""
    try:
        yield
    except (KeyNotFilled, NoAccessPattern) as error:
        raise ConfigurationError(f"{found.children.model._meta.label} cannot be counted yet. {error}") from error


def _pk(model: Any, item: Item) -> object:
    """Return the ``pk`` of the object that is stored in an item."""
    attributes = {name: model._meta.get_field(name).attribute for name in model._identity}
    if lacking := [each.attr_name for each in attributes.values() if each.attr_name not in item]:
        raise InvalidValue(f"{', '.join(lacking)} is missing, and is in the primary key of {model._meta.label}.")
    stored = {name: each.from_attribute_value(dict(item[each.attr_name])) for name, each in attributes.items()}
    return pk_of(model, stored)
