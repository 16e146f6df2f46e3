"""Spans and metrics by OpenTelemetry's API, which does nothing until the project configures an SDK.

Names of attributes and metrics are those of the semantic conventions for databases and DynamoDB:
https://opentelemetry.io/docs/specs/semconv/database/dynamodb/
"""

from __future__ import annotations

import time
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from dynamo_single.contrib.observability.described import Described, describe
from dynamo_single.table.redirects import SentRequest

_NAME: Final = "dynamo_single"
_NANOSECONDS: Final = 10**9
_tracer = trace.get_tracer(_NAME)
_meter = metrics.get_meter(_NAME)
_duration = _meter.create_histogram(
    "db.client.operation.duration", unit="s", description="Duration of database client operations."
)
_units = _meter.create_counter(
    "dynamo_single.consumed_capacity", unit="{unit}", description="Capacity units that requests consumed."
)


def report(sent: SentRequest) -> None:
    """Record a span within the current span, and the duration and the units as metrics. No values, no keys."""
    found = describe(sent)
    ended = time.time_ns()
    attributes = _attributes(found)
    span = _tracer.start_span(
        f"{found.cost.operation} {found.table}".strip(),
        kind=SpanKind.CLIENT,
        start_time=ended - int(found.cost.seconds * _NANOSECONDS),
        attributes=attributes,
    )
    if found.cost.error:
        span.set_status(Status(StatusCode.ERROR, found.cost.error))
    if span.is_recording():
        span.set_attributes(_costs(found))
    span.end(ended)
    _duration.record(found.cost.seconds, attributes)
    for kind, units in (("read", found.cost.read_units), ("write", found.cost.write_units)):
        if units:
            _units.add(units, {**attributes, "dynamo_single.capacity": kind})


def _attributes(found: Described) -> dict[str, str]:
    """Return the attributes of spans and of metrics: few distinct values."""
    given = {
        "db.system.name": "aws.dynamodb",
        "db.operation.name": found.cost.operation,
        "db.collection.name": found.table,
        "aws.dynamodb.index_name": found.index,
        "dynamo_single.model": found.model,
        "error.type": found.cost.error,
    }
    return {name: value for name, value in given.items() if value}


def _costs(found: Described) -> dict[str, float]:
    cost = found.cost
    counts = {"aws.dynamodb.scanned_count": cost.items_read, "aws.dynamodb.count": cost.items_returned}
    units = {"dynamo_single.read_units": cost.read_units, "dynamo_single.write_units": cost.write_units}
    return {**counts, **units, "dynamo_single.retries": found.retries}
