"""A request path of our own for operations on items: connections, signatures and retries, without botocore's events.

Each module is one step; ``client`` puts them together. Raises botocore's own exceptions, so that whoever sends need not
know which of the two request paths it was.
"""

#: What this request path sends; everything else, which is rare, is botocore's.
OPERATIONS = frozenset(
    {
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    }
)
