"""Record the items that this process writes to the test tables, and whether anything else may have written to them.

The guard records every request of all threads of the process. Python's audit events (PEP 578,
https://docs.python.org/3/library/audit_events.html) report new processes and the connections of other clients. Their
writes are not recorded, so only a Scan finds them. This module does not send requests, and does not depend on models or
on Django's tests.
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

from dynamo_single.table import redirects
from dynamo_single.table.request import READS, WRITES, Parameters
from dynamo_single.table.shaped.written_keys import has_keys, written_keys
from dynamo_single.table.table import translator_of

#: The primary keys of the written items, by the name of the table.
WrittenKeys = Mapping[str, Set[tuple[str, str]]]

#: The prefixes of other operations that do not change items.
_HARMLESS: Final = ("Describe", "List")
_PROCESSES: Final = frozenset(
    {"os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "subprocess.Popen"}
)
#: The modules with which the app itself connects to an engine or starts one.
_OURS: Final = ("dynamo_single.table.", "dynamo_single.engines")
#: The number of frames to search for these modules.
_DEPTH: Final = 60


class Level(IntEnum):
    """How long another process or client may keep writing: until the run, the test class or the test ends."""

    RUN = 0
    CLASS = 1
    TEST = 2


class _Record:
    """The items that this process has written since ``take_keys()``, and whether something else may have written."""

    def __init__(self) -> None:
        self.is_kept = False
        self.begin()

    def begin(self) -> None:
        """Reset the record."""
        self.written: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self.level = Level.RUN
        self.strangers: Level | None = None

    def disturb(self, level: Level) -> None:
        """Record that something else may write until a level ends."""
        self.strangers = level if self.strangers is None else min(level, self.strangers)


_record: Final = _Record()
_paused: ContextVar[bool] = ContextVar("paused", default=False)
_installed: Final[set[str]] = set()


def start() -> None:
    """Start recording.

    Python keeps the audit hook until the process ends; after ``stop()`` the hook does nothing.
    """
    _record.begin()
    _record.is_kept = True
    if not _installed:
        _installed.add("hook")
        sys.addaudithook(_audit_hook)


def stop() -> None:
    """Stop recording."""
    _record.begin()
    _record.is_kept = False


def record_request(operation: str, params: Parameters) -> None:
    """Record the items that a request writes; only a Scan finds those of a write without keys.

    Such a write is a project's own PartiQL statement.
    """
    if not _record.is_kept or _paused.get() or operation in READS or operation.startswith(_HARMLESS):
        return
    if operation not in WRITES or not has_keys(operation, params):
        _record.disturb(_record.level)
        return
    for table, partition, sort in written_keys(operation, params, translator_of):
        _record.written[table].add((partition, sort))


def take_keys() -> WrittenKeys:
    """Return the items that were written since the last call, and reset them."""
    written, _record.written = _record.written, defaultdict(set)
    return written


def is_complete() -> bool:
    """Return whether the record is complete: nothing but the recorded requests can have written."""
    return _record.is_kept and _record.strangers is None


def is_empty() -> bool:
    """Return whether nothing was written since ``take_keys()``."""
    return is_complete() and not any(_record.written.values())


def is_paused() -> bool:
    """Return whether this context is in a ``paused()`` block."""
    return _paused.get()


@contextmanager
def paused() -> Iterator[None]:
    """Do not record the requests of the block; those of other threads are recorded."""
    token = _paused.set(True)
    try:
        yield
    finally:
        _paused.reset(token)


def enter(level: Level) -> None:
    """Enter a test class or a test."""
    _record.level = level


def leave(level: Level) -> None:
    """Leave a test class or a test: processes that it started no longer write."""
    _record.level = Level(level - 1) if level else Level.RUN
    if _record.strangers is not None and _record.strangers >= level:
        _record.strangers = None


def _audit_hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _record.is_kept or (event != "socket.connect" and event not in _PROCESSES):
        return
    if _is_ours(sys._getframe(1)):
        return
    # A client may keep its connection to an engine, and later requests on it cause no event.
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
