"""Look at a whole table: whether its items fit together, and which queries its keys answer.

Only repairs write.
"""

from dynamo_single.doctor.findings import Finding
from dynamo_single.doctor.walk import repair, verify

__all__ = ["Finding", "repair", "verify"]
