"""One request, as a value."""

from __future__ import annotations

from msgspec import Struct, field

from dynamo_single.table.items import Parameters

#: The operations that only read.
READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})


class Request(Struct, frozen=True):
    """One request as DynamoDB's API takes it, without the table's name."""

    operation: str
    params: Parameters = field(default_factory=dict)


def only_reads(operation: str) -> bool:
    """Whether an operation changes nothing, neither an item nor a table."""
    return operation in READS or operation.startswith(("Describe", "List"))
