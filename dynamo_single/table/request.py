"""One request, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: The operations that only read.
READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request as DynamoDB's API takes it, without the table's name."""

    operation: str
    params: Mapping[str, Any] = field(default_factory=dict)
