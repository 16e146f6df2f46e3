"""Django's cache in the table: ``"BACKEND": "dynamo_single.cache.DynamoCache"``.

This module implements Django's cache interface: keys, versions and timeouts. ``store`` sends the requests, and
``entries`` defines the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

from dynamo_single import clock
from dynamo_single.cache.entries import Entry, entry_key, now
from dynamo_single.cache.store import Store
from dynamo_single.conf import aliases, table_settings
from dynamo_single.exceptions import ConfigurationError, NotCountable
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.schema.types import awaited
from dynamo_single.table.flow import call_method, outside_run, run

T = TypeVar("T")

#: The keys that ``OPTIONS`` may contain, with their defaults.
OPTIONS = {"LARGE_VALUES": "refuse", "NAME": "default", "SIGN": True}
LARGE_VALUES = ("refuse", "split")


class DynamoCache(BaseCache):
    """Django's cache interface for items of one table.

    ``LOCATION`` is an alias of ``DYNAMO_SINGLE``; ``OPTIONS["NAME"]`` separates several caches in one table. Reads are
    strongly consistent: every process finds a new value immediately. Timeouts are exact to the millisecond by the
    clocks of the processes. If the table does not respond, methods raise an error rather than report a miss. It pickles
    and signs values, except integers of up to 38 digits. A value that was not signed with ``SECRET_KEY`` is treated as
    missing.
    """

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._store = _store(location or "default", params.get("OPTIONS") or {})

    def get(self, key: object, default: object = None, version: int | None = None) -> Any:
        """Return the value or ``default``: one BatchGetItem of two items."""
        return run(self._get(key, default, version))

    async def aget(self, key: object, default: object = None, version: int | None = None) -> Any:
        """Return the same as ``get()``, asynchronously."""
        return await awaited(self.get, self._get, key, default, version)

    async def _get(self, key: object, default: object, version: int | None) -> Any:
        place = self._place(key, version)
        values, _ = await self._store.values([place], self._version(version))
        return values.get(place, default)

    def get_many(self, keys: Iterable[object], version: int | None = None) -> dict[Any, Any]:
        """Return the values of the keys that have one: one BatchGetItem for each 99 keys."""
        return run(self._get_many(keys, version))

    async def aget_many(self, keys: Iterable[object], version: int | None = None) -> dict[Any, Any]:
        """Return the same as ``get_many()``, asynchronously."""
        return await awaited(self.get_many, self._get_many, keys, version)

    async def _get_many(self, keys: Iterable[object], version: int | None) -> dict[Any, Any]:
        places = {key: self._place(key, version) for key in keys}
        values, _ = await self._store.values([*places.values()], self._version(version))
        return {key: values[place] for key, place in places.items() if place in values}

    def has_key(self, key: object, version: int | None = None) -> bool:
        """Return whether there is a value: one BatchGetItem of two items."""
        return run(self._has_key(key, version))

    async def ahas_key(self, key: object, version: int | None = None) -> bool:
        """Return the same as ``has_key()``, asynchronously."""
        return await awaited(self.has_key, self._has_key, key, version)

    async def _has_key(self, key: object, version: int | None) -> bool:
        found, _ = await self._store.find([self._place(key, version)], self._version(version))
        return bool(found)

    def set(
        self, key: object, value: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        """Store a value: one GetItem and one PutItem. A timeout of 0 or less deletes it instead: one DeleteItem.

        The GetItem reads the generation. A ``clear()`` between the two requests also removes this value, as if it had
        been set just before. It replaces a value that another process set after such a ``clear()`` is replaced.
        """
        self.set_many({key: value}, timeout, version)

    async def aset(
        self, key: object, value: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        """Do the same as ``set()``, asynchronously."""
        await awaited(self.set, self._set, key, value, timeout, version)

    async def _set(self, key: object, value: object, timeout: float | None, version: int | None) -> None:
        await self.aset_many({key: value}, timeout, version)

    def set_many(
        self, data: Mapping[Any, Any], timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> list[object]:
        """Store several values: one GetItem and one BatchWriteItem for each 25. This is not atomic.

        With ``LARGE_VALUES`` set to ``"split"``, it sends one PutItem for each value. The returned list is always
        empty, because an unsupported key raises an error. A ``clear()`` in the meantime also removes these values, and
        values that other processes have just set under these keys.
        """
        return run(self._set_many(data, timeout, version))

    async def aset_many(
        self, data: Mapping[Any, Any], timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> list[object]:
        """Do the same as ``set_many()``, asynchronously."""
        return await awaited(self.set_many, self._set_many, data, timeout, version)

    async def _set_many(self, data: Mapping[Any, Any], timeout: float | None, version: int | None) -> list[object]:
        values = {self._place(key, version): value for key, value in data.items()}
        valid_until = self._valid_until(timeout)
        if valid_until is not None and valid_until <= now():
            await self._store.delete_all(values)
        elif values:
            version = self._version(version)
            generation = await self._store.generation(version)
            entries = [Entry(place, generation, value, valid_until) for place, value in values.items()]
            await self._store.put_all(entries, version)
        return []

    def add(
        self, key: object, value: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """Store a value if there is none: a GetItem and a conditional PutItem. Of concurrent calls, one succeeds."""
        return run(self._add(key, value, timeout, version))

    async def aadd(
        self, key: object, value: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """Do the same as ``add()``, asynchronously."""
        return await awaited(self.add, self._add, key, value, timeout, version)

    async def _add(self, key: object, value: object, timeout: float | None, version: int | None) -> bool:
        place, version = self._place(key, version), self._version(version)
        entry = Entry(place, await self._store.generation(version), value, self._valid_until(timeout))
        return await self._store.add(entry, version)

    def get_or_set(
        self, key: object, default: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        """Return the value, or store and return ``default`` (called if callable): one BatchGetItem, then one PutItem.

        If another process stores a value in the meantime, the method reads and returns that value. A default that was
        computed before a ``clear()`` is not found after it.
        """
        return run(self._get_or_set(key, default, timeout, version))

    async def aget_or_set(
        self, key: object, default: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> Any:
        """Do the same as ``get_or_set()``, asynchronously. It calls the default in the event loop, as in Django."""
        return await awaited(self.get_or_set, self._get_or_set, key, default, timeout, version)

    async def _get_or_set(self, key: object, default: object, timeout: float | None, version: int | None) -> Any:
        place = self._place(key, version)
        values, generation = await self._store.values([place], self._version(version))
        if place in values:
            return values[place]
        value = outside_run(default) if callable(default) else default
        entry = Entry(place, generation, value, self._valid_until(timeout))
        return value if await self._store.add_once(entry) else await call_method(self, "get", key, value, version)

    def touch(self, key: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Reset a value's timeout and return whether there is a value: one GetItem and one UpdateItem."""
        return run(self._touch(key, timeout, version))

    async def atouch(self, key: object, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Do the same as ``touch()``, asynchronously."""
        return await awaited(self.touch, self._touch, key, timeout, version)

    async def _touch(self, key: object, timeout: float | None, version: int | None) -> bool:
        place = self._place(key, version)
        return await self._store.touch(place, self._version(version), self._valid_until(timeout))

    def incr(self, key: object, delta: int = 1, version: int | None = None) -> int:
        """Add to an integer and return the sum: one GetItem and one atomic UpdateItem. Its timeout does not change.

        Raises ``ValueError`` if there is no value, as Django documents, and ``NotCountable`` if the value is not an
        integer. ``NotCountable`` is a ``TypeError``, so that ``except ValueError: cache.set(key, 1)`` does not replace
        the value. A retry after a lost response adds twice.
        """
        return run(self._incr(key, delta, version))

    async def aincr(self, key: object, delta: int = 1, version: int | None = None) -> int:
        """Do the same as ``incr()``, asynchronously."""
        return await awaited(self.incr, self._incr, key, delta, version)

    async def _incr(self, key: object, delta: int, version: int | None) -> int:
        if isinstance(delta, bool) or not isinstance(delta, int):
            raise NotCountable(f"Cannot add {delta!r} to a cache entry: incr() and decr() add integers.")
        total = await self._store.count(self._place(key, version), self._version(version), delta)
        if total is None:
            raise ValueError(f"Key '{key}' not found")
        return total

    def delete(self, key: object, version: int | None = None) -> bool:
        """Delete a value and return whether there was one: one DeleteItem, and one GetItem if there was an item."""
        return run(self._delete(key, version))

    async def adelete(self, key: object, version: int | None = None) -> bool:
        """Do the same as ``delete()``, asynchronously."""
        return await awaited(self.delete, self._delete, key, version)

    async def _delete(self, key: object, version: int | None) -> bool:
        return await self._store.delete(self._place(key, version), self._version(version))

    def delete_many(self, keys: Iterable[object], version: int | None = None) -> None:
        """Delete several values: one BatchWriteItem for each 25 keys."""
        run(self._delete_many(keys, version))

    async def adelete_many(self, keys: Iterable[object], version: int | None = None) -> None:
        """Do the same as ``delete_many()``, asynchronously."""
        await awaited(self.delete_many, self._delete_many, keys, version)

    async def _delete_many(self, keys: Iterable[object], version: int | None) -> None:
        await self._store.delete_all([self._place(key, version) for key in keys])

    def clear(self, *, version: int | None = None) -> None:
        """Clear all values of this ``NAME``, or of one version: one UpdateItem.

        The request does not depend on the number of values. From then on the cache ignores earlier entries, and
        DynamoDB deletes them after their timeout. Entries without a timeout stay until a program sets or deletes their
        key.
        """
        run(self._store.clear(version))

    async def aclear(self, *, version: int | None = None) -> None:
        """Do the same as ``clear()``, asynchronously."""
        await awaited(partial(self.clear, version=version), partial(self._store.clear, version))

    def get_backend_timeout(self, timeout: float | None = DEFAULT_TIMEOUT) -> float | None:
        """Return when a timeout ends, in seconds since 1970 by the app's clock; ``None`` for never."""
        if timeout == DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        elif timeout == 0:
            timeout = -1  # as in Django: a past time for any resolution of the clock
        return None if timeout is None else clock.timestamp() + timeout

    def _place(self, key: object, version: int | None) -> ItemKey:
        return entry_key(self._store.name, self.make_and_validate_key(key, version=version))

    def _version(self, version: int | None) -> int:
        return self.version if version is None else version

    def _valid_until(self, timeout: float | None) -> int | None:
        ends = self.get_backend_timeout(timeout)
        # Never far in the past: DynamoDB's time to live ignores items that expired over five years ago.
        return None if ends is None else max(int(ends * 1000), now())


def _store(location: str, options: Mapping[str, object]) -> Store:
    if location not in aliases():
        known = ", ".join(map(repr, aliases()))
        raise ConfigurationError(f"CACHES: LOCATION {location!r} is no alias of DYNAMO_SINGLE, which declares {known}.")
    if not table_settings(location).owns:
        raise ConfigurationError(
            f"CACHES: LOCATION {location!r} is a table with OWNS = False, which stores only the items of models. Name "
            "the alias of a table of your own."
        )
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise ConfigurationError(
            f"CACHES: OPTIONS[{unknown[0]!r}] has no meaning to DynamoCache, whose options are "
            f"{', '.join(sorted(OPTIONS))}. Entries leave by their timeout; there is no limit on their number."
        )
    chosen = {**OPTIONS, **options}
    if chosen["LARGE_VALUES"] not in LARGE_VALUES:
        allowed = " or ".join(map(repr, LARGE_VALUES))
        raise ConfigurationError(f"CACHES: OPTIONS['LARGE_VALUES'] must be {allowed}, not {chosen['LARGE_VALUES']!r}.")
    if not isinstance(chosen["NAME"], str) or not chosen["NAME"]:
        raise ConfigurationError(f"CACHES: OPTIONS['NAME'] must be a string that is not empty, not {chosen['NAME']!r}.")
    if not isinstance(chosen["SIGN"], bool):
        raise ConfigurationError(f"CACHES: OPTIONS['SIGN'] must be True or False, not {chosen['SIGN']!r}.")
    return Store(location, chosen["NAME"], split=chosen["LARGE_VALUES"] == "split", signs=chosen["SIGN"])
