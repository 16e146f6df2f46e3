"""The lease that a process holds on a table's schema, and the requests that it sends under it.

A process reads the state of a table's items with a revision, and may act on it until the lease's deadline. Requests are
signed with a date that AWS stops accepting at the deadline, so DynamoDB itself rejects a request that is sent too late,
however long the process was stopped before it sent it. AWS documents that "in most cases" a signature is accepted for
five minutes: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html. ``tolerance`` is
therefore measured. The module does not send requests.
"""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import Final

from dynamo_single.exceptions import Superseded

#: The longest lease in seconds, from the ``Date`` of the response with the state to the deadline.
LONGEST: Final = 60.0
#: Seconds to wait beyond a deadline: the clocks of DynamoDB's hosts differ, ``Date`` has whole seconds, and some time
#: passes between the check of a signature and the write.
MARGIN: Final = 3.0


class Lease:
    """The right to send requests by one revision of a table's state until ``deadline``.

    Threads and event loops share a lease. A closed lease is never opened again or renewed. After a process has closed
    a lease, it may tell others as soon as ``is_idle``: no request of the lease is sent or executed after that.
    """

    __slots__ = ("_lost_at", "deadline", "ends", "is_closed", "length", "revision", "tolerance", "under_way")

    def __init__(
        self, revision: int, deadline: float, tolerance: float | None = None, *, length: float = LONGEST
    ) -> None:
        self.revision = revision
        #: Seconds since 1970 by the server's clock. A renewal under the same revision moves it forward.
        self.deadline = deadline
        #: How many seconds AWS accepts a signature after its date; ``None`` if requests are dated by the clock.
        self.tolerance = tolerance
        #: Whether a newer revision has replaced this revision.
        self.is_closed = False
        #: The requests that are sent and have no response yet. Setting and deleting a key is atomic, unlike ``+=``.
        self.under_way: dict[int, None] = {}
        #: When an attempt of a write was last given up without a response, by ``time.monotonic()``.
        self._lost_at = -inf
        #: The most seconds from a renewal to its deadline.
        self.length = length
        #: The deadline by ``time.monotonic()``, which does not advance while the machine is suspended. It is checked
        #: before a request is sent, and is all there is at an endpoint that does not check dates.
        self.ends = inf

    def enter(self, token: int) -> None:
        """Begin a request; raise ``Superseded`` if the lease is closed or over.

        ``token`` is unique among the requests under way.
        """
        # Dekker's order: this side adds the request and then checks is_closed. The other side closes and then checks
        # is_idle. At least one of the two sees the other.
        self.under_way[token] = None
        if self.is_closed or monotonic() > self.ends:
            del self.under_way[token]
            raise Superseded(
                "The state of the table changed, or was read too long ago, before a request was sent. Nothing was "
                "written. Begin the operation again."
            )

    def leave(self, token: int) -> None:
        """End a request, whatever its outcome."""
        self.under_way.pop(token, None)

    def lose(self) -> None:
        """Record that an attempt of a write has no response, so it may still arrive until the current deadline."""
        self._lost_at = monotonic()

    def close(self) -> None:
        """Refuse further requests. Requests that are under way are finished."""
        self.is_closed = True

    @property
    def is_idle(self) -> bool:
        """Return whether no request is under way, including attempts without a response that may still arrive.

        Such an attempt is over after the length of the lease and the margin, because it was signed before.
        """
        return not self.under_way and monotonic() > self._lost_at + self.length + MARGIN

    @property
    def signed_at(self) -> float | None:
        """The date of signatures in seconds since 1970; ``None`` if requests are dated by the clock."""
        tolerance = self.tolerance
        return None if tolerance is None else self.deadline - tolerance
