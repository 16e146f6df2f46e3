"""Attributes of datetimes, dates, times of day and durations."""

from __future__ import annotations

import datetime
import warnings
from decimal import Context, Inexact
from typing import Any, Literal, TypeVar

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime, parse_duration, parse_time

from dynamo_single import clock
from dynamo_single.clock import EPOCH
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.schema.attributes.base import Absent, Attribute, Label, Null
from dynamo_single.orm.schema.attributes.scalars import exact_number
from dynamo_single.orm.schema.fields import base, simple
from dynamo_single.orm.schema.keys import datetimes, values
from dynamo_single.orm.schema.keys.codecs import moment_kind
from dynamo_single.orm.schema.keys.values import MICROSECOND, gettext_noop
from dynamo_single.table import names
from dynamo_single.table.request import MAX_DIGITS

MILLISECOND = datetime.timedelta(milliseconds=1)
DayOrTime = TypeVar("DayOrTime", datetime.date, datetime.time)
_UNITS = {"ms": MILLISECOND, "s": datetime.timedelta(seconds=1)}
_NAMES_OF_UNITS = {unit: name for name, unit in _UNITS.items()}
#: The forms that ``stored_as`` names: numbers by their units, and strings by their formats.
_NUMBERS = {"milliseconds": "ms", "seconds": "s"}
_EXAMPLE = "%Y-%m-%dT%H:%M:%SZ"
_TEXTS = {"iso": datetimes.ISO, "pynamodb": datetimes.PYNAMODB}
#: Python's own context keeps 28 digits; a stored number has up to 38.
_EXACT = Context(prec=MAX_DIGITS + 6, traps=[Inexact])


