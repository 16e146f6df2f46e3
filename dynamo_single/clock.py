"""What time it is: the one place in the app that asks.

``dynamo_single.testing`` stops this clock or moves it, and everything that the app stores or compares with the present
goes along: times to live, sessions, caches, the trash, ``auto_now``. This module must not know what the time is for,
and it measures nothing: waiting and time limits go by ``time.monotonic()``, which nobody moves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.utils import timezone


@dataclass(slots=True)
class Adjustment:
    """How the clock differs from the computer's: where it was stopped, if it was, and how far it was moved then."""

    stopped: datetime | None = None
    moved: timedelta = timedelta()


#: One for the process, so that every thread sees the same time.
adjustment = Adjustment()


def now() -> datetime:
    """The present as Django gives it: aware and in UTC, or naive and local without ``USE_TZ``."""
    if adjustment.stopped is None:
        return timezone.now() + adjustment.moved
    present = adjustment.stopped + adjustment.moved
    return present.astimezone(UTC) if settings.USE_TZ else present.astimezone().replace(tzinfo=None)


def today() -> date:
    """The present day where the process runs, which is what Django's ``auto_now`` means by a day."""
    return date.fromtimestamp(timestamp())


def timestamp() -> float:
    """The present in seconds since 1970."""
    present = time.time() if adjustment.stopped is None else adjustment.stopped.timestamp()
    return present + adjustment.moved.total_seconds()
