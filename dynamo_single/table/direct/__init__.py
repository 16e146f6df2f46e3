"""A request path of our own for what the app sends: connections, signatures and retries, without botocore's events.

Each module is one step; ``client`` puts them together. Raises botocore's own exceptions, so that whoever sends need not
know which of the two request paths it was.
"""

#: What this request path sends: all that the app itself sends. What a project sends besides is botocore's.
OPERATIONS = frozenset(
    {
        "BatchGetItem",
        "BatchWriteItem",
        "CreateTable",
        "DeleteItem",
        "DeleteTable",
        "DescribeTable",
        "DescribeTimeToLive",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
        "UpdateTable",
        "UpdateTimeToLive",
    }
)
