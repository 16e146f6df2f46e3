"""Items that get another primary key, or another type: each is moved in one transaction, with its claims."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_single.exceptions import InvalidValue
from dynamo_single.item_migrations.online.changes.claims import following, held
from dynamo_single.item_migrations.online.changes.rewriting import indexes_of, rewriting, with_pairs
from dynamo_single.item_migrations.online.work import Others, Task
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.requests.actions import (
    ITEM_MISSING,
    Action,
    Delete,
    Item,
    ItemKey,
    Put,
    as_read,
    key_of,
    of_type,
)
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.table import names
from dynamo_single.table.items import NewItem


def moved_items(before: Snapshot, after: Snapshot) -> Task:
    """Bring every item under the type, the primary key and the index keys of ``after``; its claims change hands.

    Of an item that moves, all that ``before`` and ``after`` know has to be as it was read. A key that another item has
    is named.
    """
    known = {each.stored for snapshot in (before, after) for each in snapshot.attributes.values()}
    known |= {name for index in indexes_of(before) | indexes_of(after) for name in _pair(index)}

    def moved(item: Item) -> NewItem:
        values = after.values_of(item)
        key = item_key(after.primary_key(values, near=key_of(item)))
        typed = {**item, **key, names.ITEM_TYPE: {"S": after.item_type}}
        bare = {name: value for name, value in typed.items() if name not in _pairs(before)}
        return with_pairs(after, indexes_of(after), bare)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        wanted = moved(item)
        key, new = key_of(item), key_of(wanted)
        old_claims, new_claims = held(before, before.unique, item), held(after, after.unique, wanted)
        along = following(old_claims, new_claims, wanted, others, former=key)
        if key == new:
            return rewriting(item, wanted, known, along)
        if new in others:
            raise InvalidValue(f"Its new key {new[0]} / {new[1]} is another item's. Change one of them, or delete it.")
        condition = as_read(item, {*known, *item.keys()})
        return (Put(wanted, ITEM_MISSING), Delete(key, condition), *along)

    def wanted(item: Item) -> Iterable[ItemKey]:
        try:
            target = moved(item)
            claims = held(before, before.unique, item) | held(after, after.unique, target)
        except InvalidValue:
            return ()  # the change says so
        return claims | ({key_of(target)} - {key_of(item)})

    return Task(of_type(before.item_type), change, wanted=wanted)


def _pair(index: str) -> tuple[str, str]:
    return names.index_partition(index), names.index_sort(index)


def _pairs(snapshot: Snapshot) -> set[str]:
    return {name for index in indexes_of(snapshot) for name in _pair(index)}


def renamed_parents(old: str, new: str) -> Task:
    """Let what went to the trash along with a parent name the parent's new type, so that it comes back with it."""

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        rest = item[names.DELETED_WITH]["S"].removeprefix(f"{old}#")
        return rewriting(item, {**item, names.DELETED_WITH: {"S": f"{new}#{rest}"}}, (names.DELETED_AT,))

    return Task(Stored(names.DELETED_WITH, "begins_with", ({"S": f"{old}#"},)), change)
