"""The checks of stored items, one module for each subject.

Each module has ``wanted()``, which returns the keys of related items to read, and ``findings()``. They do not send
requests and do not depend on how a table is walked.
"""
