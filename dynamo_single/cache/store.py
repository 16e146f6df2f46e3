"""The requests of the cache: read entries with their generation, and write, count and remove entries.

Reads are strongly consistent, and raise every error of the table. Functions that send requests are coroutines. This
module must not depend on Django's cache interface. ``entries`` defines the items.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.cache import entries as stored
from dynamo_single.cache.entries import Entry, generation_of, generations_key, part_keys
from dynamo_single.exceptions import ConditionFailed, Conflict, NotCountable, RequestFailed
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import Condition, Not, Stored, join
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Delete, Item, ItemKey, Put, Update, key_of
from dynamo_single.orm.requests.compiler import compile_action, item_key
from dynamo_single.table import batches, names
from dynamo_single.table.request import MAX_BATCH_KEYS, MAX_BATCH_WRITES, Request
from dynamo_single.table.table import Table, get_table

logger = logging.getLogger("dynamo_single.cache")

#: How often an entry is read or written again after a concurrent replacement of it or ``clear()`` of the cache.
ATTEMPTS = 5

Found = dict[ItemKey, Item]


class Store(Struct, frozen=True):
    """The entries of one cache in one table. With ``split``, large values are stored in several items.

    With ``signs``, values are signed, and unsigned values are ignored.
    """

    alias: str
    name: str
    split: bool = False
    signs: bool = True

    @property
    def table(self) -> Table:
        """The table that the settings currently name."""
        return get_table(self.alias)

    async def generation(self, version: int | None) -> int:
        """Return the generation of a version: one GetItem."""
        return await self._said(await single.get_item(self.table, generations_key(self.name)), version)

    async def _said(self, item: Item | None, version: int | None) -> int:
        """Return the generation in an item. One PutItem replaces a damaged item, which clears the cache."""
        try:
            return generation_of(item, version)
        except stored.Damaged:
            return await self._begin_again()

    async def _begin_again(self) -> int:
        logger.error(
            "The item %r, which records the valid entries of the cache %r, is damaged. The cache was cleared "
            "and the item replaced.",
            generations_key(self.name)[0],
            self.name,
        )
        begun = stored.generation_begun(self.name)
        await self.table.ask(compile_action(begun))
        return generation_of(begun.item, None)

    async def find(self, keys: Sequence[ItemKey], version: int | None) -> tuple[Found, int]:
        """Return the valid entries and the generation: one BatchGetItem for each 99 keys. It does not read parts."""
        found: Found = {}
        place, generation = generations_key(self.name), 0
        async with aclosing(self._read(list(dict.fromkeys(keys)), beside=(place,))) as answers:
            async for items in answers:
                generation = await self._said(items.pop(place, None), version)
                found |= {key: item for key, item in items.items() if matches(self._is_live(generation), item)}
        return found, generation

    async def values(self, keys: Sequence[ItemKey], version: int | None) -> tuple[dict[ItemKey, Any], int]:
        """Return the values of the valid entries and the generation: ``find()``, and BatchGetItems for parts."""
        found, generation = await self.find(keys, version)
        values: dict[ItemKey, Any] = {}
        for key, item in found.items():
            is_split = stored.PARTS in item
            values |= await (self._assembled(key, item, version) if is_split else self._value(key, item))
        return values, generation

    async def _value(self, key: ItemKey, head: Item, parts: Iterable[Item] = ()) -> dict[ItemKey, object]:
        """Return the value by its key. If its signature is wrong, delete the entry and return nothing."""
        try:
            return {key: stored.value_of(head, parts, signs=self.signs)}
        except stored.NotGenuine as error:
            await self._refuse(key, head, error)
            return {}

    async def _refuse(self, key: ItemKey, head: Item, error: stored.NotGenuine) -> None:
        why = "is damaged" if isinstance(error, stored.Damaged) else "was not signed by this project"
        logger.warning("The cache entry %r %s: it is removed and not read.", key[0], why)
        await self._remove(key, head)

    def _is_live(self, generation: int) -> Condition:
        return stored.is_live(generation, signs=self.signs)

    async def _assembled(self, key: ItemKey, head: Item, version: int | None) -> dict[ItemKey, object]:
        for _ in range(ATTEMPTS):
            try:
                wanted = part_keys(head)
            except stored.Damaged as error:
                await self._refuse(key, head, error)
                return {}
            parts = {key: item async for items in self._read(wanted) for key, item in items.items()}
            if len(parts) == len(wanted):
                return await self._value(key, head, [parts[each] for each in wanted])
            again = (await self.find([key], version))[0].get(key)
            if again is None:
                return {}
            if again[stored.WRITE_ID] == head[stored.WRITE_ID]:
                await self._remove(key, head)
                return {}
            if stored.PARTS not in again:
                return await self._value(key, again)
            head = again
        raise Conflict(f"The cache entry {key[0]!r} was replaced {ATTEMPTS} times while it was read. Try again.")

    async def _remove(self, key: ItemKey, head: Item) -> None:
        """Remove an unreadable entry, so that it does not prevent ``add()`` from writing."""
        same = Stored(stored.WRITE_ID, "=", (head[stored.WRITE_ID],))
        with suppress(ConditionFailed):  # another process has replaced or deleted it
            await self.table.ask(compile_action(Delete(key, same)))
        await self._remove_parts(head)

    async def put(self, entry: Entry, version: int | None) -> None:
        """Write an entry: one PutItem, after one write for each part.

        If the cache was cleared and the key set again since the entry's generation was read, the entry is written
        again.
        """
        for _ in range(ATTEMPTS):
            found = await self._put(entry, stored.is_not_later(entry.generation))
            if found is None:
                return
            entry = await self._renewed(entry, found, version)
        raise _conflict(entry)

    async def add(self, entry: Entry, version: int | None) -> bool:
        """Write an entry unless there is a valid one, as ``put()`` does. Return whether it was written."""
        for _ in range(ATTEMPTS):
            found = await self._put(entry, Not(self._is_live(entry.generation)))
            if found is None:
                return True
            if int(found[stored.GENERATION]["N"]) <= entry.generation:
                return False
            entry = await self._renewed(entry, found, version)
        raise _conflict(entry)

    async def add_once(self, entry: Entry) -> bool:
        """Write an entry unless there is a valid one, or the cache was cleared and the key set again. Never retry."""
        return await self._put(entry, Not(self._is_live(entry.generation))) is None

    async def _renewed(self, entry: Entry, found: Item, version: int | None) -> Entry:
        latest = max(await self.generation(version), int(found[stored.GENERATION]["N"]))
        return replace(entry, generation=latest)

    async def _put(self, entry: Entry, condition: Condition) -> Item | None:
        """Write an entry. Return the item that the condition protects, or ``None`` if the entry was written."""
        head, parts = entry.items(split=self.split, signs=self.signs)
        await self._write([_put(part) for part in parts])
        request = compile_action(Put(head, condition))
        if self.split:
            request = _returning(request, "ALL_OLD")
        try:
            replaced = (await self.table.ask(request)).get("Attributes")
        except ConditionFailed as error:
            if error.item is None:
                raise
            if error.item.get(stored.WRITE_ID) == head[stored.WRITE_ID]:
                return None  # an earlier attempt succeeded, but its response was lost
            await self._remove_parts(head)
            return error.item
        if replaced and replaced.get(stored.WRITE_ID) != head[stored.WRITE_ID]:
            await self._remove_parts(replaced)
        return None

    async def put_all(self, entries: Sequence[Entry], version: int | None) -> None:
        """Write entries with ``put()`` if values may be split or there is only one, else 25 in each BatchWriteItem.

        A BatchWriteItem has no conditions. It does not send a request if an entry is too large for an item.
        """
        if self.split or len(entries) == 1:
            for entry in entries:
                await self.put(entry, version)
            return
        await self._write([_put(entry.items(split=False, signs=self.signs)[0]) for entry in entries])

    async def touch(self, key: ItemKey, version: int | None, valid_until: int | None) -> bool:
        """Change the expiry of an entry: one GetItem and one UpdateItem, and one UpdateItem for each part."""
        expiry = stored.expiry(valid_until)
        removed = () if expiry else (stored.VALID_UNTIL, names.EXPIRES_AT)
        update = Update(key, set=expiry, remove=removed, condition=self._is_live(await self.generation(version)))
        try:
            head = (await self.table.ask(compile_action(update, returns_item=True)))["Attributes"]
        except ConditionFailed:
            return False
        time_to_live = {name: value for name, value in expiry.items() if name == names.EXPIRES_AT}
        for part in _parts_of(head):
            change = Update(part, set=time_to_live, remove=removed[1:], condition=ITEM_EXISTS)
            try:
                await self.table.ask(compile_action(change))
            except ConditionFailed:
                break  # the entry was replaced or deleted in the meantime, with its parts
        return True

    async def count(self, key: ItemKey, version: int | None, delta: int) -> int | None:
        """Add to an integer and return the sum, or ``None`` if there is no entry: one GetItem and one UpdateItem."""
        live = self._is_live(await self.generation(version))
        added = {stored.NUMBER: {"N": str(delta)}}
        update = Update(key, add=added, condition=join((live, stored.countable(delta))))
        request = compile_action(update, returns_item=True)
        try:
            return stored.number_of((await self.table.ask(request))["Attributes"])
        except ConditionFailed as error:
            found = error.item
            if found is None or not matches(live, found):
                return None
            why = "the sum has more than 38 digits" if stored.NUMBER in found else "its value is no integer"
            raise NotCountable(
                f"Cannot add {delta} to the cache entry {key[0]!r}: {why}. Nothing was written. Use get() and set() "
                "for values that are not integers of up to 38 digits."
            ) from error

    async def delete(self, key: ItemKey, version: int | None) -> bool:
        """Remove an entry and return whether it was valid: one DeleteItem, and one GetItem if there was an item."""
        removed = await self._delete(key)
        return bool(removed) and matches(self._is_live(await self.generation(version)), removed)

    async def _delete(self, key: ItemKey) -> Item:
        request = _returning(compile_action(Delete(key)), "ALL_OLD")
        removed: Item = (await self.table.ask(request)).get("Attributes") or {}
        await self._remove_parts(removed)
        return removed

    async def delete_all(self, keys: Iterable[ItemKey]) -> None:
        """Remove entries: a DeleteItem each if values may be split or there is only one, else 25 per BatchWriteItem."""
        places = list(dict.fromkeys(keys))
        if self.split or len(places) == 1:
            for key in places:
                await self._delete(key)
            return
        await self._write([_delete(key) for key in places])

    async def clear(self, version: int | None) -> None:
        """Start a new generation of a version, or of all for ``None``: one UpdateItem for any number of entries."""
        try:
            await self.table.ask(stored.begin_generation(self.name, version))
        except RequestFailed as error:
            if error.code != "ValidationException":
                raise
            await self._begin_again()  # DynamoDB cannot add to a value that is not a number

    async def _remove_parts(self, head: Item | None) -> None:
        if head:
            await self._write([_delete(key) for key in _parts_of(head)])

    async def _read(self, keys: Sequence[ItemKey], *, beside: tuple[ItemKey, ...] = ()) -> AsyncGenerator[Found, None]:
        """Yield the items of each BatchGetItem by key. Each request also reads the keys in ``beside``."""
        table, size = self.table, MAX_BATCH_KEYS - len(beside)
        chunks = ([*keys[start : start + size], *beside] for start in range(0, len(keys), size))
        asked = ({"Keys": list(map(item_key, chunk)), "ConsistentRead": True} for chunk in chunks)
        requests = (Request("BatchGetItem", {"RequestItems": {table.name: each}}) for each in asked)
        async with aclosing(batches.get_batches(table, requests, batches.RemainingItems(None))) as answers:
            async for items in answers:
                yield {key_of(item): item for item in items}

    async def _write(self, writes: Sequence[dict[str, Any]]) -> None:
        for start in range(0, len(writes), MAX_BATCH_WRITES):
            rest = await batches.write_batch(self.table, writes[start : start + MAX_BATCH_WRITES])
            if rest is not None:
                raise rest.error


def _parts_of(head: Item) -> list[ItemKey]:
    """Return the keys of an entry's parts. The parts of a damaged entry are unknown, and DynamoDB expires them."""
    try:
        return part_keys(head)
    except stored.Damaged:
        return []


def _conflict(entry: Entry) -> Conflict:
    return Conflict(
        f"The cache was cleared, and its entry {entry.key[0]!r} replaced, {ATTEMPTS} times while it was written; it is "
        "not written. Try again."
    )


def _put(item: Item) -> dict[str, Any]:
    return {"PutRequest": {"Item": item}}


def _delete(key: ItemKey) -> dict[str, object]:
    return {"DeleteRequest": {"Key": item_key(key)}}


def _returning(request: Request, values: str) -> Request:
    return request.with_params({**request.params, "ReturnValues": values})
