"""Requests, connections, errors, batches and provisioning of one DynamoDB table; it has never heard of a model.

The one package that talks to DynamoDB. What a project may use of it is handed on here.
"""

from dynamo_single.table.redirects import SentRequest, capture_requests, intercept, listening
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table, get_table

__all__ = ["Request", "SentRequest", "Table", "capture_requests", "get_table", "intercept", "listening"]
