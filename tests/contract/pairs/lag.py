"""A fake of DynamoDB's eventual consistency at the seam: reads that may be behind show a copy that follows later.

The copy is a second table on the same engine, so its responses are real. A write reaches it up to ``most`` seconds
later by the app's clock, with a separate delay per item, in the order of its writes. Queries and Scans of an index read
the copy, and with ``of_table`` also inconsistent reads of the table. A write costs one more request, and a read also
sends the due writes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context
from datetime import UTC, datetime, timedelta
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.table import Table, flow, get_table, schema
from dynamo_single.table.request import WRITES, Parameters, Response
from dynamo_single.table.shaped.written_keys import written_keys
from dynamo_single.table.table import translator_of
from dynamo_single.test_tables import contents
from dynamo_single.testing import FrozenTime, expire_items, frozen_time, intercept

#: The most that an index is behind, in seconds.
MOST = 5.0
#: When histories begin.
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)

Key = tuple[str, str]
Item = dict[str, Any]


class Lag:
    """The copy of one table, and its pending writes."""

    def __init__(self, seed: int, *, most: float = MOST, of_table: bool = False) -> None:
        self.table = get_table()
        self.copy = copy_of(self.table.settings.endpoint_url or "")
        self.most, self.of_table = most, of_table
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        #: The pending writes: the time, the item, and its stored value.
        self.coming: list[tuple[float, Key, Item | None]] = []
        self.latest: dict[Key, float] = {}
        contents.restore(self.copy, contents.read(self.table))

    def __call__(self, operation: str, params: Parameters) -> Response | None:
        """Respond as an interceptor."""
        if operation in WRITES:
            return self.write(operation, params)
        if operation in {"Query", "Scan"} and "IndexName" in params:
            return self.read_behind(operation, params)
        if self.of_table and not is_consistent(operation, params):
            return self.read_behind(operation, params)
        return None

    def write(self, operation: str, params: Parameters) -> Response:
        """Carry a write out, and note what it has left of each item."""
        with self.lock:
            answer = unheard(self.table, operation, params)
            keys = {tuple(part["S"] for part in key.values()): key for key in keys_of(operation, params)}
            wanted = {"Keys": [*keys.values()], "ConsistentRead": True}
            read = unheard(self.table, "BatchGetItem", {"RequestItems": {self.table.name: wanted}})
            found = {key_of(item): item for item in read["Responses"].get(self.table.name, ())}
            for pair in keys:
                key = pair[0], pair[1]
                due = clock.timestamp() + self.random.uniform(0, self.most)
                self.latest[key] = max(due, self.latest.get(key, 0.0))
                self.coming.append((self.latest[key], key, found.get(key)))
            return answer

    def read_behind(self, operation: str, params: Parameters) -> Response:
        """Read the copy."""
        with self.lock:
            self.follow(clock.timestamp())
            answer = unheard(self.copy, operation, renamed(params, self.table.name, self.copy.name))
        for name in {"Responses", "UnprocessedKeys"} & answer.keys():
            answer[name] = dict(zip([self.table.name], answer[name].values(), strict=False))
        return answer

    def follow(self, moment: float) -> None:
        """Let the copy have all that has reached it by a moment."""
        arrived = [each for each in self.coming if each[0] <= moment]
        self.coming = [each for each in self.coming if each[0] > moment]
        images = {key: item for _, key, item in arrived}
        writes = [
            {"DeleteRequest": {"Key": key_item(key)}} if item is None else {"PutRequest": {"Item": item}}
            for key, item in images.items()
        ]
        for start in range(0, len(writes), 25):
            batch = {"RequestItems": {self.copy.name: writes[start : start + 25]}}
            unheard(self.copy, "BatchWriteItem", batch)


class Time:
    """The clock of a history."""

    def __init__(self, frozen: FrozenTime, lag: Lag) -> None:
        self._frozen, self._lag = frozen, lag

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._frozen.move(timedelta(seconds=seconds))

    def settle(self) -> None:
        """Let all indexes come up with their table."""
        self.move(self._lag.most)

    def expire(self) -> None:
        """Let DynamoDB delete what has expired, and the indexes know of it."""
        self.settle()
        expire_items()
        with self._lag.lock:
            self._lag.follow(clock.timestamp())
            contents.restore(self._lag.copy, contents.read(self._lag.table))


@contextmanager
def lagging(seed: int, *, most: float = MOST, of_table: bool = False) -> Iterator[Time]:
    """Within the block the app's clock stands still, waiting moves it, and reads may be behind."""
    lag = Lag(seed, most=most, of_table=of_table)
    with frozen_time(BEGINNING) as frozen, intercept(lag):
        time = Time(frozen, lag)
        with mock.patch.object(flow, "time", SimpleNamespace(sleep=time.move)):
            yield time


@cache
def copy_of(endpoint: str) -> Table:
    """The second table on an engine, which all histories of a process share."""
    table = get_table()
    assert table.settings.endpoint_url == endpoint
    return schema.recreate(Table(replace(table.settings, table_name=f"{table.name}-later")))


def unheard(table: Table, operation: str, params: Mapping[str, Any]) -> Any:
    """Send a request of which no listener and no interceptor hears."""
    return Context().run(table.call, operation, params)


def is_consistent(operation: str, params: Parameters) -> bool:
    """Return whether a request shows all earlier writes."""
    if operation == "BatchGetItem":
        return all(each.get("ConsistentRead") for each in params["RequestItems"].values())
    return operation not in {"GetItem", "Query", "Scan"} or bool(params.get("ConsistentRead"))


def renamed(params: Parameters, name: str, other: str) -> dict[str, Any]:
    """Return the request for another table."""
    if "RequestItems" in params:
        return {**params, "RequestItems": {other: params["RequestItems"][name]}}
    return {**params, "TableName": other}


def keys_of(operation: str, params: Mapping[str, Any]) -> Iterator[Item]:
    """The keys of the items that a request writes."""
    if operation == "TransactWriteItems":
        actions = [action for action in params["TransactItems"] if "ConditionCheck" not in action]
        params = {**params, "TransactItems": actions}
    for _, partition, sort in written_keys(operation, params, translator_of):
        yield key_item((partition, sort))


def key_of(item: Mapping[str, Any]) -> Key:
    """The key of an item."""
    return item["pk"]["S"], item["sk"]["S"]


def key_item(key: Key) -> Item:
    """A key as requests have it."""
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
