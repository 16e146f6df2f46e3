"""Sessions in the table with a cache: ``SESSION_ENGINE = "dynamo_single.cached_sessions"``.

The table is authoritative. The cache of ``SESSION_CACHE_ALIAS`` contains copies, and a copy is only *added* after it
was read from the table. A process that changes or deletes a session first replaces the copy by a fence, and again at
the end. A process that read the session earlier therefore cannot restore an old copy, neither of changed data nor of a
session that was logged out. While there is a fence, the session is read from the table. The keys of copies are the
hashes of the sessions' keys, as for items.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.core.cache import caches

from dynamo_single import clock, sessions
from dynamo_single.sessions import KEY_LENGTH, BaseSession, FormerSession, Session, key_hash
from dynamo_single.table.flow import call_method

#: How many seconds a fence lasts: far longer than the time between reading a session and adding its copy.
FENCE_SECONDS = 60
#: A copy is the time of expiry, a colon, and the session's data. A fence has no colon.
_FENCE = "changed"

logger = logging.getLogger("django.contrib.sessions")


class SessionStore(sessions.SessionStore):
    """``dynamo_single.sessions`` with a cache: no request to the table for a session whose copy is cached.

    An error of the cache is logged, and the table is used alone, except in ``delete()``: there a copy could survive a
    logout. An error of the table is always raised. All processes must share the cache.
    """

    cache_key_prefix = "dynamo_single.cached_sessions"

    def __init__(self, session_key: str | None = None) -> None:
        self._cache = caches[settings.SESSION_CACHE_ALIAS]
        super().__init__(session_key)

    def load(self) -> dict[str, Any]:
        """Return the data of the session from the cache, or by one GetItem. The data is then added to the cache."""
        return super().load()

    async def _loaded(self) -> dict[str, Any]:
        key = self.session_key
        if key is None or not _is_made_here(key):
            return await super()._loaded()
        copy = await self._copy(key)
        if copy is not None:
            return self.decode(copy)
        data = await super()._loaded()
        if (item := self._items.get(key)) is not None:
            await self._add_copy(key, item)
        return data

    def save(self, must_create: bool = False) -> None:
        """Write the session to the table as ``dynamo_single.sessions`` does. The next loads read the table.

        Sends one UpdateItem, after a GetItem if the session was loaded from the cache.
        """
        super().save(must_create)

    async def _saved(self, must_create: bool = False) -> None:
        key = self.session_key
        if key is None or must_create or self._is_chosen(key) or not _is_made_here(key):
            await super()._saved(must_create)
            return
        await self._set_fence_or_log(key)
        await super()._saved()
        await self._set_fence_or_log(key)

    def delete(self, session_key: str | None = None) -> None:
        """Delete the session from the table and the cache. An error of the cache is raised."""
        super().delete(session_key)

    async def _deleted(self, session_key: str | None = None) -> None:
        session_key = self.session_key if session_key is None else session_key
        if session_key is None or not _is_made_here(session_key):
            await super()._deleted(session_key)
            return
        try:
            await self._set_fence(session_key)
        finally:
            await super()._deleted(session_key)
        await self._set_fence_or_log(session_key)
        await self._drop_former_copy(session_key)

    async def _move(self, session_key: str, former: FormerSession, values: dict[str, Any]) -> Session | None:
        item = await super()._move(session_key, former, values)
        await self._drop_former_copy(session_key)
        return item

    def _cache_key(self, session_key: str) -> str:
        return self.cache_key_prefix + key_hash(session_key)

    async def _drop_former_copy(self, session_key: str) -> None:
        """Remove the copy under the session's own key, which a process with older code would still read."""
        try:
            await call_method(self._cache, "delete", self.cache_key_prefix + session_key)
        except Exception:  # as below
            logger.exception("Error saving to cache (%s)", self._cache)

    async def _copy(self, session_key: str) -> str | None:
        """Return the cached data if there is a readable copy that has not expired."""
        try:
            cached = await call_method(self._cache, "get", self._cache_key(session_key), "")
        except Exception:  # as in Django: each cache raises errors of its own types, and the table has the session
            logger.exception("Error reading from cache (%s)", self._cache)
            return None
        expires, found, data = cached.partition(":") if isinstance(cached, str) else ("", "", "")
        with suppress(ValueError):  # not a copy: the table has the session
            return data if found and float(expires) > clock.timestamp() else None
        return None

    async def _add_copy(self, session_key: str, item: BaseSession) -> None:
        expires = clock.in_utc(item.expire_date).timestamp()
        copy = f"{expires}:{item.session_data}"
        try:
            seconds = math.ceil(expires - clock.timestamp())
            await call_method(self._cache, "add", self._cache_key(session_key), copy, seconds)
        except Exception:  # as above
            logger.exception("Error saving to cache (%s)", self._cache)

    async def _set_fence(self, session_key: str) -> None:
        await call_method(self._cache, "set", self._cache_key(session_key), _FENCE, FENCE_SECONDS)

    async def _set_fence_or_log(self, session_key: str) -> None:
        try:
            await self._set_fence(session_key)
        except Exception:  # as above
            logger.exception("Error saving to cache (%s)", self._cache)


def _is_made_here(session_key: str) -> bool:
    """Return whether a key has the form that this app creates. A cookie may contain invalid cache keys."""
    return len(session_key) == KEY_LENGTH and set(session_key) <= set(VALID_KEY_CHARS)
