"""Check whether the contents of a table are consistent, and repair them."""

from dynamo_single.contrib.doctor import Finding, repair, verify

__all__ = ["Finding", "repair", "verify"]
