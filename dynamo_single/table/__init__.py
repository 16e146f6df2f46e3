"""One DynamoDB table: its requests, connections, errors, batches and definition. The package is independent of models.

No other package talks to DynamoDB. This module exports the names that a project may use.
"""

from dynamo_single.table.redirects import SentRequest, capture_requests, intercept, listening
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table, get_table

__all__ = ["Request", "SentRequest", "Table", "capture_requests", "get_table", "intercept", "listening"]
