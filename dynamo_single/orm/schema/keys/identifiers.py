"""ULIDs: identifiers that sort by when they were made, as https://github.com/ulid/spec has them.

26 characters of Crockford's base 32: 48 bits of milliseconds since 1970, and 80 others. This module must not know
attributes.
"""

from __future__ import annotations

import os
import secrets
import threading
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.values import shown

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH: Final = 26
_RANDOM_BITS: Final = 80
_LATEST: Final = 2**48
#: The maximum distance of two identifiers in one millisecond, so that the next one cannot be guessed.
_STEP_BITS: Final = 32


class _Last:
    """The last identifier of this process: others of the same millisecond come after it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.milliseconds = -1
        self.random = 0


_last = _Last()


def make_ulid() -> str:
    """Return a new identifier. Those of one process sort in the order of their creation, as long as its clock
    advances."""
    milliseconds = _milliseconds(clock.instant())
    with _last.lock:
        if milliseconds == _last.milliseconds:
            _last.random += 1 + secrets.randbits(_STEP_BITS)
        else:
            _last.milliseconds = milliseconds
            # The first bit is reserved for later ones in the same millisecond.
            _last.random = secrets.randbits(_RANDOM_BITS - 1)
        return _text(milliseconds, _last.random)


def first_at(moment: datetime) -> str:
    """Return the smallest identifier for a datetime; raise ``InvalidValue`` for other values, or before 1970."""
    if not isinstance(moment, datetime):
        raise InvalidValue(f"{shown(moment)} is not a datetime. Use a datetime, such as timezone.now().")
    return _text(_milliseconds(clock.in_utc(moment)), 0)


def _milliseconds(moment: datetime) -> int:
    found = (moment - clock.EPOCH) // timedelta(milliseconds=1)
    if not 0 <= found < _LATEST:
        raise InvalidValue(f"{moment!r} is before 1970, the earliest time of a ULID.")
    return found


def _text(milliseconds: int, random: int) -> str:
    number = (milliseconds << _RANDOM_BITS) | random
    return "".join(_DIGITS[number >> 5 * place & 31] for place in range(_LENGTH - 1, -1, -1))


# UUIDs of version 1, which contain their creation time; no two processes create the same one.  RFC 9562 allows a random
# node instead of a network card's address (section 6.9): containers often share that address, and it reveals the
# machine. Together with the clock sequence each process has 61 random bits, and a forked process has others than its
# parent.

#: The earliest datetime of such a UUID, and its ticks per microsecond.
_BEGINNING: Final = datetime(1582, 10, 15, tzinfo=UTC)
_TICKS: Final = 10
_MICROSECOND: Final = timedelta(microseconds=1)
#: The bit that no network card's address has.
_MULTICAST: Final = 1 << 40
_NODE_BITS: Final = 48
_SEQUENCE_BITS: Final = 14
#: A clock that went back by more than this, a second, gets another clock sequence.
_STEP_BACK: Final = 1_000_000 * _TICKS


class _Process:
    """The values that distinguish this process's UUIDs from all others, and the time of the last one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.node = secrets.randbits(_NODE_BITS) | _MULTICAST
        self.sequence = secrets.randbits(_SEQUENCE_BITS)
        self.last = 0

    def tick(self) -> tuple[int, int]:
        """Return a time that no UUID of this process and clock sequence has yet, and the clock sequence."""
        now = (clock.instant() - _BEGINNING) // _MICROSECOND * _TICKS
        with self.lock:
            if now < self.last - _STEP_BACK:
                self.sequence = (self.sequence + 1) % (1 << _SEQUENCE_BITS)
                self.last = now
            else:
                self.last = max(now, self.last + 1)
            return self.last, self.sequence


_process = _Process()


def _begin() -> None:
    """Begin as a process of its own: also with locks that no thread of the parent holds."""
    global _last, _process
    _last, _process = _Last(), _Process()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_begin)


def make_uuid() -> UUID:
    """Return a new UUID of version 1; those of one process sort in the order of their creation while its clock
    advances."""
    process = _process
    ticks, sequence = process.tick()
    fields = (ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF, sequence >> 8, sequence & 0xFF)
    return UUID(fields=(*fields, process.node), version=1)
