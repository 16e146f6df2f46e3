"""One request, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

#: The operations that only read.
READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})


class Request(Struct, frozen=True):
    """One request as DynamoDB's API takes it, without the table's name."""

    operation: str
    params: Mapping[str, Any] = field(default_factory=dict)
