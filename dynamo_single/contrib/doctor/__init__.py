"""Check a whole table: whether its items are consistent, and which queries its keys support.

Only repairs write.
"""

from dynamo_single.contrib.doctor.findings import Finding
from dynamo_single.contrib.doctor.walk import repair, verify

__all__ = ["Finding", "repair", "verify"]
