"""Days and moments cut off to the year, month, week, day, hour, minute or second that they are in, as Django does it.

This module must not know attributes or querysets.
"""

from __future__ import annotations

import datetime

from django.utils import timezone

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.encoding.shown import shown

DAY_KINDS = ("year", "month", "week", "day")
KINDS = (*DAY_KINDS, "hour", "minute", "second")
ORDERS = ("ASC", "DESC")


def check(kind: str, kinds: tuple[str, ...], order: str) -> None:
    """Refuse a kind of period, or an order, that there is not."""
    for name, value, known in (("kind", kind, kinds), ("order", order, ORDERS)):
        if value not in known:
            raise InvalidValue(f"{name!r} is one of {', '.join(map(repr, known))}, not {shown(value)}.")


def day(value: datetime.date, kind: str) -> datetime.date:
    """The first day of the period that a day is in; of an aware moment, that of its day in the current time zone."""
    if isinstance(value, datetime.datetime):
        value = (timezone.localtime(value) if timezone.is_aware(value) else value).date()
    return _first_day(value, kind)


def moment(value: datetime.datetime, kind: str, zone: datetime.tzinfo) -> datetime.datetime:
    """The beginning of the period that a moment is in, by the clocks of a time zone, or as a naive one shows it."""
    # As in Django, the hour that clocks show twice is one period, the first of the two.
    is_aware = timezone.is_aware(value)
    local = (value.astimezone(zone) if is_aware else value).replace(tzinfo=None, fold=0)
    if kind in DAY_KINDS:
        start = datetime.datetime.combine(_first_day(local.date(), kind), datetime.time())
    else:
        start = local.replace(microsecond=0, second=0) if kind != "second" else local.replace(microsecond=0)
        start = start.replace(minute=0) if kind == "hour" else start
    return timezone.make_aware(start, zone) if is_aware else start


def _first_day(value: datetime.date, kind: str) -> datetime.date:
    if kind == "year":
        return value.replace(month=1, day=1)
    if kind == "month":
        return value.replace(day=1)
    if kind == "week":
        return value - datetime.timedelta(days=value.weekday())
    return value
