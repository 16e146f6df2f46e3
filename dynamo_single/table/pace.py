"""Keeping to a rate of capacity units: how long the next request has to wait, of what earlier ones consumed.

A request tells what it consumed only with its answer, so that a rate is kept by waiting after what was too much. This
module must not know what is asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from dynamo_single.table.listeners import SentRequest, listening
from dynamo_single.table.request import READS

#: How many seconds of a rate that were left unused may be made up for at once.
_SAVED: Final = 1.0


def pause_for(consumed: float, seconds: float, rate: float | None) -> float:
    """How many seconds to wait before the next request, to stay at ``rate`` units a second."""
    return 0.0 if rate is None else max(0.0, consumed / rate - seconds)


class Rate:
    """At most so many units a second on average, of all threads that use it; ``None`` for as many as they can.

    What one second left unused is not saved up for longer, so that a pause is followed by no burst.
    """

    def __init__(self, units: float | None, *, now: Callable[[], float] = time.monotonic) -> None:
        self._units = units
        self._now = now
        self._lock = threading.Lock()
        self._consumed = 0.0
        self._since = now()

    @property
    def consumed(self) -> float:
        """All units so far."""
        return self._consumed

    def count(self, units: float) -> None:
        """Something has been consumed."""
        with self._lock:
            self._consumed += units

    def pause(self) -> float:
        """How many seconds the next request has to wait."""
        if self._units is None:
            return 0.0
        with self._lock:
            present = self._now()
            self._since = max(self._since, present - self._consumed / self._units - _SAVED)
            return pause_for(self._consumed, present - self._since, self._units)


class Pace:
    """A rate for reading and one for writing.

    ``wait`` is what waits for some seconds, such as an event's, which ends the waiting when it is set.
    """

    def __init__(
        self, *, reads: float | None = None, writes: float | None = None, wait: Callable[[float], object] = time.sleep
    ) -> None:
        self.reads, self.writes = Rate(reads), Rate(writes)
        self._wait = wait

    def before(self, operation: str) -> None:
        """Wait as long as a request of this operation has to."""
        if pause := (self.reads if operation in READS else self.writes).pause():
            self._wait(pause)

    def counting(self) -> AbstractContextManager[None]:
        """Count what the requests of the block consume, and those of threads that have its context."""
        return listening(self._count)

    def _count(self, request: SentRequest) -> None:
        (self.reads if request.operation in READS else self.writes).count(request.consumed)
