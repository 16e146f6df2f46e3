"""Whether what is stored in a table fits together, and repairing what does not.

What has to be true is checked of one item and of those that it has to do with. Each subject is a module with
``wanted()``, which names the other items to look at, and ``findings()``; they send nothing and must not know how a
table is walked.
"""

from dynamo_single.verification.findings import Finding
from dynamo_single.verification.walk import repair, verify

__all__ = ["Finding", "repair", "verify"]
