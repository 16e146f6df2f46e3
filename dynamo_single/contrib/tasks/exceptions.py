"""The error that a task has if a worker did not finish it."""

from dynamo_single.exceptions import DynamoSingleError


class WorkerLost(DynamoSingleError):
    """A worker claimed a task, and ended or lost its connection before it recorded an outcome."""
