"""Check whether what is stored in a table fits together, and repair what does not."""

from dynamo_single.contrib.doctor import Finding, repair, verify

__all__ = ["Finding", "repair", "verify"]
