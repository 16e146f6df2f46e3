"""The current time, for the whole app, and Django's form of a datetime, which depends on ``USE_TZ``.

``dynamo_single.testing`` can stop or move this clock. It affects everything that the app stores or compares with the
current time: times to live, sessions, caches, the trash and ``auto_now``. This module must not depend on the purpose of
the time, and does not measure durations: waits and time limits use ``time.monotonic()``, which is never moved.
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
    """The difference between the app's clock and the computer's: when it was stopped, and how far it was moved."""

    stopped: datetime | None = None
    moved: timedelta = timedelta()


#: One for the process, so that all threads see the same time.
adjustment = Adjustment()


def now() -> datetime:
    """Return the current time in Django's form: aware and in UTC, or naive and local without ``USE_TZ``."""
    if adjustment.stopped is None:
        return timezone.now() + adjustment.moved
    return as_django(adjustment.stopped + adjustment.moved)


def instant() -> datetime:
    """Return the current time in UTC for calculations, regardless of ``USE_TZ`` and of daylight saving time."""
    return in_utc(now())


def in_utc(moment: datetime) -> datetime:
    """Return a datetime in UTC. A naive one is in ``TIME_ZONE``, as in Django.

    ``fold`` distinguishes the two passes of a repeated hour. Raises ``OverflowError`` outside the years 1 to 9999.
    """
    return EPOCH + ((timezone.make_aware(moment, zone()) if timezone.is_naive(moment) else moment) - EPOCH)


def as_django(moment: datetime) -> datetime:
    """Return an aware datetime in Django's form: in UTC, or naive in ``TIME_ZONE`` with ``USE_TZ = False``."""
    return moment.astimezone(UTC) if settings.USE_TZ else moment.astimezone(zone()).replace(tzinfo=None)


def zone() -> tzinfo:
    """Return the time zone of naive datetimes: ``TIME_ZONE``."""
    if not settings.TIME_ZONE:
        raise ImproperlyConfigured("TIME_ZONE is empty, so that a datetime without a time zone is ambiguous.")
    return timezone.get_default_timezone()


def today() -> date:
    """Return the current date in the process's time zone, as Django's ``auto_now`` does."""
    return date.fromtimestamp(timestamp())


def time_of_day() -> time_of_a_day:
    """Return the current time of day in the process's time zone, as Django's ``auto_now`` does."""
    return datetime.fromtimestamp(timestamp()).time()


def timestamp() -> float:
    """Return the current time in seconds since 1970."""
    present = time.time() if adjustment.stopped is None else adjustment.stopped.timestamp()
    return present + adjustment.moved.total_seconds()
