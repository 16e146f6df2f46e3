"""Look at a whole table: whether its items fit together, and which queries its keys answer.

Only repairs write.
"""

from dynamo_single.contrib.doctor.findings import Finding
from dynamo_single.contrib.doctor.walk import repair, verify

__all__ = ["Finding", "repair", "verify"]
