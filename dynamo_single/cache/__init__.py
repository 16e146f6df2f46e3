"""Django's cache in the table."""

from dynamo_single.cache.backend import DynamoCache

__all__ = ["DynamoCache"]
