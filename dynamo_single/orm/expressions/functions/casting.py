"""Values as the type of an output field: ``Cast()``, ``ExpressionWrapper()`` and annotations."""

from __future__ import annotations

import datetime
import json
import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models.expressions import ExpressionWrapper
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime, parse_duration, parse_time

from dynamo_single.orm.expressions.evaluation import evaluate
from dynamo_single.orm.expressions.functions.arithmetic import CONTEXT
from dynamo_single.orm.expressions.scope import Expression, Scope

#: The number at the beginning of a string; SQL ignores the rest.
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def as_text(value: Any) -> str:
    """Return a value as text, in the form in which Django writes it into a column of text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict | list):
        return json.dumps(value, cls=DjangoJSONEncoder)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.hex if isinstance(value, UUID) else str(value)


def _as_number(value: Any) -> Decimal:
    if isinstance(value, str):
        found = _NUMBER.match(value)
        return Decimal(found[0].strip()) if found else Decimal(0)
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _as_datetime(value: Any) -> Any:
    if isinstance(value, str):
        value = parse_datetime(value) or parse_date(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    if isinstance(value, datetime.datetime) and timezone.is_naive(value):
        return timezone.make_aware(value, datetime.UTC) if settings.USE_TZ else value
    return value


def _as_date(value: Any) -> Any:
    if isinstance(value, str):
        return parse_date(value) or _as_date(parse_datetime(value))
    return value.date() if isinstance(value, datetime.datetime) else value


def _as_time(value: Any) -> Any:
    if isinstance(value, str):
        return parse_time(value) or _as_time(parse_datetime(value))
    return value.time() if isinstance(value, datetime.datetime) else value


def _as_decimal(value: Any, field: Any) -> Any:
    found = _as_number(value)
    places = getattr(field, "decimal_places", None)
    return found if places is None else found.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, CONTEXT)


@evaluate.register(Cast)
def _cast(expression: Expression, scope: Scope) -> Any:
    value = evaluate(expression.get_source_expressions()[0], scope)
    return None if value is None else cast_to(expression.output_field, value)


def cast_to(field: Any, value: Any) -> Any:
    """Return a value in the type of a field; text that spells no value of it is ``None``, or 0 for a number."""
    try:
        for kind, convert in _CONVERSIONS:
            if isinstance(field, kind):
                return convert(value, field)
    except (ValueError, InvalidOperation, AttributeError):
        return None
    return value


def _shortened(value: Any, field: Any) -> str:
    text = as_text(value)
    return text if field.max_length is None else text[: field.max_length]


_CONVERSIONS: tuple[tuple[Any, Any], ...] = (
    (models.BooleanField, lambda value, field: bool(_as_number(value)) if isinstance(value, str) else bool(value)),
    (models.UUIDField, lambda value, field: value if isinstance(value, UUID) else UUID(str(value))),
    (models.JSONField, lambda value, field: json.loads(value) if isinstance(value, str) else value),
    ((models.CharField, models.TextField), _shortened),
    (models.IntegerField, lambda value, field: int(_as_number(value))),
    (models.FloatField, lambda value, field: float(_as_number(value))),
    (models.DecimalField, _as_decimal),
    (models.DateTimeField, lambda value, field: _as_datetime(value)),
    (models.DateField, lambda value, field: _as_date(value)),
    (models.TimeField, lambda value, field: _as_time(value)),
    (models.DurationField, lambda value, field: parse_duration(value) if isinstance(value, str) else value),
    (models.BinaryField, lambda value, field: value.encode() if isinstance(value, str) else bytes(value)),
)


@evaluate.register(ExpressionWrapper)
def _wrapped(expression: Expression, scope: Scope) -> Any:
    return in_type(expression.output_field, evaluate(expression.expression, scope))


def in_type(field: Any, value: Any) -> Any:
    """Return a computed value in the type of its output field, as Django converts what a database returns."""
    if value is None or isinstance(value, str | dict | list | UUID):
        return value
    if isinstance(field, models.BooleanField):
        return bool(value)
    if isinstance(value, Decimal | int | float) and not isinstance(value, bool):
        return _number_in_type(field, value)
    if isinstance(field, models.DateTimeField):
        return _as_datetime(value)
    if isinstance(field, models.DateField):
        return _as_date(value)
    return value


def _number_in_type(field: Any, value: Any) -> Any:
    if isinstance(field, models.FloatField):
        return float(value)
    if isinstance(field, models.DecimalField):
        return _as_number(value)
    if isinstance(field, models.IntegerField) and value == int(value):
        return int(value)
    return datetime.timedelta(microseconds=int(value)) if isinstance(field, models.DurationField) else value
