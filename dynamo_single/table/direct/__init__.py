"""A request path of our own for what the app sends: connections, signatures and retries, without botocore's events.

Each module is one step; ``client`` puts them together. Raises botocore's own exceptions, so that whoever sends need not
know which of the two request paths it was.
"""

from botocore.exceptions import NoCredentialsError

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
    """Credentials have a character that no header can hold; it says which of them and whose, and not what they are."""

    fmt = "The {names} from {source} has a line break, another control character, or a letter beyond Latin-1"