class TimestampAttribute(Attribute[datetime.datetime, Null]):
    """A datetime, stored as epoch milliseconds (N) and returned as Django returns one from a database.

    That is an aware ``datetime`` in UTC, or with ``USE_TZ = False`` a naive one by the clocks of ``TIME_ZONE``:
    https://docs.djangoproject.com/en/5.2/topics/i18n/timezones/
    ``auto_now_add`` sets it on creation, ``auto_now`` on every save. Finer parts than a millisecond are cut off.

    ``stored_as`` declares the form of another program's values:

    - ``"milliseconds"``: the default; ``"seconds"``, or ``unit="s"``: epoch seconds. Reading accepts fractions.
    - ``"iso"``: the string (S) that JavaScript writes, ``2024-05-01T12:00:00.123Z``; ``"pynamodb"``: the string that
      PynamoDB's ``UTCDateTimeAttribute`` writes; a format such as ``"%Y-%m-%dT%H:%M:%SZ"``: a string that sorts
      by time.
      Reading accepts any ISO 8601 string. Filters and keys compare strings, and need the declared form.
    """

    attr_type = "N"
    key_kind = "timestamp"
    expects = gettext_noop("a date and time")
    field_class = base.TimestampField
    rounds = True
    unit = MILLISECOND

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        auto_now: bool = False,
        auto_now_add: bool = False,
        unit: Literal["ms", "s"] | None = None,
        stored_as: str | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.field_options |= {"auto_now": auto_now, "auto_now_add": auto_now_add}
        if unit is not None and unit not in _UNITS:
            raise ConfigurationError(f"{type(self).__name__}(unit={unit!r}): there are 'ms' and 's'.")
        if unit is not None and stored_as is not None:
            raise ConfigurationError(f"{type(self).__name__} takes either unit or stored_as: omit unit.")
        if unit is not None or stored_as in _NUMBERS:
            self.unit = _UNITS[unit or _NUMBERS[str(stored_as)]]
        elif stored_as is not None:
            self._store_as_text(stored_as)

    def _store_as_text(self, stored_as: str) -> None:
        known: list[str] = [*_NUMBERS, *_TEXTS, _EXAMPLE]
        known += [stored_as] if isinstance(stored_as, str) and "%" in stored_as else []
        forms = dict.fromkeys(known, _MomentText)
        name = _TEXTS.get(stored_as, stored_as)
        form = datetimes.datetime_format(name if stored_as in forms else datetimes.ISO)
        self.store_as(stored_as, forms, format=form, unit=form.unit, key_kind=moment_kind(name))

    def stored_options(self) -> dict[str, object]:
        """The form, or the unit where it is another than the class's own."""
        if self.stored_as:
            return super().stored_options()
        return {} if self.unit == type(self).unit else {"unit": _NAMES_OF_UNITS[self.unit]}

    def clean(self, value: object) -> datetime.datetime:
        """A ``datetime``, a ``date`` (its midnight) or ISO text, cut off to the unit.

        A naive one is taken in Django's default time zone, with ``USE_TZ`` with the warning of ``DateTimeField``.
        """
        return clock.as_django(self.floor(self._moment(value)))

    def lookup_value(self, value: object) -> datetime.datetime | None:
        """Return the datetime in UTC, not cut off."""
        if value is None:
            return None
        try:
            return self._moment(value)
        except InvalidValue:
            raise
        except (ValueError, ArithmeticError) as error:
            raise self.refuse(value) from error

    def floor(self, value: datetime.datetime) -> datetime.datetime:
        """Return the last storable datetime that is not after this aware one."""
        moment: datetime.datetime = EPOCH + (value - EPOCH) // self.unit * self.unit
        return moment

    def _moment(self, given: object) -> datetime.datetime:
        value = given
        if isinstance(value, str):
            value = parse_datetime(value) or parse_date(value)
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime.datetime):
            raise self.refuse(given)
        if settings.USE_TZ and timezone.is_naive(value):
            model = f"{self.field.model.__name__}." if hasattr(self, "field") else ""
            said = f"{model}{self.name} received a naive datetime ({value}) while time zone support is active."
            warnings.warn(said, RuntimeWarning, stacklevel=2)
        return clock.in_utc(value)

    def encode(self, value: datetime.datetime) -> str:
        """The number of units since 1970."""
        return str((clock.in_utc(value) - EPOCH) // self.unit)

    def decode(self, inner: str) -> datetime.datetime:
        """From the number of units since 1970; another program may store fractions of them."""
        try:
            moment = EPOCH + int(inner) * self.unit
        except ValueError:
            microseconds = exact_number(self, inner) * (self.unit // MICROSECOND)
            moment = EPOCH + int(microseconds) * MICROSECOND
        return moment if settings.USE_TZ else clock.as_django(moment)

    def to_text(self, value: object) -> str:
        """Return ISO 8601 in UTC whatever ``USE_TZ`` is, so that references with this string stay valid."""
        prepared = self.prepare(value)
        return "" if prepared is None else clock.in_utc(prepared).isoformat()


class _MomentText(Attribute[datetime.datetime, Null]):
    """The form of datetimes as strings."""

    attr_type = "S"
    format: datetimes.DatetimeFormat

    def encode(self, value: datetime.datetime) -> str:
        """Text in the format."""
        return self.format.write(value)

    def decode(self, inner: str) -> datetime.datetime:
        """From ISO 8601 text."""
        moment = datetimes.read_datetime(inner)
        return moment if settings.USE_TZ else clock.as_django(moment)


class TTLAttribute(TimestampAttribute[Absent]):
    """When the item expires, stored as epoch seconds: DynamoDB's time to live.

    Expired items are never returned, also before DynamoDB deletes them, which it does within a few days:
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html

    With ``provisional=True`` objects expire only before others refer to them, such as unconfirmed sign-ups: references
    to the model may have an ``on_delete``. If such an object expires nevertheless, references to it stay.
    """

    unit = datetime.timedelta(seconds=1)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        provisional: bool = False,
        null: Absent = True,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **{"attr_name": names.EXPIRES_AT, "null": null, **options})
        self.provisional = provisional
        if self.attr_name != names.EXPIRES_AT:
            raise ConfigurationError(
                f"A TTLAttribute is stored as {names.EXPIRES_AT!r}, the attribute of the table's time to live, not as "
                f"{self.attr_name!r}."
            )
        if self.unit != _UNITS["s"] or self.attr_type != "N":
            raise ConfigurationError(
                "A TTLAttribute is stored in seconds, as DynamoDB reads it: omit unit and stored_as."
            )


class _IsoAttribute(Attribute[DayOrTime, Null]):
    """A day or a time of day as ISO text, which ``auto_now_add`` and ``auto_now`` set as in Django."""

    attr_type = "S"

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        auto_now: bool = False,
        auto_now_add: bool = False,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.field_options |= {"auto_now": auto_now, "auto_now_add": auto_now_add}

    def encode(self, value: DayOrTime) -> str:
        """ISO text."""
        return value.isoformat()


class DateAttribute(_IsoAttribute[datetime.date, Null]):
    """A calendar day, stored as ISO text. ``auto_now_add`` and ``auto_now`` as in Django."""

    key_kind = "date"
    expects = gettext_noop("a date")
    field_class = base.DateField

    def clean(self, value: object) -> datetime.date:
        """A ``date``, ISO text, or the day of a ``datetime`` as Django takes it: with ``USE_TZ`` in ``TIME_ZONE``."""
        if isinstance(value, datetime.datetime):
            return (value.astimezone(clock.zone()) if settings.USE_TZ and timezone.is_aware(value) else value).date()
        day = parse_date(value) if isinstance(value, str) else value
        if not isinstance(day, datetime.date):
            raise self.refuse(value)
        return day

    def decode(self, inner: str) -> datetime.date:
        """From ISO text."""
        return datetime.date.fromisoformat(inner)


class TimeAttribute(_IsoAttribute[datetime.time, Null]):
    """A time of day without a zone, stored as ISO text, to the microsecond.

    ``auto_now_add`` and ``auto_now`` as in Django.
    """

    key_kind = "time"
    expects = gettext_noop("a time of day without a zone")
    field_class = simple.TimeField

    def clean(self, value: object) -> datetime.time:
        """A ``time``, ISO text, or the time of a ``datetime`` as Django takes it; none has a zone."""
        time = parse_time(value) if isinstance(value, str) else value
        if isinstance(time, datetime.datetime):
            time = time.time()
        if not isinstance(time, datetime.time) or time.tzinfo is not None:
            raise self.refuse(value)
        return time.replace(fold=0)

    def decode(self, inner: str) -> datetime.time:
        """From ISO text."""
        return self.clean(datetime.time.fromisoformat(inner))


class DurationAttribute(Attribute[datetime.timedelta, Null]):
    """How long something takes, stored as a number of seconds, exact to the microsecond."""

    attr_type = "N"
    key_kind = "duration"
    expects = gettext_noop("a duration")
    field_class = simple.DurationField

    def clean(self, value: object) -> datetime.timedelta:
        """A ``timedelta``, or text in the forms that Django's ``parse_duration()`` takes."""
        duration = parse_duration(value) if isinstance(value, str) else value
        if not isinstance(duration, datetime.timedelta):
            raise self.refuse(value)
        return duration

    def encode(self, value: datetime.timedelta) -> str:
        """The number of seconds."""
        return values.number_to_text(values.seconds(value), path=self.name)

    def decode(self, inner: str) -> datetime.timedelta:
        """Return a duration from the number of seconds; raise ``ValueError`` for more precision than microseconds."""
        microseconds = _EXACT.scaleb(exact_number(self, inner), 6)
        if microseconds != microseconds.to_integral_value():
            raise ValueError(inner)
        return int(microseconds) * MICROSECOND
