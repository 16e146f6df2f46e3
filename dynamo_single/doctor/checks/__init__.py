"""What has to be true of a table's items, one module a subject.

Each module has ``wanted()``, which names the other items to look at, and ``findings()``; they send nothing and must not
know how a table is walked.
"""
