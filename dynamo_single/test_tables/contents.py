"""All that one table holds, as a value: read, written as text, and given back to the table.

For tables of a local engine. Only differences are written: emptying a table after a test costs a Scan, and a
BatchWriteItem for each 25 items that were left. A test's listeners, interceptors and faults neither hear nor stop that.
Contents are held in memory, as a test's own data are.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from dynamo_single.table import batches, names
from dynamo_single.table.batches import Item, Write
from dynamo_single.table.flow import run
from dynamo_single.table.redirects import HEARD, SentRequest
from dynamo_single.table.request import MAX_BATCH_WRITES, Request
from dynamo_single.table.table import Table
from dynamo_single.test_tables import guard, record

T = TypeVar("T")
#: The items of a table by their keys.
Contents = Mapping[tuple[str, str], Item]
#: What emptying a table reads of its items.
_KEYS = f"{names.PARTITION_KEY}, {names.SORT_KEY}"


def read(table: Table) -> Contents:
    """Every item of the table: a Scan, of as many pages as there are megabytes."""
    return _without_log(partial(_read, table))


def restore(table: Table, wanted: Contents) -> int:
    """Make the table hold these items and no others, and return the number of differences.

    Sends a Scan, and the differences in batches of 25: those of this thread, of other threads and of other processes.
    """
    return _without_log(partial(_restore, table, wanted))


def put_back(table: Table, wanted: Contents, keys: Iterable[tuple[str, str]]) -> None:
    """Make the items of these keys as they are in ``wanted``, and delete those that are not in it: 25 a request."""

    def work() -> None:
        table.replaced += 1
        _write(table, [_undo_write(key, wanted.get(key)) for key in keys])

    _without_log(work)


def empty(table: Table, *, most: int) -> bool:
    """Delete what the table holds, unless that are more items; whether it is empty now."""

    def work() -> bool:
        found = table.send(Request("Scan", {"ConsistentRead": True, "Limit": most + 1, "ProjectionExpression": _KEYS}))
        if found.get("LastEvaluatedKey") or found["Count"] > most:
            return False
        _write(table, [_undo_write(_key(item), None) for item in found["Items"]])
        table.replaced += 1
        return True

    return _without_log(work)


def expire(table: Table, moment: float) -> int:
    """Delete the items whose time to live has ended at a moment, in seconds since 1970, as DynamoDB does in time."""
    found = _without_log(partial(_read, table))
    alive = {key: item for key, item in found.items() if not _has_expired(item, moment)}
    return restore(table, alive)


def as_text(contents: Contents) -> list[object]:
    """The items as values that JSON can write."""
    return [_encoded(item) for item in contents.values()]


def from_text(items: Sequence[object]) -> Contents:
    """What ``as_text()`` gave, as items again."""
    return {_key(item): item for item in map(_decoded, items)}


def _without_log(work: Callable[[], T]) -> T:
    # A new context has no listeners and no interceptors.
    return Context().run(_unguarded, work, record.paused() if record.is_paused() else nullcontext())


def _unguarded(work: Callable[[], T], recording: AbstractContextManager[None]) -> T:
    with guard.without_guard(), recording:
        return work()


def _read(table: Table) -> Contents:
    found: dict[tuple[str, str], Item] = {}
    for answer in table.pages(Request("Scan", {"ConsistentRead": True})):
        found |= {_key(item): item for item in answer["Items"]}
    return found


def _restore(table: Table, wanted: Contents) -> int:
    found = _read(table)
    table.replaced += 1
    writes = [_undo_write(key, None) for key in found if key not in wanted]
    writes += [_undo_write(key, item) for key, item in wanted.items() if found.get(key) != item]
    _write(table, writes)
    return len(writes)


def _write(table: Table, writes: Sequence[Write]) -> None:
    for start in range(0, len(writes), MAX_BATCH_WRITES):
        if rest := run(batches.write_batch(table, writes[start : start + MAX_BATCH_WRITES], patient=True)):
            raise rest.error


def _undo_write(key: tuple[str, str], item: Item | None) -> Write:
    return {"DeleteRequest": {"Key": _named(key)}} if item is None else {"PutRequest": {"Item": item}}


def _has_expired(item: Item, moment: float) -> bool:
    ends = item.get(names.EXPIRES_AT, {}).get("N")
    return ends is not None and float(ends) <= moment


def _key(item: Item) -> tuple[str, str]:
    return item[names.PARTITION_KEY]["S"], item[names.SORT_KEY]["S"]


def _named(key: tuple[str, str]) -> Item:
    return {names.PARTITION_KEY: {"S": key[0]}, names.SORT_KEY: {"S": key[1]}}


def _encoded(value: object) -> object:
    """JSON has no bytes; in an item they stand alone or in a list, under ``B`` and ``BS``."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: _encoded(each) for name, each in value.items()}
    return [_encoded(each) for each in value] if isinstance(value, (list, tuple, set)) else value


def _decoded(value: object) -> Any:
    if isinstance(value, Mapping):
        # A type of DynamoDB is one of its short names; "base64" is none.
        if value.keys() == {"base64"} and isinstance(value["base64"], str):
            return base64.b64decode(value["base64"])
        return {name: _decoded(each) for name, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value


# Requests in the log of queries that ``assertNumQueries`` counts and ``CaptureQueriesContext`` shows.
#
# A request counts for the default connection, and for others whose engine is ``dynamo_single.backend``. As with SQL,
# those of a live server's threads are not counted, and those that a read sends in threads of its own are.

VENDOR: Final = "dynamodb"


class _Log:
    """Writes into the logs of the connections of the thread that made it."""

    def __init__(self) -> None:
        self._connections: list[BaseDatabaseWrapper] = [
            connection
            for connection in connections.all()
            if connection.alias == DEFAULT_DB_ALIAS or connection.vendor == VENDOR
        ]

    def __call__(self, sent: SentRequest) -> None:
        for connection in self._connections:
            if connection.queries_logged:
                connection.queries_log.append({"sql": request_line(sent), "time": f"{sent.seconds:.3f}"})


def request_line(sent: SentRequest) -> str:
    """One request in one line, for messages."""
    shown = {name: value for name, value in sent.params.items() if name != "ReturnConsumedCapacity"}
    return f"{sent.operation} {shown}" + (f" -> {sent.error}" if sent.error else "")


def start() -> None:
    """Log the requests of this thread, and of those that work for it."""
    stop()
    HEARD.set((*HEARD.get(), _Log()))


def stop() -> None:
    """Log none any more."""
    HEARD.set(tuple(listener for listener in HEARD.get() if not isinstance(listener, _Log)))
