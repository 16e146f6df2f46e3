"""Measures, their exact sums, and the truncation of dates and datetimes as in Django; they ignore missing values.

This module does not depend on Django's expressions, on plans, or on reading values.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from decimal import Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

from django.utils import timezone
from msgspec import Struct

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.comparing import comparable, hashable
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.schema.attributes import (
    Attribute,
    DecimalAttribute,
    IntegerAttribute,
    NumberAttribute,
)
from dynamo_single.orm.schema.attributes.scalars import exact_number
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.table.request import MAX_DIGITS

Function = Literal["Count", "Min", "Max", "Sum", "Avg"]

#: The attributes that support sums.
NUMBERS = (IntegerAttribute, DecimalAttribute, NumberAttribute)
#: DynamoDB's numbers have 38 digits between 1E-130 and 1E+126: sums of as many as there can be fit in.
_EXACT = Context(prec=600, traps=[Inexact, InvalidOperation])
_QUOTIENT = Context(prec=MAX_DIGITS)


class Measure(Struct, frozen=True):
    """An aggregate: a function of an attribute or of whole items, or a count of ``children``."""

    alias: str
    function: Function
    attribute: str | None = None
    distinct: bool = False
    filter: Condition = EVERYTHING
    default: Any = None
    children: str | None = None
    #: The filter in words, without secrets; empty if there is none.
    worded: str = ""

    def __str__(self) -> str:
        """Return the measure in words, as it was requested."""
        distinct = ", distinct" if self.distinct else ""
        only = f", where {self.worded}" if self.filter != EVERYTHING else ""
        return f"{self.alias}={self.function}({self.children or self.attribute or '*'}{distinct}{only})"


class Accumulator:
    """Accumulates one measure, value by value, and returns its result in Django's type."""

    def __init__(self, measure: Measure, attribute: Attribute | None) -> None:
        self.measure = measure
        self.attribute = attribute
        self._count = 0
        self._total = Decimal(0)
        self._outermost: Any = None
        self._seen: set[Hashable] = set()

    def add(self, value: Any) -> None:
        """Add a value; ``None`` is ignored."""
        if value is None:
            return
        if self.measure.distinct:
            known = hashable(value)
            if known in self._seen:
                return
            self._seen.add(known)
        self._count += 1
        if self.measure.function in ("Sum", "Avg"):
            self._total = _EXACT.add(self._total, _exact(value))
        elif self.measure.function in ("Min", "Max"):
            self._take_outermost(value)

    def _take_outermost(self, value: object) -> None:
        lower = self._outermost is not None and comparable(value) < comparable(self._outermost)
        if self._count == 1 or lower == (self.measure.function == "Min"):
            self._outermost = value

    def result(self) -> Any:
        """Return the result; the measure's default without a value."""
        function = self.measure.function
        if function == "Count":
            return self._count
        if not self._count:
            return self.measure.default
        if function == "Sum":
            return _in_attribute_type(self.attribute, self._total)
        if function == "Avg":
            return self._average()
        return self._outermost

    def _average(self) -> Decimal | float:
        if isinstance(self.attribute, DecimalAttribute):
            return _QUOTIENT.divide(self._total, Decimal(self._count))
        return float(Fraction(self._total) / self._count)


def checked_default(function: Function, attribute: Attribute, value: object) -> object:
    """Return a default in the type of the result; raises ``InvalidValue`` for a value of another type."""
    if value is None:
        return None
    if function in ("Min", "Max"):
        return attribute.prepare(value)
    with attribute.refusing(value):
        number = exact_number(attribute, value)
    if function == "Avg" and not isinstance(attribute, DecimalAttribute):
        return float(number)
    return _in_attribute_type(attribute, number) if function == "Sum" else number


def _exact(value: float | Decimal) -> Decimal:
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _in_attribute_type(attribute: Attribute | None, number: Decimal) -> Decimal | float:
    """Return a sum in the type of the attribute."""
    if isinstance(attribute, DecimalAttribute):
        return number
    whole = number == number.to_integral_value()
    return int(number) if whole else float(number)


#: The periods for truncating dates and datetimes.
DATE_PERIODS = ("year", "month", "week", "day")
DATETIME_PERIODS = (*DATE_PERIODS, "hour", "minute", "second")
ORDERS = ("ASC", "DESC")


def check_period(kind: str, kinds: tuple[str, ...], order: str) -> None:
    """Raise an error for an unknown period or order."""
    for name, value, known in (("kind", kind, kinds), ("order", order, ORDERS)):
        if value not in known:
            raise InvalidValue(f"{name!r} is one of {', '.join(map(repr, known))}, not {shown(value)}.")


def period_of_date(value: datetime.date, kind: str) -> datetime.date:
    """Return the first day of the period of a day; it converts an aware datetime to the current time zone."""
    if isinstance(value, datetime.datetime):
        value = (timezone.localtime(value) if timezone.is_aware(value) else value).date()
    return _first_day(value, kind)


def period_of_datetime(value: datetime.datetime, kind: str, zone: datetime.tzinfo) -> datetime.datetime:
    """Return the start of the period of a datetime in a time zone, or in the values of a naive one."""
    # As in Django, the hour that clocks show twice is one period, the first of the two.
    is_aware = timezone.is_aware(value)
    local = (value.astimezone(zone) if is_aware else value).replace(tzinfo=None, fold=0)
    if kind in DATE_PERIODS:
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
