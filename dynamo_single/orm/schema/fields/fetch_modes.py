"""The fetch modes of Django 6.1, for Django 5.2: the same names, and the same protocol of ``fetch(fetcher, instance)``.

A fetcher has ``field``, ``fetch_one(instance)`` and ``fetch_many(instances)``
(https://docs.djangoproject.com/en/6.1/topics/db/fetch-modes/).
"""

from __future__ import annotations

from typing import Any

from dynamo_single.exceptions import FetchBlocked
from dynamo_single.orm.schema.types import DynamoModel


class FetchMode:
    """The behavior on access to a part of an object that was not loaded with it."""

    __slots__ = ("name",)

    #: Whether the objects of one result know of each other.
    track_peers = False

    def __init__(self, name: str) -> None:
        self.name = name

    def fetch(self, fetcher: Any, instance: DynamoModel) -> None:
        """Read it."""
        raise NotImplementedError

    def __reduce__(self) -> str:
        return self.name  # pickled and copied, there is still one of each

    def __repr__(self) -> str:
        return self.name


class _One(FetchMode):
    __slots__ = ()

    def fetch(self, fetcher: Any, instance: DynamoModel) -> None:
        fetcher.fetch_one(instance)


class _Peers(FetchMode):
    __slots__ = ()
    track_peers = True

    def fetch(self, fetcher: Any, instance: DynamoModel) -> None:
        peers = [peer for each in instance._state.peers if (peer := each()) is not None]
        if len(peers) > 1:
            fetcher.fetch_many(peers)
        else:
            fetcher.fetch_one(instance)


class _Raise(FetchMode):
    __slots__ = ()

    def fetch(self, fetcher: Any, instance: DynamoModel) -> None:
        raise FetchBlocked(f"Fetching of {type(instance).__qualname__}.{fetcher.field.name} blocked.")


FETCH_ONE = _One("FETCH_ONE")
FETCH_PEERS = _Peers("FETCH_PEERS")
FETCH_RAISE = _Raise("FETCH_RAISE")
