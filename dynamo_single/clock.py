"""What time it is: the one place in the app that asks; and how Django writes a moment, which ``USE_TZ`` decides.

``dynamo_single.testing`` stops this clock or moves it, and everything that the app stores or compares with the present
goes along: times to live, sessions, caches, the trash, ``auto_now``. This module must not know what the time is for,
and it measures nothing: waiting and time limits go by ``time.monotonic()``, which nobody moves.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as time_of_a_day

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from msgspec import Struct

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Adjustment(Struct):
    """How the clock differs from the computer's: where it was stopped, if it was, and how far it was moved then."""

    stopped: datetime | None = None
    moved: timedelta = timedelta()


#: One for the process, so that every thread sees the same time.
adjustment = Adjustment()


def now() -> datetime:
    """The present as Django gives it: aware and in UTC, or naive and local without ``USE_TZ``."""
    if adjustment.stopped is None:
        return timezone.now() + adjustment.moved
    return as_django(adjustment.stopped + adjustment.moved)


def instant() -> datetime:
    """The present in UTC whatever ``USE_TZ`` says, to compute with: no change of clocks makes an hour more or less."""
    return in_utc(now())


def in_utc(moment: datetime) -> datetime:
    """A moment in UTC; a naive one is read by the clocks of ``TIME_ZONE``, as Django does.

    Of an hour that these clocks show twice, ``fold`` tells which is meant. Raises ``OverflowError`` outside the years
    1 to 9999.
    """
    return EPOCH + ((timezone.make_aware(moment, zone()) if timezone.is_naive(moment) else moment) - EPOCH)


def as_django(moment: datetime) -> datetime:
    """An aware moment as Django gives it: in UTC, or with ``USE_TZ = False`` naive, by the clocks of ``TIME_ZONE``."""
    return moment.astimezone(UTC) if settings.USE_TZ else moment.astimezone(zone()).replace(tzinfo=None)


def zone() -> tzinfo:
    """The time zone of moments that name none: ``TIME_ZONE``."""
    if not settings.TIME_ZONE:
        raise ImproperlyConfigured("TIME_ZONE is empty, so that a moment without a time zone has no place in time.")
    return timezone.get_default_timezone()


def today() -> date:
    """The present day where the process runs, which is what Django's ``auto_now`` means by a day."""
    return date.fromtimestamp(timestamp())


def time_of_day() -> time_of_a_day:
    """The present time of day where the process runs, which is what Django's ``auto_now`` means by a time."""
    return datetime.fromtimestamp(timestamp()).time()


def timestamp() -> float:
    """The present in seconds since 1970."""
    present = time.time() if adjustment.stopped is None else adjustment.stopped.timestamp()
    return present + adjustment.moved.total_seconds()
