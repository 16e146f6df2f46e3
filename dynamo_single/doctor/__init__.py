"""Look at a whole table: whether its items fit together, what it holds, and what is not as it should be.

Secrets are masked before anything leaves this folder. Only repairs write.
"""

from dynamo_single.doctor.findings import Finding
from dynamo_single.doctor.walk import repair, verify

__all__ = ["Finding", "repair", "verify"]
