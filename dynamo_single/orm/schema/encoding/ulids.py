"""ULIDs: identifiers that sort by when they were made, as https://github.com/ulid/spec has them.

26 characters of Crockford's base 32: 48 bits of milliseconds since 1970, and 80 others. This module must not know
attributes.
"""

from __future__ import annotations

import os
import secrets
import threading
from datetime import datetime, timedelta
from typing import Final

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.encoding.shown import shown

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH: Final = 26
_RANDOM_BITS: Final = 80
_LATEST: Final = 2**48
#: How far apart two of one millisecond are at most, so that nobody guesses the next one.
_STEP_BITS: Final = 32


class _Last:
    """What this process has made last: others of the same millisecond come after it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.milliseconds = -1
        self.random = 0


_last = _Last()


def _begin_ulids() -> None:
    """Begin as a process of its own: also with a lock that no thread of the parent holds."""
    global _last
    _last = _Last()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_begin_ulids)


def make_ulid() -> str:
    """A new one. Those that a process makes are in the order in which it makes them, as long as its clock goes on."""
    milliseconds = _milliseconds(clock.instant())
    with _last.lock:
        if milliseconds == _last.milliseconds:
            _last.random += 1 + secrets.randbits(_STEP_BITS)
        else:
            _last.milliseconds = milliseconds
            # The first bit is left for those that follow.
            _last.random = secrets.randbits(_RANDOM_BITS - 1)
        return _text(milliseconds, _last.random)


def first_at(moment: datetime) -> str:
    """The least one that can be made from a moment on; raises ``InvalidValue`` for what is none, or before 1970."""
    if not isinstance(moment, datetime):
        raise InvalidValue(f"{shown(moment)} is not a moment: give a datetime, such as timezone.now().")
    return _text(_milliseconds(clock.in_utc(moment)), 0)


def _milliseconds(moment: datetime) -> int:
    found = (moment - clock.EPOCH) // timedelta(milliseconds=1)
    if not 0 <= found < _LATEST:
        raise InvalidValue(f"{moment!r} is before 1970, where no ULID begins.")
    return found


def _text(milliseconds: int, random: int) -> str:
    number = (milliseconds << _RANDOM_BITS) | random
    return "".join(_DIGITS[number >> 5 * place & 31] for place in range(_LENGTH - 1, -1, -1))
