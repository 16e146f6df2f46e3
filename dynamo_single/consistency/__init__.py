"""What has to be true of the items of a table together, as checks of one item and of those that it has to do with.

Each subject is a module with ``wanted()``, which names the other items to look at, and ``findings()``. They send
nothing and must not know how a table is walked.
"""
