"""Send the app's requests without botocore's events: connections, signatures and retries.

Each module implements one step, and ``client`` combines them. All errors are botocore's exceptions, so callers do not
depend on which of the two request paths sent a request.
"""

from botocore.exceptions import NoCredentialsError

#: The operations of this request path: all that the app itself sends. botocore sends a project's other operations.
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
        "ListTables",
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


class UnsendableCredentials(NoCredentialsError):
    """Credentials contain a character that a header cannot have; the error names them and their source."""

    fmt = "The {names} from {source} has a line break, another control character, or a letter beyond Latin-1"
