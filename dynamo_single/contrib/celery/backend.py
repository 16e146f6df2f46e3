"""The result backend: ``result_backend = "dynamo_single.contrib.celery.backend:DynamoBackend"``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from celery.backends.base import KeyValueStoreBackend

from dynamo_single import clock, counters
from dynamo_single.contrib.celery.models import StoredResult


class DynamoBackend(KeyValueStoreBackend):  # type: ignore[misc]  # the package has no types
    """Stores each result as an item, which expires after Celery's ``result_expires``.

    A result takes one strongly consistent GetItem, and one PutItem that overwrites an earlier state; several results
    take one BatchGetItem for each hundred. A part of a chord takes an UpdateItem as well. An item has at most 400 KB.
    Results are not a part of ``dynamo_single.transactions.atomic()``.
    """

    implements_incr = True
    supports_native_join = True
    persistent = True

    def get(self, key: bytes | str) -> bytes | None:
        """Return what is stored under a key: one GetItem."""
        found = StoredResult.objects.consistent().filter(pk=_text(key)).first()
        return None if found is None else found.content

    def mget(self, keys: Sequence[bytes | str]) -> list[bytes | None]:
        """Return what is stored under some keys: one BatchGetItem for each hundred."""
        found = StoredResult.objects.consistent().in_bulk([_text(key) for key in keys])
        return [found[_text(key)].content if _text(key) in found else None for key in keys]

    def set(self, key: bytes | str, value: bytes | str) -> None:
        """Store a value, and overwrite an earlier one: one PutItem."""
        content = value.encode() if isinstance(value, str) else value
        counters.replace(StoredResult(key=_text(key), content=content, expires=_expiry(self.expires)))

    def delete(self, key: bytes | str) -> None:
        """Delete what is stored under a key: one DeleteItem."""
        StoredResult.objects.filter(pk=_text(key)).delete()

    def incr(self, key: bytes | str) -> int:
        """Add 1 to a number, and return it: one UpdateItem. It begins with 0."""
        obj = StoredResult(key=_text(key), parts=1, expires=_expiry(self.chord_expires))
        return int(counters.add(obj, "parts").parts)

    def expire(self, key: bytes | str, value: float | None) -> None:
        """Let a key expire after some seconds, or never after 0 or ``None``: one UpdateItem."""
        StoredResult.objects.filter(pk=_text(key)).update(expires=_expiry(value))


def _text(key: bytes | str) -> str:
    return key.decode() if isinstance(key, bytes) else key


def _expiry(seconds: float | None) -> datetime | None:
    return clock.now() + timedelta(seconds=float(seconds)) if seconds else None
