"""Breadcrumbs for Sentry: the requests before an error, without keys and values."""

from __future__ import annotations

import sentry_sdk

from dynamo_single.contrib.observability.described import describe
from dynamo_single.table.redirects import SentRequest


def is_wanted() -> bool:
    """Return whether the project has configured Sentry in this process; ``True`` for Sentry before 2.0."""
    return bool(sentry_sdk.is_initialized()) if hasattr(sentry_sdk, "is_initialized") else True


def report(sent: SentRequest) -> None:
    """Add a breadcrumb. Without a Sentry client, Sentry discards it."""
    found = describe(sent)
    cost = found.cost
    data = {
        "operation": cost.operation,
        "table": found.table,
        "index": found.index,
        "model": found.model,
        "items_read": cost.items_read,
        "units": cost.read_units + cost.write_units,
        "milliseconds": round(cost.seconds * 1000, 1),
        "retries": found.retries,
        "error": cost.error,
    }
    sentry_sdk.add_breadcrumb(
        category="dynamodb",
        type="query",
        level="error" if cost.error else "info",
        message=f"{cost.operation} {found.model or found.table}",
        data={name: value for name, value in data.items() if value},
    )
