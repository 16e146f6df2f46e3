"""Django's functions of dates and times: ``Extract``, ``Trunc`` and ``Now``, in the current time zone or ``tzinfo``."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Extract, Now, TruncDate, TruncTime
from django.db.models.functions.datetime import TruncBase
from django.utils import timezone

from dynamo_single import clock
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.scope import Expression, Scope

_PARTS: dict[str, Callable[[Any], int]] = {
    "year": lambda value: int(value.year),
    "iso_year": lambda value: int(value.isocalendar()[0]),
    "quarter": lambda value: (int(value.month) + 2) // 3,
    "month": lambda value: int(value.month),
    "week": lambda value: int(value.isocalendar()[1]),
    "day": lambda value: int(value.day),
    "week_day": lambda value: int(value.isoweekday()) % 7 + 1,
    "iso_week_day": lambda value: int(value.isoweekday()),
    "hour": lambda value: int(value.hour),
    "minute": lambda value: int(value.minute),
    "second": lambda value: int(value.second),
}


@evaluate.register(Now)
def _now(expression: Expression, scope: Scope) -> Any:
    return clock.as_django(scope.statement.now)


def _local(expression: Expression, value: Any) -> Any:
    """Return a datetime as clocks show it in the expression's time zone; other values unchanged."""
    if not isinstance(value, datetime.datetime):
        if expression.tzinfo is not None:
            raise ValueError("tzinfo can only be used with DateTimeField.")
        return value
    if not settings.USE_TZ or timezone.is_naive(value):
        return value
    return value.astimezone(expression.tzinfo or timezone.get_current_timezone())


@evaluate.register(Extract)
def _extracted(expression: Expression, scope: Scope) -> Any:
    value = evaluate(expression.lhs, scope)
    if isinstance(expression.lhs.output_field, models.DurationField):
        raise ValueError("Extract requires native DurationField database support.")
    if expression.lookup_name not in _PARTS:
        raise NotSupported(
            f"Extract({expression.lookup_name!r}) is not supported. Use one of {', '.join(map(repr, _PARTS))}."
        )
    return None if value is None else _PARTS[expression.lookup_name](_local(expression, value))


@evaluate.register(TruncDate)
def _date_of(expression: Expression, scope: Scope) -> Any:
    value = evaluate(expression.lhs, scope)
    local = None if value is None else _local(expression, value)
    return local.date() if isinstance(local, datetime.datetime) else local


@evaluate.register(TruncTime)
def _time_of(expression: Expression, scope: Scope) -> Any:
    value = evaluate(expression.lhs, scope)
    local = None if value is None else _local(expression, value)
    return local.time() if isinstance(local, datetime.datetime) else local


@evaluate.register(TruncBase)
def _truncated(expression: Expression, scope: Scope) -> Any:
    value = evaluate(expression.lhs, scope)
    if value is None:
        return None
    local = _local(expression, value)
    zone = local.tzinfo if isinstance(local, datetime.datetime) else None
    if isinstance(local, datetime.datetime):
        # As in Django, the hour that clocks show twice is one period, the first of the two.
        local = local.replace(tzinfo=None, fold=0)
    found = _start(local, expression.kind)
    return _in_output(expression.output_field, found, zone)


def _in_output(field: Any, found: Any, zone: datetime.tzinfo | None) -> Any:
    if isinstance(field, models.DateTimeField):
        if not isinstance(found, datetime.datetime):
            found = datetime.datetime.combine(found, datetime.time())
        return timezone.make_aware(found, zone) if zone is not None else found
    if isinstance(found, datetime.datetime):
        return found.time() if isinstance(field, models.TimeField) else found.date()
    return found


def _start(value: Any, kind: str) -> Any:
    """Return the start of the period that contains a date, a time or a naive datetime."""
    if kind in ("hour", "minute", "second"):
        smaller = {"hour": ("minute", "second"), "minute": ("second",), "second": ()}[kind]
        return value.replace(microsecond=0, **dict.fromkeys(smaller, 0))
    if isinstance(value, datetime.datetime):
        return datetime.datetime.combine(_start(value.date(), kind), datetime.time())
    if kind == "week":
        return value - datetime.timedelta(days=value.weekday())
    days = {"year": {"month": 1, "day": 1}, "month": {"day": 1}, "day": {}}
    if kind == "quarter":
        return value.replace(month=(value.month - 1) // 3 * 3 + 1, day=1)
    if kind not in days:
        raise NotSupported(
            f"Trunc({kind!r}) is not supported. Use year, quarter, month, week, day, hour, minute or second."
        )
    return value.replace(**days[kind])
