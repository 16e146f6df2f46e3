"""Helpers for tests of the cache: settings, a clock, and the table's contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.cache import caches
from django.test import override_settings

from dynamo_single.table import Request, SentRequest, Table

BACKEND = "dynamo_single.cache.DynamoCache"

#: Calls of each method that takes one key: the arguments after the key.
USES: list[tuple[str, tuple[Any, ...]]] = [
    ("get", ()),
    ("set", (1,)),
    ("add", (1,)),
    ("touch", ()),
    ("delete", ()),
    ("has_key", ()),
    ("incr", ()),
    ("decr", ()),
    ("get_or_set", (1,)),
    ("incr_version", ()),
    ("decr_version", ()),
]
#: Methods with several keys, and the type of their argument.
MANY: list[tuple[str, Callable[..., Any]]] = [
    ("get_many", list),
    ("set_many", dict.fromkeys),
    ("delete_many", list),
]


@contextmanager
def cache_of(**settings: Any) -> Iterator[Any]:
    """The default cache of a project with these settings."""
    with override_settings(CACHES={"default": {"BACKEND": BACKEND, "LOCATION": "default", **settings}}):
        yield caches["default"]


def large(seed: int = 0, size: int = 1_000_000) -> bytes:
    """A value that is larger than an item may be; different for each seed."""
    return bytes([seed]) * size


def items(table: Table, item_type: str = "") -> list[dict[str, Any]]:
    """The items of the table, of one type or of all."""
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    while True:
        page = table.send(Request("Scan", params))
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return [item for item in found if item_type in ("", item["itemType"]["S"])]
        params = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def operations(sent: list[SentRequest]) -> list[str]:
    """Return the operations sent, in order."""
    return [request.operation for request in sent]


class Clock:
    """A time that stands still until a test moves it."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        """Return the simulated ``time.time()``."""
        return self.now
