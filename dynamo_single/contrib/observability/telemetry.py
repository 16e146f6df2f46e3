"""Spans and metrics for OpenTelemetry's API, which discards them until the project configures an SDK.

Attributes and metrics have the names of the semantic conventions for databases and DynamoDB:
https://opentelemetry.io/docs/specs/semconv/database/dynamodb/
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Final

from msgspec import Struct
from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from dynamo_single.contrib.observability.described import Described, describe
from dynamo_single.table.redirects import SentRequest

_NAME: Final = "dynamo_single"
_NANOSECONDS: Final = 10**9
#: The seconds after which requests are reported at the latest when a project configures its first provider.
LOOK_EVERY: Final = 0.1
_tracer = trace.get_tracer(_NAME)
_meter = metrics.get_meter(_NAME)
_duration = _meter.create_histogram(
    "db.client.operation.duration", unit="s", description="Duration of database client operations."
)
_units = _meter.create_counter(
    "dynamo_single.consumed_capacity", unit="{unit}", description="Capacity units that requests consumed."
)


def report(sent: SentRequest) -> None:
    """Record a span within the current span, and the duration and the units as metrics, without keys and values.

    Return immediately unless the project has configured a provider of spans or of metrics.
    """
    is_traced, is_measured = _is_provided(trace.get_tracer_provider()), _is_provided(metrics.get_meter_provider())
    if not is_traced and not is_measured:
        return
    found = describe(sent)
    cost = found.cost
    attributes = _attributes(cost.operation, found.table, found.index, found.model, cost.error)
    if is_traced:
        ended = time.time_ns()
        span = _tracer.start_span(
            f"{cost.operation} {found.table}".strip(),
            kind=SpanKind.CLIENT,
            start_time=ended - int(cost.seconds * _NANOSECONDS),
            attributes={**attributes, **_costs(found)},
        )
        if cost.error:
            span.set_status(Status(StatusCode.ERROR, cost.error))
        span.end(ended)
    if is_measured:
        _duration.record(cost.seconds, attributes)
        for kind, units in (("read", cost.read_units), ("write", cost.write_units)):
            if units:
                _units.add(units, {**attributes, "dynamo_single.capacity": kind})


class _Wanted(Struct):
    """Whether a provider is configured, and when to look again. A process sets each provider only once."""

    is_certain: bool = False
    look_at: float = 0.0


_wanted = _Wanted()


def is_wanted() -> bool:
    """Return whether the project has configured a provider of spans or of metrics.

    Look only every ``LOOK_EVERY`` seconds, because OpenTelemetry reads the environment each time.
    """
    if not _wanted.is_certain and (now := time.monotonic()) >= _wanted.look_at:
        providers = (trace.get_tracer_provider(), metrics.get_meter_provider())
        _wanted.is_certain, _wanted.look_at = any(map(_is_provided, providers)), now + LOOK_EVERY
    return _wanted.is_certain


def _is_provided(provider: object) -> bool:
    """Return whether a provider is not one of the API's, whose spans and metrics are discarded."""
    return not type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


@lru_cache(maxsize=1024)
def _attributes(operation: str, table: str, index: str, model: str, error: str) -> dict[str, str]:
    """Return the attributes of spans and of metrics: few distinct values. Do not change the result."""
    given = {
        "db.system.name": "aws.dynamodb",
        "db.operation.name": operation,
        "db.collection.name": table,
        "aws.dynamodb.index_name": index,
        "dynamo_single.model": model,
        "error.type": error,
    }
    return {name: value for name, value in given.items() if value}


def _costs(found: Described) -> dict[str, float]:
    cost = found.cost
    return {
        "aws.dynamodb.scanned_count": cost.items_read,
        "aws.dynamodb.count": cost.items_returned,
        "dynamo_single.read_units": cost.read_units,
        "dynamo_single.write_units": cost.write_units,
        "dynamo_single.retries": found.retries,
    }
