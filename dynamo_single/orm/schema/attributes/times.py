"""Attributes of times of day and of durations."""

from __future__ import annotations

import datetime
from decimal import Context, Inexact
from typing import Any

from django.utils.dateparse import parse_duration, parse_time

from dynamo_single.orm.schema.attributes.base import Attribute, Label
from dynamo_single.orm.schema.attributes.scalars import exact_number
from dynamo_single.orm.schema.encoding import values
from dynamo_single.orm.schema.encoding.values import MICROSECOND
from dynamo_single.orm.schema.fields import times
from dynamo_single.table.limits import MAX_DIGITS

#: Python's own context keeps 28 digits; a stored number has up to 38.
_EXACT = Context(prec=MAX_DIGITS + 6, traps=[Inexact])


class TimeAttribute(Attribute[datetime.time]):
    """A time of day without a zone, stored as ISO text, to the microsecond.

    ``auto_now_add`` and ``auto_now`` as in Django.
    """

    attr_type = "S"
    key_kind = "time"
    expects = "a time of day without a zone"
    field_class = times.TimeField

    def __init__(
        self, verbose_name: Label | None = None, *, auto_now: bool = False, auto_now_add: bool = False, **options: Any
    ) -> None:
        super().__init__(verbose_name, **options)
        self.field_options |= {"auto_now": auto_now, "auto_now_add": auto_now_add}

    def clean(self, value: Any) -> datetime.time:
        """A ``time``, ISO text, or the time of a ``datetime`` as Django takes it; none has a zone."""
        time = parse_time(value) if isinstance(value, str) else value
        if isinstance(time, datetime.datetime):
            time = time.time()
        if not isinstance(time, datetime.time) or time.tzinfo is not None:
            raise self.refuse(value)
        return time.replace(fold=0)

    def encode(self, value: datetime.time) -> str:
        """ISO text."""
        return value.isoformat()

    def decode(self, inner: str) -> datetime.time:
        """From ISO text."""
        return self.clean(datetime.time.fromisoformat(inner))


class DurationAttribute(Attribute[datetime.timedelta]):
    """How long something takes, stored as a number of seconds, exact to the microsecond."""

    attr_type = "N"
    key_kind = "duration"
    expects = "a duration"
    field_class = times.DurationField

    def clean(self, value: Any) -> datetime.timedelta:
        """A ``timedelta``, or text in the forms that Django's ``parse_duration()`` takes."""
        duration = parse_duration(value) if isinstance(value, str) else value
        if not isinstance(duration, datetime.timedelta):
            raise self.refuse(value)
        return duration

    def encode(self, value: datetime.timedelta) -> str:
        """The number of seconds."""
        return values.number_to_text(values.seconds(value), path=self.name)

    def decode(self, inner: str) -> datetime.timedelta:
        """From the number of seconds; raises ``ValueError`` for what is finer than a microsecond."""
        microseconds = _EXACT.scaleb(exact_number(self, inner), 6)
        if microseconds != microseconds.to_integral_value():
            raise ValueError(inner)
        return int(microseconds) * MICROSECOND
