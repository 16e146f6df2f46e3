"""Which items this process has written to the test tables, and whether anything else may have written to them.

The guard notes every request of the process, of all threads. Python's audit events (PEP 578,
https://docs.python.org/3/library/audit_events.html) report processes that are started and connections that other
clients open: their writes are in no record, so that only a Scan finds them. This module sends no requests, and does not
depend on models or on Django's tests.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from itertools import chain
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

from dynamo_single.table import redirects, single_key
from dynamo_single.table.items import Parameters
from dynamo_single.table.request import READS

#: The primary keys of the items that were written, by the table's name.
Written = Mapping[str, Set[tuple[str, str]]]

_WRITES: Final = frozenset({"BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"})
#: What begins the names of the other operations that change nothing.
_HARMLESS: Final = ("Describe", "List")
_PROCESSES: Final = frozenset(
    {"os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "subprocess.Popen"}
)
#: The modules that connect to an engine, or start one, for the app itself.
_OURS: Final = ("dynamo_single.table.", "dynamo_single.engines")
#: How many frames are searched for them.
_DEPTH: Final = 60


class Level(IntEnum):
    """How long a process or a client may go on writing: until the end of the run, of the test class, or of the test."""

    RUN = 0
    CLASS = 1
    TEST = 2


class _Record:
    """What this process has written since ``take()``, and since when something else may have written."""

    def __init__(self) -> None:
        self.is_kept = False
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        self.written: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self.level = Level.RUN
        self.strangers: Level | None = None

    def disturb(self, level: Level) -> None:
        """Note that something else may write until the end of a level."""
        self.strangers = level if self.strangers is None else min(level, self.strangers)


_record: Final = _Record()
_paused: ContextVar[bool] = ContextVar("paused", default=False)
_installed: Final[set[str]] = set()


def start() -> None:
    """Keep a record from now on.

    Python keeps the audit hook until the process ends; after ``stop()`` the hook does nothing.
    """
    _record.begin()
    _record.is_kept = True
    if not _installed:
        _installed.add("hook")
        sys.addaudithook(_audit)


def stop() -> None:
    """Keep no record any more."""
    _record.begin()
    _record.is_kept = False


def note(operation: str, params: Parameters) -> None:
    """Note the items that a request writes. Of a write without keys, such as PartiQL's, only a Scan finds the items."""
    if not _record.is_kept or _paused.get() or operation in READS or operation.startswith(_HARMLESS):
        return
    if operation not in _WRITES:
        _record.disturb(_record.level)
        return
    for table, partition, sort in single_key.written_keys(operation, params):
        _record.written[table].add((partition, sort))


def take() -> Written:
    """Return what was written since the last call, and begin again."""
    written, _record.written = _record.written, defaultdict(set)
    return written


def is_complete() -> bool:
    """Return whether the record has all that can have been written: nothing else could write."""
    return _record.is_kept and _record.strangers is None


def is_empty() -> bool:
    """Return whether nothing was written since ``take()``."""
    return is_complete() and not any(_record.written.values())


def is_paused() -> bool:
    """Return whether this context is in a ``paused()`` block."""
    return _paused.get()


@contextmanager
def paused() -> Iterator[None]:
    """Leave out of the record what the block itself sends; other threads are noted."""
    token = _paused.set(True)
    try:
        yield
    finally:
        _paused.reset(token)


def enter(level: Level) -> None:
    """Begin a test class, or a test."""
    _record.level = level


def leave(level: Level) -> None:
    """End a test class, or a test: what was started in it writes no more."""
    _record.level = Level(level - 1) if level else Level.RUN
    if _record.strangers is not None and _record.strangers >= level:
        _record.strangers = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if not _record.is_kept or (event != "socket.connect" and event not in _PROCESSES):
        return
    if _is_ours(sys._getframe(1)):
        return
    # A client may keep its connection to an engine, so that no later use of it is heard.
    kept = event == "socket.connect" and _port(arguments[1]) in _engine_ports()
    _record.disturb(Level.RUN if kept else _record.level)


def _is_ours(frame: FrameType | None) -> bool:
    for _ in range(_DEPTH):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__", "")).startswith(_OURS):
            return True
        frame = frame.f_back
    return False


def _port(address: object) -> object:
    return address[1] if isinstance(address, tuple) and len(address) > 1 else None


def _engine_ports() -> set[int | None]:
    places = chain(redirects.state.stand_ins.values(), redirects.state.stand_ins)
    return {urlsplit(place.endpoint_url).port for place in places if place.endpoint_url}
