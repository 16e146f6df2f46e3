"""The contents of one table as a value: read, written as text, and restored. Requests in Django's query log.

The functions are for tables of a local engine. Only differences are written: emptying a table after a test takes a
Scan, and a BatchWriteItem for each 25 remaining items. Listeners, interceptors and faults of a test do not affect these
requests. The contents are held in memory, like the data of the test itself.

``assertNumQueries`` counts the requests in the query log, and ``CaptureQueriesContext`` shows them. A request counts
for the default connection, and for connections whose engine is ``dynamo_single.backend``. As with SQL, requests in
threads of a live server are not counted. Requests that a read sends in threads of the app are counted.
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
from dynamo_single.table.redirects import LISTENERS, SentRequest
from dynamo_single.table.request import MAX_BATCH_WRITES, Request
from dynamo_single.table.table import Table
from dynamo_single.test_tables import guard, write_record

T = TypeVar("T")
#: The items of a table by their keys.
Contents = Mapping[tuple[str, str], Item]
#: The attributes that are read to empty a table.
_KEYS = f"{names.PARTITION_KEY}, {names.SORT_KEY}"


def read(table: Table) -> Contents:
    """Return every item of the table: a Scan, with a request per megabyte."""
    return _without_log(partial(_read, table))


def restore(table: Table, wanted: Contents) -> int:
    """Make the table contain exactly these items, and return the number of differences.

    Sends a Scan, and the differences in batches of 25, including those that other threads and processes caused.
    """
    return _without_log(partial(_restore, table, wanted))


def put_back(table: Table, wanted: Contents, keys: Iterable[tuple[str, str]]) -> None:
    """Restore the items with these keys, and delete those that are not in ``wanted``: one request for each 25."""

    def work() -> None:
        table.replaced += 1
        _write(table, [_undo_write(key, wanted.get(key)) for key in keys])

    _without_log(work)


def empty(table: Table, *, most: int) -> bool:
    """Delete all items unless there are more than ``most``. Return whether the table is empty now."""

    def work() -> bool:
        found = table.send(Request("Scan", {"ConsistentRead": True, "Limit": most + 1, "ProjectionExpression": _KEYS}))
        if found.get("LastEvaluatedKey") or found["Count"] > most:
            return False
        _write(table, [_undo_write(_key(item), None) for item in found["Items"]])
        table.replaced += 1
        return True

    return _without_log(work)


def expire(table: Table, moment: float) -> int:
    """Delete items whose time to live ended before ``moment``, in seconds since 1970, as DynamoDB does eventually."""
    found = _without_log(partial(_read, table))
    alive = {key: item for key, item in found.items() if not _has_expired(item, moment)}
    return restore(table, alive)


def as_text(contents: Contents) -> list[object]:
    """Return the items as values that JSON can represent."""
    return [_encoded(item) for item in contents.values()]


def from_text(items: Sequence[object]) -> Contents:
    """Return the items that ``as_text()`` represented."""
    return {_key(item): item for item in map(_decoded, items)}


def _without_log(work: Callable[[], T]) -> T:
    # A new context has no listeners and no interceptors.
    return Context().run(_unguarded, work, write_record.paused() if write_record.is_paused() else nullcontext())


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
    """Return a value with its bytes as base64. An item contains bytes alone or in a list, under ``B`` and ``BS``."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: _encoded(each) for name, each in value.items()}
    return [_encoded(each) for each in value] if isinstance(value, (list, tuple, set)) else value


def _decoded(value: object) -> Any:
    if isinstance(value, Mapping):
        # A DynamoDB type is one of the short names, which do not include "base64".
        if value.keys() == {"base64"} and isinstance(value["base64"], str):
            return base64.b64decode(value["base64"])
        return {name: _decoded(each) for name, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value


VENDOR: Final = "dynamodb"


class _Log:
    """Adds requests to the query logs of the connections of the thread that created it."""

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
    """Return one request in one line, for messages."""
    shown = {name: value for name, value in sent.params.items() if name != "ReturnConsumedCapacity"}
    return f"{sent.operation} {shown}" + (f" -> {sent.error}" if sent.error else "")


def start() -> None:
    """Log the requests of this thread, and of threads that work for it."""
    stop()
    LISTENERS.set((*LISTENERS.get(), _Log()))


def stop() -> None:
    """Stop logging requests."""
    LISTENERS.set(tuple(listener for listener in LISTENERS.get() if not isinstance(listener, _Log)))
