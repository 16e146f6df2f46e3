"""The requests of the cache: reading entries with their generation, writing, counting and removing them.

Reads are strongly consistent, and every error of the table is raised. This module must not know Django's cache
interface; what an item looks like is ``cache_items``'s subject.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.cache import entries as stored
from dynamo_single.cache.entries import Entry, generation_of, generations_key, part_keys
from dynamo_single.exceptions import ConditionFailed, Conflict, NotSupported
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Condition, Not, Stored
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Delete, Item, ItemKey, Put, Update, key_of
from dynamo_single.orm.requests.compiler import compile_action, item_key
from dynamo_single.table import batches, names
from dynamo_single.table.flow import each, run
from dynamo_single.table.limits import MAX_BATCH_KEYS, MAX_BATCH_WRITES
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table, get_table

logger = logging.getLogger("dynamo_single.cache")

#: How often an entry is read or written again because other processes replaced it, or cleared the cache, meanwhile.
ATTEMPTS = 5

Found = dict[ItemKey, Item]


class Store(Struct, frozen=True):
    """The entries of one cache in one table; with ``split``, values too large for an item are stored in several.

    With ``signs``, values are signed, and those that are not do not count.
    """

    alias: str
    name: str
    split: bool = False
    signs: bool = True

    @property
    def table(self) -> Table:
        """The table, as the settings name it now."""
        return get_table(self.alias)

    def generation(self, version: int | None) -> int:
        """The generation of a version: one GetItem."""
        return generation_of(run(single.get_item(self.table, generations_key(self.name))), version)

    def find(self, keys: Sequence[ItemKey], version: int | None) -> tuple[Found, int]:
        """The entries that count, and the generation: one BatchGetItem for each 99 keys, without values' parts."""
        found: Found = {}
        place, generation = generations_key(self.name), 0
        for items in self._read(list(dict.fromkeys(keys)), beside=(place,)):
            generation = generation_of(items.pop(place, None), version)
            found |= {key: item for key, item in items.items() if matches(self._is_live(generation), item)}
        return found, generation

    def values(self, keys: Sequence[ItemKey], version: int | None) -> tuple[dict[ItemKey, Any], int]:
        """The values of the entries that count, and the generation: ``find``, and BatchGetItems of values' parts."""
        found, generation = self.find(keys, version)
        values: dict[ItemKey, Any] = {}
        for key, item in found.items():
            values |= self._assembled(key, item, version) if stored.PARTS in item else self._value(key, item)
        return values, generation

    def _value(self, key: ItemKey, head: Item, parts: Iterable[Item] = ()) -> dict[ItemKey, Any]:
        """The value by its key; nothing, and no such entry any more, if it is not what was signed."""
        try:
            return {key: stored.value_of(head, parts, signs=self.signs)}
        except stored.NotGenuine:
            logger.warning("The cache entry %r was not signed by this project: it is removed and not read.", key[0])
            self._remove(key, head)
            return {}

    def _is_live(self, generation: int) -> Condition:
        return stored.is_live(generation, signs=self.signs)

    def _assembled(self, key: ItemKey, head: Item, version: int | None) -> dict[ItemKey, Any]:
        for _ in range(ATTEMPTS):
            wanted = part_keys(head)
            parts = {key: item for items in self._read(wanted) for key, item in items.items()}
            if len(parts) == len(wanted):
                return self._value(key, head, (parts[each] for each in wanted))
            again = self.find([key], version)[0].get(key)
            if again is None:
                return {}
            if again[stored.WRITE_ID] == head[stored.WRITE_ID]:
                self._remove(key, head)
                return {}
            if stored.PARTS not in again:
                return self._value(key, again)
            head = again
        raise Conflict(f"The cache entry {key[0]!r} was replaced {ATTEMPTS} times while it was read. Try again.")

    def _remove(self, key: ItemKey, head: Item) -> None:
        """Remove an entry that cannot be read, so that it does not keep add() from writing."""
        same = Stored(stored.WRITE_ID, "=", (head[stored.WRITE_ID],))
        with suppress(ConditionFailed):  # replaced or deleted since
            self.table.send(compile_action(Delete(key, same)))
        self._remove_parts(head)

    def put(self, entry: Entry, version: int | None) -> None:
        """Write an entry, its parts first: one PutItem, and the parts.

        If the cache was cleared and the key set again since the entry's generation was read, it is written again.
        """
        for _ in range(ATTEMPTS):
            found = self._put(entry, stored.is_not_later(entry.generation))
            if found is None:
                return
            entry = self._renewed(entry, found, version)
        raise _conflict(entry)

    def add(self, entry: Entry, version: int | None) -> bool:
        """Write an entry unless there is one that counts: ``put`` under that condition."""
        for _ in range(ATTEMPTS):
            found = self._put(entry, Not(self._is_live(entry.generation)))
            if found is None:
                return True
            if int(found[stored.GENERATION]["N"]) <= entry.generation:
                return False
            entry = self._renewed(entry, found, version)
        raise _conflict(entry)

    def add_once(self, entry: Entry) -> bool:
        """Write an entry unless there is one that counts, or the cache was cleared and the key set again."""
        return self._put(entry, Not(self._is_live(entry.generation))) is None

    def _renewed(self, entry: Entry, found: Item, version: int | None) -> Entry:
        latest = max(self.generation(version), int(found[stored.GENERATION]["N"]))
        return replace(entry, generation=latest)

    def _put(self, entry: Entry, condition: Condition) -> Item | None:
        """Write an entry; the item that the condition does not allow to replace, or ``None`` if it is written."""
        head, parts = entry.items(split=self.split, signs=self.signs)
        self._write([_put(part) for part in parts])
        request = compile_action(Put(head, condition))
        if self.split:
            request = _returning(request, "ALL_OLD")
        try:
            replaced = self.table.send(request).get("Attributes")
        except ConditionFailed as error:
            if error.item is None:
                raise
            if error.item.get(stored.WRITE_ID) == head[stored.WRITE_ID]:
                return None  # an earlier attempt was carried out, and its answer lost
            self._remove_parts(head)
            return error.item
        if replaced and replaced.get(stored.WRITE_ID) != head[stored.WRITE_ID]:
            self._remove_parts(replaced)
        return None

    def put_all(self, entries: Sequence[Entry], version: int | None) -> None:
        """Write entries: ``put`` for one or if values may be split, otherwise one BatchWriteItem for each 25.

        A BatchWriteItem has no conditions. Nothing is sent if an entry is too large for an item.
        """
        if self.split or len(entries) == 1:
            for entry in entries:
                self.put(entry, version)
            return
        self._write([_put(entry.items(split=False, signs=self.signs)[0]) for entry in entries])

    def touch(self, key: ItemKey, version: int | None, valid_until: int | None) -> bool:
        """Set how long an entry is valid: one GetItem and one UpdateItem, and one for each part."""
        expiry = stored.expiry(valid_until)
        removed = () if expiry else (stored.VALID_UNTIL, names.EXPIRES_AT)
        update = Update(key, set=expiry, remove=removed, condition=self._is_live(self.generation(version)))
        try:
            head = self.table.send(compile_action(update))["Attributes"]
        except ConditionFailed:
            return False
        time_to_live = {name: value for name, value in expiry.items() if name == names.EXPIRES_AT}
        for part in part_keys(head):
            change = Update(part, set=time_to_live, remove=removed[1:], condition=ITEM_EXISTS)
            try:
                self.table.send(_returning(compile_action(change), "NONE"))
            except ConditionFailed:
                break  # the entry was replaced or deleted since, and its parts with it
        return True

    def count(self, key: ItemKey, version: int | None, delta: int) -> int | None:
        """Add to an integer and give the sum: one GetItem and one UpdateItem; ``None`` if there is no such entry."""
        live = self._is_live(self.generation(version))
        added = {stored.NUMBER: {"N": str(delta)}}
        request = compile_action(Update(key, add=added, condition=join((live, stored.countable(delta)))))
        try:
            return stored.number_of(self.table.send(request)["Attributes"])
        except ConditionFailed as error:
            if error.item is None or not matches(live, error.item):
                return None
            why = "the sum has more than 38 digits" if stored.NUMBER in error.item else "its value is no integer"
            raise NotSupported(
                f"The cache entry {key[0]!r} cannot be counted: {why}. incr() and decr() take integers that DynamoDB "
                "counts exactly; get() and set() change other values."
            ) from error

    def delete(self, key: ItemKey, version: int | None) -> bool:
        """Remove an entry; whether it counted. One DeleteItem, and one GetItem if there was something."""
        removed = self._delete(key)
        return bool(removed) and matches(self._is_live(self.generation(version)), removed)

    def _delete(self, key: ItemKey) -> Item:
        request = _returning(compile_action(Delete(key)), "ALL_OLD")
        removed: Item = self.table.send(request).get("Attributes") or {}
        self._remove_parts(removed)
        return removed

    def delete_all(self, keys: Iterable[ItemKey]) -> None:
        """Remove entries: one DeleteItem for one, or if values may be split; else one BatchWriteItem for each 25."""
        places = list(dict.fromkeys(keys))
        if self.split or len(places) == 1:
            for key in places:
                self._delete(key)
            return
        self._write([_delete(key) for key in places])

    def clear(self, version: int | None) -> None:
        """Begin another generation of a version, or of all for ``None``: one UpdateItem, whatever is stored."""
        self.table.send(stored.begin_generation(self.name, version))

    def _remove_parts(self, head: Item | None) -> None:
        if head:
            self._write([_delete(key) for key in part_keys(head)])

    def _read(self, keys: Sequence[ItemKey], *, beside: tuple[ItemKey, ...] = ()) -> Iterator[Found]:
        """The items of each BatchGetItem by key; those ``beside`` are asked for in every one."""
        table, size = self.table, MAX_BATCH_KEYS - len(beside)
        chunks = ([*keys[start : start + size], *beside] for start in range(0, len(keys), size))
        asked = ({"Keys": list(map(item_key, chunk)), "ConsistentRead": True} for chunk in chunks)
        requests = (Request("BatchGetItem", {"RequestItems": {table.name: each}}) for each in asked)
        for items in each(batches.get_batches(table, requests, batches.Wanted(None))):
            yield {key_of(item): item for item in items}

    def _write(self, writes: Sequence[dict[str, Any]]) -> None:
        for start in range(0, len(writes), MAX_BATCH_WRITES):
            rest = run(batches.write_batch(self.table, writes[start : start + MAX_BATCH_WRITES]))
            if rest is not None:
                raise rest.error


def _conflict(entry: Entry) -> Conflict:
    return Conflict(
        f"The cache was cleared, and its entry {entry.key[0]!r} replaced, {ATTEMPTS} times while it was written; it is "
        "not written. Try again."
    )


def _put(item: Item) -> dict[str, Any]:
    return {"PutRequest": {"Item": item}}


def _delete(key: ItemKey) -> dict[str, Any]:
    return {"DeleteRequest": {"Key": item_key(key)}}


def _returning(request: Request, values: str) -> Request:
    return Request(request.operation, {**request.params, "ReturnValues": values})
